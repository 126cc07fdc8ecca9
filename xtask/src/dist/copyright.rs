//! Holders and licences of the work in the program, or in a wheel: a file in the form that Debian's packages have
//! (DEP 5), made from the crates that are linked, so that none is forgotten.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::licences::taken;
use crate::sh;

/// Path of the file that maturin puts into wheels; it is made for a release, and not kept.
pub(super) const FOR_WHEELS: &str = "crates/python/COPYRIGHT";

/// Work in the program that is neither ours nor a crate's.
const BESIDE: &str = "\
Files: rust/library/*
Copyright: The Rust Project Developers
License: Expat
Comment: The standard library, offered under Expat or Apache-2.0.

Files: zstd/*
Copyright: Meta Platforms, Inc. and affiliates
License: BSD-3-Clause
Comment: The C library that the crate zstd-sys brings.

Files: glibc/*
Copyright: Free Software Foundation, Inc.
License: LGPL-2.1+
Comment: Where the C library is linked in.

Files: gcc/libgcc/*
Copyright: Free Software Foundation, Inc.
License: GPL-3+ with GCC-Runtime-Library exception
Comment: The unwinder.
";

/// Texts of licences, by the names that Debian gives them. Those that Debian has on every system
/// are referred to; tarballs carry the texts of the GPL and the LGPL beside this file.
const TEXTS: &[(&str, &str)] = &[
    (
        "Apache-2.0",
        "Licensed under the Apache License, Version 2.0; you may not use this file\n\
         except in compliance with the License.\n\n\
         On Debian systems the text is in /usr/share/common-licenses/Apache-2.0;\n\
         elsewhere it is at https://www.apache.org/licenses/LICENSE-2.0.\n",
    ),
    ("BSD-3-Clause", include_str!("texts/bsd-3-clause.txt")),
    ("BSL-1.0", include_str!("texts/bsl-1.0.txt")),
    ("Expat", include_str!("texts/expat.txt")),
    (
        "GPL-3+",
        "This program is free software: you can redistribute it and/or modify it\n\
         under the terms of the GNU General Public License as published by the Free\n\
         Software Foundation, either version 3 of the License, or (at your option)\n\
         any later version.\n\n\
         On Debian systems the text is in /usr/share/common-licenses/GPL-3.\n",
    ),
    (
        "GPL-3+ with GCC-Runtime-Library exception",
        "The GNU General Public License, version 3 or later, with the permission of\n\
         the GCC Runtime Library Exception, version 3.1, to convey what is compiled\n\
         with it under terms of one's choice.\n\n\
         On Debian systems the text is in /usr/share/common-licenses/GPL-3.\n",
    ),
    (
        "LGPL-2.1+",
        "This library is free software; you can redistribute it and/or modify it\n\
         under the terms of the GNU Lesser General Public License as published by\n\
         the Free Software Foundation; either version 2.1 of the License, or (at your\n\
         option) any later version.\n\n\
         On Debian systems the text is in /usr/share/common-licenses/LGPL-2.1.\n",
    ),
    (
        "LGPL-3+",
        "This library is free software: you can redistribute it and/or modify it\n\
         under the terms of the GNU Lesser General Public License as published by\n\
         the Free Software Foundation, either version 3 of the License, or (at your\n\
         option) any later version.\n\n\
         On Debian systems the text is in /usr/share/common-licenses/LGPL-3.\n",
    ),
];

/// A crate of others that is part of the program.
struct Linked {
    name: String,
    licences: Vec<String>,
    holders: Vec<String>,
}

/// Returns the whole file of what is built from this package for a target.
pub(super) fn text(package: &str, target: &str) -> Result<String> {
    let ours = "The bit-crafts developers";
    let mut out = String::from(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: bit-crafts\n\
         Comment: The binary is one file, into which the libraries below are linked.\n",
    );
    let mut used = BTreeSet::from(["GPL-3+".to_owned(), "LGPL-3+".to_owned()]);
    let libraries = "crates/digest/* crates/edit/* crates/fs/* crates/manifest/* crates/pool/* crates/read/* \
                     crates/testkit/* crates/walk/*";
    for (files, licence) in [("*", "GPL-3+"), (libraries, "LGPL-3+")] {
        write!(
            out,
            "\nFiles: {files}\nCopyright: {ours}\nLicense: {licence}\n"
        )?;
    }
    for one in linked(package, target)? {
        let (name, licence) = (&one.name, one.licences.join(" and "));
        let holders = one.holders.join("\n ");
        write!(
            out,
            "\nFiles: {name}/*\nCopyright: {holders}\nLicense: {licence}\n"
        )?;
        used.extend(one.licences);
    }
    write!(out, "\n{BESIDE}")?;
    used.extend(licences_of(BESIDE));
    for licence in used {
        let text = TEXTS.iter().find(|(name, _)| *name == licence);
        let (_, text) = text.with_context(|| format!("{licence}: its text is not known"))?;
        write!(out, "\nLicense: {licence}\n")?;
        for line in text.trim_end().lines() {
            let line = if line.is_empty() { "." } else { line };
            writeln!(out, " {line}")?;
        }
    }
    Ok(out)
}

fn licences_of(stanzas: &str) -> impl Iterator<Item = String> {
    let lines = stanzas.lines();
    lines.filter_map(|line| Some(line.strip_prefix("License: ")?.to_owned()))
}

/// Returns the crates of others that this package is linked from for a target, by name. Macros
/// work when it is compiled and leave nothing of theirs in it.
fn linked(package: &str, target: &str) -> Result<Vec<Linked>> {
    let mut tree = sh::cargo();
    tree.args(["tree", "--locked", "--package", package]);
    tree.args(["--target", target, "--edges"]);
    tree.args(["normal,no-proc-macro", "--prefix", "none", "--no-dedupe"]);
    tree.args(["--format", "{p}"]);
    let text = String::from_utf8(sh::stdout(&mut tree)?)?;
    let wanted: BTreeSet<(&str, &str)> = text
        .lines()
        .filter_map(|line| {
            let (name, rest) = line.split_once(" v")?;
            let version = rest.split(' ').next()?;
            Some((name, version))
        })
        .collect();
    let mut metadata = sh::cargo();
    metadata.args(["metadata", "--format-version=1", "--locked"]);
    let metadata: Value = serde_json::from_slice(&sh::stdout(&mut metadata)?)?;
    let mut all = Vec::new();
    for package in metadata["packages"].as_array().context("no packages")? {
        let text = |key: &str| package[key].as_str().unwrap_or("");
        let is_wanted = wanted.contains(&(text("name"), text("version")));
        if is_wanted && !package["source"].is_null() {
            all.push(linked_crate(package)?);
        }
    }
    if all.is_empty() {
        bail!("cargo tree names no crate of others");
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

fn linked_crate(package: &Value) -> Result<Linked> {
    let text = |key: &str| package[key].as_str().unwrap_or("");
    let (name, expression) = (text("name").to_owned(), text("license"));
    let Some(licences) = taken(expression)? else {
        bail!("{name}: {expression} does not go with the GPL");
    };
    let folder = Path::new(text("manifest_path")).with_file_name("");
    let mut holders = holders(&folder)?;
    if holders.is_empty() {
        let authors = package["authors"].as_array().into_iter().flatten();
        holders = authors
            .filter_map(|a| Some(a.as_str()?.to_owned()))
            .collect();
    }
    if holders.is_empty() {
        holders.push(format!("The authors of {name}"));
    }
    let debian = |licence: &&str| match *licence {
        "MIT" => "Expat".to_owned(),
        other => other.to_owned(),
    };
    Ok(Linked {
        name,
        licences: licences.iter().map(debian).collect(),
        holders,
    })
}

/// Returns the text after `Copyright` in the licence files of a crate.
fn holders(folder: &Path) -> Result<Vec<String>> {
    let mut found: Vec<String> = Vec::new();
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .with_context(|| folder.display().to_string())?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let name = name.to_uppercase();
            ["LICENSE", "COPYING", "COPYRIGHT", "NOTICE"]
                .iter()
                .any(|start| name.starts_with(start))
        })
        .collect();
    files.sort();
    for file in files.iter().filter(|file| file.is_file()) {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        for line in text.lines().filter_map(holder) {
            if !found.contains(&line) {
                found.push(line);
            }
        }
    }
    Ok(found)
}

/// Returns the holder of a line that is a notice, and neither a licence's own words nor a form to
/// fill in.
fn holder(line: &str) -> Option<String> {
    let line = line.trim();
    let rest = line.strip_prefix("Copyright")?.trim_start();
    let rest = ["(c)", "(C)", "©", ":"].iter().fold(rest, |rest, mark| {
        rest.strip_prefix(mark).unwrap_or(rest).trim()
    });
    let is_notice = rest.starts_with(|c: char| c.is_ascii_digit()) || line.contains("(c)");
    let is_form = rest.contains('[') || rest.contains('{') || rest.contains('<');
    let is_form = is_form && !rest.contains('@');
    (is_notice && !is_form && !rest.is_empty()).then(|| rest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: &str = "x86_64-unknown-linux-gnu";

    #[test]
    fn notices_are_told_from_the_words_of_licences() {
        for (line, expected) in [
            ("Copyright (c) 2014 Somebody", Some("2014 Somebody")),
            (
                " Copyright 2016-2020 The Others",
                Some("2016-2020 The Others"),
            ),
            ("Copyright © 2019 Me <me@there>", Some("2019 Me <me@there>")),
            ("Copyright [yyyy] [name of copyright owner]", None),
            ("Copyright (c) <year> <owner>", None),
            ("copyright notice that is included in", None),
            ("Copyright and related rights", None),
        ] {
            assert_eq!(holder(line).as_deref(), expected, "{line}");
        }
    }

    /// Checks that every crate has its holder and a licence whose text follows.
    #[test]
    fn everything_that_is_linked_is_in_it() {
        let text = text("bit-crafts", TARGET).unwrap();
        for name in [
            "blake3",
            "clap_builder",
            "redb",
            "rustix",
            "xxhash-rust",
            "zstd-sys",
        ] {
            assert!(text.contains(&format!("\nFiles: {name}/*\n")), "{name}");
        }
        // Only tests are built with it, and only programs for Windows.
        for name in ["tempfile", "proptest", "windows-sys", "syn"] {
            assert!(!text.contains(&format!("Files: {name}/*")), "{name}");
        }
        check_stanzas(&text);
    }

    /// Checks that a wheel has notices of its own: of the bindings too, of no command line.
    #[test]
    fn a_wheel_has_those_of_its_crates() {
        let text = text("bit-crafts-python", TARGET).unwrap();
        for name in ["blake3", "pyo3", "nix", "redb", "zstd-sys"] {
            assert!(text.contains(&format!("\nFiles: {name}/*\n")), "{name}");
        }
        for name in ["clap_builder", "pyo3-macros", "syn"] {
            assert!(!text.contains(&format!("Files: {name}/*")), "{name}");
        }
        check_stanzas(&text);
        // It is in the wheel by its name.
        let project = sh::root().join(FOR_WHEELS).with_file_name("pyproject.toml");
        let project = std::fs::read_to_string(project).unwrap();
        assert!(project.contains("license-files = [\"LICENSE\", \"COPYRIGHT*\"]"));
    }

    fn check_stanzas(text: &str) {
        for stanza in text.split("\n\n").filter(|s| s.starts_with("Files:")) {
            let holders = stanza.split("\nCopyright: ").nth(1).unwrap();
            assert!(!holders.trim().is_empty(), "{stanza}");
            let licence = licences_of(stanza).next().unwrap();
            for one in licence.split(" and ") {
                assert!(text.contains(&format!("\n\nLicense: {one}\n ")), "{one}");
            }
        }
    }
}
