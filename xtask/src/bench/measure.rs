//! Timing whole processes in alternating pairs, and their peak memory.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::{Bench, Row, Target};
use crate::sh;

/// Seconds that the pairs of one row may take; at least three pairs are run even so.
const ROW_SECONDS: f64 = 60.0;

/// The state of the page cache before each run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cache {
    Warm,
    Cold,
}

/// A comparison to make. In the commands, `$TREE`, `$COPIES`, `$LIST`, `$N`, `$SCRATCH`, `$BIG` and
/// `$SMALL` stand for what the record names in words.
pub(crate) struct Pair<'a> {
    pub(crate) job: String,
    pub(crate) ours: &'a str,
    pub(crate) theirs: &'a str,
    /// The peer to look for, under any of its names; the first is the one in the command.
    pub(crate) tool: &'a [&'a str],
    pub(crate) targets: &'a [(Target, &'static str)],
    pub(crate) cache: Cache,
    /// At least this many pairs: very short runs need more.
    pub(crate) pairs: usize,
}

impl Bench {
    /// Whether a row was asked for.
    pub(crate) fn wanted(&self, job: &str) -> bool {
        self.only
            .as_ref()
            .is_none_or(|word| job.contains(word.as_str()))
    }

    /// Times ours and theirs in turn; a failure is a row not run, with its reason.
    pub(crate) fn compare(&mut self, pair: &Pair<'_>) {
        let job = format!("{} / {}", pair.job, pair.tool.first().unwrap_or(&"itself"));
        if !self.wanted(&job) {
            return;
        }
        if !pair.tool.is_empty() && !self.find(pair.tool) {
            self.left_out(&job, &format!("{} is not installed", pair.tool[0]));
            return;
        }
        if pair.cache == Cache::Cold && !sh::is_root() {
            self.left_out(&job, "dropping the page cache needs root");
            return;
        }
        match self.pairs(pair) {
            Ok(times) => self.push(pair, &job, &times),
            Err(error) => self.left_out(&job, &format!("{error:#}")),
        }
    }

    /// Alternating timings, ours first, after one warm-up each.
    fn pairs(&self, pair: &Pair<'_>) -> Result<Vec<(f64, f64)>> {
        let once = |command: &str| -> Result<f64> {
            if pair.cache == Cache::Cold {
                drop_caches()?;
            }
            self.time(command)
        };
        let warm_up = once(pair.ours)? + once(pair.theirs)?;
        let affordable = (ROW_SECONDS / warm_up) as usize;
        let wanted = self.runs.max(pair.pairs);
        let runs = affordable.clamp(wanted.min(3), wanted);
        (0..runs)
            .map(|_| Ok((once(pair.ours)?, once(pair.theirs)?)))
            .collect()
    }

    fn push(&mut self, pair: &Pair<'_>, job: &str, times: &[(f64, f64)]) {
        let row = Row {
            job: pair.job.clone(),
            ours: pair.ours.to_owned(),
            theirs: pair.theirs.to_owned(),
            unit: "s",
            our_median: median(times.iter().map(|t| t.0)),
            their_median: median(times.iter().map(|t| t.1)),
            median_of_ratios: median(times.iter().map(|t| t.1 / t.0)),
            pairs: times.len(),
            targets: pair.targets.to_vec(),
        };
        println!(
            "{job}: {:.4} s against {:.4} s: {:.2}×",
            row.our_median,
            row.their_median,
            row.their_median / row.our_median
        );
        self.rows.push(row);
    }

    /// Peak memory of ours against theirs, one run each.
    pub(crate) fn compare_memory(&mut self, pair: &Pair<'_>) {
        let job = format!("{} / {}", pair.job, pair.tool.first().unwrap_or(&"itself"));
        if !self.wanted(&job) {
            return;
        }
        if !pair.tool.is_empty() && !self.find(pair.tool) {
            self.left_out(&job, &format!("{} is not installed", pair.tool[0]));
            return;
        }
        let (ours, theirs) = match (self.peak(pair.ours), self.peak(pair.theirs)) {
            (Ok(ours), Ok(theirs)) => (ours, theirs),
            (Err(error), _) | (_, Err(error)) => {
                self.left_out(&job, &format!("{error:#}"));
                return;
            }
        };
        println!("{job}: {ours:.1} MiB against {theirs:.1} MiB");
        self.rows.push(Row {
            job: pair.job.clone(),
            ours: pair.ours.to_owned(),
            theirs: pair.theirs.to_owned(),
            unit: "MiB",
            our_median: ours,
            their_median: theirs,
            median_of_ratios: theirs / ours,
            pairs: 1,
            targets: pair.targets.to_vec(),
        });
    }

