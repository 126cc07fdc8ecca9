//! `cargo xtask api`: the public API of the libraries, read from their sources, compared with the one
//! that is recorded (`--write` records it), and searched for types of other crates, whose next major
//! version would be ours too. Promised are the items of the libraries that callers are to use, and
//! what these re-export of the crates that are internal; all else is recorded apart, may change in
//! any release, and is in no promised signature. Each promised type and function is in an example or
//! in the signature of one that is. Where cargo-public-api is installed its list is searched too, and for
//! names that several of ours declare; with `--baseline REV`, compared by cargo-semver-checks. A tool
//! that is missing is named, and nothing counts as passed.

mod promise;
mod signature;
mod surface;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::args::Args;
use crate::sh;

use promise::{Library, Promise};

const LIBRARIES: &[&str] = &[
    "bc-fs",
    "bc-edit",
    "bc-digest",
    "bc-pool",
    "bc-walk",
    "bc-read",
    "bc-manifest",
    "bc-hash",
    "bc-find",
    "bc-prune",
    "bc-integrity",
    "bc-copy",
    "bc-fleet",
    "bc-parity",
];

/// Crate that re-exports all of them, in the words of its users: the verbs are those of the crates
/// below.
const FACADE: &str = "bit-crafts";

/// Types of other crates that are public on purpose: bc-manifest keeps JSON fields that it does not
/// know in the types of serde_json, stable since 2017, and re-exports those types; bc-fs and bc-edit
/// are between our crates and the kernel, and their callers distinguish rustix's errors and flags as
/// they are.
const ALLOWED: &[(&str, &str)] = &[
    ("bc-manifest", "serde_json::"),
    ("bc-manifest", "serde::"),
    ("bc-fs", "rustix::"),
    ("bc-edit", "rustix::"),
];

/// Conversions that the front page has: all others would name types of the crates below it.
const CONVERSIONS: &[&str] = &[
    "impl From<Error> for io::Error",
    "impl From<PathError> for Error",
    "impl From<crate::GlobError> for Error",
];

/// Names that any crate may declare. Each has an error of its own, so that adding a kind to one
/// breaks no other, and users of `bc_walk::Error` expect it under that name.
const EVERYWHERE: &[&str] = &["Error", "ErrorKind"];

/// Crates whose types may appear anywhere.
const STANDARD: &[&str] = &["core", "alloc", "std"];

pub(crate) fn run(mut args: Args) -> Result<ExitCode> {
    let baseline = args.option("--baseline")?;
    let writes = args.flag("--write");
    args.done()?;
    let mut libraries = Vec::new();
    for package in LIBRARIES.iter().chain(&[FACADE]) {
        libraries.push(Library::read(package)?);
    }
    let mut code = recorded(&libraries, writes)?;
    if sh::has("cargo-public-api") {
        let folder = sh::target().join("api");
        std::fs::create_dir_all(&folder)?;
        let mut declared = Vec::new();
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
            declared.extend(declarations(&text).map(String::from));
        }
        for (name, paths) in twins(&declared) {
            let paths: Vec<&str> = paths.into_iter().collect();
            println!("declared by several: {name}: {}", paths.join(", "));
            code = ExitCode::FAILURE;
        }
    } else {
        println!(
            "not run: cargo-public-api, which knows re-exports; `rustup toolchain install nightly \
             --profile minimal` and `cargo install cargo-public-api` bring it"
        );
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
            for library in libraries.iter().filter(|library| !library.is_internal) {
                compare.args(["--package", library.package]);
            }
            sh::run(&mut compare)?;
        }
    }
    Ok(code)
}

