//! Habits of those who know mtree, AIDE, chkbit and their like.

use super::rows::{Habit, Kind, Place, on};

const BOTH: &[&str] = &["ROOT", "MANIFEST"];
const WRITES: &str = "it is named what to record, and where to";

/// The rows. Of several that hold the first counts.
pub const TABLE: &[Habit] = &[
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
    on(&["-c", "--config"]).takes(Kind::Ends(".conf")),
    on(&["-l", "--limit"])
        .takes(Kind::Any)
        .sub("verify")
        .needs(BOTH)
        .says("a part of a tree is verified by its own manifest"),
    on(&["-D", "--config-check", "--dry-init"])
        .sub("manifest")
        .puts("--describe")
        .needs(&["ROOT"])
        .says("there is no file of rules to check"),
    // mtree.
    on(&["-c"]).sub("manifest").needs(&["ROOT"]),
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
    on(&[
        "-e",
        "-b",
        "-n",
        "-P",
        "-s",
        "-w",
        "-d",
        "-S",
        "-r",
        "--recursive",
    ]),
];
