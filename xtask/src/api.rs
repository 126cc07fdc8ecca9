//! `cargo xtask api`: the public API of the libraries, listed by cargo-public-api and searched for
//! types of other crates, whose next major version would be ours too; with `--baseline REV`,
//! compared by cargo-semver-checks. A tool that is missing is named, and nothing counts as passed.

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::args::Args;
use crate::sh;

const LIBRARIES: &[&str] = &[
    "bc-fs",
    "bc-digest",
    "bc-pool",
    "bc-walk",
    "bc-read",
    "bc-manifest",
    "bc-hash",
    "bc-dup",
    "bc-integrity",
];

/// Types of other crates that are public on purpose: bc-manifest keeps JSON fields that it does
/// not know as serde_json, stable since 2017, has them, and re-exports those types.
const ALLOWED: &[(&str, &str)] = &[("bc-manifest", "serde_json::")];

/// Crates whose types may stand anywhere.
const STANDARD: &[&str] = &["core", "alloc", "std"];

pub(crate) fn run(mut args: Args) -> Result<ExitCode> {
    let baseline = args.option("--baseline")?;
    args.done()?;
    let mut code = ExitCode::SUCCESS;
    if sh::has("cargo-public-api") {
        let folder = sh::target().join("api");
        std::fs::create_dir_all(&folder)?;
        for library in LIBRARIES {
            let mut list = sh::cargo();
            list.args(["public-api", "--package", library, "-sss"]);
            let text = String::from_utf8(sh::stdout(&mut list)?)
                .with_context(|| format!("the API of {library}"))?;
            let path = folder.join(format!("{library}.txt"));
            std::fs::write(&path, &text)?;
            println!("{}: {} items", path.display(), text.lines().count());
            for line in foreign(library, &text) {
                println!("foreign: {line}");
                code = ExitCode::FAILURE;
            }
        }
    } else {
        println!(
            "not run: the list of the API; `rustup toolchain install nightly --profile minimal` \
             and `cargo install cargo-public-api` bring what makes it"
        );
        code = ExitCode::FAILURE;
    }
    match baseline {
        None => println!("not run: the comparison with a release; --baseline REV names its commit"),
        Some(_) if !sh::has("cargo-semver-checks") => {
            println!(
                "not run: the comparison; `cargo install cargo-semver-checks` brings the tool"
            );
            code = ExitCode::FAILURE;
        }
        Some(revision) => {
            let mut compare = sh::cargo();
            compare.args(["semver-checks", "--baseline-rev", &revision]);
            for library in LIBRARIES {
                compare.args(["--package", library]);
            }
            sh::run(&mut compare)?;
        }
    }
    Ok(code)
}

/// The lines that name a type of a crate that is neither ours nor the standard library's.
fn foreign<'a>(library: &'a str, text: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines().filter(move |line| {
        let paths = line.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
        paths
            .filter_map(|path| path.split_once("::"))
            // `Self::Item`, `T::Error` and the like begin with a capital letter.
            .filter(|(first, _)| first.starts_with(|c: char| c.is_ascii_lowercase()))
            .any(|(first, _)| {
                let allowed = ALLOWED
                    .iter()
                    .any(|(l, prefix)| *l == library && prefix.starts_with(first));
                !allowed && !STANDARD.contains(&first) && !first.starts_with("bc_")
            })
    })
}

#[cfg(test)]
mod tests {
    use super::foreign;

    #[test]
    fn types_of_other_crates_are_found() {
        let text = "\
pub fn bc_read::extents(impl std::os::fd::AsFd) -> core::result::Result<(), rustix::io::Errno>
pub fn bc_read::order(&mut [bc_walk::EntryId])
pub bc_manifest::extra: serde_json::Map<alloc::string::String, serde_json::Value>
impl core::convert::From<&rustix::fs::Stat> for bc_walk::FileStat
pub type bc_walk::Ids::Item = <Self as core::iter::Iterator>::Item";
        assert_eq!(foreign("bc-manifest", text).count(), 2);
        assert_eq!(foreign("bc-read", text).count(), 3);
    }
}
