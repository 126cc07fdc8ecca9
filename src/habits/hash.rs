//! Habits from coreutils' sums, b3sum, xxhsum, hashdeep and rhash.

use std::ffi::OsString;

use super::rows::{Habit, Kind, on};

const BITS: &[&str] = &["8", "16", "64", "128", "160", "224", "256", "384", "512"];
const NO_ALGORITHM: &str = "there is no such algorithm here";
const BY_DIGEST: &str = "digests are looked up by grep";
const NO_KEYS: &str = "there are no keyed digests here";
const TRIALS: &str = "the speed of real files is what is measured here (time bc hash FILE)";

/// The table. Of several rows that hold the first counts.
pub const TABLES: &[&[Habit]] = &[ROWS];

const ROWS: &[Habit] = &[
    // Digests that a file is checked against.
    on(&["-c"]).takes(Kind::Algorithm).puts("--type={}"),
    on(&["-c", "--check"]).sub("check"),
    on(&["-k"])
        .takes(Kind::Any)
        .beside(&["-m", "-M"])
        .puts("--output=now.sha256")
        .then(" && cut -d' ' -f1 {} | grep -Ff - now.sha256")
        .says(BY_DIGEST),
    on(&["-k"])
        .takes(Kind::Any)
        .beside(&["-x", "-X"])
        .puts("--output=now.sha256")
        .then(" && cut -d' ' -f1 {} | grep -vFf - now.sha256")
        .says(BY_DIGEST),
    on(&["-a", "-m", "-M", "-x", "-X", "-w", "-n"]).beside(&["-k"]),
    on(&["-k"])
        .takes(Kind::Any)
        .sub("check")
        .puts("--unlisted {}")
        .drops_paths()
        .says("what is known is a manifest here"),
    on(&["-m"])
        .takes(Kind::File)
        .puts("--output=now.sha256")
        .then(" && cut -d' ' -f1 {} | grep -Ff - now.sha256")
        .says(BY_DIGEST),
    on(&["-w", "-n"]).beside(&["-m"]),
    on(&["-m", "--message"])
        .takes(Kind::Any)
        .first("printf %s {} | ")
        .says("what is hashed is a file, or comes by a pipe"),
    on(&["-u", "--update"])
        .takes(Kind::Any)
        .sub("check")
        .puts("--unlisted {}")
        .drops_paths()
        .says("manifests are written anew, not continued"),
    on(&["--skip-ok"]).puts("--quiet").within("check"),
    // Which algorithm.
    on(&["-a"]).takes(Kind::Algorithm).puts("--type={}"),
    on(&["-a", "--algorithm"])
        .takes(Kind::OneOf(&["512256"]))
        .puts("--type=sha512-256"),
    on(&["-a", "--algorithm"])
        .takes(Kind::OneOf(&["512224"]))
        .only("shasum", NO_ALGORITHM),
    on(&["-a"])
        .takes(Kind::Digest(32))
        .puts("--type=md5")
        .then(" | grep -i {}")
        .says(BY_DIGEST),
    on(&["-a"])
        .takes(Kind::Digest(40))
        .puts("--type=sha1")
        .then(" | grep -i {}")
        .says(BY_DIGEST),
    on(&["-a"])
        .takes(Kind::Digest(64))
        .then(" | grep -i {}")
        .says(BY_DIGEST),
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
    on(&["-l", "--length"]).takes(Kind::Number).only(
        "b3sum",
        "digests have the length that their algorithm gives them",
    ),
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
    on(&["-C", "--crc32"]).puts("--type=crc32b"),
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
        "--gost94-cryptopro",
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
    .only("rhash", NO_ALGORITHM),
    on(&["--keyed"]).only("b3sum", NO_KEYS),
    on(&["--derive-key", "--seek"])
        .takes(Kind::Any)
        .only("b3sum", NO_KEYS),
    // How it is printed.
    on(&["--tag", "--bsd"]).puts("--format=bsd"),
    on(&["--simple"]).puts("--format=gnu"),
    on(&["--no-names"]).then(" | cut -d' ' -f1").says(""),
    on(&["--raw"])
        .then(" | cut -d' ' -f1 | xxd -r -p")
        .says("digests are printed in hexadecimal"),
    on(&["--base64"])
        .beside(&["--bsd"])
        .only("rhash", "digests are printed in hexadecimal"),
    on(&["--base64"])
        .then(" | cut -d' ' -f1 | xxd -r -p | base64")
        .says("digests are printed in hexadecimal"),
    on(&["-d"]).only("hashdeep", "XML is not written, but --format=json"),
    on(&["-p"])
        .takes(Kind::Size)
        .only("hashdeep", "files are hashed whole, not in pieces"),
    on(&["-p", "--printf", "--template"])
        .takes(Kind::Any)
        .only("rhash", "lines have no template, but --format=csv and json"),
    on(&[
        "--sfv",
        "--magnet",
        "--torrent",
        "--embed-crc",
        "--uppercase",
        "--base32",
    ])
    .only("rhash", "nothing like it is written here"),
    on(&["-e"])
        .puts("--progress=always")
        .says("-e is a progress line elsewhere, and a new name for each file"),
    on(&["--little-endian"]).only("xxhsum", "digests are printed the one way round"),
    on(&["-P", "--percents"]).puts("--progress=always"),
    on(&["--speed", "--debug"]).puts("--verbose"),
    on(&["-s"]).puts("--quiet"),
    on(&["-b", "-i"]).takes(Kind::Number).only("xxhsum", TRIALS),
    on(&["-b"]).takes(Kind::Begins("1,")).only("xxhsum", TRIALS),
    on(&["-b"]).alone().at_terminal().only("xxhsum", TRIALS),
    on(&["--benchmark"]).only("rhash", TRIALS),
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
    // Options for what is done anyway.
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
        "--no-ignore",
    ]),
];

/// Meaning of a length of digests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Nothing, or exactly one algorithm.
    Plain,
    /// The family, or the length, is only guessed.
    Guessed,
    /// No program but this one has that length.
    Only(&'static str),
}

/// Joins a length with the family of an algorithm: `-a sha3 -l 256` is `--type=sha3-256`.
pub fn join_length(words: &mut Vec<OsString>, kept: &mut Vec<OsString>) -> Length {
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
    let given = length.is_some();
    if !given && family.as_deref().is_none_or(|family| family == "blake2b") {
        return Length::Plain;
    }
    words.retain(|word| family_of(word).is_none());
    kept.retain(|word| family_of(word).is_none());
    let length = length.unwrap_or("256".to_owned());
    let algorithm = match (family.as_deref(), &*length) {
        (Some("sha2"), bits) => format!("sha{bits}"),
        (Some("sha3"), bits) => format!("sha3-{bits}"),
        (_, "512") => "blake2b".to_owned(),
        (_, "256") => "blake2b-256".to_owned(),
        (None, _) => return Length::Only("b2sum"),
        _ => return Length::Only("cksum"),
    };
    if algorithm.parse::<bc_digest::Algorithm>().is_err() {
        return Length::Only("cksum");
    }
    words.push(format!("--type={algorithm}").into());
    match (family, given) {
        (Some(_), true) => Length::Plain,
        _ => Length::Guessed,
    }
}
