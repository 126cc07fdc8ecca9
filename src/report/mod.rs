//! The only place that prints: failures and notes to stderr, short texts to
//! stdout. Every per-file failure passes through [`Report::problem`], which
//! counts it, so that it always shows in the exit code.

pub mod details;
pub mod diagnostic;
pub mod style;
pub mod usage;

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bc_fs::safe;

use self::diagnostic::Diagnostic;
use self::style::{Meaning, colored, painted};
use crate::files::output::Output;
use crate::parse::args::{Choice, Common, LogFormat};

/// Exit status of a run, one enum for all applets (see `src/guide/rules.md`, "Exit codes"). The order is the order of gravity: of two outcomes the larger one decides
/// ([`Exit::worst`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// All done; nothing differs.
    Done,
    /// Done, but something differs, failed verification or could not be read.
    Differs,
    /// `integrity verify`: damage suspected.
    Damage,
    /// Usage error, unusable input or a fatal failure.
    Fatal,
    /// Ended by this signal, which `main` raises again after clean-up.
    Signal(i32),
}

impl Exit {
    /// Returns the graver of two outcomes.
    pub fn worst(self, other: Exit) -> Exit {
        self.max(other)
    }

    /// Returns the exit code; of a signal the one that shells give it.
    pub fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Differs => 1,
            Exit::Fatal => 2,
            Exit::Damage => 3,
            Exit::Signal(number) => 128 + (number & 0x7f) as u8,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        // That of a signal is reached only where it could not be raised again.
        ExitCode::from(exit.code())
    }
}

/// Diagnostics of one run.
pub struct Report {
    applet: &'static str,
    quiet: bool,
    verbosity: u8,
    failures: AtomicU64,
    /// Results that stdout did not take.
    lost: AtomicBool,
}

impl Report {
    /// Returns the report of the applet called `applet` ("hash", "dup" ...).
    pub fn new(applet: &'static str, common: &Common) -> Report {
        DiagnosticStyle::new(common.log_format, common.color).set();
        Report {
            applet,
            quiet: common.quiet,
            verbosity: common.verbose,
            failures: AtomicU64::new(0),
            lost: AtomicBool::new(false),
        }
    }

    /// Reports a failure, as of a file that could not be done: `bc hash: PATH: open: Permission
    /// denied (os error 13)`.
    pub fn problem(&self, what: impl Into<Diagnostic>) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        self.emit("error", &what.into());
    }

    /// Reports results that could not be written: the run is a fatal failure, even if all its work
    /// was done.
    pub fn unwritten(&self, what: impl Into<Diagnostic>) {
        self.lost.store(true, Ordering::Relaxed);
        self.problem(what);
    }

    /// Reports something that is no failure; hidden by `-q`.
    pub fn warning(&self, what: impl Into<Diagnostic>) {
        if !self.quiet {
            self.emit("warning", &what.into());
        }
    }

    /// Reports a warning that `-q` does not hide, because an exit code depends on it.
    pub fn always(&self, text: impl Display) {
        self.emit("warning", &text.to_string().into());
    }

    /// Prints the closing line of a command, hidden by `-q`.
    pub fn summary(&self, text: impl Display) {
        if !self.quiet {
            self.info(text);
        }
    }

    /// Prints a line for a person at a terminal: what was done, and what to type next. Pipes, files
    /// and lines of JSON get none, nor does `-q`.
    pub fn closing(&self, text: impl FnOnce() -> String) {
        let is_text = style().format == LogFormat::Text;
        if !self.quiet && is_text && std::io::stderr().is_terminal() {
            self.info(text());
        }
    }

    /// Prints a message that is no warning, and that no option hides.
    pub fn info(&self, text: impl Display) {
        self.emit("info", &text.to_string().into());
    }

    /// Prints a note with `-v`; its text is made only then.
    pub fn note(&self, text: impl Display) {
        if self.shows(1) {
            self.info(text);
        }
    }

    /// Prints a note with `-vv`; its text is made only then.
    pub fn detail(&self, text: impl FnOnce() -> String) {
        if self.shows(2) {
            self.info(text());
        }
    }

    /// Returns true if notes of this verbosity are shown (1: `-v`, 2: `-vv`).
    pub fn shows(&self, level: u8) -> bool {
        self.verbosity >= level
    }

    /// Failures so far.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Returns [`Exit::Fatal`] if what was asked could not be done, else [`Exit::Differs`] if anything failed.
    pub fn exit(&self) -> Exit {
        if self.lost.load(Ordering::Relaxed) {
            Exit::Fatal
        } else if self.failures() == 0 {
            Exit::Done
        } else {
            Exit::Differs
        }
    }

    /// Returns the applet's name.
    pub fn applet(&self) -> &'static str {
        self.applet
    }

    fn emit(&self, level: &str, what: &Diagnostic) {
        emit(&format!("bc {}", self.applet), level, what);
    }
}

