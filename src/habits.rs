//! Habits from other tools: each is a row of a table, with its meaning here. A harmless one is
//! done; any other is refused with the command that does it.
//!
//! The tables are data ([`hash`], [`dup`], [`integrity`]); this reads a command line by them.
//! It only sees lines that are out of the ordinary, so it costs an everyday run nothing.

mod dup;
mod hash;
mod integrity;
mod line;
mod meaning;
mod rows;

use std::ffi::OsString;
use std::path::Path;

use bc_fs::quote::shell_word;

use crate::applet::Applet;
use line::CommandLine;

/// Subcommands that change files, or whose answer decides what a user deletes: their other
/// arguments are taken literally. `-n` means nothing to fdupes, and keeps `prune` from deleting.
const CHANGES: [&str; 4] = ["prune", "undo", "update", "unique"];

/// Meaning of a command line.
pub enum Meant {
    /// Nothing in it is a habit of elsewhere.
    AsTyped,
    /// Equal to these arguments, the subcommand first where one is meant.
    Same(Vec<OsString>),
    /// Refused with this message.
    Refused(String),
}

/// Reads the arguments behind an applet's name; `called` is how the applet was called.
pub fn meant(applet: &Applet, command: &clap::Command, called: &str, rest: &[OsString]) -> Meant {
    let tables = match applet.name {
        "hash" => hash::TABLES,
        "dup" => dup::TABLES,
        "integrity" => integrity::TABLES,
        _ => return Meant::AsTyped,
    };
    let is_left_alone =
        |arg: &OsString| arg == "--help" || arg == "-h" || CHANGES.iter().any(|name| arg == *name);
    if rest.iter().take_while(|a| *a != "--").any(is_left_alone) {
        return Meant::AsTyped;
    }
    let mut line = CommandLine::new(tables, command, applet.default.unwrap_or_default(), rest);
    line.read();
    line.meaning(called)
}

/// Returns true if there is a `//`, by which rmlint sets originals apart. As a path it would be all
/// files of the machine.
pub fn has_mark(rest: &[OsString]) -> bool {
    rest.iter().any(|arg| arg == "//")
}

/// Returns the command for a first word that is no applet: another program's name, an algorithm, a
/// subcommand without its applet, a path.
pub fn applet_of(word: &str) -> Option<String> {
    const WORDS: &[(&[&str], &str)] = &[
        (&["version"], "bc --version"),
        (&["list", "applets"], "bc --list"),
        (&["describe"], "bc --describe"),
        (&["help"], "bc --help"),
        (&["check"], "bc hash check"),
        (&["diff"], "bc hash diff"),
        (
            &[
                "scan",
                "fdupes",
                "jdupes",
                "rdfind",
                "rmlint",
                "fclones",
                "czkawka",
                "czkawka_cli",
                "duperemove",
            ],
            "bc dup",
        ),
        (&["summary"], "bc dup summary"),
        (&["dirs"], "bc dup dirs"),
        (&["unique"], "bc dup unique"),
        (&["prune"], "bc dup prune"),
        (&["undo"], "bc dup undo"),
        (&["manifest"], "bc integrity manifest"),
        (&["verify"], "bc integrity verify"),
        (&["update"], "bc integrity update"),
        (&["export"], "bc integrity export"),
        (&["import"], "bc integrity import"),
        (&["mtree", "aide", "chkbit"], "bc integrity"),
        (&["cp", "rsync", "rclone", "xcp", "cpz", "bcmr"], "bc copy"),
        (&["cksum"], "bc hash --type=crc"),
        (&["sum"], "bc hash --type=bsd"),
        (&["shasum"], "bc hash --type=sha1"),
        (&["hashdeep"], "bc hash --type=md5,sha256"),
        (&["md5deep"], "bc hash --type=md5"),
        (&["sha1deep"], "bc hash --type=sha1"),
        (&["sha256deep"], "bc hash --type=sha256"),
        (&["rhash"], "bc hash --type=crc32b"),
        (&["b2sum"], "bc hash --type=blake2b"),
        (&["b3sum"], "bc hash --type=blake3"),
        (&["xxhsum"], "bc hash --type=xxh64"),
    ];
    if let Some((_, command)) = WORDS.iter().find(|(words, _)| words.contains(&word)) {
        return Some((*command).to_owned());
    }
    let algorithm = word.strip_suffix("sum").unwrap_or(word);
    if let Ok(algorithm) = algorithm.parse::<bc_digest::Algorithm>() {
        return Some(format!("bc hash --type={algorithm}"));
    }
    let there = Path::new(word).is_dir();
    there.then(|| format!("bc hash {0}' or 'bc dup {0}", shell_word(word.as_bytes())))
}
