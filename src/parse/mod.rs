//! The command line as a pure function: arguments and what they are read beside (configuration,
//! variables, which paths there are) go in, one [`ParseResult`] comes out. Nothing is printed and
//! nothing is run here; [`crate::dispatch`] acts on the result.

pub mod applet;
pub mod args;
pub mod commands;
pub mod config;
pub mod describe;
pub mod environment;
pub mod help;
pub mod hints;
pub mod names;
pub mod overview;
pub mod time;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Command};

use self::applet::{APPLETS, Applet, AppletCall, by_name, by_program};
use self::args::first_positional;
use self::environment::{Environment, PathKind};
use self::names::Names;
use crate::gnu::Program;

/// Meaning of a command line.
pub enum ParseResult {
    /// An applet is to be run.
    Ok(AppletRun),
    /// Something else than the run of an applet was asked for.
    Special(Special),
    /// It cannot be understood, which ends with exit code 2.
    Err(ParseError),
}

/// An applet and its arguments.
pub struct AppletRun {
    /// Applet to run.
    pub applet: &'static Applet,
    /// Its arguments, with the settings of lower layers.
    pub matches: ArgMatches,
    /// Warnings about settings that were left out.
    pub cautions: Vec<String>,
}

/// Requests beside the applets.
pub enum Special {
    /// Nothing at all: a person gets the overview.
    Nothing {
        /// True if the calculator may have been meant.
        is_bc: bool,
        /// Name of the program.
        called: String,
    },
    /// Input of the calculator bc.
    Calculator,
    /// Tasks, commands and options of the program of this name.
    Overview(String),
    /// Its commands and options alone.
    ShortOverview(String),
    /// The version of the program of this name.
    Version(String),
    /// Names of the applets.
    List,
    /// Help or the version of a command, as clap has it.
    Help(Box<clap::Error>),
    /// A command tree as JSON.
    Describe(Box<Command>),
    /// Manual pages or completions, for programs of these names.
    Generate(Names),
    /// Links to the program of these names.
    Install(Names),
    /// Another checksum program, which reads the arguments itself.
    Gnu(&'static Program),
}

/// Reason why a command line cannot be understood.
pub enum ParseError {
    /// As clap has it, with the usage.
    Clap(Box<clap::Error>),
    /// In our words.
    Message {
        /// Command that speaks: `bc hash`.
        who: String,
        /// Its message.
        text: String,
    },
}

/// Reads a whole command line, the program's name first.
pub fn parse(argv: &[OsString], env: &Environment<'_>) -> ParseResult {
    let program = argv.first().map_or(OsStr::new("bc"), OsString::as_os_str);
    let base = Path::new(program).file_name().unwrap_or(program);
    // As help and messages name the program.
    let called = bc_fs::escape(base.as_bytes()).into_owned();
    let rest = argv.get(1..).unwrap_or_default();
    let asks_pages = crate::generate::is_asked(rest.first());
    if let Some(applet) = by_program(base.as_bytes()) {
        if asks_pages {
            return ParseResult::Special(Special::Generate(crate::generate::names(&called)));
        }
        let names = Names::beside_the_calculator("bitcrafts").with_applet(applet.name, &called);
        return of_applet(applet, &called, &names, rest, env);
    }
    if let Some(program) = crate::gnu::by_program(base.as_bytes()) {
        return ParseResult::Special(Special::Gnu(program));
    }
    let names = Names::called(&called);
    let is_bc = base == "bc";
    let Some(first) = rest.first() else {
        return ParseResult::Special(Special::Nothing { is_bc, called });
    };
    let in_applet = |applet: &'static Applet, rest: &[OsString]| {
        let called = format!("{called} {}", applet.name);
        of_applet(applet, &called, &names, rest, env)
    };
    if let Some(applet) = by_name(first) {
        return in_applet(applet, &rest[1..]);
    }
    ParseResult::Special(match first.to_str() {
        Some("--list") => Special::List,
        Some("--version" | "-V") => Special::Version(called),
        Some("--help") => Special::Overview(called),
        Some("-h") => Special::ShortOverview(called),
        Some("help") => match rest.get(1).and_then(|name| by_name(name)) {
            Some(applet) => return in_applet(applet, &["--help".into()]),
            None => Special::Overview(called),
        },
        Some("--describe") => Special::Describe(Box::new(self::commands::whole())),
        Some(_) if asks_pages => Special::Generate(crate::generate::names(&called)),
        Some("install") => Special::Install(names),
        _ => {
            let is_calculator = is_bc && is_calculator_call(first, env);
            let is_quiet = first == "-q" || first == "--quiet";
            match behind_options(rest).filter(|_| !is_calculator || is_quiet) {
                Some((at, applet)) => {
                    let (before, named) = rest.split_at(at);
                    return in_applet(applet, &[before, &named[1..]].concat());
                }
                None if is_calculator => Special::Calculator,
                None => return refused("bc", unknown(first, env)),
            }
        }
    })
}