/// Formats one diagnostic with its newline, as text or as a JSON object. Names and reasons in it
/// can do a terminal no harm, in a log that is read later neither.
fn line(format: LogFormat, color: bool, who: &str, level: &str, what: &Diagnostic) -> String {
    if format == LogFormat::Text {
        let meaning = match level {
            "error" => Meaning::Bad,
            "warning" => Meaning::Changed,
            _ => Meaning::Plain,
        };
        let who = painted(color, meaning, &format!("{who}:"));
        return format!("{who} {}\n", safe::line(what.text()));
    }
    let applet = who.strip_prefix("bc ").unwrap_or(who);
    let mut object = serde_json::json!({
        "time": crate::session::metrics::now(), "level": level,
        "applet": applet, "message": what.text(),
    });
    if let Some(object) = object.as_object_mut() {
        object.extend(what.fields(applet));
    }
    format!("{}\n", safe::json(&object.to_string()))
}

/// Style of all diagnostics.
#[derive(Clone, Copy)]
pub struct DiagnosticStyle {
    /// Format of a diagnostic.
    pub format: LogFormat,
    /// True if stderr is coloured.
    pub is_colored: bool,
    /// Choice of colours, for stdout too.
    color: Choice,
}

impl DiagnosticStyle {
    fn new(format: LogFormat, color: Choice) -> DiagnosticStyle {
        DiagnosticStyle {
            format,
            is_colored: colored(color, std::io::stderr().is_terminal()),
            color,
        }
    }

    fn set(self) {
        if let Ok(mut style) = STYLE.lock() {
            *style = Some(self);
        }
    }
}

/// The style, once arguments have been looked at.
static STYLE: Mutex<Option<DiagnosticStyle>> = Mutex::new(None);

/// Returns the style of diagnostics.
pub fn style() -> DiagnosticStyle {
    let style = STYLE.lock().ok().and_then(|style| *style);
    style.unwrap_or_else(|| DiagnosticStyle::new(LogFormat::Text, Choice::Auto))
}

/// Takes format and colour of fatal errors from arguments that are not parsed yet.
pub fn style_of(args: &[OsString]) {
    let value = |name: &str| {
        let given = args.iter().enumerate().rev().find_map(|(i, arg)| {
            let rest = arg.to_str()?.strip_prefix("--")?.strip_prefix(name)?;
            match rest.strip_prefix('=') {
                Some(value) => Some(value.to_owned()),
                None if rest.is_empty() => Some(args.get(i + 1)?.to_str()?.to_owned()),
                None => None,
            }
        });
        let variable = format!("BC_{}", name.replace('-', "_").to_uppercase());
        given.or_else(|| std::env::var(variable).ok())
    };
    let format = match value("log-format").as_deref() {
        Some("json") => LogFormat::Json,
        _ => LogFormat::Text,
    };
    let color = match value("color").as_deref() {
        Some("always") => Choice::Always,
        Some("never") => Choice::Never,
        _ => Choice::Auto,
    };
    DiagnosticStyle::new(format, color).set();
}

/// Prints a usage or fatal error and gives exit code 2.
pub fn fatal(who: &str, what: impl Into<Diagnostic>) -> Exit {
    emit(who, "error", &what.into());
    Exit::Fatal
}

/// Prints the same to stdout, where stderr leads to a file that has to stay as it is.
pub fn fatal_on_stdout(applet: &str, what: impl Into<Diagnostic>) -> Exit {
    let who = format!("bc {applet}");
    let text = line(style().format, false, &who, "error", &what.into());
    // A failure of that cannot be reported anywhere.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
    Exit::Fatal
}

/// Prints a warning outside of a [`Report`].
pub fn caution(who: &str, text: &str) {
    emit(who, "warning", &text.into());
}

fn emit(who: &str, level: &str, what: &Diagnostic) {
    let DiagnosticStyle {
        format, is_colored, ..
    } = style();
    write_stderr(&line(format, is_colored, who, level, what));
}

/// Asks something, on the terminal's stderr; the answer is the caller's to read.
pub fn ask(question: &str) {
    write_stderr(&safe::lines(question));
}

/// Prints a short text to stdout.
pub fn print(text: &str) -> Exit {
    print_by(|out| out.write_all(text.as_bytes()))
}

/// Prints to stdout by what `write` does.
pub fn print_by(write: impl FnOnce(&mut Output) -> std::io::Result<()>) -> Exit {
    let mut out = match Output::open(None) {
        Ok(out) => out.colors(style().color),
        Err(text) => return fatal("bc", &text),
    };
    let result = write(&mut out);
    match out.finish(result) {
        Ok(_) => Exit::Done,
        Err(text) => fatal("bc", &text),
    }
}

/// Writes a line in one call, so that lines of several processes do not mix; a failure of stderr
/// itself cannot be reported anywhere.
pub fn write_stderr(line: &str) {
    let _ = crate::session::progress::with_line_off(|err| err.write_all(line.as_bytes()));
}