/// Compares the API in the sources with the recorded one, or records it.
fn recorded(libraries: &[Library], writes: bool) -> Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    let facade = libraries[libraries.len() - 1].lines().map(String::from);
    let facade: Vec<String> = facade.collect();
    let promise = Promise::of(libraries);
    for fault in promise.faults(&promise::examples()?) {
        println!("{fault}");
        code = ExitCode::FAILURE;
    }
    let mut kept = BTreeSet::new();
    let mut sums = [0, 0];
    for library in libraries {
        let package = library.package;
        let lines: Vec<String> = library.lines().map(String::from).collect();
        for line in inner_conversions(&lines, &facade) {
            println!("converted from an inner type: {package}: {line}");
            code = ExitCode::FAILURE;
        }
        for (line, of) in &library.shown.foreign {
            if !ALLOWED
                .iter()
                .any(|(p, prefix)| *p == package && prefix.starts_with(of.as_str()))
            {
                println!("foreign: {package}: {of}: {line}");
                code = ExitCode::FAILURE;
            }
        }
        for (is_promised, folder) in [(true, "xtask/api"), (false, "xtask/api/internal")] {
            let items = library.shown.items.iter();
            let items = items.filter(|item| promise.holds(library, item) == is_promised);
            let lines: Vec<&str> = items.map(|item| item.line.as_str()).collect();
            if lines.is_empty() {
                continue;
            }
            sums[usize::from(!is_promised)] += lines.len();
            let file = sh::root().join(format!("{folder}/{package}.txt"));
            if !compared(package, &file, &lines, writes)? {
                code = ExitCode::FAILURE;
            }
            kept.insert(file);
        }
    }
    println!("{} promised items, {} internal ones", sums[0], sums[1]);
    for folder in ["xtask/api", "xtask/api/internal"] {
        let folder = sh::root().join(folder);
        let entries = folder
            .is_dir()
            .then(|| std::fs::read_dir(&folder))
            .transpose()?;
        for entry in entries.into_iter().flatten() {
            let path = entry?.path();
            if path.is_dir() || kept.contains(&path) {
                continue;
            }
            if writes {
                std::fs::remove_file(&path).with_context(|| path.display().to_string())?;
            } else {
                println!("{}: there are no such items any more", path.display());
                code = ExitCode::FAILURE;
            }
        }
    }
    if code == ExitCode::FAILURE {
        println!(
            "what is gone or other breaks callers; if that is meant, it belongs into the \
             changelog in the crate's README.md, and `cargo xtask api --write` records it"
        );
    }
    Ok(code)
}

/// Compares lines with those in a file, or writes them; true if they are the same.
fn compared(package: &str, file: &Path, lines: &[&str], writes: bool) -> Result<bool> {
    let text = lines.join("\n") + "\n";
    if writes {
        let folder = file.parent().context("no folder")?;
        std::fs::create_dir_all(folder)?;
        std::fs::write(file, text).with_context(|| file.display().to_string())?;
        println!("{}: {} items", file.display(), lines.len());
        return Ok(true);
    }
    let before = match std::fs::read_to_string(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        read => read.with_context(|| file.display().to_string())?,
    };
    let (was, is): (BTreeSet<&str>, BTreeSet<&str>) =
        (before.lines().collect(), text.lines().collect());
    for line in was.difference(&is) {
        println!("{package}: - {line}");
    }
    for line in is.difference(&was) {
        println!("{package}: + {line}");
    }
    Ok(was == is)
}

/// Returns the conversions into types of the front page that nobody has allowed.
fn inner_conversions<'a>(
    lines: &'a [String],
    facade: &'a [String],
) -> impl Iterator<Item = &'a str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let shown: BTreeSet<&str> = facade
        .iter()
        .flat_map(|line| line.split(move |c| !is_word(c)))
        .collect();
    let lines = lines.iter().map(String::as_str);
    lines.filter(move |line| {
        let Some((_, made)) = line
            .split_once(" From<")
            .and_then(|(_, of)| of.split_once("> for "))
        else {
            return false;
        };
        let name = made.split(|c| !is_word(c)).next().unwrap_or_default();
        shown.contains(name) && !CONVERSIONS.contains(line)
    })
}

/// Returns the lines that name a type of a crate that is neither ours nor the standard library's.
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