/// Returns the applet that stands behind options of its own, and its place.
fn behind_options(args: &[OsString]) -> Option<(usize, &'static Applet)> {
    // Without the word itself no option need be looked up.
    let named = || args.iter().skip(1).filter_map(|arg| by_name(arg));
    let starts = args.first()?.as_bytes().starts_with(b"-");
    let mut named = starts.then(named)?;
    named.find_map(|applet| {
        let at = first_positional(&(applet.command)(), args)?;
        (args[at] == applet.name).then_some((at, applet))
    })
}

fn of_applet(
    applet: &'static Applet,
    called: &str,
    names: &Names,
    rest: &[OsString],
    env: &Environment<'_>,
) -> ParseResult {
    let line = AppletCall {
        applet,
        called,
        names,
        rest,
    };
    line.parse(env).unwrap_or_else(|other| *other)
}

fn refused(who: &str, text: String) -> ParseResult {
    ParseResult::Err(ParseError::Message {
        who: who.to_owned(),
        text,
    })
}

/// Command tree and the arguments that it parses.
struct Parser {
    command: Command,
    /// The arguments, the subcommand first.
    args: Vec<OsString>,
}

impl AppletCall<'_> {
    /// Parses it, and has the layers below the command line filled in.
    fn parse(&self, env: &Environment<'_>) -> Result<ParseResult, Box<ParseResult>> {
        if let Some(text) = hints::of_misread(self, env) {
            return Err(Box::new(self.refused(text)));
        }
        let options = self.rest.iter().take_while(|arg| *arg != "--");
        if options.clone().any(|arg| arg == "--describe") {
            return Ok(ParseResult::Special(Special::Describe(Box::new(
                self.whole(),
            ))));
        }
        let Parser { mut command, args } = match self.with_one_subcommand(env) {
            Some(parser) => parser,
            None => self.with_all_subcommands(env)?,
        };
        let called = std::iter::once(OsString::from(self.called));
        let mut argv: Vec<OsString> = called.chain(args).collect();
        let matches = command.try_get_matches_from_mut(&argv);
        let mut matches = matches.map_err(|error| self.failed(error, env))?;
        let mut cautions = Vec::new();
        if let Some((name, given)) = matches.subcommand() {
            let explicit = given.get_one::<PathBuf>("config").cloned();
            let layers = config::Layers::load(explicit, self.applet.name, self.applet.command, env);
            let mut layers = layers.map_err(|text| self.refused(text))?;
            cautions = std::mem::take(&mut layers.cautions);
            let extra = match command.find_subcommand(name) {
                Some(command) => layers.arguments(command, given),
                None => Ok(Vec::new()),
            };
            let extra = extra.map_err(|text| self.refused(text))?;
            if !extra.is_empty() {
                // Right behind the subcommand's name, so before anything the user wrote.
                argv.splice(2..2, extra);
                let again = command.try_get_matches_from_mut(argv);
                matches = again.map_err(|error| self.failed(error, env))?;
            }
        }
        // Thousands of small strings: freeing them would be a twelfth of the work
        // of hashing one small file.
        std::mem::forget(command);
        Ok(ParseResult::Ok(AppletRun {
            applet: self.applet,
            matches,
            cautions,
        }))
    }

    fn refused(&self, text: String) -> ParseResult {
        refused(&format!("bc {}", self.applet.name), text)
    }

    /// Returns the result for what clap does not take: help, a hint, or clap's own message.
    fn failed(&self, error: clap::Error, env: &Environment<'_>) -> ParseResult {
        if !error.use_stderr() {
            return ParseResult::Special(Special::Help(Box::new(error)));
        }
        match hints::of_line(self, env) {
            Some(text) => self.refused(text),
            None => ParseResult::Err(ParseError::Clap(Box::new(error))),
        }
    }

    fn whole(&self) -> Command {
        (self.applet.command)()
            .name(self.called.to_owned())
            .bin_name(self.called.to_owned())
    }

    /// Returns a parser with the one subcommand that the line names, or means by an existing path:
    /// the options of all the others would be half of the work of hashing one small file. `None`
    /// where that is not plain from the first word, or help may be asked for.
    fn with_one_subcommand(&self, env: &Environment<'_>) -> Option<Parser> {
        let first = self.rest.first()?;
        if first.as_bytes().starts_with(b"-") || help::may_be_asked(self.rest) {
            return None;
        }
        let Applet {
            only,
            default,
            alone,
            ..
        } = self.applet;
        let named = first.to_str().filter(|_| !alone).and_then(only);
        let (subcommand, args) = match (named, default) {
            (Some(subcommand), _) => (subcommand, self.rest.to_vec()),
            (None, Some(default)) if *alone || env.has(first) => {
                let inserted = std::iter::once(OsString::from(default));
                let subcommand = self.without_its_name(only(default)?);
                (
                    subcommand,
                    inserted.chain(self.rest.iter().cloned()).collect(),
                )
            }
            (None, _) => return None,
        };
        let command = Command::new(self.called.to_owned())
            .bin_name(self.called.to_owned())
            .disable_help_subcommand(true)
            .subcommand(subcommand);
        Some(Parser { command, args })
    }

    /// Returns a parser with all subcommands.
    ///
    /// # Errors
    /// Help that was asked for, and a first word that is neither a path nor a subcommand.
    fn with_all_subcommands(&self, env: &Environment<'_>) -> Result<Parser, Box<ParseResult>> {
        let command = self.whole();
        if let Some(option) = help::asked(&command, self.rest) {
            let page = help::front_page(command.clone(), self.applet, self.called);
            let page = help::laid_out(page, self.names);
            if let Err(shown) = page.try_get_matches_from([self.called, option]) {
                return Err(ParseResult::Special(Special::Help(Box::new(shown))).into());
            }
        }
        let command = match help::may_be_asked(self.rest) {
            true => help::laid_out(command, self.names),
            false => command,
        };
        if !self.applet.alone
            && let Some(word) = stray_word(&command, self.rest, env)
        {
            if let Some(text) = hints::of_line(self, env) {
                return Err(self.refused(text).into());
            }
            let mut names = command.get_subcommands().map(Command::get_name);
            if let Some(meant) = names.find(|name| is_near(word, name)) {
                return Err(self
                    .refused(format!(
                        "'{}' is neither a path nor a subcommand; did you mean '{} {meant}'?",
                        bc_fs::escape(word.as_bytes()),
                        self.called
                    ))
                    .into());
            }
        }
        let is_version = matches!(self.rest, [only] if only == "--version");
        let args = match self.applet.alone && !is_version {
            true => self
                .applet
                .default
                .iter()
                .map(OsString::from)
                .chain(self.rest.iter().cloned())
                .collect(),
            false => subcommand_first(&command, self.applet.default, self.rest),
        };
        let command = match self.applet.default.filter(|_| args.len() > self.rest.len()) {
            Some(default) => command.mut_subcommand(default, |meant| self.without_its_name(meant)),
            None => command,
        };
        Ok(Parser { command, args })
    }

    /// Returns the default subcommand as messages show it where it was left out.
    fn without_its_name(&self, meant: Command) -> Command {
        let operands = help::operands(self.applet);
        meant.override_usage(format!("{} [OPTIONS] {operands}", self.called))
    }
}

