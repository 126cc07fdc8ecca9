//! The table of applets; [`crate::dispatch`] chooses among them.

use std::ffi::{OsStr, OsString};

use crate::parse::names::Names;
use crate::report::Exit;

/// An applet: its name, the program names that call it directly, what it is
/// for, and how to run it.
pub struct Applet {
    /// Name as the first argument of `bc`.
    pub name: &'static str,
    /// Base names of argv\[0\] that mean this applet.
    pub called: &'static [&'static str],
    /// One line for the overview.
    pub about: &'static str,
    /// The command tree, for parsing, `--describe`, completions and manual pages.
    pub command: fn() -> clap::Command,
    /// One subcommand alone; `None` if there is none of that name.
    pub only: fn(&str) -> Option<clap::Command>,
    /// The subcommand that is run when none is named, if there is one.
    pub default: Option<&'static str>,
    /// True if that is the only subcommand, and never named: the first argument is a path, even if
    /// it reads like a command.
    pub alone: bool,
    /// Runs it with parsed arguments.
    pub run: fn(clap::ArgMatches) -> Exit,
}

/// An applet and the arguments behind its name.
pub struct AppletCall<'a> {
    /// Applet that is called.
    pub applet: &'static Applet,
    /// Its name as it was called: `bc hash`, `bchash`.
    pub called: &'a str,
    /// Names for help and messages.
    pub names: &'a Names,
    /// Arguments behind the name.
    pub rest: &'a [OsString],
}

/// All applets, in the order the overview shows them.
pub const APPLETS: &[Applet] = &[
    Applet {
        name: "hash",
        called: &["bchash", "bc-hash"],
        about: "Hash trees, check manifests, compare manifests",
        command: crate::hash::command,
        only: crate::hash::only,
        default: Some("hash"),
        alone: false,
        run: crate::hash::run,
    },
    Applet {
        name: "dup",
        called: &["bcdup", "bc-dup", "bcduplicate", "bc-duplicate"],
        about: "Find duplicate files and reclaim their space safely",
        command: crate::dup::command,
        only: crate::dup::only,
        default: Some("scan"),
        alone: false,
        run: crate::dup::run,
    },
    Applet {
        name: "integrity",
        called: &["bcintegrity", "bc-integrity"],
        about: "Record trees, verify them, tell bitrot from edits",
        command: crate::integrity::command,
        only: crate::integrity::only,
        default: None,
        alone: false,
        run: crate::integrity::run,
    },
    Applet {
        name: "copy",
        called: &["bccopy", "bc-copy", "bccp"],
        about: "Copy trees, resume when interrupted, write a manifest",
        command: crate::copy::command,
        only: crate::copy::only,
        default: Some("copy"),
        alone: true,
        run: crate::copy::run,
    },
    Applet {
        name: "move",
        called: &["bcmove", "bc-move", "bcmv"],
        about: "Move trees: rename, or copy, compare and only then remove",
        command: crate::copy::moving::command,
        only: crate::copy::moving::only,
        default: Some("move"),
        alone: true,
        run: crate::copy::moving::run,
    },
];

/// Returns the applet that a program name stands for.
pub fn by_program(base: &[u8]) -> Option<&'static Applet> {
    APPLETS
        .iter()
        .find(|a| a.called.iter().any(|c| c.as_bytes() == base))
}

/// Returns the applet of that name.
pub fn by_name(name: &OsStr) -> Option<&'static Applet> {
    APPLETS.iter().find(|a| name == a.name)
}

#[cfg(test)]
mod tests {
    use super::APPLETS;

    #[test]
    fn every_applet_has_a_name_of_its_own() {
        let own: Vec<&str> = APPLETS.iter().map(|applet| applet.name).collect();
        assert_eq!(own, crate::parse::names::APPLETS);
        for applet in APPLETS {
            assert_eq!(applet.called[0], format!("bc{}", applet.name));
        }
    }

    #[test]
    fn each_subcommand_alone_is_what_it_is_in_the_tree() {
        for applet in APPLETS {
            let mut names = 0;
            for whole in (applet.command)().get_subcommands() {
                let alone = (applet.only)(whole.get_name()).unwrap();
                let ids = |command: &clap::Command| -> Vec<String> {
                    let mut ids: Vec<String> = command
                        .get_arguments()
                        .map(|a| a.get_id().to_string())
                        .collect();
                    // Which options there are; their order is a matter of the help text.
                    ids.sort_unstable();
                    ids
                };
                assert_eq!(ids(&alone), ids(whole));
                for id in ["describe", "config"] {
                    assert!(
                        ids(&alone).iter().any(|i| i == id),
                        "{} {id}",
                        whole.get_name()
                    );
                }
                names += 1;
            }
            assert_eq!(names == 1, applet.alone);
            assert!((applet.only)("help").is_none());
        }
    }
}
