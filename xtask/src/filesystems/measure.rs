//! `--measure`: bc hash and bc dup on each file system beside the floor and the installed peers, all
//! in turn, warm and cold, as Markdown for a record. With `--against` every job of ours beside another
//! build of bc instead, in alternating pairs.

use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use bc_testkit::{Synth, reference};

use super::kinds::Kind;
use super::place::{self, Place};
use super::tools::Lab;
use crate::args::Args;
use crate::median::{Interval, median};
use crate::sh;

const FILES: u64 = 3000;
const RUNS: u64 = 3;
/// Pairs of two builds of ours: they differ by less than peers do.
const PAIRS: u64 = 31;
/// One file in so many exists a second time.
const REPEATED: usize = 5;

/// Files to measure, and the number of runs.
pub(super) struct Measure {
    corpus: Option<PathBuf>,
    files: usize,
    runs: usize,
    /// Another build of bc to compare ours with.
    against: Option<PathBuf>,
}

/// A job with the programs that can do it; the first is ours.
struct MeasuredJob {
    name: &'static str,
    /// Label, program to look for, shell text with `$TREE`, `$BC` and `$N`; for the floor, which is
    /// the bare walk and the bare reading that the job cannot do without, `$XTASK` and `$LIST`.
    programs: &'static [(&'static str, &'static str, &'static str)],
}

const JOBS: &[MeasuredJob] = &[
    MeasuredJob {
        name: "SHA-256",
        programs: &[
            ("bc", "sh", "exec \"$BC\" hash --type=sha256 \"$TREE\""),
            (
                "floor",
                "sh",
                "\"$XTASK\" floor walk \"$TREE\" $N && \"$XTASK\" floor read \"$TREE\" \"$LIST\" $N",
            ),
            (
                "xargs sha256sum",
                "sha256sum",
                "find \"$TREE\" -type f -print0 | xargs -0 -P$N -n256 sha256sum",
            ),
        ],
    },
    MeasuredJob {
        name: "XXH128",
        programs: &[
            ("bc", "sh", "exec \"$BC\" hash --type=xxh128 \"$TREE\""),
            (
                "floor",
                "sh",
                "\"$XTASK\" floor walk \"$TREE\" $N && \"$XTASK\" floor read \"$TREE\" \"$LIST\" $N",
            ),
            (
                "xargs xxhsum",
                "xxhsum",
                "find \"$TREE\" -type f -print0 | xargs -0 -P$N -n256 xxhsum -H2",
            ),
        ],
    },
    MeasuredJob {
        name: "duplicates",
        programs: &[
            ("bc", "sh", "exec \"$BC\" dup \"$TREE\""),
            (
                "floor",
                "sh",
                "\"$XTASK\" floor walk \"$TREE\" $N && \"$XTASK\" floor dup \"$TREE\" \"$LIST\" $N",
            ),
            ("jdupes", "jdupes", "exec jdupes -r -q \"$TREE\""),
            ("yadf", "yadf", "exec yadf --no-empty \"$TREE\""),
            (
                "fclones",
                "fclones",
                "exec fclones --quiet group --hidden --no-ignore \"$TREE\"",
            ),
        ],
    },
];

/// A job of ours, with what is done before each run, which does not count.
struct OwnJob {
    name: &'static str,
    before: &'static str,
    text: &'static str,
}

const OWN_JOBS: &[OwnJob] = &[
    OwnJob {
        name: "hash",
        before: "",
        text: "exec \"$BC\" hash --quiet \"$TREE\"",
    },
    OwnJob {
        name: "dup",
        before: "",
        text: "exec \"$BC\" dup \"$TREE\"",
    },
    // The next ones need what this has written.
    OwnJob {
        name: "manifest",
        before: "",
        text: "exec \"$BC\" integrity manifest --quiet --output=\"$SCRATCH/manifest\" \"$TREE\"",
    },
    OwnJob {
        name: "verify",
        before: "",
        text: "exec \"$BC\" integrity verify --quiet \"$TREE\" \"$SCRATCH/manifest\"",
    },
    OwnJob {
        name: "verify --mode=meta",
        before: "",
        text: "exec \"$BC\" integrity verify --quiet --mode=meta \"$TREE\" \"$SCRATCH/manifest\"",
    },
    OwnJob {
        name: "update",
        before: "",
        text: "exec \"$BC\" integrity update --quiet \"$TREE\" \"$SCRATCH/manifest\"",
    },
    OwnJob {
        name: "copy from it",
        before: "rm -rf \"$SCRATCH/out\"",
        text: "exec \"$BC\" copy --quiet \"$TREE\" \"$SCRATCH/out\"",
    },
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Warm,
    Cold,
}

