//! Manual pages: clap_mangen writes the parts that help has too, and the sections that help has no
//! place for are ours.

use std::fmt::Write;

use clap_mangen::Man;

use super::tree::Command;
use crate::parse::names::Names;

/// Returns the page of `command`, one of `all`.
pub(super) fn page(command: &Command, all: &[Command], names: &Names) -> Result<String, String> {
    let notes = Notes::of(command, all);
    let page = names.page(&command.words);
    let usage = command.clap.clone().render_usage().to_string();
    let usage = names.text(usage.strip_prefix("Usage: ").unwrap_or(&usage));
    let clap = command.clap.clone().override_usage(usage);
    let man = Man::new(clap)
        .title(page.to_uppercase())
        .date(date())
        .source(concat!("bit-crafts ", env!("CARGO_PKG_VERSION")))
        .manual("User Commands");
    let mut bytes = Vec::new();
    man.render_title(&mut bytes)
        .and_then(|()| man.render_name_section(&mut bytes))
        .and_then(|()| man.render_synopsis_section(&mut bytes))
        .and_then(|()| man.render_description_section(&mut bytes))
        .map_err(|error| error.to_string())?;
    let mut out = clean(&bytes);
    for remark in &notes.remarks {
        out.push_str(".PP\n");
        out.push_str(&text(remark));
        out.push('\n');
    }
    commands(&mut out, command, names);
    let mut bytes = Vec::new();
    man.render_options_section(&mut bytes)
        .map_err(|error| error.to_string())?;
    out.push_str(&clean(&bytes));
    exit_status(&mut out, &notes.exit);
    environment(&mut out, command);
    files(&mut out, command);
    if !notes.examples.is_empty() {
        // Writing to a String cannot fail.
        let _ = writeln!(out, ".SH EXAMPLES\n.nf\n{}\n.fi", text(&notes.examples));
    }
    see_also(&mut out, command, all, names);
    Ok(out)
}

fn commands(out: &mut String, command: &Command, names: &Names) {
    for (nth, (name, about)) in command.below().enumerate() {
        let mut words = command.words.clone();
        words.push(name.to_owned());
        let heading = if nth == 0 { ".SH COMMANDS\n" } else { "" };
        let _ = writeln!(
            out,
            "{heading}.TP\n\\fB{}\\fR\n{}. See \\fB{}\\fR(1).",
            text(&names.command(&words)),
            text(&about),
            text(&names.page(&words)),
        );
    }
}

fn see_also(out: &mut String, command: &Command, all: &[Command], names: &Names) {
    let above = command.words.len().saturating_sub(1);
    let kin = all.iter().filter(|other| {
        let is_above =
            other.words.len() < command.words.len() && command.words.starts_with(&other.words);
        let is_sibling = above > 0
            && other.words.len() == above + 1
            && other.words[..above] == command.words[..above];
        (is_above || is_sibling) && other.words != command.words
    });
    out.push_str(".SH SEE ALSO\n");
    for other in kin {
        let _ = writeln!(out, "\\fB{}\\fR(1),", text(&names.page(&other.words)));
    }
    let _ = writeln!(
        out,
        "\\fB{}\\-guide\\fR(7), if the package includes it",
        text(names.program())
    );
}

/// Notes after the options in help, taken apart.
#[derive(Default)]
struct Notes {
    examples: String,
    remarks: Vec<String>,
    exit: Vec<(String, String)>,
}

impl Notes {
    /// Takes the notes from a command's help. Exit codes are those of the command, else of the one
    /// above it.
    fn of(command: &Command, all: &[Command]) -> Notes {
        let mut notes = Notes::default();
        let own = &command.clap;
        let after = own.get_after_long_help().or_else(|| own.get_after_help());
        let after = after.map(ToString::to_string).unwrap_or_default();
        for paragraph in after.split("\n\n") {
            let plain = paragraph.trim_end();
            let examples = ["Examples:\n", "Example:\n", "Example: "];
            if let Some(examples) = examples.iter().find_map(|head| plain.strip_prefix(head)) {
                examples.clone_into(&mut notes.examples);
            } else if let Some(codes) = plain.strip_prefix("Exit codes: ") {
                notes.exit = exit_codes(codes);
            } else if !plain.is_empty() {
                notes.remarks.push(plain.to_owned());
            }
        }
        if notes.exit.is_empty()
            && let Some((_, above)) = command.words.split_last()
            && let Some(above) = all
                .iter()
                .find(|other| !above.is_empty() && other.words == above)
        {
            notes.exit = Notes::of(above, all).exit;
        }
        notes
    }
}

/// Splits `0 same, 1 different` into its parts: a comma before a digit begins a code.
fn exit_codes(text: &str) -> Vec<(String, String)> {
    let line = text.replace('\n', " ");
    let mut parts: Vec<String> = Vec::new();
    for part in line.trim_end_matches('.').split(", ") {
        match parts.last_mut() {
            Some(last) if !part.starts_with(|c: char| c.is_ascii_digit()) => {
                last.push_str(", ");
                last.push_str(part);
            }
            _ => parts.push(part.to_owned()),
        }
    }
    let is_code = |word: &&str| *word == "or" || word.bytes().all(|b| b.is_ascii_digit());
    let split = |part: String| {
        let words: Vec<&str> = part.split(' ').collect();
        let codes = words.iter().copied().take_while(is_code).count();
        (words[..codes].join(" "), words[codes..].join(" "))
    };
    parts.into_iter().map(split).collect()
}

