//! Groups are those of a plain comparison, with a cache and without.

use std::collections::BTreeSet;
use std::ffi::OsString;

use anyhow::{Context, Result, ensure};
use bc_testkit::reference::{self, LinkCounting};
use serde_json::Value;

use super::super::place::Place;
use super::super::sheet::Verdict;
use super::super::snapshot::shown;
use crate::correctness::dup::raw_path;

/// Groups of paths below the tree.
type Groups = BTreeSet<BTreeSet<Vec<u8>>>;

pub(super) fn check(place: &Place<'_>) -> Result<Verdict> {
    let expected = plain(place, LinkCounting::Apart)?;
    let by_name = ours(place, &["--match-hardlinks".into()])?;
    same(&by_name, &expected, "--match-hardlinks")?;
    // Without it, names of one inode are one file, and are reported as such.
    let by_file = ours(place, &[])?;
    let files: BTreeSet<BTreeSet<Vec<u8>>> = plain(place, LinkCounting::Together)?;
    ensure!(
        by_file.len() == files.len()
            && files
                .iter()
                .all(|g| by_file.iter().any(|o| o.is_superset(g))),
        "{} groups of files, a plain comparison finds {}",
        by_file.len(),
        files.len()
    );
    for words in [
        &["--verify-bytes", "--io=sync"][..],
        &["--algorithm=sha256", "--threads=1"],
    ] {
        let mut all: Vec<OsString> = vec!["--match-hardlinks".into()];
        all.extend(words.iter().map(OsString::from));
        same(&ours(place, &all)?, &expected, words[0])?;
    }
    Ok(Verdict::Ok(format!("{} groups", expected.len())))
}

/// Checks that cached groups are the uncached ones, in the run that fills the cache, in the next
/// one and after a remount that gives other inode numbers.
pub(super) fn cache(place: &mut Place<'_>) -> Result<Verdict> {
    let file = place.beside("dup-cache");
    let mut option = OsString::from("--cache=");
    option.push(&file);
    let words = [option, "--match-hardlinks".into()];
    let expected = plain(place, LinkCounting::Apart)?;
    same(&ours(place, &words)?, &expected, "first run")?;
    same(&ours(place, &words)?, &expected, "second run")?;
    place.renumber()?;
    same(&ours(place, &words)?, &expected, "after a remount")?;
    same(
        &ours(place, &words)?,
        &expected,
        "second run after a remount",
    )?;
    let what = if place.kind.lasting {
        ""
    } else {
        "never remounted"
    };
    Ok(Verdict::Ok(what.to_owned()))
}

fn same(ours: &Groups, expected: &Groups, when: &str) -> Result<()> {
    let report = |more: &BTreeSet<Vec<u8>>| {
        let first = more.first().map(|n| n.escape_ascii().to_string());
        format!("{} files with {}", more.len(), first.unwrap_or_default())
    };
    let more: Vec<String> = ours.difference(expected).map(report).collect();
    let less: Vec<String> = expected.difference(ours).map(report).collect();
    ensure!(
        more.is_empty() && less.is_empty(),
        "{when}: groups only ours: {}; groups only of the plain comparison: {}",
        shown(&more),
        shown(&less)
    );
    Ok(())
}

fn plain(place: &Place<'_>, links: LinkCounting) -> Result<Groups> {
    let groups = reference::duplicates(&place.tree(), links)?;
    Ok(groups
        .into_iter()
        .map(|g| g.into_iter().collect())
        .collect())
}

fn ours(place: &Place<'_>, words: &[OsString]) -> Result<Groups> {
    let mut all: Vec<OsString> = vec!["dup".into(), "scan".into(), "--format=json".into()];
    all.extend_from_slice(words);
    all.push(place.tree().into());
    let outcome = place.lab.bc(&all)?.expect(0, "bc dup")?;
    let json: Value = serde_json::from_slice(&outcome.out).context("not JSON")?;
    let mut prefix = place.tree().into_os_string().into_encoded_bytes();
    prefix.push(b'/');
    let mut groups = Groups::new();
    for group in json["groups"].as_array().context("no groups")? {
        let mut names = BTreeSet::new();
        for file in group["files"].as_array().context("no files")? {
            let path = raw_path(file)?;
            let below = path
                .strip_prefix(&prefix[..])
                .context("a path outside of the tree")?;
            names.insert(below.to_vec());
        }
        groups.insert(names);
    }
    Ok(groups)
}
