//! `cargo xtask bench`: bc against its peers and against the floor program, in alternating pairs,
//! with the targets beside. Writes `benches/record/<date>-<cpu>.md` with its figures and charts,
//! README's chart and the guide's table. The results so far are on disk after every row.

mod chart;
mod cold;
mod copy;
mod dup;
mod files;
mod forest;
mod hash;
mod integrity;
mod kernels;
mod machine;
mod markdown;
mod measure;
mod memory;
mod parity;
mod peers;
mod place;
mod readme;
mod record;
mod scale;
mod scale_jobs;
mod shapes;
mod targets;
mod waiting;
mod walk;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::args::Args;
use crate::{correctness, sh};
use place::Place;
use record::{BenchRecord, Row, Target};

pub(crate) use walk::run as walk;

/// Pairs of runs of a row that is clear; others get more, slow ones fewer.
const RUNS: u64 = 5;

pub(crate) fn run(mut args: Args) -> Result<ExitCode> {
    if args.takes("scale") {
        return scale::run(args);
    }
    if args.takes("parity") {
        return parity::run(args);
    }
    let runs = usize::try_from(args.number("--runs", RUNS)?)?.max(1);
    let tree = args.option("--dir")?;
    let copies = args.option("--copies")?;
    let only = args.option("--only")?;
    let folder = args.option("--record")?;
    let resume = args.flag("--resume");
    let large = args.flag("--large");
    let scratch = args.option("--scratch")?;
    let recorded = !args.flag("--no-record") && only.is_none();
    let area = args.word().unwrap_or_else(|| "all".to_owned());
    if area == "draw" {
        return draw(&args.rest()?);
    }
    args.done()?;
    if ![
        "hash",
        "dup",
        "integrity",
        "copy",
        "shapes",
        "waiting",
        "all",
    ]
    .contains(&area.as_str())
    {
        bail!(
            "bench needs one of hash, dup, integrity, copy, shapes, waiting, all, draw, scale, parity, not {area:?}"
        );
    }
    // Trees that wait are laid, small as they have to be.
    let usual = match area.as_str() {
        "waiting" => sh::root().join("src"),
        _ => sh::dataset("linux"),
    };
    let tree = tree.map_or(usual, PathBuf::from);
    if !tree.is_dir() {
        bail!("no linux dataset: `cargo xtask datasets linux` lays it, or name a tree with --dir");
    }
    let copies = copies.map_or_else(|| sh::dataset("copies"), PathBuf::from);
    // A run whose record goes to another folder is a trial.
    let readme = area == "all" && folder.is_none();
    let place = match recorded {
        true => Some(Place::new(folder, readme)?),
        false => None,
    };
    let mut bench = Bench::new(&area, runs, tree.canonicalize()?, only)?;
    bench.copies = copies.canonicalize().ok();
    bench.place = place;
    if let Some(scratch) = scratch {
        bench.shape =
            std::path::absolute(scratch)?.join(format!("bc-shape-{}", std::process::id()));
    }
    if resume {
        bench.resume()?;
    }
    bench.measure(&area, large)?;
    bench.record.load_after = machine::load();
    bench.record.finished = true;
    if let Some(place) = &bench.place {
        place.finish(&bench.record)?;
        println!("\nrecorded in {}", place.json(&bench.record).display());
    }
    markdown::summary(&bench.record);
    Ok(ExitCode::SUCCESS)
}

/// Makes the Markdown and the charts of a record, README's chart and the guide's table again from
/// its figures.
fn draw(files: &[String]) -> Result<ExitCode> {
    let [file] = files else {
        bail!("bench draw needs the .json of one record");
    };
    let file = Path::new(file).canonicalize()?;
    let record = BenchRecord::load(&file)?;
    let folder = file.parent().expect("a file lies in a folder");
    let own = folder == sh::root().join("benches/record");
    let place = Place::new(
        Some(folder.display().to_string()),
        own && record.area == "all" && record.finished,
    )?;
    place.finish(&record)?;
    markdown::summary(&record);
    Ok(ExitCode::SUCCESS)
}