/// Returns true if a user who wanted the calculator would have typed this.
fn is_calculator_call(first: &OsStr, env: &Environment<'_>) -> bool {
    const OPTIONS: &[&str] = &[
        "-l",
        "-q",
        "-s",
        "-w",
        "-i",
        "-c",
        "-e",
        "-f",
        "-",
        "-lq",
        "-ql",
        "--mathlib",
        "--quiet",
        "--standard",
        "--warn",
        "--interactive",
        "--expression",
        "--file",
        "--compile",
    ];
    OPTIONS.iter().any(|o| first == *o) || (env.look)(Path::new(first)) == Some(PathKind::File)
}

/// Returns the message for a first word that is no applet.
fn unknown(first: &OsStr, env: &Environment<'_>) -> String {
    let shown = bc_fs::escape(first.as_bytes()).into_owned();
    let near = |name: &str| is_near(&shown, name);
    let option = ["--list", "--version", "--help", "--describe"]
        .into_iter()
        .find(|option| near(option));
    let applet = APPLETS
        .iter()
        .map(|a| a.name)
        .chain(["install"])
        .find(|name| near(name));
    let is_option = shown.starts_with('-');
    let answer = match (option, applet) {
        (Some(option), _) if is_option => Some(format!("did you mean 'bc {option}'?")),
        (_, applet) => hints::of_first_word(first, env)
            .or_else(|| Some(format!("did you mean 'bc {}'?", applet?))),
    };
    let kind = if is_option { "option" } else { "command" };
    match answer {
        Some(answer) => format!("unknown {kind} '{shown}'; {answer}"),
        None => {
            format!("unknown {kind} '{shown}'; 'bc --help' lists tasks and their commands")
        }
    }
}

