//! Every action, its dry run and its undo: the dry run reports the steps that are done, no content
//! is lost, undo gives the tree back, and freed bytes are those that the file system has more.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Result, ensure};

use super::super::place::Place;
use super::super::sheet::{Row, Verdict};
use super::super::snapshot::{Snapshot, shown};
use super::super::tools::ToolOutcome;
use super::super::tree;
use super::space::{self, Freed};
use super::{Faults, metric};

pub(super) fn check(place: &mut Place<'_>, row: &mut Row) {
    let mut spaces = Vec::new();
    for column in [
        "delete",
        "hardlink",
        "symlink",
        "reflink",
        "move",
        "move-away",
    ] {
        let action = match column {
            "move" => destination(place.mount_point().join("moved")),
            "move-away" => destination(place.beside("away")),
            other => OsString::from(format!("--action={other}")),
        };
        if place.kind.layered
            && !spaces.is_empty()
            && let Err(error) = place.again(&tree::checked)
        {
            row.set(column, Err(error.context("laying the tree anew")));
            continue;
        }
        let (result, freed) = one(place, &action);
        if result.is_err()
            && !place.read_only()
            && let Err(error) = place.again(&tree::checked)
        {
            row.set(column, Err(error.context("laying the tree anew")));
            continue;
        }
        row.set(column, result);
        // A move elsewhere takes there the bytes that it frees here: none of them are reported as
        // freed.
        spaces.extend(freed.map(|freed| {
            let at_least = freed.at_least || column == "move-away";
            (column, Freed { at_least, ..freed })
        }));
    }
    row.set("space", space::check(&spaces));
}

fn destination(dir: PathBuf) -> OsString {
    let mut action = OsString::from("--action=move:");
    action.push(dir);
    action
}

/// Runs one action and its undo.
fn one(place: &mut Place<'_>, action: &OsString) -> (Result<Verdict>, Option<Freed>) {
    match Action::begin(place, action) {
        Ok(action) => action.go(),
        Err(error) => (Err(error), None),
    }
}

struct Action<'p, 'l> {
    place: &'p Place<'l>,
    words: Vec<OsString>,
    forced: bool,
    before: Snapshot,
    dry: ToolOutcome,
    faults: Faults,
}

impl<'p, 'l> Action<'p, 'l> {
    /// Makes the dry run, which shows whether force is needed.
    fn begin(place: &'p Place<'l>, action: &OsString) -> Result<Action<'p, 'l>> {
        let before = Snapshot::of(&place.tree())?;
        let mut words: Vec<OsString> =
            vec!["dup".into(), "prune".into(), "--yes".into(), action.into()];
        let run_dry = |words: &[OsString]| {
            let metrics = option("--metrics=", place.beside("dry.json"));
            place.lab.bc(&with(
                words,
                &["--dry-run".into(), metrics, place.tree().into()],
            ))
        };
        let mut dry = run_dry(&words)?;
        let forced = dry.err.contains("needs force");
        if forced {
            ensure!(
                dry.code == 1,
                "refused without --force, but exit code {}",
                dry.code
            );
            words.push("--force".into());
            dry = run_dry(&words)?;
        }
        let mut faults = Faults::default();
        let now = Snapshot::of(&place.tree())?;
        faults.differences("the dry run changed something", &before.differences(&now));
        Ok(Action {
            place,
            words,
            forced,
            before,
            dry,
            faults,
        })
    }

    fn go(mut self) -> (Result<Verdict>, Option<Freed>) {
        match self.steps() {
            Ok((remark, freed)) => match self.faults.result() {
                Ok(()) => (Ok(Verdict::Ok(remark)), freed),
                Err(error) => (Err(error), freed),
            },
            Err(error) => (Err(error), None),
        }
    }

