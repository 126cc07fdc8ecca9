//! `cargo xtask tidy`: the conventions that no compiler checks.

mod changes;
mod door;
mod options;
mod promises;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::args::Args;
use crate::{circles, licences, sh};

/// Names that may be at the top, besides hidden files.
const TOP: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "crates",
    "src",
    "benches",
    "tests",
    "xtask",
    "fixtures",
    "README.md",
    "LICENSE-GPL",
    "LICENSE-LGPL",
];

const LGPL: &str = "LGPL-3.0-or-later";
const GPL: &str = "GPL-3.0-or-later";

/// A package of ours: its licence, and which of ours it may depend on outside of tests.
struct Rule {
    package: &'static str,
    licence: &'static str,
    may_use: &'static [&'static [&'static str]],
}

/// Packages that every engine may use.
const BASE: &[&str] = &[
    "bc-fs",
    "bc-edit",
    "bc-digest",
    "bc-manifest",
    "bc-pool",
    "bc-walk",
    "bc-read",
];
const ENGINES: &[&str] = &[
    "bc-hash",
    "bc-find",
    "bc-prune",
    "bc-integrity",
    "bc-copy",
    "bc-fleet",
    "bc-parity",
];

/// Arrows point one way.
const RULES: &[Rule] = &[
    Rule {
        package: "bc-fs",
        licence: LGPL,
        may_use: &[],
    },
    Rule {
        package: "bc-edit",
        licence: LGPL,
        may_use: &[&["bc-fs"]],
    },
    Rule {
        package: "bc-digest",
        licence: LGPL,
        may_use: &[],
    },
    Rule {
        package: "bc-manifest",
        licence: LGPL,
        may_use: &[&["bc-digest"]],
    },
    Rule {
        package: "bc-pool",
        licence: LGPL,
        may_use: &[],
    },
    Rule {
        package: "bc-walk",
        licence: LGPL,
        may_use: &[&["bc-fs", "bc-pool"]],
    },
    Rule {
        package: "bc-read",
        licence: LGPL,
        may_use: &[&["bc-fs", "bc-pool", "bc-walk"]],
    },
    Rule {
        package: "bc-hash",
        licence: GPL,
        may_use: &[BASE],
    },
    Rule {
        package: "bc-find",
        licence: GPL,
        may_use: &[BASE, &["bc-hash"]],
    },
    Rule {
        package: "bc-prune",
        licence: GPL,
        may_use: &[BASE, &["bc-hash", "bc-find"]],
    },
    Rule {
        package: "bc-integrity",
        licence: GPL,
        may_use: &[BASE, &["bc-hash"]],
    },
    Rule {
        package: "bc-copy",
        licence: GPL,
        may_use: &[BASE, &["bc-hash", "bc-integrity", "bc-parity"]],
    },
    Rule {
        package: "bc-parity",
        licence: GPL,
        may_use: &[BASE, &["bc-hash", "bc-integrity"]],
    },
    Rule {
        package: "bc-fleet",
        licence: GPL,
        may_use: &[BASE, &["bc-hash", "bc-integrity"]],
    },
    Rule {
        package: "bc-testkit",
        licence: LGPL,
        may_use: &[BASE, ENGINES],
    },
    Rule {
        package: "bit-crafts",
        licence: GPL,
        may_use: &[BASE, ENGINES],
    },
    Rule {
        package: "bit-crafts-python",
        licence: GPL,
        may_use: &[&["bit-crafts"]],
    },
    Rule {
        package: "xtask",
        licence: GPL,
        may_use: &[&["bc-digest", "bc-testkit", "bc-walk", "bc-pool"]],
    },
];

/// The packages that may hold unsafe code; all others forbid it in every target.
const UNSAFE: &[&str] = &[
    "bc-digest",
    "bc-edit",
    "bc-fs",
    "bc-pool",
    "bc-read",
    "bit-crafts",
];

/// Leftovers, cut in two so that this file is not found.
const LEFTOVERS: &[&str] = &[
    concat!("#[ig", "nore"),
    concat!("tod", "o!("),
    concat!("unimple", "mented!("),
    concat!("assert!(tr", "ue)"),
];

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    args.done()?;
    let mut complaints = Vec::new();
    let tracked = tracked()?;
    let rust: BTreeMap<&PathBuf, String> = tracked
        .iter()
        .filter(|p| p.extension().is_some_and(|e| e == "rs"))
        .filter_map(|p| Some((p, std::fs::read_to_string(sh::root().join(p)).ok()?)))
        .collect();
    top_level(&tracked, &mut complaints);
    packages(&mut complaints)?;
    licences::check(&mut complaints)?;
    sources(&rust, &mut complaints);
    let page = std::fs::read_to_string(sh::root().join(promises::PAGE))?;
    promises::check(&page, &rust, &mut complaints);
    machine_words(&tracked, &mut complaints);
    run_bit(&tracked, &mut complaints)?;
    circles::check(&mut complaints)?;
    door::check(&mut complaints);
    options::check(&rust, &mut complaints);
    changes::check(&rust, &mut complaints);
    for complaint in &complaints {
        println!("tidy: {complaint}");
    }
    let (files, count) = (rust.len(), complaints.len());
    println!("tidy: {files} source files, {count} complaints");
    Ok(if complaints.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Returns the files that git tracks and that are there.
fn tracked() -> Result<Vec<PathBuf>> {
    let text = sh::stdout(
        Command::new("git")
            .current_dir(sh::root())
            .args(["ls-files", "-z"]),
    )?;
    let paths = String::from_utf8(text).context("a tracked name is not UTF-8")?;
    let paths = paths
        .split('\0')
        .filter(|p| !p.is_empty())
        .map(PathBuf::from);
    Ok(paths.filter(|p| sh::root().join(p).exists()).collect())
}

fn top_level(tracked: &[PathBuf], complaints: &mut Vec<String>) {
    let mut tops: Vec<&str> = tracked
        .iter()
        .filter_map(|p| p.components().next()?.as_os_str().to_str())
        .collect();
    tops.dedup();
    for top in tops {
        if !top.starts_with('.') && !TOP.contains(&top) {
            complaints.push(format!("{top}: the top level has no place for it"));
        }
    }
}

/// Checks licences, dependency direction, and the lint attribute of every target.
fn packages(complaints: &mut Vec<String>) -> Result<()> {
    let mut metadata = sh::cargo();
    metadata.args(["metadata", "--format-version=1", "--no-deps", "--locked"]);
    let metadata: Value = serde_json::from_slice(&sh::stdout(&mut metadata)?)?;
    for package in metadata["packages"].as_array().context("no packages")? {
        let name = package["name"].as_str().unwrap_or("");
        let Some(rule) = RULES.iter().find(|r| r.package == name) else {
            complaints.push(format!("{name}: a package that tidy's table does not know"));
            continue;
        };
        if package["license"] != rule.licence {
            complaints.push(format!(
                "{name}: licence {}, not {}",
                package["license"], rule.licence
            ));
        }
        licence_text(package, rule, complaints);
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let on = dependency["name"].as_str().unwrap_or("");
            let ours = RULES.iter().any(|r| r.package == on);
            let allowed = rule.may_use.iter().any(|group| group.contains(&on));
            if ours && dependency["kind"] != "dev" && !allowed {
                complaints.push(format!("{name}: must not depend on {on}"));
            }
        }
        for target in package["targets"].as_array().into_iter().flatten() {
            let source = target["src_path"].as_str().unwrap_or("");
            let text = std::fs::read_to_string(source).unwrap_or_default();
            let denied = UNSAFE.contains(&name) && text.contains("#![deny(unsafe_code)]");
            if !denied && !text.contains("#![forbid(unsafe_code)]") {
                let shown = relative(Path::new(source));
                complaints.push(format!("{}: no #![forbid(unsafe_code)]", shown.display()));
            }
        }
    }
    Ok(())
}

/// Checks that a published package carries the text of its licence.
fn licence_text(package: &Value, rule: &Rule, complaints: &mut Vec<String>) {
    let folder = Path::new(package["manifest_path"].as_str().unwrap_or("")).with_file_name("");
    let published = package["publish"].is_null();
    let (file, title) = match (folder.as_path() == sh::root(), rule.licence) {
        (true, _) => ("LICENSE-GPL", "GNU GENERAL"),
        (false, LGPL) => ("LICENSE", "GNU LESSER GENERAL"),
        (false, _) => ("LICENSE", "GNU GENERAL"),
    };
    let text = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
    let first = text.lines().find(|l| !l.trim().is_empty()).unwrap_or("");
    if published && !first.trim().starts_with(title) {
        complaints.push(format!(
            "{}: {file} is not the text of {}",
            rule.package, rule.licence
        ));
    }
}

fn relative(path: &Path) -> &Path {
    path.strip_prefix(sh::root()).unwrap_or(path)
}

fn sources(rust: &BTreeMap<&PathBuf, String>, complaints: &mut Vec<String>) {
    for (path, text) in rust {
        let shown = path.display();
        if !text.starts_with("//!") {
            complaints.push(format!("{shown}: does not open with //!"));
        }
        for (number, line) in text.lines().enumerate() {
            if let Some(leftover) = LEFTOVERS.iter().find(|l| line.contains(**l)) {
                complaints.push(format!("{shown}:{}: {leftover}", number + 1));
            }
        }
    }
}

/// Complains of paths of this machine, and of anyone's home, in tracked files.
fn machine_words(tracked: &[PathBuf], complaints: &mut Vec<String>) {
    let mut words = vec![
        sh::root().display().to_string(),
        concat!("/ho", "me/").to_owned(),
    ];
    // The folder of the clone, unless that is a common place.
    let common = ["/", "/tmp", "/var/tmp", "/opt", "/srv", "/mnt", "/usr/src"];
    if let Some(parent) = sh::root().parent().and_then(Path::to_str)
        && !common.contains(&parent)
    {
        words.push(format!("{parent}/"));
    }
    if let Some(home) = std::env::var_os("HOME").filter(|h| h.len() > 1) {
        words.push(format!("{}/", home.display()));
    }
    words.push(concat!("../sha", "red").to_owned());
    for path in tracked {
        let Ok(text) = std::fs::read_to_string(sh::root().join(path)) else {
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            if let Some(word) = words.iter().find(|w| line.contains(w.as_str())) {
                let shown = path.display();
                complaints.push(format!("{shown}:{}: names {word:?}", number + 1));
            }
        }
    }
}

/// Scripts can be started.
fn run_bit(tracked: &[PathBuf], complaints: &mut Vec<String>) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    for path in tracked {
        let full = sh::root().join(path);
        if full.is_dir() {
            continue; // a link, as to the fixtures
        }
        let mut start = [0; 2];
        let read = std::io::Read::read(&mut std::fs::File::open(&full)?, &mut start)?;
        let script = read == 2 && &start == b"#!";
        if script && full.metadata()?.permissions().mode() & 0o111 == 0 {
            complaints.push(format!("{}: a script without its run bit", path.display()));
        }
    }
    Ok(())
}