/// State of a bench run: settings, and the results so far.
pub(crate) struct Bench {
    record: BenchRecord,
    /// Part of the record the rows belong to.
    area: &'static str,
    place: Option<Place>,
    /// Rows of an earlier, interrupted run of the same commit.
    before: Vec<Row>,
    threads: usize,
    tree: PathBuf,
    copies: Option<PathBuf>,
    only: Option<String>,
    scratch: PathBuf,
    /// Directory of our programs.
    release: PathBuf,
    peaks: Vec<(String, f64)>,
    /// Directory for one shape of work at a time.
    shape: PathBuf,
    /// A command that prepares the files that a timed one will change; its time does not count.
    prepare: Option<String>,
    /// Bytes of the tree's files.
    bytes: u64,
}

impl Bench {
    fn new(area: &str, runs: usize, tree: PathBuf, only: Option<String>) -> Result<Bench> {
        let load_before = machine::load();
        let programs = [
            sh::release_binary("bit-crafts", "bc")?,
            sh::release_binary("xtask", "xtask")?,
            sh::release_example("bc-hash", "hash_tree")?,
        ];
        let scratch = sh::scratch("bench")?;
        std::fs::create_dir_all(scratch.join("cache"))?;
        // As an installer lays them. A linker writes here and there, which leaves its output in the
        // page cache in small pieces: the same binary started in 1.24 ms where it was linked, and
        // in 1.08 ms as a copy (ext4, Linux 6.18).
        let release = scratch.join("bin");
        std::fs::create_dir_all(&release)?;
        for program in &programs {
            let name = program.file_name().expect("a program has a name");
            std::fs::copy(program, release.join(name))?;
        }
        let mut names = Command::new(release.join("bc"));
        names
            .args(["install", "--gnu", "--mkdir"])
            .arg(scratch.join("gnu"));
        sh::stdout(&mut names)?;
        let (files, bytes) = list_files(&tree, &scratch.join("list"))?;
        let mut record = record::begin(area, runs, &tree, files);
        record.load_before = load_before;
        Ok(Bench {
            record,
            area: "",
            place: None,
            before: Vec::new(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            tree,
            copies: None,
            only,
            shape: scratch.join("shape"),
            scratch,
            release,
            peaks: Vec::new(),
            prepare: None,
            bytes,
        })
    }

    /// Runs all rows of an area, cold ones last: they leave a cold cache behind.
    fn measure(&mut self, area: &str, large: bool) -> Result<()> {
        let (hash, dup) = (area == "hash", area == "dup");
        let all = area == "all";
        if hash || all {
            walk::rows(self)?;
            hash::rows(self)?;
            kernels::rows(self)?;
            files::rows(self)?;
        }
        if dup || all {
            dup::rows(self)?;
        }
        if area == "integrity" || all {
            integrity::rows(self)?;
        }
        if area == "copy" || all {
            copy::rows(self)?;
        }
        if area == "shapes" || all {
            shapes::rows(self)?;
        }
        if area == "waiting" || all {
            waiting::rows(self)?;
        }
        if hash || all {
            memory::hash(self)?;
        }
        if dup || all {
            memory::dup(self)?;
        }
        if all {
            memory::large(self, large)?;
        }
        if hash || all {
            cold::hash(self)?;
        }
        if dup || all {
            cold::dup(self)?;
        }
        if all && self.only.is_none() {
            self.record.correctness = Some(correctness::totals(&["synth", "hostile"])?);
        }
        Ok(())
    }

    /// Takes over the rows of the record that an interrupted run has left.
    fn resume(&mut self) -> Result<()> {
        let Some(place) = &self.place else {
            bail!("--resume needs a record to go on with");
        };
        let path = place.json(&self.record);
        let before = BenchRecord::load(&path)?;
        let same = |a: &BenchRecord| (a.commit.clone(), a.tree.clone(), a.tree_files);
        if same(&before) != same(&self.record) {
            bail!("{}: of another commit or tree", path.display());
        }
        self.record.load_before = before.load_before;
        self.before = before.rows;
        Ok(())
    }

    /// Returns the figures that the interrupted run has measured for this row.
    fn done_before(&self, row: &Row) -> Option<Vec<(f64, f64)>> {
        let key = |r: &Row| {
            (
                r.job.clone(),
                r.ours.clone(),
                r.theirs.clone(),
                r.unit.clone(),
            )
        };
        let found = self.before.iter().find(|r| key(r) == key(row));
        found.map(|r| r.pairs.clone())
    }

    /// Takes over all rows that the interrupted run has of a job, whatever they are against; false if
    /// it has none.
    fn takes_over(&mut self, job: &str) -> Result<bool> {
        let of_job = |row: &&Row| row.job == job;
        let before: Vec<Row> = self.before.iter().filter(of_job).cloned().collect();
        for row in &before {
            println!("kept     {job} / {}", row.peer);
            self.push(row.clone())?;
        }
        Ok(!before.is_empty())
    }

    fn push(&mut self, row: Row) -> Result<()> {
        self.record.rows.push(row);
        self.save()
    }

    fn save(&self) -> Result<()> {
        self.place.as_ref().map_or(Ok(()), |p| p.save(&self.record))
    }

    fn left_out(&mut self, job: &str, reason: &str) -> Result<()> {
        println!("not run  {job}: {reason}");
        // A failed command's message may name where things lie.
        let mut reason = reason.to_owned();
        for (name, path) in self.variables() {
            let path = path.display().to_string();
            if path.starts_with('/') {
                reason = reason.replace(&path, name);
            }
        }
        reason = reason.replace(&sh::root().display().to_string(), ".");
        self.record.not_run.push((job.to_owned(), reason));
        self.save()
    }

    /// Writes the paths of all files below `tree` to a list in the scratch folder.
    fn list_files(&self, tree: &Path, name: &str) -> Result<()> {
        list_files(tree, &self.scratch.join(name)).map(drop)
    }

    /// Returns the variables of the commands, a name before those that are its beginning.
    fn variables(&self) -> [(&'static str, PathBuf); 12] {
        [
            ("$SHAPELIST", self.scratch.join("shapelist")),
            ("$SHAPE", self.shape.clone()),
            ("$BYTES", PathBuf::from(self.bytes.to_string())),
            ("$TREE", self.tree.clone()),
            ("$COPIES", self.copies.clone().unwrap_or_default()),
            ("$LIST", self.scratch.join("list")),
            ("$SCRATCH", self.scratch.clone()),
            ("$BIG", sh::dataset("big")),
            ("$TEN", self.scratch.join("ten")),
            ("$SMALL", self.scratch.join("small")),
            ("$LARGE", sh::dataset("large")),
            ("$N", PathBuf::from(self.threads.to_string())),
        ]
    }
}

/// Writes the paths of all files below `tree` to `list`, in path order, as bc reads them, each with a
/// NUL behind it; gives their number and their bytes.
fn list_files(tree: &Path, list: &Path) -> Result<(usize, u64)> {
    let mut find = Command::new("find");
    find.current_dir(tree)
        .args([".", "-type", "f", "-printf", "%p\\0%s\\0"]);
    let found = sh::stdout(&mut find)?;
    let mut paths = Vec::new();
    let mut bytes = 0;
    let mut fields = found.split_inclusive(|&b| b == 0);
    while let (Some(path), Some(size)) = (fields.next(), fields.next()) {
        paths.push(path);
        let size = String::from_utf8_lossy(&size[..size.len() - 1]);
        bytes += size.parse::<u64>().context("find's %s")?;
    }
    paths.sort_unstable();
    std::fs::write(list, paths.concat()).with_context(|| list.display().to_string())?;
    Ok((paths.len(), bytes))
}