    fn steps(&mut self) -> Result<(String, Option<Freed>)> {
        let tree = self.place.tree();
        let journal = self.place.beside("journal");
        let _ = std::fs::remove_file(&journal);
        let metrics = self.place.beside("real.json");
        let free = self.place.free()?;
        let extra = [
            option("--journal=", journal.clone()),
            option("--metrics=", metrics.clone()),
            tree.clone().into(),
        ];
        let real = self.place.lab.bc(&with(&self.words, &extra))?;
        let after = self.place.free()?;
        let changed = metric(&metrics, "changed")?;
        self.compare(&real)?;
        self.contents(changed)?;
        let (gained, used) = (
            metric(&metrics, "freed_bytes")?,
            metric(&metrics, "used_bytes")?,
        );
        let freed = Freed {
            claimed: gained as i64 - used as i64,
            at_least: metric(&metrics, "layers_unknown")? > 0,
            seen: after.bytes as i64 - free.bytes as i64,
            changed,
            block: after.block,
        };
        let forced = if self.forced { ", with --force" } else { "" };
        if changed == 0 {
            let unchanged = self.before.differences(&Snapshot::of(&tree)?);
            self.faults
                .differences("nothing was to be changed", &unchanged);
            return Ok((format!("refused: {}{forced}", why(&real)), None));
        }
        self.again()?;
        let remark = self.undo(&journal)?;
        // Bytes that it reports as unknown are not held against it.
        let known = metric(&metrics, "freed_unknown")? == 0;
        Ok((
            format!("{changed} files{forced}{remark}"),
            known.then_some(freed),
        ))
    }

    /// Checks that the steps of the dry run were done.
    fn compare(&mut self, real: &ToolOutcome) -> Result<()> {
        let dry = &self.dry;
        let open = left_open(dry);
        if open > 0 {
            return self.compare_open(real, open);
        }
        self.faults.unless(dry.out == real.out, || {
            format!(
                "the dry run promised {} steps, {} were done: {}",
                dry.lines().len(),
                real.lines().len(),
                real.said()
            )
        });
        self.faults.unless(dry.code == real.code, || {
            format!(
                "exit code {} dry, {} done: {}",
                dry.code,
                real.code,
                real.said()
            )
        });
        for name in ["changed", "freed_bytes", "used_bytes", "layers_unknown"] {
            let (dry, real) = (
                metric(&self.place.beside("dry.json"), name)?,
                metric(&self.place.beside("real.json"), name)?,
            );
            self.faults.unless(dry == real, || {
                format!("{name}: {dry} promised, {real} done")
            });
        }
        Ok(())
    }

    /// Checks a dry run that left some steps open and said so: the steps that it promised were
    /// done, in that order, and besides them no more than the open ones.
    fn compare_open(&mut self, real: &ToolOutcome, open: u64) -> Result<()> {
        let dry = &self.dry;
        let done = real.lines();
        let mut rest = done.iter();
        let missing = dry
            .lines()
            .into_iter()
            .find(|line| !rest.any(|l| l == line));
        self.faults.unless(missing.is_none(), || {
            let line = missing.unwrap_or_default().escape_ascii();
            format!("promised and not done: {line}: {}", real.said())
        });
        let both = |name| -> Result<(u64, u64)> {
            let file = |file| metric(&self.place.beside(file), name);
            Ok((file("dry.json")?, file("real.json")?))
        };
        let (promised, changed) = both("changed")?;
        let (least, freed) = both("freed_bytes")?;
        self.faults.unless(changed <= promised + open, || {
            format!("{promised} promised and {open} left open, {changed} done")
        });
        self.faults.unless(freed >= least, || {
            format!("{least} bytes promised, {freed} freed")
        });
        self.faults.unless(dry.code == 1, || {
            format!("steps left open, but exit code {}", dry.code)
        });
        Ok(())
    }

    /// Checks that every content is still there, and every name, unless names were to go.
    fn contents(&mut self, changed: u64) -> Result<()> {
        let tree = self.place.tree();
        let now = Snapshot::of(&tree)?;
        let mut moved = Vec::new();
        for dir in [
            self.place.mount_point().join("moved"),
            self.place.beside("away"),
        ] {
            if dir.exists() {
                moved.push(Snapshot::of(&dir)?);
            }
        }
        let mut there = now.contents();
        there.extend(moved.iter().flat_map(Snapshot::contents));
        let lost = self
            .before
            .contents()
            .into_iter()
            .filter(|c| !there.contains(c))
            .count();
        self.faults
            .unless(lost == 0, || format!("{lost} CONTENTS LOST"));
        let (other, gone) = self.before.misled(&tree);
        self.faults.unless(other.is_empty(), || {
            format!("other content under {}", shown(&other))
        });
        let goes = self.words.iter().any(|w| {
            w.to_str().is_some_and(|w| {
                w.starts_with("--action=delete") || w.starts_with("--action=move:")
            })
        });
        let expected = if goes { changed } else { 0 };
        self.faults.unless(gone.len() as u64 == expected, || {
            format!(
                "{} names are gone, {expected} were to go: {}",
                gone.len(),
                shown(&gone)
            )
        });
        Ok(())
    }

