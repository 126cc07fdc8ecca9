//! Licences of everything that is built here: those compatible with the GPL, version 3, and the
//! choices of an SPDX expression. `cargo deny` checks more (advisories), where it is installed;
//! this checks on every machine.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::sh;

/// Licences whose code may become part of a program under GPL-3.0-or-later, the preferred first: if
/// several are offered, the first is taken. The same list is in `.cargo/deny.toml`.
pub(crate) const COMPATIBLE: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "BSD-3-Clause",
    "BSD-2-Clause",
    "BSL-1.0",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "CC0-1.0",
    "MIT-0",
    "Unlicense",
    "Apache-2.0 WITH LLVM-exception",
    "LGPL-2.1-or-later",
    "LGPL-3.0-or-later",
    "GPL-3.0-or-later",
];

/// Returns the licences that an SPDX expression asks to be kept, where the preferred one is taken
/// of each choice; `None` if every choice has one that is not [`COMPATIBLE`].
///
/// # Errors
/// If it is no expression.
pub(crate) fn taken(expression: &str) -> Result<Option<Vec<&'static str>>> {
    // Before SPDX expressions a slash stood for OR.
    let text = expression.replace('/', " OR ");
    let text = text.replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut parser = Parser { words: &words };
    let choice = parser.any_of()?;
    if !parser.words.is_empty() {
        bail!("{expression}: {:?} is left over", parser.words);
    }
    Ok(choice.map(|ranks| ranks.into_iter().map(|rank| COMPATIBLE[rank]).collect()))
}

/// Positions in [`COMPATIBLE`]; none where something is not in it.
type Ranks = Option<BTreeSet<usize>>;

struct Parser<'w> {
    words: &'w [&'w str],
}

impl Parser<'_> {
    fn next_is(&mut self, word: &str) -> bool {
        let found = self.words.first() == Some(&word);
        if found {
            self.words = &self.words[1..];
        }
        found
    }

    fn any_of(&mut self) -> Result<Ranks> {
        let mut best = self.all_of()?;
        while self.next_is("OR") {
            let other = self.all_of()?;
            // The one whose least wanted licence is wanted more.
            let last = |ranks: &Ranks| ranks.as_ref().and_then(|r| r.last().copied());
            if last(&best).is_none_or(|best| last(&other).is_some_and(|other| other < best)) {
                best = other;
            }
        }
        Ok(best)
    }

    fn all_of(&mut self) -> Result<Ranks> {
        let mut all = self.one()?;
        while self.next_is("AND") {
            let other = self.one()?;
            all = all.zip(other).map(|(all, other)| &all | &other);
        }
        Ok(all)
    }

    fn one(&mut self) -> Result<Ranks> {
        if self.next_is("(") {
            let inner = self.any_of()?;
            if !self.next_is(")") {
                bail!("a parenthesis is not closed");
            }
            return Ok(inner);
        }
        let (name, rest) = self.words.split_first().context("a licence is missing")?;
        self.words = rest;
        let mut name = (*name).to_owned();
        if self.next_is("WITH") {
            let (exception, rest) = self.words.split_first().context("no exception")?;
            self.words = rest;
            name += &format!(" WITH {exception}");
        }
        let rank = COMPATIBLE.iter().position(|known| *known == name);
        Ok(rank.map(|rank| BTreeSet::from([rank])))
    }
}

/// Reports packages that cannot be part of the program: by licences that are not compatible, and
/// sources other than the registry. Several versions of one package are listed; they are no fault.
pub(crate) fn check(complaints: &mut Vec<String>) -> Result<()> {
    let mut metadata = sh::cargo();
    metadata.args(["metadata", "--format-version=1", "--locked"]);
    let metadata: Value = serde_json::from_slice(&sh::stdout(&mut metadata)?)?;
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in metadata["packages"].as_array().context("no packages")? {
        let text = |key: &str| package[key].as_str().unwrap_or("");
        let (name, licence) = (text("name"), text("license"));
        versions.entry(name).or_default().insert(text("version"));
        match taken(licence) {
            Ok(Some(_)) => {}
            Ok(None) => complaints.push(format!("{name}: {licence} does not go with the GPL")),
            Err(error) => complaints.push(format!("{name}: licence {licence:?}: {error}")),
        }
        let source = text("source");
        if !source.is_empty() && !source.starts_with("registry+") {
            complaints.push(format!(
                "{name}: comes from {source}, not from the registry"
            ));
        }
    }
    for (name, versions) in versions.iter().filter(|(_, all)| all.len() > 1) {
        let all: Vec<&str> = versions.iter().copied().collect();
        println!("twice: {name}: {}", all.join(", "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_offer_what_they_say() {
        for (expression, expected) in [
            ("MIT", Some(&["MIT"][..])),
            ("MIT OR Apache-2.0", Some(&["MIT"])),
            ("Apache-2.0/MIT", Some(&["MIT"])),
            ("Unlicense/MIT", Some(&["MIT"])),
            ("Proprietary", None),
            ("Proprietary OR BSL-1.0", Some(&["BSL-1.0"])),
            ("Proprietary AND MIT", None),
            (
                "(MIT OR Proprietary) AND Unicode-3.0",
                Some(&["MIT", "Unicode-3.0"]),
            ),
            (
                "CC0-1.0 OR Apache-2.0 OR Apache-2.0 WITH LLVM-exception",
                Some(&["Apache-2.0"]),
            ),
            ("GPL-3.0-or-later WITH Other-exception", None),
            ("GPL-2.0-only", None),
        ] {
            let taken = taken(expression).unwrap();
            assert_eq!(taken.as_deref(), expected, "{expression}");
        }
        for wrong in ["", "MIT OR", "(MIT", "MIT Apache-2.0", "MIT WITH"] {
            assert!(taken(wrong).is_err(), "{wrong}");
        }
    }

    /// Checks that `cargo deny` accepts the licences accepted here, and no more.
    #[test]
    fn the_other_list_is_the_same() {
        let text = std::fs::read_to_string(sh::root().join(".cargo/deny.toml")).unwrap();
        let list = text.split("allow = [").nth(1).unwrap();
        let list = list.split(']').next().unwrap();
        let mut listed: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
        let mut here = COMPATIBLE.to_vec();
        listed.sort_unstable();
        here.sort_unstable();
        assert_eq!(listed, here);
    }
}