/// Returns the paths of the items declared in an API: types, traits, functions, constants and
/// macros. Modules only contain the names; methods, fields and variants belong to their type;
/// re-exported items are declared elsewhere.
fn declarations(text: &str) -> impl Iterator<Item = &str> {
    const KINDS: &[&str] = &[
        "fn", "struct", "enum", "union", "trait", "type", "const", "static", "macro",
    ];
    text.lines().filter_map(|line| {
        let (before, path) = line
            .split(' ')
            .zip(line.split(' ').skip(1))
            .find(|(_, word)| word.contains("::"))?;
        let end = path.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
        let path = path[..end.unwrap_or(path.len())].trim_end_matches(':');
        let (parents, _) = path.rsplit_once("::")?;
        let in_type = |part: &str| part.starts_with(|c: char| c.is_uppercase());
        let counts = KINDS.contains(&before) && !parents.split("::").any(in_type);
        counts.then_some(path)
    })
}

/// Returns the names that more than one crate declares, with their paths.
fn twins(declared: &[String]) -> impl Iterator<Item = (&str, BTreeSet<&str>)> {
    let mut paths: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for path in declared {
        let name = path.rsplit("::").next().unwrap_or(path);
        paths.entry(name).or_default().insert(path);
    }
    let krate = |path: &&str| path.split("::").next().map(String::from);
    paths.into_iter().filter(move |(name, paths)| {
        let crates: BTreeSet<_> = paths.iter().filter_map(krate).collect();
        crates.len() > 1 && !EVERYWHERE.contains(name)
    })
}

#[cfg(test)]
mod tests {
    use super::{declarations, foreign, inner_conversions, twins};

    #[test]
    fn what_a_crate_declares_is_told_from_what_belongs_to_it() {
        let text = "\
pub mod bc_fs
pub mod bc_fs::streams
pub use bc_fs::Value
pub fn bc_fs::streams::open(bc_fs::streams::Stream) -> core::io::Result<std::fs::File>
pub unsafe fn bc_fs::raw(*const u8)
pub const fn bc_fs::size_of<T: core::fmt::Debug>(T)
pub const bc_fs::MAX: usize
pub const bc_fs::Size::MAX: usize
#[non_exhaustive] pub enum bc_fs::Size
pub bc_fs::Size::Bytes(u64)
pub fn bc_fs::Size::parse(&str) -> bc_fs::Size
impl core::fmt::Debug for bc_fs::Size
pub type bc_fs::Size::Err = bc_fs::SizeError
pub trait bc_fs::Known: core::marker::Sized
pub fn bc_fs::Known::name(&self)
pub struct bc_fs::Escaped<'a>(_)";
        let found: Vec<&str> = declarations(text).collect();
        assert_eq!(
            found,
            [
                "bc_fs::streams::open",
                "bc_fs::raw",
                "bc_fs::size_of",
                "bc_fs::MAX",
                "bc_fs::Size",
                "bc_fs::Known",
                "bc_fs::Escaped",
            ]
        );
    }

    #[test]
    fn the_front_page_is_made_of_nothing_below_it() {
        let facade = ["use bc_walk::job::{ Error, Means }".to_owned()];
        let lines = [
            "impl From<PathError> for Error",
            "impl From<bc_pool::WorkerPanic> for Error",
            "impl<'a> From<&'a Entry> for EntryRef<'a>",
            "impl TryFrom<&[u8]> for Error",
            "impl fmt::Display for Error",
        ]
        .map(String::from);
        let found: Vec<&str> = inner_conversions(&lines, &facade).collect();
        assert_eq!(found, ["impl From<bc_pool::WorkerPanic> for Error"]);
    }

    #[test]
    fn a_name_stands_in_one_crate() {
        let declared = [
            "bc_fs::Error",
            "bc_walk::Error",
            "bc_fs::streams::open",
            "bc_manifest::compress::open",
            "bc_hash::check",
            "bc_hash::check::check",
        ]
        .map(String::from);
        let found: Vec<&str> = twins(&declared).map(|(name, _)| name).collect();
        assert_eq!(found, ["open"]);
    }

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
