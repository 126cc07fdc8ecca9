//! Texts of `--help` and `--version` under the names of coreutils.

use super::family::Family;
use super::names::{Program, ProgramKind};

/// Returns the help text; `called` is the name by which the program was called.
pub fn text(program: &Program, called: &str) -> String {
    let mut text = format!("Usage: {called} [OPTION]... [FILE]...\n");
    let family = match program.kind {
        ProgramKind::Sum(family) => Some(family),
        _ => None,
    };
    text += &match family {
        Some(family) => format!(
            "Print or check {} ({}-bit) checksums.\n",
            family.tag(),
            family.bits()
        ),
        None => "Print or verify checksums; POSIX's 32-bit CRC unless another one is named.\n"
            .to_owned(),
    };
    text += "\nWithout FILE, or where FILE is -, standard input is read.\n\n";
    let is_cksum = family.is_none();
    let mut option = |name: &str, about: &str| text += &format!("  {name}\n         {about}\n");
    if is_cksum {
        option("-a, --algorithm=TYPE", "the digest, one of those below");
        option("    --base64", "digests in base64, not hexadecimal");
    }
    option(
        "-b, --binary",
        "a star before names, which changes nothing else",
    );
    option(
        "-c, --check",
        "read checksums from the FILEs and check them",
    );
    if is_cksum || family == Some(Family::Blake2b) {
        option(
            "-l, --length=BITS",
            "length of the digest: a multiple of 8, at most 512, for blake2b;\n         \
             224, 256, 384 or 512 for sha2 and sha3",
        );
    }
    if is_cksum {
        option(
            "    --raw",
            "the bytes of the digest of one file, nothing else",
        );
    }
    let default = if is_cksum { " (the default)" } else { "" };
    option(
        "    --tag",
        &format!("BSD's lines, with the name of the digest{default}"),
    );
    if is_cksum {
        option(
            "    --untagged",
            "lines without it: digest, two spaces, name",
        );
    }
    option(
        "-t, --text",
        "two spaces before names (the default without tags)",
    );
    option(
        "-z, --zero",
        "NUL after each line instead of a newline, and no escapes in names",
    );
    text += "\nWhile checking:\n";
    let mut option = |name: &str, about: &str| text += &format!("  {name}\n         {about}\n");
    option(
        "    --ignore-missing",
        "missing files are no failure and get no line",
    );
    option("    --quiet", "no line for files that match");
    option("    --status", "print nothing, the exit status tells");
    option(
        "    --strict",
        "a line that is none of checksums is a failure",
    );
    option("-w, --warn", "name lines that are none of checksums");
    text += "\n";
    let mut option = |name: &str, about: &str| text += &format!("  {name}\n         {about}\n");
    if is_cksum {
        option("    --debug", "say which instructions compute a CRC");
    }
    option("    --help", "show this help and exit");
    option("    --version", "show the version and exit");
    if is_cksum {
        text += "\nDigests:\n";
        for (name, about) in DIGESTS {
            text += &format!("  {name:<10}{about}\n");
        }
    }
    text + "\nThis is bit-crafts under another program's name: many files are hashed at once. 'bchash --help',\n\
            or 'bc hash --help', has what goes beyond it.\n"
}

const DIGESTS: &[(&str, &str)] = &[
    ("sysv", "as sum -s"),
    ("bsd", "as sum -r"),
    ("crc", "as cksum without an option"),
    ("crc32b", "as in zip, gzip and SFV files"),
    ("md5", "as md5sum"),
    ("sha1", "as sha1sum"),
    (
        "sha2",
        "as sha224sum, sha256sum, sha384sum and sha512sum; needs -l",
    ),
    ("sha3", "SHA-3; needs -l"),
    ("blake2b", "as b2sum"),
    ("sm3", "SM3"),
];

/// Returns the version; `name` is the program's own name.
pub fn version(name: &str) -> String {
    format!(
        "{name} (bit-crafts {}, after GNU coreutils 9.11)\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// Returns the version, under the name of another program.
pub fn version_of(name: &str) -> String {
    format!("{name} (bit-crafts {})\n", env!("CARGO_PKG_VERSION"))
}