    /// Checks that a second run changes nothing.
    fn again(&mut self) -> Result<()> {
        let metrics = self.place.beside("again.json");
        let extra = [
            option("--journal=", self.place.beside("again.journal")),
            option("--metrics=", metrics.clone()),
            self.place.tree().into(),
        ];
        let _ = std::fs::remove_file(self.place.beside("again.journal"));
        self.place.lab.bc(&with(&self.words, &extra))?;
        let changed = metric(&metrics, "changed")?;
        self.faults.unless(changed == 0, || {
            format!("a second run changed {changed} files more")
        });
        Ok(())
    }

    /// Checks that the journal gives the tree back; returns a remark, if something is lost.
    fn undo(&mut self, journal: &std::path::Path) -> Result<&'static str> {
        let words = ["dup".into(), "undo".into(), journal.as_os_str().to_owned()];
        let undone = self.place.lab.bc(&words)?;
        let reported = self.before.differences(&Snapshot::of(&self.place.tree())?);
        self.faults.differences("after undo", &reported);
        if undone.code == 1 && self.before.numbers_names_apart() && only_links_are_lost(&undone) {
            return Ok(
                ", undo cannot know which names were one file, as each has a number of its own, and says so",
            );
        }
        self.faults.unless(undone.code == 0, || {
            format!("undo: exit code {}: {}", undone.code, undone.said())
        });
        Ok("")
    }
}

/// Returns the number of steps that a dry run reports as known only to the run itself.
fn left_open(dry: &ToolOutcome) -> u64 {
    let mut said = dry.err.lines().rev().flat_map(|line| line.split("; "));
    said.find_map(|part| {
        let count = part.strip_suffix(" skipped: not known before it is tried")?;
        count.parse().ok()
    })
    .unwrap_or(0)
}

/// Returns true if undo reports that it could not give back hard links, and nothing else.
fn only_links_are_lost(undone: &ToolOutcome) -> bool {
    let (totals, files): (Vec<&str>, Vec<&str>) = undone
        .err
        .lines()
        .partition(|line| line.contains(" restored, "));
    totals.len() == 1
        && totals.iter().all(|line| !line.contains("not restored"))
        && files
            .iter()
            .all(|line| line.contains(": restored without hard links: "))
}

/// Returns the first reason given.
fn why(outcome: &ToolOutcome) -> String {
    let line = outcome.err.lines().find(|l| l.contains("skipped: "));
    let reason = line.and_then(|l| l.split("skipped: ").nth(1));
    let reason = reason.unwrap_or_else(|| outcome.err.lines().next().unwrap_or("no reason given"));
    reason
        .split("; said once")
        .next()
        .unwrap_or(reason)
        .to_owned()
}

fn option(name: &str, value: PathBuf) -> OsString {
    let mut text = OsString::from(name);
    text.push(value);
    text
}

fn with(words: &[OsString], more: &[OsString]) -> Vec<OsString> {
    words.iter().chain(more).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(err: &str) -> ToolOutcome {
        ToolOutcome {
            code: 1,
            out: Vec::new(),
            err: err.to_owned(),
        }
    }

    #[test]
    fn what_a_dry_run_leaves_open_is_counted() {
        let open = "a line\nbc dup: 5 files would be changed, 0 B would be freed; 3 skipped: not known before it is tried; 1 skipped: gone\n";
        assert_eq!(left_open(&said(open)), 3);
        assert_eq!(left_open(&said("bc dup: nothing to do\n")), 0);
    }

    #[test]
    fn lost_links_are_told_from_other_losses() {
        let links = "bc dup: a: restored without hard links: 1 other name it had is no name of the restored file\n";
        let totals = "bc dup: 9 restored, 1 of them incomplete\n";
        assert!(only_links_are_lost(&said(&format!("{links}{totals}"))));
        let other = "bc dup: a: restored without owner: not permitted\n";
        assert!(!only_links_are_lost(&said(&format!(
            "{other}{links}{totals}"
        ))));
        let gone = "bc dup: 9 restored, 1 of them incomplete, 2 not restored\n";
        assert!(!only_links_are_lost(&said(&format!("{links}{gone}"))));
    }
}
