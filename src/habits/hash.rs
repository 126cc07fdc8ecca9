//! Habits of those who know coreutils' sums, b3sum, xxhsum, hashdeep and rhash.

use std::ffi::OsString;

use super::rows::{Habit, Kind, on};

const BITS: &[&str] = &["8", "16", "64", "128", "160", "224", "256", "384", "512"];
const NO_ALGORITHM: &str = "bc hash has no such algorithm";

/// The rows. Of several that hold the first counts.
pub const TABLE: &[Habit] = &[
    // What a file is checked against.
    on(&["-c"]).takes(Kind::Algorithm).puts("--type={}"),
    on(&["-c", "--check"]).sub("check"),
    on(&["-a", "-m", "-M", "-x", "-X", "-w", "-n"]).beside(&["-k"]),
    on(&["-k"])
        .takes(Kind::Any)
        .sub("check")
        .puts("--unlisted {}")
        .drops_paths()
        .says("what is known is a manifest here"),
    on(&["-u", "--update"])
        .takes(Kind::Any)
        .sub("check")
        .puts("--unlisted {}")
        .drops_paths()
        .says("manifests are written anew, not continued"),
    on(&["--skip-ok"]).puts("--quiet").within("check"),
    // Which algorithm.
    on(&["-a"]).takes(Kind::Algorithm).puts("--type={}"),
    on(&["-a", "--algorithm", "-t"])
        .takes(Kind::OneOf(&["1", "224", "256", "384", "512"]))
        .puts("--type=sha{}"),
    on(&["-a", "--algorithm"])
        .takes(Kind::OneOf(&["sha2", "sha3"]))
        .puts("--type={lower}"),
    on(&["-a", "--all"])
        .puts("--type=md5,sha1,sha256,sha512")
        .says("algorithms are named"),
    on(&["-t"])
        .before_path()
        .says("-t is --type here, and text and binary are the same"),
    on(&["-l", "--length"])
        .takes(Kind::OneOf(BITS))
        .puts("--length={}"),
    on(&["-l", "--length"])
        .takes(Kind::Number)
        .says("digests have the length that their algorithm gives them"),
    on(&["-H"])
        .takes(Kind::OneOf(&["0", "32"]))
        .puts("--type=xxh32"),
    on(&["-H"])
        .takes(Kind::OneOf(&["1", "64"]))
        .puts("--type=xxh64"),
    on(&["-H"])
        .takes(Kind::OneOf(&["2", "128"]))
        .puts("--type=xxh128"),
    on(&["-H"]).takes(Kind::OneOf(&["3"])).puts("--type=xxh3"),
    on(&["-H"]).puts("--type=sha1"),
    on(&["-M"]).puts("--type=md5"),
    on(&[
        "--md5",
        "--sha1",
        "--sha224",
        "--sha256",
        "--sha384",
        "--sha512",
        "--sha3-224",
        "--sha3-256",
        "--sha3-384",
        "--sha3-512",
        "--blake2b",
        "--blake3",
        "--crc32c",
    ])
    .puts("--type={name}"),
    on(&["-C", "--crc32"])
        .puts("--type=crc32c")
        .says("the CRC here has another polynomial than zip's"),
    on(&[
        "-T",
        "--tth",
        "--tiger",
        "-W",
        "--whirlpool",
        "-G",
        "--gost12-256",
        "--gost12-512",
        "--gost94",
        "-E",
        "--ed2k",
        "--aich",
        "--btih",
        "--has160",
        "--snefru128",
        "--snefru256",
        "--ripemd160",
        "--edonr256",
        "--edonr512",
        "--md4",
        "--blake2s",
        "--sha512-224",
    ])
    .puts("--type=sha256")
    .says(NO_ALGORITHM),
    on(&["--keyed", "--derive-key"])
        .puts("--type=blake3")
        .says("bc hash has no keyed digests"),
    // How it is printed.
    on(&["--tag", "--bsd"]).puts("--format=bsd"),
    on(&["--simple"]).puts("--format=gnu"),
    on(&["--no-names"]).then(" | cut -d' ' -f1").says(""),
    on(&["--raw"])
        .then(" | cut -d' ' -f1 | xxd -r -p")
        .says("digests are printed in hexadecimal"),
    on(&["--base64"])
        .then(" | cut -d' ' -f1 | xxd -r -p | base64")
        .says("digests are printed in hexadecimal"),
    on(&["-d"]).puts("--format=json").says("XML is not written"),
    on(&["-p"])
        .takes(Kind::Size)
        .says("files are hashed whole, not in pieces"),
    on(&["-p", "--printf", "--template"])
        .takes(Kind::Any)
        .puts("--format=csv")
        .says("lines have no template"),
    on(&[
        "--sfv",
        "--magnet",
        "--torrent",
        "-e",
        "--embed-crc",
        "--little-endian",
    ])
    .says("bc hash writes nothing like it"),
    on(&["-P", "--percents"]).puts("--progress=always"),
    on(&["--speed", "--debug"]).puts("--verbose"),
    on(&["-s"]).puts("--quiet"),
    on(&["-b", "-i"])
        .takes(Kind::Number)
        .instead("time bc hash --type=xxh64")
        .says("benchmarks are of real files"),
    on(&["--benchmark"])
        .instead("time bc hash --type=xxh64")
        .says("benchmarks are of real files"),
    // Which files, and how they are read.
    on(&["-f", "--file-list", "--filelist", "--filesfrom"])
        .takes(Kind::Any)
        .puts("--files-from={}"),
    on(&["--follow"]).puts("--follow-symlinks"),
    on(&["--maxdepth"])
        .takes(Kind::Number)
        .puts("--max-depth={}"),
    on(&["--num-threads", "--jobs"])
        .takes(Kind::Any)
        .puts("--threads={}"),
    // What is so anyway.
    on(&[
        "-b",
        "--binary",
        "--text",
        "-r",
        "--recursive",
        "--recurse",
        "-l",
        "-i",
        "--ignore-case",
        "--lowercase",
        "--no-mmap",
        "--untagged",
    ]),
];