/// Returns the day of `SOURCE_DATE_EPOCH`, by which packages are made again byte for byte; else
/// today.
fn date() -> String {
    let seconds = std::env::var("SOURCE_DATE_EPOCH").ok();
    let seconds = seconds.and_then(|text| text.parse::<i64>().ok());
    let time = seconds.and_then(|seconds| seconds.checked_mul(1_000_000_000));
    let time = time.map_or_else(
        crate::session::metrics::now,
        bc_manifest::time::format_rfc3339,
    );
    time.split('T').next().unwrap_or_default().to_owned()
}

/// Cleans the output of clap_mangen: apostrophes as man(7) has them, for which it would define a
/// string at the head of each part, and no blank lines, for which there is a request.
fn clean(bytes: &[u8]) -> String {
    let page = String::from_utf8_lossy(bytes).replace("\\*(Aq", "\\(aq");
    let mut out = String::with_capacity(page.len());
    for line in page.lines().filter(|line| !line.contains(".ds Aq")) {
        out.push_str(if line.trim().is_empty() {
            ".sp"
        } else {
            line.trim_end()
        });
        out.push('\n');
    }
    out
}

// The sections that help has no place for.

/// Exit codes of the program itself and of commands whose help has none.
const EXIT: [(&str, &str); 2] = [
    ("0", "success"),
    ("2", "usage error, or the request could not be carried out"),
];

/// Variables that every command looks at.
const VARIABLES: &[(&str, &str)] = &[
    (
        "NO_COLOR",
        "If set to any value, nothing is coloured unless --color=always is given.",
    ),
    (
        "CLICOLOR_FORCE",
        "If set to any value but 0, output is coloured in pipes and files, too.",
    ),
    (
        "XDG_CONFIG_HOME",
        "Directory of the configuration, instead of ~/.config.",
    ),
    (
        "TMPDIR",
        "Directory of unnamed temporary files, which comparisons, merges and input from pipes need.",
    ),
];

const DUP_VARIABLES: &[(&str, &str)] = &[
    (
        "XDG_CACHE_HOME",
        "Directory in which --cache without FILE stores digests, instead of ~/.cache.",
    ),
    (
        "XDG_STATE_HOME",
        "Directory in which prune writes its journals, instead of ~/.local/state.",
    ),
];

const CONFIG: (&str, &str) = (
    "$XDG_CONFIG_HOME/bc/config.toml",
    "Configuration; its keys are the names of options. --config selects another file.",
);

const DUP_FILES: &[(&str, &str)] = &[
    (
        "$XDG_CACHE_HOME/bc/dup.redb",
        "Digests saved by --cache. It may be deleted at any time.",
    ),
    (
        "$XDG_STATE_HOME/bc/",
        "Journals of prune, one per run, for undo.",
    ),
];

/// Writes the exit codes; `codes` are those in the help, or none.
fn exit_status(out: &mut String, codes: &[(String, String)]) {
    out.push_str(".SH EXIT STATUS\n");
    let fallback = EXIT.map(|(code, meaning)| (code.to_owned(), meaning.to_owned()));
    let codes = if codes.is_empty() {
        &fallback[..]
    } else {
        codes
    };
    for (code, meaning) in codes {
        entry(out, code, &format!("{meaning}."));
    }
}

/// Writes the variables that this command reads.
fn environment(out: &mut String, command: &Command) {
    out.push_str(".SH ENVIRONMENT\n");
    let mut set: Vec<String> = command
        .clap
        .get_arguments()
        .filter(|arg| crate::parse::args::is_configurable(arg))
        .filter_map(|arg| Some(arg.get_long()?.to_uppercase().replace('-', "_")))
        .map(|name| format!("BC_{name}"))
        .collect();
    set.sort_unstable();
    if !set.is_empty() {
        let meaning = "Set the options of these names, unless the command line does.";
        entry(out, &set.join(", "), meaning);
    }
    let own = if is_dup(command) { DUP_VARIABLES } else { &[] };
    for (name, meaning) in VARIABLES.iter().chain(own) {
        entry(out, name, meaning);
    }
}

/// Writes the files that this command reads or writes unasked.
fn files(out: &mut String, command: &Command) {
    out.push_str(".SH FILES\n");
    let own = if is_dup(command) { DUP_FILES } else { &[] };
    for (name, meaning) in std::iter::once(&CONFIG).chain(own) {
        entry(out, name, meaning);
    }
}

fn is_dup(command: &Command) -> bool {
    command.words.first().is_none_or(|first| first == "dup")
}

fn entry(out: &mut String, name: &str, meaning: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, ".TP\n\\fB{}\\fR\n{}", text(name), text(meaning));
}

/// Returns text with roff's own characters escaped, one line a line.
fn text(plain: &str) -> String {
    let escaped = plain.replace('\\', "\\e").replace('-', "\\-");
    let lines = escaped.lines().map(|line| match line {
        "" => ".sp".to_owned(),
        line if line.starts_with(['.', '\'']) => format!("\\&{line}"),
        line => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_taken_apart() {
        let codes =
            exit_codes("0 all done, nothing differs, 1 some, 130 or 143 ended\nby a signal.");
        let codes: Vec<(&str, &str)> = codes.iter().map(|(a, b)| (&a[..], &b[..])).collect();
        assert_eq!(
            codes,
            [
                ("0", "all done, nothing differs"),
                ("1", "some"),
                ("130 or 143", "ended by a signal")
            ]
        );
    }
}
