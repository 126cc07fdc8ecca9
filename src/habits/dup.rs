//! Habits from jdupes, fdupes, fclones, rmlint, rdfind and czkawka. No word of theirs changes a
//! file: the command for it is shown.

mod czkawka;
mod fclones;
mod rmlint;

use super::rows::{Habit, Kind, Place, on};

const DELETE: &str = "nothing is deleted in passing (without the word it is only listed)";
const LINK: &str = "nothing is changed in passing";
const CONTENTS: &str = "only contents are compared";

/// The tables. Of several rows that hold the first counts.
pub const TABLES: &[&[Habit]] = &[fclones::ROWS, czkawka::ROWS, rmlint::ROWS, ROWS];

/// Habits of jdupes, fdupes, rdfind and duperemove, and those that several of them share.
const ROWS: &[Habit] = &[
    // duperemove.
    on(&["-d"])
        .beside(&["--hashfile", "--io-threads", "--cpu-threads"])
        .sub("prune")
        .puts("--action=reflink")
        .says(LINK),
    on(&["--hashfile"]).takes(Kind::Any).puts("--cache={}"),
    on(&["--io-threads", "--cpu-threads"])
        .takes(Kind::Number)
        .puts("--threads={}"),
    // Actions on duplicates.
    on(&["-d"]).takes(Kind::Number).puts("--max-depth={}"),
    on(&["-d", "--delete", "--immediate"])
        .sub("prune")
        .puts("--action=delete")
        .says(DELETE),
    on(&["-N", "--noprompt", "--no-prompt"])
        .puts("--yes")
        .within("prune"),
    on(&["-deleteduplicates"])
        .takes(Kind::OneOf(&["true"]))
        .sub("prune")
        .puts("--action=delete")
        .says(DELETE),
    on(&["-L", "--linkhard", "--link-hard"])
        .sub("prune")
        .puts("--action=hardlink")
        .says(LINK),
    on(&["-makehardlinks"])
        .takes(Kind::OneOf(&["true"]))
        .sub("prune")
        .puts("--action=hardlink")
        .says(LINK),
    on(&["-l", "--linksoft", "--link-soft"])
        .sub("prune")
        .puts("--action=symlink")
        .says(LINK),
    on(&["-makesymlinks"])
        .takes(Kind::OneOf(&["true"]))
        .sub("prune")
        .puts("--action=symlink")
        .says(LINK),
    on(&["-B", "--dedupe"])
        .sub("prune")
        .puts("--action=reflink")
        .says(LINK),
    on(&["-dryrun"])
        .takes(Kind::OneOf(&["true"]))
        .puts("--dry-run")
        .within("prune"),
    on(&["-n"])
        .takes(Kind::OneOf(&["true"]))
        .puts("--dry-run")
        .within("prune"),
    // Conditions for duplicates.
    on(&["-H", "--hardlinks", "--hard-links", "--match-links"]).puts("--match-hardlinks"),
    on(&["--isolate", "-t"])
        .without(&["-t"])
        .puts("--across-roots"),
    on(&["-I", "--isolate"])
        .puts("--across-roots")
        .says("-I is two things elsewhere, one of which deletes"),
    on(&["-p", "--permissions", "--paranoid"])
        .puts("--verify-bytes")
        .says("contents alone decide; bytes can be compared as well"),
    on(&["-T", "--partial-only", "-Z"])
        .without(&["--thread-number"])
        .before_path()
        .says("files are the same only as a whole"),
    on(&["--skip-content-hash", "--transform"])
        .only("fclones", "files are compared whole, and as they are"),
    on(&["--gui"]).only("rmlint", "there are no windows here"),
    on(&["--hash-fn", "--hash-type", "-checksum"])
        .takes(Kind::Any)
        .puts("--algorithm={lower}"),
    on(&["-s", "--search-method"]).takes(Kind::OneOf(&["hash"])),
    on(&["-s", "--search-method"])
        .takes(Kind::OneOf(&["name", "size", "size_name"]))
        .says(CONTENTS),
    // Output.
    on(&["-m"]).takes(Kind::Size).puts("--min-size={}"),
    on(&["-m", "--summarize", "-M", "--printwithsummary"]).sub("summary"),
    on(&["-j"])
        .before_path()
        .puts("--format=json")
        .says("-j is --threads here"),
    on(&["--json"]).puts("--format=json"),
    on(&["-0", "--print-null", "--printnull"])
        .without(&["--files-from"])
        .puts("--format=json")
        .then(r#" | jq -j '.groups[].files[].path + "\u0000"'"#)
        .says("-0 is for --files-from here"),
    on(&["-1"])
        .puts("--one-file-system")
        .says("-1 is two things elsewhere (--format=jsonl prints one line a group)"),
    on(&["--sameline"])
        .puts("--format=jsonl")
        .says("lines of several names are JSON here"),
    on(&["-u", "--unique", "--printunique", "--print-unique"])
        .instead("bc dup unique")
        .says("what there is once is no duplicate"),
    on(&["-f"])
        .takes(Kind::OneOf(&["fdupes", "json", "csv"]))
        .puts("--format={lower}"),
    on(&["-f", "--format"])
        .takes(Kind::OneOf(&["default"]))
        .puts("--format=text"),
    on(&["-f", "--omitfirst", "--omit-first"])
        .puts("--format=json")
        .then(" | jq -r '.groups[].files[1:][].path'")
        .says("the first of a group is the one that would stay"),
    on(&["-o"])
        .takes(Kind::OneOf(&["name", "time", "mtime", "ctime", "size"]))
        .says("-o is a file here; groups are sorted by their waste, files by their path"),
    on(&["--order", "--sort"])
        .takes(Kind::Any)
        .says("groups are sorted by their waste, files by their path"),
    on(&["-outputname", "--file-to-save"])
        .takes(Kind::Any)
        .puts("--output={}"),
    on(&["-g"]).puts("--progress=always"),
    on(&["--debug"]).puts("--verbose"),
    // Which files.
    on(&["-A", "--nohidden"]).puts("--no-hidden"),
    on(&["-s", "--size"])
        .takes(Kind::Size)
        .puts("--min-size={}"),
    on(&[
        "--min",
        "--minsize",
        "-minsize",
        "--minimal-file-size",
        "-G",
    ])
    .takes(Kind::Size)
    .puts("--min-size={}"),
    on(&["--max", "--maxsize", "-maxsize", "--maximal-file-size"])
        .takes(Kind::Size)
        .puts("--max-size={}"),
    on(&["-z", "--zeromatch", "--zero-match"]).puts("--min-size=0"),
    on(&["-ignoreempty"])
        .takes(Kind::OneOf(&["false"]))
        .puts("--min-size=0"),
    on(&["-s", "--symlinks", "--follow-links", "--followlinks"]).puts("--follow-symlinks"),
    on(&["-followsymlinks"])
        .takes(Kind::OneOf(&["true"]))
        .puts("--follow-symlinks"),
    on(&["-X", "--extfilter", "--ext-filter"])
        .takes(Kind::Any)
        .puts("--include=*")
        .says("--min-size, --max-size, --include and --exclude choose files"),
    on(&["--name"]).many(Kind::Any).puts("--include={}"),
    on(&["-e", "--excluded-directories", "--excluded-items"])
        .takes(Kind::Any)
        .puts("--exclude={}")
        .says("--exclude takes names and patterns"),
    on(&["--depth", "--maxdepth"])
        .takes(Kind::Number)
        .puts("--max-depth={}"),
    on(&["--stdin"]).puts("--files-from=-"),
    on(&["--directories"]).takes(Kind::Any).path(Place::Last),
    on(&["--reference-directories"])
        .takes(Kind::Any)
        .puts("--reference={}"),
    // How they are read.
    on(&["-y", "--hash-db"])
        .takes(Kind::Any)
        .puts("--cache={}")
        .says("a file of digests is a cache here"),
    on(&["-t", "-T", "--thread-number"])
        .takes(Kind::Number)
        .puts("--threads={}"),
    // Options for what is done anyway.
    on(&[
        "-dryrun",
        "-makehardlinks",
        "-makesymlinks",
        "-deleteduplicates",
        "-n",
    ])
    .takes(Kind::OneOf(&["true", "false"])),
    on(&[
        "-ignoreempty",
        "-followsymlinks",
        "-makeresultsfile",
        "-removeidentinode",
        "-deterministic",
        "-progress",
    ])
    .takes(Kind::OneOf(&["true", "false"])),
    on(&["-C", "--chunk-size", "-sleep"]).takes(Kind::Number),
    on(&[
        "-r",
        "-R",
        "--recurse",
        "--recursive",
        "--recurse:",
        "-n",
        "--noempty",
        "-Q",
        "--quick",
        "-O",
        "--param-order",
        "-S",
        "--size",
        "-i",
        "--reverse",
        "-k",
        "--keep-all-tagged",
        "--no-lock",
        "--keep-all-untagged",
        "-t",
        "--no-change-check",
        "--no-ignore",
    ]),
];