/// A length names an algorithm of a family: `-a sha3 -l 256` is `--type=sha3-256`. True if the
/// family, or the length, is only guessed.
pub fn join_length(words: &mut Vec<OsString>, kept: &mut Vec<OsString>) -> bool {
    const LENGTH: &str = "--length=";
    let text = |word: &OsString| word.to_str().unwrap_or_default().to_owned();
    let length = words
        .iter()
        .map(text)
        .find_map(|word| Some(word.strip_prefix(LENGTH)?.to_owned()));
    words.retain(|word| !text(word).starts_with(LENGTH));
    let family_of = |word: &OsString| {
        let word = text(word);
        let family = word
            .strip_prefix("--type=")
            .or(word.strip_prefix("--algorithm="))?;
        matches!(family, "sha2" | "sha3" | "blake2b").then(|| family.to_owned())
    };
    let family = words.iter().chain(kept.iter()).find_map(family_of);
    let (named, given) = (family.is_some(), length.is_some());
    if !given && family.as_deref().is_none_or(|family| family == "blake2b") {
        return false;
    }
    words.retain(|word| family_of(word).is_none());
    kept.retain(|word| family_of(word).is_none());
    let length = length.unwrap_or("256".to_owned());
    let algorithm = match (family.as_deref(), &*length) {
        (Some("sha2"), bits) => format!("sha{bits}"),
        (Some("sha3"), bits) => format!("sha3-{bits}"),
        (_, "512") => "blake2b".to_owned(),
        _ => "blake2b-256".to_owned(),
    };
    let exists = algorithm.parse::<bc_digest::Algorithm>().is_ok();
    let algorithm = if exists { &algorithm } else { "sha256" };
    words.push(format!("--type={algorithm}").into());
    let is_that = matches!(&*length, "256" | "512") || family.is_some_and(|f| f != "blake2b");
    !(named && given && exists && is_that)
}
