//! Timing whole processes in alternating pairs, and their peak memory.

use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::record::{Row, Target};
use super::{Bench, peers, targets};
use crate::median::median;
use crate::sh;

/// Seconds that the pairs of a quick row may take; more of them steady the median.
const QUICK_SECONDS: f64 = 3.0;
/// Pairs of a quick row at most, unless the row asks for more.
const QUICK_PAIRS: usize = 11;
/// A run that takes longer than this gets `FEW` pairs.
const LONG: f64 = 5.0;
const FEW: usize = 3;
/// A run that takes longer than this is done once.
const TOO_LONG: f64 = 60.0;

/// A row needs no more than the pairs that each one gets if in all of them the ratio is by this
/// factor on the same side of every target, or of 1 where it has none. Of the 378 quick rows of
/// 2026-11-23 so were 269, which took seven tenths of their time.
const CLEAR: f64 = 1.1;

/// A miss counts after so many pairs, where a pair takes less than so many seconds.
const BEFORE_A_MISS: usize = 21;
const AGAIN_SECONDS: f64 = 2.0;

/// The state of the page cache before each run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cache {
    Warm,
    Cold,
}

/// A comparison to make. In the commands, `$TREE`, `$COPIES`, `$LIST`, `$N`, `$SCRATCH`, `$BIG`,
/// `$TEN`, `$SMALL`, `$SHAPE` and others stand for paths and numbers that the record names in
/// words.
pub(crate) struct Pair<'a> {
    pub(crate) job: String,
    pub(crate) ours: &'a str,
    pub(crate) theirs: &'a str,
    /// The peer to look for, under any of its names; the first is the one in the command.
    pub(crate) tool: &'a [&'a str],
    pub(crate) cache: Cache,
    /// Least number of pairs unless the row is clear: very short runs need more.
    pub(crate) pairs: usize,
}

impl Pair<'_> {
    /// Returns the name in which `--only` searches.
    fn name(&self) -> String {
        format!("{} / {}", self.job, peers::label(self.theirs))
    }
}

impl Bench {
    /// Returns true if a row was asked for.
    pub(crate) fn wanted(&self, name: &str) -> bool {
        self.only
            .as_ref()
            .is_none_or(|word| name.contains(word.as_str()))
    }

    /// Returns true if a row of a job may have been asked for.
    pub(crate) fn wanted_job(&self, job: &str) -> bool {
        let named = |word: &String| word.starts_with(job);
        self.wanted(job) || self.only.as_ref().is_some_and(named)
    }

    /// Times ours and theirs in turn; a failure is a row not run, with its reason.
    pub(crate) fn compare(&mut self, pair: &Pair<'_>) -> Result<()> {
        self.compare_to(pair, &[]).map(drop)
    }

    /// Compares as [`Bench::compare`], with targets where the table has none for the row; returns
    /// the ratio, theirs to ours, if the row was run.
    pub(crate) fn compare_to(
        &mut self,
        pair: &Pair<'_>,
        otherwise: &[(Target, &str)],
    ) -> Result<Option<f64>> {
        self.row(pair, "s", otherwise, Bench::pairs)
    }