/// Moves the subcommand to the front of `args`, or puts `default` there when
/// the first positional argument is none of the subcommands: so options may
/// stand anywhere, and `bc hash DIR` means `bc hash hash DIR`.
fn subcommand_first(command: &Command, default: Option<&str>, args: &[OsString]) -> Vec<OsString> {
    let mut rest = args.to_vec();
    match first_positional(command, args) {
        Some(at) => {
            let name = &args[at];
            let known = command
                .get_subcommands()
                .any(|c| name == c.get_name() || c.get_all_aliases().any(|a| name == a));
            if known || name == "help" {
                let name = rest.remove(at);
                rest.insert(0, name);
            } else {
                rest.splice(0..0, default.map(OsString::from));
            }
        }
        // `bc hash --help` speaks about the applet, everything else is the default's business.
        None if args
            .iter()
            .any(|a| a == "--help" || a == "-h" || a == "--version" || a == "-V") => {}
        None => drop(rest.splice(0..0, default.map(OsString::from))),
    }
    rest
}

/// Returns the first positional argument if it is neither a subcommand nor a path.
fn stray_word<'a>(
    command: &Command,
    args: &'a [OsString],
    env: &Environment<'_>,
) -> Option<&'a str> {
    let word = args[first_positional(command, args)?].to_str()?;
    let is_known = word == "help" || command.find_subcommand(word).is_some();
    (!is_known && !env.has(word.as_ref())).then_some(word)
}

/// Returns true if these two words are one slip of the fingers apart (at most two edits).
pub fn is_near(a: &str, b: &str) -> bool {
    let edits = edits(a, b);
    edits <= 2 && edits < a.len().min(b.len())
}