    /// Wall time of one run in seconds, start and end of the process included.
    pub(crate) fn time(&self, command: &str) -> Result<f64> {
        let mut process = self.command(command)?;
        let start = Instant::now();
        let status = process.status().with_context(|| command.to_owned())?;
        let seconds = start.elapsed().as_secs_f64();
        accept(command, status)?;
        Ok(seconds)
    }

    /// Peak resident memory of one run in MiB.
    pub(crate) fn peak(&self, command: &str) -> Result<f64> {
        let file = self.scratch.join("peak");
        let inner = self.command(command)?;
        let mut outer = self.command("xtask floor peak")?;
        outer
            .arg(&file)
            .arg(inner.get_program())
            .args(inner.get_args());
        accept(command, outer.status()?)?;
        let kib: f64 = std::fs::read_to_string(&file)?.trim().parse()?;
        Ok(kib / 1024.0)
    }

    /// The process for a command as the record shows it: words with variables, through the shell
    /// only where it is a pipeline.
    fn command(&self, text: &str) -> Result<Command> {
        let variables = self.variables();
        let mut process = if text.contains('|') || text.contains("&&") {
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
            let ours = self.release.join(&program);
            let found = if ours.exists() && (program == "bc" || program == "xtask") {
                ours
            } else {
                self.installed(&program)
                    .with_context(|| format!("{program} is not installed"))?
            };
            let mut direct = Command::new(found);
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
            .env("XDG_CACHE_HOME", self.scratch.join("cache"));
        process.env("XDG_CONFIG_HOME", self.scratch.join("cache"));
        process.current_dir(&self.scratch);
        process
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Ok(process)
    }

    fn variables(&self) -> [(&'static str, PathBuf); 7] {
        [
            ("$TREE", self.tree.clone()),
            ("$COPIES", self.copies.clone().unwrap_or_default()),
            ("$LIST", self.scratch.join("list")),
            ("$SCRATCH", self.scratch.clone()),
            ("$BIG", sh::dataset("big")),
            ("$SMALL", self.scratch.join("small")),
            ("$N", PathBuf::from(self.threads.to_string())),
        ]
    }

    /// A peer under the name that the commands use: a link is made where it is called otherwise.
    fn find(&mut self, names: &[&str]) -> bool {
        if names[0] == "xtask" || names[0] == "bc" || self.installed(names[0]).is_some() {
            self.note_version(names[0]);
            return true;
        }
        let Some(found) = sh::find_tool(names) else {
            return false;
        };
        let bin = self.scratch.join("bin");
        let linked = std::fs::create_dir_all(&bin)
            .and_then(|()| std::os::unix::fs::symlink(&found, bin.join(names[0])));
        self.note_version(names[0]);
        linked.is_ok()
    }

    fn installed(&self, name: &str) -> Option<PathBuf> {
        let linked = self.scratch.join("bin").join(name);
        if linked.exists() {
            Some(linked)
        } else {
            sh::find_tool(&[name])
        }
    }

    fn note_version(&mut self, name: &str) {
        if name == "xtask" || name == "bc" || self.tools.iter().any(|(n, _)| n == name) {
            return;
        }
        let Some(path) = self.installed(name) else {
            return;
        };
        let arguments: &[&str] = match name {
            "hashdeep" => &["-V"],
            "openssl" => &["version"],
            // It has no option for it.
            "mtree" => {
                return self
                    .tools
                    .push((name.to_owned(), "of the system".to_owned()));
            }
            _ => &["--version"],
        };
        self.tools
            .push((name.to_owned(), sh::version(&path, arguments)));
    }
}

/// czkawka_cli ends with 11 when it has found something.
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

/// The middle value, or the mean of the two in the middle.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn median_of_odd_and_even_counts() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
    }
}