impl Measure {
    pub(super) fn from_args(args: &mut Args) -> Result<Measure> {
        let corpus = args.option("--corpus")?.map(PathBuf::from);
        if let Some(dir) = corpus.as_ref().filter(|dir| !dir.is_dir()) {
            bail!("--corpus: {} is no directory", dir.display());
        }
        let against = args.option("--against")?.map(|path| {
            let found = Path::new(&path).canonicalize();
            found.with_context(|| format!("--against: {path}"))
        });
        let against = against.transpose()?;
        let runs = if against.is_some() { PAIRS } else { RUNS };
        let number = |n: u64| usize::try_from(n.max(1)).context("too many");
        Ok(Measure {
            corpus,
            files: number(args.number("--files", FILES)?)?,
            runs: number(args.number("--runs", runs)?)?,
            against,
        })
    }

    pub(super) fn run(&self, lab: &Lab, kinds: &[&'static Kind]) -> Result<ExitCode> {
        // Row by row: rows measured before an interruption are not lost.
        match self.against {
            Some(_) => print!("{OWN_HEAD}"),
            None => print!("{}", head()),
        }
        let mut left_out = Vec::new();
        for kind in kinds {
            eprintln!("xtask: {}", kind.name);
            let measured = match kind.missing() {
                Some(reason) => Err(anyhow::Error::msg(reason)),
                None => self.one(lab, kind),
            };
            if let Err(error) = measured {
                left_out.push(format!("{}: {error:#}", kind.name));
                place::clear(&lab.scratch.join(kind.name))?;
            }
        }
        println!();
        for reason in left_out {
            println!("- not measured: {reason}");
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Prints the rows of one kind: each with our time, and how many times as long each peer takes.
    fn one(&self, lab: &Lab, kind: &'static Kind) -> Result<()> {
        let mut place = Place::new(lab, kind, &|dir| self.lay(dir))?;
        write_list(&place)?;
        for (state, name) in [(State::Warm, "warm"), (State::Cold, "cold")] {
            if state == State::Cold && !kind.lasting {
                continue;
            }
            if let Some(other) = &self.against {
                for job in OWN_JOBS {
                    let pairs = self.pairs(&mut place, job, state, other)?;
                    println!(
                        "| {} | {name} | {} | {} |",
                        kind.name,
                        job.name,
                        own_cells(&pairs)
                    );
                }
                continue;
            }
            let cells: Vec<String> = JOBS
                .iter()
                .map(|job| Ok(cell(&self.job(&mut place, job, state)?)))
                .collect::<Result<_>>()?;
            println!("| {} | {name} | {} |", kind.name, cells.join(" | "));
        }
        place.close()
    }

    /// Times every program in turn, beginning with another one each time.
    fn job(
        &self,
        place: &mut Place<'_>,
        job: &MeasuredJob,
        state: State,
    ) -> Result<Vec<(&'static str, f64)>> {
        let there: Vec<_> = job
            .programs
            .iter()
            .filter(|(_, tool, _)| sh::has(tool))
            .collect();
        let mut times = vec![Vec::new(); there.len()];
        if state == State::Warm {
            for (_, _, text) in &there {
                time(place, text)?;
            }
        }
        for run in 0..self.runs {
            for turn in 0..there.len() {
                let at = (turn + run) % there.len();
                if state == State::Cold {
                    chill(place)?;
                    let tools = there.iter().map(|(_, tool, _)| *tool);
                    load(place, tools)?;
                }
                times[at].push(time(place, there[at].2)?);
            }
        }
        let labels = there.iter().map(|(label, _, _)| *label);
        Ok(labels
            .zip(times.into_iter().map(|times| median(times.into_iter())))
            .collect())
    }

    /// Times a job of our build and of another in turn, the other one first every second time.
    fn pairs(
        &self,
        place: &mut Place<'_>,
        job: &OwnJob,
        state: State,
        other: &Path,
    ) -> Result<Vec<(f64, f64)>> {
        let builds = [place.lab.binary().to_owned(), other.to_owned()];
        let mut pairs = Vec::new();
        for run in 0..=self.runs {
            let mut seconds = [0.0; 2];
            for turn in 0..2 {
                let at = (turn + run) % 2;
                if state == State::Cold {
                    chill(place)?;
                    for build in &builds {
                        std::fs::read(build).with_context(|| build.display().to_string())?;
                    }
                    load(place, std::iter::empty())?;
                }
                time_of(&builds[at], place, job.before)?;
                seconds[at] = time_of(&builds[at], place, job.text)?;
            }
            // The first is the warm-up.
            if run > 0 {
                pairs.push((seconds[0], seconds[1]));
            }
        }
        Ok(pairs)
    }

    /// Lays the corpus, with every fifth file a second time: in the directories that kinds of
    /// several layers, subvolumes and snapshots copy.
    fn lay(&self, dir: &Path) -> Result<Vec<String>> {
        let tree = dir.join("tree/sizes/two");
        std::fs::create_dir_all(dir.join("tree/links"))?;
        let Some(corpus) = &self.corpus else {
            let synth = Synth {
                files: self.files,
                bytes: self.files as u64 * (16 << 10),
                ..Synth::default()
            };
            synth.build(&tree)?;
            return Ok(Vec::new());
        };
        let files = reference::files(corpus)?;
        for (index, path) in files.iter().take(self.files).enumerate() {
            let path = Path::new(OsStr::from_bytes(path));
            copy(&corpus.join(path), &tree.join("first").join(path))?;
            if index % REPEATED == 0 {
                copy(&corpus.join(path), &tree.join("again").join(path))?;
            }
        }
        Ok(Vec::new())
    }
}

/// Copies content alone: owners and modes are not every file system's.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let content = std::fs::read(from).with_context(|| from.display().to_string())?;
    std::fs::write(to, content).with_context(|| to.display().to_string())
}

/// Returns the path of the list of files that the floor reads.
fn list(place: &Place<'_>) -> PathBuf {
    place.lab.scratch.join("measured.list")
}

/// Writes the list of the files of the tree in path order, each closed by NUL.
fn write_list(place: &Place<'_>) -> Result<()> {
    let files = reference::files(&place.tree())?;
    let mut text = files.join(&0);
    text.push(0);
    let path = list(place);
    std::fs::write(&path, text).with_context(|| path.display().to_string())
}

/// Drops everything of the place from memory.
fn chill(place: &mut Place<'_>) -> Result<()> {
    place.remount()?;
    rustix::fs::sync();
    let mut knob = std::fs::File::options()
        .write(true)
        .open("/proc/sys/vm/drop_caches")?;
    Ok(knob.write_all(b"3")?)
}

/// Reads the measured programs into memory: a program of 14 MB would be read from another disk
/// first, of which a machine that reads 8 MiB ahead takes 10 ms, where one of 100 KB takes 2.
fn load<'t>(place: &Place<'_>, tools: impl Iterator<Item = &'t str>) -> Result<()> {
    for program in [place.lab.binary().to_owned(), std::env::current_exe()?] {
        std::fs::read(&program).with_context(|| program.display().to_string())?;
    }
    for tool in tools.chain(["find", "xargs"]) {
        let mut command = Command::new(tool);
        command.arg("--version").stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // Its output does not matter.
        command.status().with_context(|| tool.to_owned())?;
    }
    Ok(())
}

/// Returns the seconds of one run, from its start to its end.
fn time(place: &Place<'_>, text: &str) -> Result<f64> {
    time_of(place.lab.binary(), place, text)
}

/// Returns the seconds of one run with this build of bc.
fn time_of(bc: &Path, place: &Place<'_>, text: &str) -> Result<f64> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut command = Command::new("sh");
    command
        .args(["-c", text])
        .env("BC", bc)
        .env("SCRATCH", &place.lab.scratch)
        .env("TREE", place.tree())
        .env("LIST", list(place))
        .env("XTASK", std::env::current_exe()?)
        .env("N", threads.to_string())
        .env("XDG_CACHE_HOME", place.lab.scratch.join("cache"))
        .env("XDG_CONFIG_HOME", place.lab.scratch.join("config"))
        .env("XDG_STATE_HOME", place.lab.scratch.join("state"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let start = Instant::now();
    let status = command.status().context("sh")?;
    let seconds = start.elapsed().as_secs_f64();
    if !status.success() {
        bail!("{text}: {status}");
    }
    Ok(seconds)
}

const OWN_HEAD: &str =
    "| file system | cache | job | this | other | this ÷ other |\n|---|---|---|--:|--:|---|\n";

/// Returns the medians of both builds, and that of the ratios with its interval.
fn own_cells(pairs: &[(f64, f64)]) -> String {
    let ratio = Interval::of(pairs.iter().map(|(ours, other)| ours / other));
    format!(
        "{} | {} | {ratio}",
        shown(median(pairs.iter().map(|pair| pair.0))),
        shown(median(pairs.iter().map(|pair| pair.1))),
    )
}

fn shown(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

fn head() -> String {
    let names: Vec<&str> = JOBS.iter().map(|job| job.name).collect();
    format!(
        "| file system | cache | {} |\n|---|---|{}\n",
        names.join(" | "),
        "---|".repeat(names.len())
    )
}

/// Returns our time, and how many times as long each peer takes; below 1 it is faster, and stands
/// out.
fn cell(times: &[(&str, f64)]) -> String {
    let Some(((_, ours), peers)) = times.split_first() else {
        return "-".to_owned();
    };
    let mut text = shown(*ours);
    for (name, seconds) in peers {
        let ratio = seconds / ours;
        let mark = if ratio < 1.0 { "**" } else { "" };
        text.push_str(&format!(", {name} {mark}{ratio:.2}{mark}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_is_faster_stands_out() {
        let text = cell(&[("bc", 0.1), ("jdupes", 0.3), ("yadf", 0.09)]);
        assert_eq!(text, "100 ms, jdupes 3.00, yadf **0.90**");
    }

    #[test]
    fn two_builds_are_compared_pair_by_pair() {
        let text = own_cells(&[(0.1, 0.2), (0.2, 0.2), (1.2, 0.8)]);
        assert_eq!(text, "200 ms | 200 ms | 1.00 (0.50–1.50)");
    }
}