/// Returns the number of bytes to insert, remove or replace that makes one word the other.
pub fn edits(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    /// A world with the files `f`, `SUMS` and `chekc`, the directory `dir`, and this configuration.
    fn with_world<T>(
        config: &str,
        variables: &[(&str, &str)],
        then: impl FnOnce(&Environment<'_>) -> T,
    ) -> T {
        let look = |path: &Path| match path.to_str()? {
            "f" | "SUMS" | "chekc" => Some(PathKind::File),
            "dir" => Some(PathKind::Directory),
            _ => None,
        };
        let read = |path: &Path| match path.to_str() {
            Some("config.toml") if !config.is_empty() => Ok(config.to_owned()),
            Some("other.toml") => Ok("threads = 3\n".to_owned()),
            _ => Err(std::io::ErrorKind::NotFound.into()),
        };
        then(&Environment {
            variables: variables
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            config_file: Some("config.toml".into()),
            read: &read,
            look: &look,
        })
    }

    /// Meaning of a line: applet, subcommand and threads; or the name of what else; or the message.
    fn meaning(line: &str, config: &str, variables: &[(&str, &str)]) -> String {
        with_world(config, variables, |env| match parse(&words(line), env) {
            ParseResult::Ok(run) => {
                let (name, given) = run.matches.subcommand().unwrap();
                let threads: Option<&bc_pool::Threads> = given.get_one("threads");
                format!("{} {name} {:?}", run.applet.name, threads.unwrap())
            }
            ParseResult::Special(special) => match special {
                Special::Nothing { .. } => "nothing".to_owned(),
                Special::Calculator => "calculator".to_owned(),
                Special::Overview(called) => format!("overview {called}"),
                Special::ShortOverview(called) => format!("short overview {called}"),
                Special::Version(called) => format!("version {called}"),
                Special::List => "list".to_owned(),
                Special::Help(text) => text.to_string(),
                Special::Describe(command) => format!("describe {}", command.get_name()),
                Special::Generate(names) => format!("generate {}", names.program()),
                Special::Install(names) => format!("install {}", names.program()),
                Special::Gnu(program) => format!("gnu {}", program.name),
            },
            ParseResult::Err(ParseError::Clap(error)) => error.to_string(),
            ParseResult::Err(ParseError::Message { who, text }) => format!("{who}: {text}"),
        })
    }

    #[test]
    fn names_and_first_words() {
        for (line, meant) in [
            ("bc", "nothing"),
            ("bc -l", "calculator"),
            ("bc f", "calculator"),
            ("x --version", "version x"),
            ("/bin/bc --list", "list"),
            ("bc help", "overview bc"),
            ("bc --help", "overview bc"),
            ("x -h", "short overview x"),
            ("bc --color=never hash f", "hash hash Auto"),
            ("bc -q -j 2 hash check SUMS", "hash check Exactly(2)"),
            (
                "bc --reference dup dup --threads 3 dir",
                "dup scan Exactly(3)",
            ),
            ("bc -l hash", "calculator"),
            ("bc --describe", "describe bc"),
            ("bc hash --describe f", "describe bc hash"),
            ("x --generate=man", "generate x"),
            ("bc install to", "install bc"),
            ("sha256sum -c SUMS", "gnu sha256sum"),
            ("bc hash f", "hash hash Auto"),
            ("bchash f", "hash hash Auto"),
            ("bc hash chekc", "hash hash Auto"),
            ("bc hash check SUMS", "hash check Auto"),
            ("bc hash -j2 check SUMS", "hash check Exactly(2)"),
            ("bc copy --jobs 2 f to", "copy copy Exactly(2)"),
            ("bc copy -r --sync --jobs 2 f to", "copy copy Exactly(2)"),
            ("bc dup -r dir", "dup scan Auto"),
            ("bc dup prune --action=hardlink dir", "dup prune Auto"),
        ] {
            assert_eq!(meaning(line, "", &[]), meant, "{line}");
        }
        assert!(meaning("bc hash --help", "", &[]).contains("Usage: bc hash [OPTIONS] PATH..."));
        assert!(meaning("bchash check -h", "", &[]).contains("Usage: bchash check "));
    }

    #[test]
    fn layers_below_the_command_line() {
        let config = "threads = 4\n[hash]\nthreads = 5\n";
        for (line, variables, meant) in [
            ("bc hash f", &[][..], "hash hash Exactly(5)"),
            ("bc dup dir", &[], "dup scan Exactly(4)"),
            ("bc hash f", &[("BC_THREADS", "6")], "hash hash Exactly(6)"),
            (
                "bc hash f -j7",
                &[("BC_THREADS", "6")],
                "hash hash Exactly(7)",
            ),
            ("bc hash f --config=other.toml", &[], "hash hash Exactly(3)"),
            (
                "bc hash f",
                &[("BC_CONFIG", "other.toml")],
                "hash hash Exactly(3)",
            ),
        ] {
            assert_eq!(meaning(line, config, variables), meant, "{line}");
        }
        let wrong = meaning("bc hash f", "\nthread = 4\n", &[]);
        assert_eq!(wrong, "bc hash: config.toml:2: unknown key 'thread'");
        let cautions = |name: &str| {
            let line = words("bc hash f");
            with_world("", &[(name, "1")], |env| match parse(&line, env) {
                ParseResult::Ok(run) => run.cautions,
                _ => panic!("{name}"),
            })
        };
        for (name, meant) in [
            ("BC_HASH_THREADS", "BC_THREADS"),
            ("BC_THREDS", "BC_THREADS"),
            ("BC_DUP_ACROSS_ROOTS", "BC_ACROSS_ROOTS"),
        ] {
            let said = format!(
                "environment variable {name} is not read; did you mean {meant}? (a setting of one command \
                 alone is a key of its table in config.toml)"
            );
            assert_eq!(cautions(name), [said]);
        }
        // Settings of ours, and variables of the calculators.
        for name in [
            "BC_ACROSS_ROOTS",
            "BC_ENV_ARGS",
            "BC_LINE_LENGTH",
            "BC_PATH",
            "BC_PROMPT",
            "BC_TTY_MODE",
            "BC_SIGINT_RESET",
            "BC_HASH_X",
            // Two edits from --rate, and one from --to.
            "BC_RAIL",
            "BC_TOP",
        ] {
            assert_eq!(cautions(name), [""; 0], "{name}");
        }
        let gone = meaning("bc hash f --config=gone", "", &[]);
        assert!(gone.starts_with("bc hash: gone: read: "), "{gone}");
    }

    #[test]
    fn what_is_refused_has_the_command_to_type() {
        for (line, said) in [
            ("bc hash -c SUMS", "bc hash: use: bc hash check SUMS"),
            ("bchash -c SUMS", "bc hash: use: bchash check SUMS"),
            (
                "bc dup -rdN dir",
                "bc dup: a search deletes nothing (without this word, duplicates are only listed); use: bc dup prune \
                 --action=delete --yes -r dir",
            ),
            ("bc dup group dir", "bc dup: use: bc dup dir"),
            ("bc dup -D dir", "bc dup: use: bc dup dirs dir"),
            (
                "bc integrity check dir",
                "bc integrity: use: bc integrity verify dir MANIFEST",
            ),
            (
                "bc integrity dir",
                "bc integrity: use: bc integrity manifest --output=MANIFEST dir",
            ),
            (
                "bc copy -n f to",
                "bc copy: use: bc copy --on-conflict=skip f to",
            ),
            (
                "bc copy --sync batch f to",
                "bc copy: its value follows '=': use: bc copy --sync=batch SOURCE... DESTINATION",
            ),
            (
                "bc dup prune --action=delete --yes dir // f",
                "bc dup: '//' is the whole machine here; use: bc dup --reference=ORIGINALS DIR",
            ),
            (
                "bc restore dir",
                "bc: unknown command 'restore'; did you mean 'bc integrity restore'?",
            ),
            (
                "bc hash chekx --strict x",
                "bc hash: 'chekx' is neither a path nor a subcommand; did you mean 'bc hash check'?",
            ),
        ] {
            assert_eq!(meaning(line, "", &[]), said, "{line}");
        }
    }

    /// The message is that of the whole tree, although only one subcommand is built.
    #[test]
    fn an_error_reads_the_same_from_one_subcommand_as_from_the_whole_tree() {
        for (applet, line) in [
            ("hash", "f --tipe=md5"),
            ("hash", "check --tipe=md5 f"),
            ("hash", "f --type=sha265"),
            ("dup", "prune dir"),
            ("dup", "undo"),
            ("integrity", "verify dir"),
            ("integrity", "export --format=x f"),
            ("copy", "f --veryfy=read to"),
        ] {
            let applet = by_name(applet.as_ref()).unwrap();
            let (called, rest) = (format!("bc {}", applet.name), words(line));
            let call = AppletCall {
                applet,
                called: &called,
                names: &Names::called("bc"),
                rest: &rest,
            };
            with_world("", &[], |env| {
                let one = call.with_one_subcommand(env).unwrap();
                let all = call.with_all_subcommands(env).ok().unwrap();
                let error = |parser: Parser| {
                    let argv = std::iter::once(OsString::from(&called)).chain(parser.args);
                    parser
                        .command
                        .try_get_matches_from(argv)
                        .unwrap_err()
                        .to_string()
                };
                assert_eq!(error(one), error(all), "{line}");
            });
        }
    }

    #[test]
    fn subcommand_may_be_left_out_or_come_late() {
        let command = crate::hash::command();
        let run = |line: &str| {
            subcommand_first(&command, Some("hash"), &words(line))
                .iter()
                .map(|a| a.to_string_lossy().into_owned())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(run("DIR"), "hash DIR");
        assert_eq!(run("hash DIR"), "hash DIR");
        assert_eq!(run("--threads 2 check F"), "check --threads 2 F");
        assert_eq!(run("--threads=2 check F"), "check --threads=2 F");
        assert_eq!(run("--type check DIR"), "hash --type check DIR");
        assert_eq!(run("-z DIR check"), "hash -z DIR check");
        assert_eq!(run("-- check"), "hash -- check");
        assert_eq!(run("--help"), "--help");
        assert_eq!(run("-"), "hash -");
        assert_eq!(run(""), "hash");
    }

    #[test]
    fn slips() {
        assert!(is_near("hsah", "hash"));
        assert!(is_near("integrty", "integrity"));
        assert!(!is_near("copy", "dup"));
        assert!(!is_near("x", "dup"));
    }
}
