//! Habits from rmlint.

use super::super::rows::{Habit, Kind, on};
use super::{CONTENTS, DELETE, LINK};

const LINT: &str = "only equal files are found here";
const RANK: &str = "which file stays is said where the others go";
const ONCE: &str = "what there is once is no duplicate";

/// The rows.
pub const ROWS: &[Habit] = &[
    on(&["//"]).says("what is after // is named so"),
    on(&["-"]).puts("--files-from=-"),
    on(&["-0"])
        .alone()
        .without(&["--files-from"])
        .puts("--files-from=- --null"),
    on(&["-m", "--must-match-tagged"])
        .beside(&["//"])
        .puts("--across-roots"),
    on(&["--replay"]).takes(Kind::Any).only(
        "rmlint",
        "another program's report is not read (bc dup prune --from=REPORT.json reads ours)",
    ),
    on(&[
        "--equal",
        "--is-reflink",
        "--perms",
        "-b",
        "--match-basename",
    ])
    .only("rmlint", CONTENTS),
    on(&["-e"]).alone().only("rmlint", CONTENTS),
    on(&["-i", "--match-without-extension", "--match-with-extension"])
        .alone()
        .only("rmlint", CONTENTS),
    on(&["-T", "--types"])
        .takes(Kind::OneOf(&[
            "df,dd", "dd", "dd,df", "ed", "ef", "bi", "bl", "ns", "el", "all",
        ]))
        .only("rmlint", LINT),
    on(&["-D", "--merge-directories"])
        .before_path()
        .only("rmlint", "files are grouped, not directories"),
    on(&["--xattr"]).puts("--cache"),
    on(&["-s", "--size"])
        .takes(Kind::Range)
        .puts("--min-size={from} --max-size={to}"),
    on(&["-o", "-O"])
        .takes(Kind::Begins("uniques"))
        .instead("bc hash")
        .then(" | sort | uniq --unique --check-chars=64")
        .says(ONCE),
    on(&["-o", "-O"])
        .takes(Kind::OneOf(&["sh:stdout"]))
        .puts("--format=script"),
    on(&["-o", "-O"])
        .takes(Kind::OneOf(&["sh"]))
        .puts("--format=script --output=rmlint.sh")
        .says("a format is named so"),
    on(&["-o", "-O"])
        .takes(Kind::OneOf(&["json", "csv"]))
        .puts("--format={lower} --output=rmlint.{lower}")
        .says("a format is named so"),
    on(&["-S", "--rank-by", "--sort-by"])
        .takes(Kind::Rank("m"))
        .sub("prune")
        .puts("--action=delete --dry-run --keep=oldest")
        .says(RANK),
    on(&["-S", "--rank-by", "--sort-by"])
        .takes(Kind::Rank("M"))
        .sub("prune")
        .puts("--action=delete --dry-run --keep=newest")
        .says(RANK),
    on(&["-S", "--rank-by", "--sort-by"])
        .takes(Kind::Rank("dl"))
        .sub("prune")
        .puts("--action=delete --dry-run --keep=shortest-path")
        .says(RANK),
    on(&["-S", "--rank-by", "--sort-by"])
        .takes(Kind::Rank("DL"))
        .sub("prune")
        .puts("--action=delete --dry-run --keep=longest-path")
        .says(RANK),
    on(&["-S", "--rank-by", "--sort-by"])
        .takes(Kind::Rank("a"))
        .sub("prune")
        .puts("--action=delete --dry-run --keep=first")
        .says(RANK),
    on(&["-S", "--rank-by", "--sort-by"])
        .takes(Kind::Rank("A"))
        .sub("prune")
        .puts("--action=delete --dry-run --keep=last")
        .says(RANK),
    on(&["--rank-by", "--sort-by"])
        .takes(Kind::Any)
        .only("rmlint", RANK),
    on(&["-c", "--config"])
        .takes(Kind::OneOf(&["sh:link", "sh:hardlink"]))
        .sub("prune")
        .puts("--action=hardlink")
        .says(LINK),
    on(&["-c", "--config"])
        .takes(Kind::OneOf(&["sh:symlink"]))
        .sub("prune")
        .puts("--action=symlink")
        .says(LINK),
    on(&["-c", "--config"])
        .takes(Kind::OneOf(&["sh:clone", "sh:reflink"]))
        .sub("prune")
        .puts("--action=reflink")
        .says(LINK),
    on(&["-c", "--config"])
        .takes(Kind::OneOf(&["sh:remove"]))
        .sub("prune")
        .puts("--action=delete")
        .says(DELETE),
    on(&["-c", "--config"])
        .takes(Kind::Begins("sh:"))
        .only("rmlint", "no command is run for a file"),
    on(&["-o", "-O"])
        .takes(Kind::Begins("sh:"))
        .puts("--format=script --output={after}")
        .says("a format is named so"),
    on(&["-o", "-O"])
        .takes(Kind::Begins("json:"))
        .puts("--format=json --output={after}")
        .says("a format is named so"),
    on(&["-o", "-O"])
        .takes(Kind::Begins("csv:"))
        .puts("--format=csv --output={after}")
        .says("a format is named so"),
    on(&["-T", "--types"]).takes(Kind::OneOf(&["df", "duplicates", "defaults", "minimal"])),
];
