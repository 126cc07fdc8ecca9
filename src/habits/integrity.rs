//! Habits from mtree, AIDE, chkbit and their like.

use super::rows::{Habit, Kind, Place, on};

const BOTH: &[&str] = &["ROOT", "MANIFEST"];
/// AIDE's commands: beside them a file of rules says nothing.
const COMMANDS: &[&str] = &[
    "-i",
    "--init",
    "-C",
    "--check",
    "-u",
    "--update",
    "-E",
    "--compare",
    "-D",
    "--config-check",
    "-n",
    "--dry-init",
];
/// Ours: beside them `--config` is our own.
const OURS: &[&str] = &[
    "manifest", "verify", "diff", "update", "restore", "export", "import", "merge", "sql",
];
const RULES: &str = "there is no file of rules: a whole tree is recorded";
const WRITES: &str = "it is named what to record, and where to";

/// The table. Of several rows that hold the first counts.
pub const TABLES: &[&[Habit]] = &[ROWS];

const ROWS: &[Habit] = &[
    // First words.
    on(&["init", "create", "add", "record"])
        .sub("manifest")
        .puts("--output=MANIFEST")
        .needs(&["ROOT"])
        .says(WRITES),
    on(&["check", "audit"]).sub("verify").needs(BOTH),
    on(&["status"])
        .sub("verify")
        .puts("--mode=meta")
        .needs(BOTH),
    on(&["compare"]).sub("diff").needs(&["OLD", "NEW"]),
    on(&["scrub"])
        .sub("update")
        .puts("--reread=100%")
        .needs(BOTH)
        .says("reading all again notes the time in the manifest"),
    // mtree, whose letters are AIDE's as well.
    on(&["-d"])
        .beside(&["-c", "-u", "-U", "-f", "-p"])
        .only("mtree", "a tree is recorded and verified with its files"),
    on(&["-i", "-n"]).beside(&["-k", "-K", "-p"]),
    on(&["-s"])
        .takes(Kind::Number)
        .says("a manifest ends with a checksum of itself"),
    // AIDE.
    on(&["-i", "--init"])
        .sub("manifest")
        .puts("--output=MANIFEST")
        .needs(&["ROOT"])
        .says(WRITES),
    on(&["-C", "--check"]).sub("verify").needs(BOTH),
    on(&["-u", "-U", "--update"])
        .sub("update")
        .needs(BOTH)
        .says("a manifest is changed, never the tree"),
    on(&["-E", "--compare"]).sub("diff").needs(&["OLD", "NEW"]),
    on(&["-c"])
        .takes(Kind::Ends(".conf"))
        .without(COMMANDS)
        .sub("verify")
        .needs(BOTH)
        .says(RULES),
    on(&["-c"]).takes(Kind::Ends(".conf")),
    on(&["--config"])
        .takes(Kind::Any)
        .beside(COMMANDS)
        .without(OURS),
    on(&["--config"])
        .takes(Kind::Any)
        .without(OURS)
        .sub("verify")
        .needs(BOTH)
        .says(RULES),
    on(&["-l", "--limit"])
        .takes(Kind::Any)
        .beside(&["-u", "--update"])
        .only("aide", "a part of a tree has a manifest of its own here"),
    on(&["-l", "--limit"])
        .takes(Kind::Any)
        .sub("verify")
        .needs(BOTH)
        .then(" | grep {}")
        .says("a tree is verified whole"),
    on(&["-r", "--report"])
        .takes(Kind::OneOf(&["stdout", "stderr", "stdout:", "stderr:"]))
        .sub("verify")
        .needs(BOTH),
    on(&["-r", "--report"])
        .takes(Kind::Begins("file:"))
        .sub("verify")
        .puts("--output={after}")
        .needs(BOTH),
    on(&["--report"])
        .takes(Kind::Any)
        .sub("verify")
        .needs(BOTH)
        .says("a report goes to stdout, or to --output=FILE"),
    on(&["-n", "-D", "--config-check", "--dry-init", "--path-check"]).only("aide", RULES),
    on(&["--path-check"]).takes(Kind::Any).only("aide", RULES),
    // mtree.
    on(&["-c"]).sub("manifest").needs(&["."]),
    on(&["-p"])
        .takes(Kind::Any)
        .beside(&["-c", "-f"])
        .path(Place::First),
    on(&["-p"])
        .takes(Kind::Any)
        .path(Place::First)
        .sub("verify")
        .needs(BOTH),
    on(&["-f"])
        .takes(Kind::Any)
        .path(Place::Last)
        .sub("verify")
        .twice("diff")
        .needs(BOTH),
    on(&["-k", "-K"]).takes(Kind::Any),
    on(&["-X"])
        .takes(Kind::Any)
        .says("manifest --exclude=GLOB leaves files out"),
    on(&["-e", "-b", "-P", "-w", "-S", "-r", "--recursive"]),
];
