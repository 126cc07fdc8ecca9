//! The sections of a manual page that help has no place for: EXIT STATUS, ENVIRONMENT, FILES.

use std::fmt::Write;

use super::roff::text;
use super::tree::Command;

/// Exit codes of the program itself and of commands whose help has none.
const EXIT: [(&str, &str); 2] = [
    ("0", "all done"),
    ("2", "wrong usage, or what was asked could not be done"),
];

/// Variables that every command looks at.
const VARIABLES: &[(&str, &str)] = &[
    (
        "NO_COLOR",
        "Set to anything, nothing is coloured unless --color=always says so.",
    ),
    (
        "CLICOLOR_FORCE",
        "Set to anything but 0, output is coloured in pipes and files too.",
    ),
    (
        "XDG_CONFIG_HOME",
        "Where the configuration is looked for, in place of ~/.config.",
    ),
    (
        "TMPDIR",
        "Where files without a name lie that comparisons, merges and inputs from pipes need.",
    ),
];

const DUP_VARIABLES: &[(&str, &str)] = &[
    (
        "XDG_CACHE_HOME",
        "Where --cache without FILE keeps digests, in place of ~/.cache.",
    ),
    (
        "XDG_STATE_HOME",
        "Where prune writes its journals, in place of ~/.local/state.",
    ),
];

const CONFIG: (&str, &str) = (
    "$XDG_CONFIG_HOME/bc/config.toml",
    "Configuration; its keys are the names of options. --config names another.",
);

const DUP_FILES: &[(&str, &str)] = &[
    (
        "$XDG_CACHE_HOME/bc/dup.redb",
        "The digests of --cache. It may be deleted at any time.",
    ),
    (
        "$XDG_STATE_HOME/bc/",
        "Journals of prune, one for each run; undo takes their steps back.",
    ),
];

/// Writes the exit codes; `codes` are those in the help, or none.
pub(super) fn exit_status(out: &mut String, codes: &[(String, String)]) {
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
pub(super) fn environment(out: &mut String, command: &Command) {
    out.push_str(".SH ENVIRONMENT\n");
    let mut set: Vec<String> = command
        .clap
        .get_arguments()
        .filter(|arg| crate::args::is_configurable(arg))
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
pub(super) fn files(out: &mut String, command: &Command) {
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
