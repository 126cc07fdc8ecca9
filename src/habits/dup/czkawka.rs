//! Habits from czkawka's command line. Other programs have its letters as well, so its first word
//! decides.

use super::super::rows::{Habit, Kind, Place, on};
use super::{CONTENTS, DELETE, LINK};

const LINT: &str = "only equal files are found here";
/// First words under which something is done here.
const FIRST: &[&str] = &["dup", "empty-files", "empty-folders"];

/// The rows.
pub const ROWS: &[Habit] = &[
    on(&["empty-files"])
        .instead("find")
        .then(" -type f -empty")
        .says(CONTENTS),
    on(&["empty-folders"])
        .instead("find")
        .then(" -type d -empty")
        .says(CONTENTS),
    on(&[
        "image",
        "video",
        "music",
        "big",
        "temp",
        "symlinks",
        "broken",
        "ext",
        "bad-names",
        "video-optimizer",
        "exif-remover",
    ])
    .only("czkawka_cli", LINT),
    on(&["-d", "--directories"])
        .all(Kind::Any)
        .beside(FIRST)
        .path(Place::Last),
    on(&["-e", "--excluded-directories", "-E", "--excluded-items"])
        .all(Kind::Any)
        .beside(FIRST)
        .puts("--exclude={}"),
    on(&["-x", "--allowed-extensions"])
        .all(Kind::OneOf(&["image", "video", "music", "text"]))
        .beside(FIRST)
        .only("czkawka_cli", "kinds of files are not known by name"),
    on(&["-x", "--allowed-extensions"])
        .all(Kind::Any)
        .beside(FIRST)
        .puts("--include=*.{}"),
    on(&["-P", "--excluded-extensions"])
        .all(Kind::Any)
        .beside(FIRST)
        .puts("--exclude=*.{}"),
    on(&["-f", "--file-to-save"])
        .takes(Kind::Any)
        .beside(FIRST)
        .puts("--output={}"),
    on(&["-C", "-p"])
        .takes(Kind::Any)
        .beside(FIRST)
        .puts("--format=json --output={}"),
    on(&["-r", "--reference-directories"])
        .all(Kind::Any)
        .beside(FIRST)
        .puts("--reference={}"),
    on(&["-R", "--not-recursive"])
        .beside(FIRST)
        .puts("--max-depth=1"),
    on(&["-X", "--exclude-other-filesystems"])
        .beside(FIRST)
        .puts("--one-file-system"),
    on(&["-i"])
        .takes(Kind::Size)
        .beside(FIRST)
        .puts("--max-size={}"),
    on(&["-L", "--allow-hard-links"])
        .beside(FIRST)
        .puts("--match-hardlinks"),
    on(&["-Q"]).beside(FIRST).puts("--dry-run").within("prune"),
    on(&["-c", "-Z"]).takes(Kind::Size).beside(FIRST),
    on(&["-D", "--delete-method"])
        .takes(Kind::OneOf(&["none"]))
        .beside(FIRST),
    on(&["-N", "-M", "-W", "-H", "-u", "-l"]).beside(FIRST),
    on(&["-D", "--delete-method"])
        .takes(Kind::OneOf(&["hard"]))
        .sub("prune")
        .puts("--action=hardlink")
        .says(LINK),
    on(&["-D", "--delete-method"])
        .takes(Kind::OneOf(&["aen"]))
        .sub("prune")
        .puts("--action=delete --keep=newest")
        .says(DELETE),
    on(&["-D", "--delete-method"])
        .takes(Kind::OneOf(&["aeo"]))
        .sub("prune")
        .puts("--action=delete --keep=oldest")
        .says(DELETE),
    on(&["-D", "--delete-method"])
        .takes(Kind::OneOf(&["on", "oo", "aeb", "aes", "ob", "os"]))
        .only(
            "czkawka_cli",
            "one file of a group stays here, and all others go",
        ),
];