    /// Compares the peak memory of ours and theirs, one run each.
    pub(crate) fn compare_memory(&mut self, pair: &Pair<'_>) -> Result<()> {
        let measure = |bench: &mut Bench, pair: &Pair<'_>, _: &[Target]| {
            Ok(vec![(bench.peak(pair.ours)?, bench.peak(pair.theirs)?)])
        };
        self.row(pair, "MiB", &[], measure).map(drop)
    }

    fn row(
        &mut self,
        pair: &Pair<'_>,
        unit: &str,
        otherwise: &[(Target, &str)],
        measure: impl FnOnce(&mut Bench, &Pair<'_>, &[Target]) -> Result<Vec<(f64, f64)>>,
    ) -> Result<Option<f64>> {
        let name = pair.name();
        if !self.wanted(&name) {
            return Ok(None);
        }
        if !self.find(pair.tool) {
            let reason = format!("{} is not installed", pair.tool[0]);
            self.left_out(&name, &reason)?;
            return Ok(None);
        }
        let mut wanted = targets::of(&pair.job, &peers::label(pair.theirs), self.threads);
        if wanted.is_empty() {
            wanted = otherwise
                .iter()
                .map(|(t, n)| (*t, (*n).to_owned()))
                .collect();
        }
        let mut row = Row {
            area: self.area.to_owned(),
            job: pair.job.clone(),
            peer: peers::label(pair.theirs),
            ours: pair.ours.to_owned(),
            theirs: pair.theirs.to_owned(),
            unit: unit.to_owned(),
            pairs: Vec::new(),
            targets: wanted,
        };
        if let Some(done) = self.done_before(&row) {
            row.pairs = done;
            println!("kept     {name}");
            let ratio = row.ratio();
            self.push(row)?;
            return Ok(Some(ratio));
        }
        if pair.cache == Cache::Cold && !sh::is_root() {
            self.left_out(&name, "dropping the page cache needs root")?;
            return Ok(None);
        }
        let wanted: Vec<Target> = row.targets.iter().map(|t| t.0).collect();
        match measure(self, pair, &wanted) {
            Ok(pairs) => row.pairs = pairs,
            Err(error) => {
                self.left_out(&name, &format!("{error:#}"))?;
                return Ok(None);
            }
        }
        println!(
            "{name}: {} against {}: {:.2}×, {} pairs",
            row.figure(row.our_median()),
            row.figure(row.their_median()),
            row.ratio(),
            row.pairs.len()
        );
        let ratio = row.ratio();
        self.push(row)?;
        Ok(Some(ratio))
    }

    /// Records a row that was timed by hand: ours, theirs, seconds of each.
    pub(crate) fn push_pairs(
        &mut self,
        job: &str,
        (ours, theirs): (&str, &str),
        pairs: Vec<(f64, f64)>,
        targets: &[(Target, &str)],
    ) -> Result<()> {
        let targets = targets.iter().map(|(t, note)| (*t, (*note).to_owned()));
        let row = Row {
            area: self.area.to_owned(),
            job: job.to_owned(),
            peer: peers::label(theirs),
            ours: ours.to_owned(),
            theirs: theirs.to_owned(),
            unit: "s".to_owned(),
            pairs,
            targets: targets.collect(),
        };
        println!("{job}: {:.2}×, {} pairs", row.ratio(), row.pairs.len());
        self.push(row)
    }

    /// Returns alternating timings, ours first, after one warm-up each unless the cache is to be
    /// cold.
    fn pairs(&mut self, pair: &Pair<'_>, targets: &[Target]) -> Result<Vec<(f64, f64)>> {
        let bench = &*self;
        let once = |command: &str| -> Result<f64> {
            if pair.cache == Cache::Cold {
                drop_caches()?;
            }
            bench.time(command)
        };
        let both = || -> Result<(f64, f64)> { Ok((once(pair.ours)?, once(pair.theirs)?)) };
        let first = both()?;
        let wanted = match pair.cache {
            Cache::Warm => count(first, bench.record.runs, pair.pairs),
            Cache::Cold => count(first, bench.record.runs, 0).min(FEW),
        };
        let first_counts = pair.cache == Cache::Cold || wanted == 1;
        let mut pairs = if first_counts {
            vec![first]
        } else {
            Vec::new()
        };
        let enough =
            |pairs: &[(f64, f64)]| pairs.len() >= bench.record.runs && is_clear(pairs, targets);
        while pairs.len() < wanted && !enough(&pairs) {
            pairs.push(both()?);
        }
        let is_quick = pair.cache == Cache::Warm && first.0 + first.1 < AGAIN_SECONDS;
        let is_short = wanted < bench.record.runs || enough(&pairs);
        if is_quick && !is_short && missed(&pairs, targets) {
            while pairs.len() < BEFORE_A_MISS {
                pairs.push(both()?);
            }
        }
        Ok(pairs)
    }

    /// Returns the wall time of one run in seconds, start and end of the process included.
    pub(crate) fn time(&self, command: &str) -> Result<f64> {
        if let Some(prepare) = &self.prepare {
            accept(prepare, self.command(prepare)?.status()?)?;
        }
        let mut process = self.command(command)?;
        let start = Instant::now();
        let status = process.status().with_context(|| command.to_owned())?;
        let seconds = start.elapsed().as_secs_f64();
        accept(command, status)?;
        // Microseconds: further digits are noise.
        Ok((seconds * 1e6).round() / 1e6)
    }

    /// Returns the peak resident memory of one run in MiB. One run of a command is enough.
    pub(crate) fn peak(&mut self, command: &str) -> Result<f64> {
        if let Some((_, peak)) = self.peaks.iter().find(|(known, _)| known == command) {
            return Ok(*peak);
        }
        let file = self.scratch.join("peak");
        let inner = self.command(command)?;
        let mut outer = self.command("xtask floor peak")?;
        outer
            .arg(&file)
            .arg(inner.get_program())
            .args(inner.get_args());
        accept(command, outer.status()?)?;
        let kib: f64 = std::fs::read_to_string(&file)?.trim().parse()?;
        let peak = (kib / 1024.0 * 100.0).round() / 100.0;
        self.peaks.push((command.to_owned(), peak));
        Ok(peak)
    }

    /// Returns the process for a command as the record shows it: words with variables, through the
    /// shell only where it is a pipeline or a list.
    pub(crate) fn command(&self, text: &str) -> Result<Command> {
        let variables = self.variables();
        let assigns = text.split(' ').next().is_some_and(|w| w.contains('='));
        let mut process = if assigns || text.contains(['|', '&', ';']) {
            let mut sh = Command::new("sh");
            sh.arg("-c").arg(text);
            sh
        } else {
            let mut words = text.split(' ').map(|word| {
                variables
                    .iter()
                    .fold(word.trim_matches('"').to_owned(), |word, (name, value)| {
                        word.replace(name, &value.to_string_lossy())
                    })
            });
            let program = words.next().expect("split gives a word");
            let mut direct = Command::new(
                self.program(&program)
                    .with_context(|| format!("{program} is not installed"))?,
            );
            direct.args(words);
            direct
        };
        for (name, value) in &variables {
            process.env(&name[1..], value);
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = [self.release.clone(), self.scratch.join("bin")];
        let folders = folders.into_iter().chain(std::env::split_paths(&path));
        process.env("PATH", std::env::join_paths(folders)?);
        process
            .env("LC_ALL", "C")
            .env("XDG_CACHE_HOME", self.scratch.join("cache"))
            .env("XDG_STATE_HOME", self.scratch.join("cache"))
            .env("XDG_CONFIG_HOME", self.scratch.join("cache"))
            .current_dir(&self.scratch)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Ok(process)
    }
}

/// Returns the number of pairs for a row whose first pair took so long, where quick rows get
/// `runs`.
fn count((ours, theirs): (f64, f64), runs: usize, least: usize) -> usize {
    let slower = ours.max(theirs);
    if slower > TOO_LONG {
        1
    } else if slower > LONG {
        FEW.min(runs)
    } else {
        let affordable = (QUICK_SECONDS / (ours + theirs)) as usize;
        affordable.min(QUICK_PAIRS).max(runs).max(least)
    }
}

/// Returns true if further pairs would not change on which side of the targets the row is.
fn is_clear(pairs: &[(f64, f64)], targets: &[Target]) -> bool {
    let is_clear_of = |bound: f64| {
        let above = |pair: &(f64, f64)| pair.1 / pair.0 > bound * CLEAR;
        let below = |pair: &(f64, f64)| pair.1 / pair.0 < bound / CLEAR;
        pairs.iter().all(above) || pairs.iter().all(below)
    };
    match targets {
        [] => is_clear_of(1.0),
        _ => targets.iter().all(|target| is_clear_of(target.as_ratio())),
    }
}

/// Returns true if the medians of the pairs miss a target.
fn missed(pairs: &[(f64, f64)], targets: &[Target]) -> bool {
    let ratio = median(pairs.iter().map(|p| p.1)) / median(pairs.iter().map(|p| p.0));
    targets.iter().any(|target| !target.met(ratio))
}

/// Checks the exit code; czkawka_cli ends with 11 when it has found something.
fn accept(command: &str, status: ExitStatus) -> Result<()> {
    match status.code() {
        Some(0) => Ok(()),
        Some(11) if command.starts_with("czkawka_cli") => Ok(()),
        _ => bail!("{command}: {status}"),
    }
}

/// Forgets every clean page, directory entry and inode.
fn drop_caches() -> Result<()> {
    rustix::fs::sync();
    std::fs::write(Path::new("/proc/sys/vm/drop_caches"), "3").context("drop_caches")
}

#[cfg(test)]
mod tests {
    use super::{Target, count, is_clear};

    #[test]
    fn a_row_is_clear_if_every_pair_is_on_one_side_of_every_target() {
        let pairs = [(1.0, 1.2), (1.0, 1.3)];
        assert!(is_clear(&pairs, &[]));
        assert!(is_clear(
            &pairs,
            &[Target::AtLeast(1.0), Target::AtMost(1.0)]
        ));
        assert!(is_clear(&pairs, &[Target::AtLeast(2.0)]));
        assert!(!is_clear(&pairs, &[Target::AtLeast(1.25)]));
        assert!(!is_clear(
            &pairs,
            &[Target::AtLeast(1.0), Target::AtLeast(1.25)]
        ));
        assert!(!is_clear(&[(1.0, 1.2), (1.0, 1.05)], &[]));
    }

    #[test]
    fn slow_peers_get_fewer_pairs() {
        assert_eq!(count((0.5, 61.0), 7, 0), 1);
        assert_eq!(count((0.5, 20.0), 7, 0), 3);
        assert_eq!(count((0.5, 20.0), 2, 0), 2);
        assert_eq!(count((0.5, 3.0), 7, 0), 7);
        assert_eq!(count((0.1, 0.15), 7, 0), 11);
        assert_eq!(count((0.001, 0.001), 7, 200), 200);
    }
}
