//! `cargo xtask circles`: files of one package that depend on each other in a circle, so that none
//! can be read, tested or moved without the others.
//!
//! A file depends on another if its code, tests aside, names an item that the other one declares:
//! in a path (`crate::size::parse`), through an import, or through a re-export. An item that it
//! only calls as a method does not show in the text and does not count. Nor does a part that uses
//! the items of its own module, as nested modules do (`bench/chart.rs` a type of `bench.rs`): the
//! number of such pairs of a folder and its head is reported separately.

mod graph;
mod modules;
pub(crate) mod tokens;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde_json::Value;

use self::graph::Count;
use crate::args::Args;
use crate::sh;

/// A circle that is left as it is, for now or for good.
struct Tolerated {
    /// Files, and folders that end in `/`, below the root of the workspace: nothing else may be in
    /// the circle.
    files: &'static [&'static str],
    /// Reason for tolerating it.
    reason: &'static str,
}

/// None is left. A new one needs a reason that another developer accepts.
const TOLERATED: &[Tolerated] = &[];

/// A circle as it was found.
struct Circle {
    files: BTreeSet<PathBuf>,
    /// `file:line leans on file`, for every pair within.
    shown: Vec<String>,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    args.done()?;
    let circles = find(Count::BetweenParts)?;
    for circle in &circles {
        let names: Vec<String> = circle
            .files
            .iter()
            .map(|f| f.display().to_string())
            .collect();
        println!("{} files: {}", names.len(), names.join(", "));
        for line in &circle.shown {
            println!("  {line}");
        }
        if let Some(tolerated) = tolerated(circle) {
            println!("  left: {}", tolerated.reason);
        }
    }
    let left = circles.iter().filter(|c| tolerated(c).is_some()).count();
    let all = find(Count::All)?.len();
    println!(
        "circles: {}, of which {left} are agreed; {all} where parts that use their own module count",
        circles.len()
    );
    Ok(if complaints(&circles).is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Reports circles that are not tolerated, and tolerated ones that are gone.
pub(crate) fn check(to: &mut Vec<String>) -> Result<()> {
    to.extend(complaints(&find(Count::BetweenParts)?));
    Ok(())
}

fn complaints(circles: &[Circle]) -> Vec<String> {
    let fresh = circles.iter().filter(|c| tolerated(c).is_none());
    let fresh = fresh.map(|circle| {
        let first = circle.files.first().map_or(Path::new(""), |f| f.as_path());
        format!(
            "{}: leans on itself by way of {} other files; `cargo xtask circles` names them",
            first.display(),
            circle.files.len() - 1
        )
    });
    let gone = TOLERATED.iter().filter(|t| {
        let is_it = |c: &Circle| tolerated(c).is_some_and(|found| std::ptr::eq(found, *t));
        !circles.iter().any(is_it)
    });
    let gone = gone.map(|t| format!("{}: its circle is open; take it off the list", t.files[0]));
    fresh.chain(gone).collect()
}

fn tolerated(circle: &Circle) -> Option<&'static Tolerated> {
    let is_of = |file: &Path, name: &str| match name.strip_suffix('/') {
        Some(folder) => file.starts_with(folder),
        None => file == Path::new(name),
    };
    let known = |t: &&Tolerated| {
        let in_it = |f: &PathBuf| t.files.iter().any(|name| is_of(f, name));
        circle.files.iter().all(in_it)
    };
    TOLERATED.iter().find(known)
}

/// Returns all circles of all packages' libraries and programs.
fn find(count: Count) -> Result<Vec<Circle>> {
    let mut found = Vec::new();
    for root in roots()? {
        let edges = graph::edges(&modules::read(&root)?, count);
        for files in graph::circles(&edges) {
            let within = |file: &Path| files.contains(file);
            let inner = edges.iter().filter(|(from, _)| within(from));
            let shown = inner.flat_map(|(from, targets)| {
                let targets = targets.iter().filter(|(to, _)| within(to));
                targets.map(move |(to, line)| {
                    let (from, to) = (relative(from), relative(to));
                    format!("{}:{line} leans on {}", from.display(), to.display())
                })
            });
            found.push(Circle {
                shown: shown.collect(),
                files: files.iter().map(|f| relative(f).to_owned()).collect(),
            });
        }
    }
    Ok(found)
}

fn relative(path: &Path) -> &Path {
    path.strip_prefix(sh::root()).unwrap_or(path)
}

/// Returns the first files of the workspace's libraries and programs.
fn roots() -> Result<Vec<PathBuf>> {
    let mut metadata = sh::cargo();
    metadata.args(["metadata", "--format-version=1", "--no-deps", "--locked"]);
    let metadata: Value = serde_json::from_slice(&sh::stdout(&mut metadata)?)?;
    let mut roots = Vec::new();
    for package in metadata["packages"].as_array().context("no packages")? {
        for target in package["targets"].as_array().into_iter().flatten() {
            let of_kind = |kind: &str| {
                target["kind"]
                    .as_array()
                    .is_some_and(|k| k.contains(&kind.into()))
            };
            if of_kind("lib") || of_kind("bin") {
                roots.extend(target["src_path"].as_str().map(PathBuf::from));
            }
        }
    }
    Ok(roots)
}
