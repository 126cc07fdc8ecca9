//! Habits from fclones.

use super::super::rows::{Habit, Kind, on};
use super::{DELETE, LINK};

const REPORT: &[&str] = &["--from=report.json"];
const DEVICES: &str = "one number of threads is for all devices";
/// First words that change files.
const CHANGING: &[&str] = &["remove", "link", "dedupe", "move"];

/// The rows.
pub const ROWS: &[Habit] = &[
    on(&["group", "dupes", "dup"]),
    on(&["remove", "rm", "delete"])
        .sub("prune")
        .puts("--action=delete")
        .needs(REPORT)
        .says(DELETE),
    on(&["link"])
        .beside(&["--soft", "-s"])
        .sub("prune")
        .puts("--action=symlink")
        .needs(REPORT)
        .says(LINK),
    on(&["-s"]).beside(&["link"]),
    on(&["link"])
        .sub("prune")
        .puts("--action=hardlink")
        .needs(REPORT)
        .says(LINK),
    on(&["dedupe"])
        .sub("prune")
        .puts("--action=reflink")
        .needs(REPORT)
        .says(LINK),
    on(&["move"])
        .sub("prune")
        .puts("--action=move:{path} --from=report.json")
        .drops_paths()
        .says(LINK),
    on(&["--soft"]),
    on(&["-L"]).beside(&["group"]).puts("--follow-symlinks"),
    on(&["--exclude"])
        .many(Kind::Any)
        .beside(&["group"])
        .puts("--exclude={}"),
    on(&["--path"])
        .many(Kind::Any)
        .beside(&["group"])
        .puts("--include={}")
        .says("patterns with / are matched below the root of a search"),
    on(&["--path"]).takes(Kind::Any).beside(CHANGING).only(
        "fclones",
        "what may go is not chosen by a pattern here, but by --reference",
    ),
    on(&["-n", "--rf-over"])
        .takes(Kind::Number)
        .beside(CHANGING)
        .only("fclones", "one file of a group stays here"),
    on(&["--rf-over"])
        .takes(Kind::Number)
        .puts("--format=json")
        .then(" | jq -r '.groups[] | select((.files | length) > {}).files[].path'")
        .says("groups are not chosen by their number of files"),
    on(&["--rf-under"])
        .takes(Kind::Number)
        .instead("bc hash")
        .then(concat!(
            r#" | awk '{n[$1]++; l[$1] = l[$1] $0 "\n"}"#,
            r#" END {for (h in n) if (n[h] < {}) printf "%s", l[h]}'"#
        ))
        .says("what there is once is no duplicate"),
    on(&["--threads"])
        .takes(Kind::OneOf(&["main:1"]))
        .puts("--threads=1")
        .says(DEVICES),
    on(&["--threads"])
        .many(Kind::Begins("main:"))
        .puts("--threads=auto")
        .says(DEVICES),
    on(&["--threads"])
        .many(Kind::Begins("dev:"))
        .puts("--threads=auto")
        .says(DEVICES),
    on(&["--threads"])
        .many(Kind::Begins("ssd:"))
        .puts("--threads=auto")
        .says(DEVICES),
    on(&["--priority"])
        .takes(Kind::OneOf(&["newest", "most-recently-modified"]))
        .puts("--keep=oldest")
        .within("prune"),
    on(&["--priority"])
        .takes(Kind::OneOf(&["oldest", "least-recently-modified"]))
        .puts("--keep=newest")
        .within("prune"),
    on(&["--keep-path"])
        .takes(Kind::Ends("/**"))
        .puts("--reference={stem}")
        .within("prune"),
    on(&["--keep-name", "--keep-path"])
        .takes(Kind::Any)
        .puts("--exclude={}")
        .within("prune"),
];
