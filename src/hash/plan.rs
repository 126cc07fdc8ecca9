//! A command line of `bc hash hash`, checked: contradictory options are refused here.

use std::ffi::OsString;

use bc_digest::{Algorithm, Batch, CpuFeatures};
use bc_manifest::integrity::ShardHeader;
use bc_manifest::{End, ListPart};
use bc_read::Changed;
use bc_walk::Shard;

use super::args::{HashArgs, HashFormat};
use crate::session::resume;

/// Files to hash, and the format of the output.
pub struct HashPlan<'a> {
    pub algorithms: &'a [Algorithm],
    /// True if directories are hashed as wholes.
    pub dirs: bool,
    pub format: HashFormat,
    pub end: End,
    /// The paths that are walked. None given means that a list names them, or nothing does.
    pub roots: Vec<OsString>,
    /// True if standard input is hashed too.
    pub stdin: bool,
    pub changed: Changed,
    /// Part of the trees that this run hashes, if not all of them.
    pub part: Option<ListPart>,
}

impl<'a> HashPlan<'a> {
    /// Fails if options do not go together.
    pub fn new(args: &'a HashArgs) -> Result<HashPlan<'a>, String> {
        let algorithms = args.algorithms.as_slice();
        for (nth, algorithm) in algorithms.iter().enumerate() {
            if algorithms[..nth].contains(algorithm) {
                return Err(format!("--type: '{algorithm}' is named twice"));
            }
        }
        let format = match args.format {
            Some(HashFormat::Gnu) if algorithms.len() > 1 => {
                return Err(
                    "--format=gnu holds one algorithm; use bsd, json, jsonl or csv for several"
                        .to_owned(),
                );
            }
            Some(format) => format,
            None if algorithms.len() > 1 => HashFormat::Bsd,
            None => HashFormat::Gnu,
        };
        let end = match (args.zero, format) {
            (false, _) => End::Newline,
            (true, HashFormat::Gnu | HashFormat::Bsd) => End::Nul,
            (true, HashFormat::Json | HashFormat::Jsonl | HashFormat::Csv) => {
                return Err("-z goes with the gnu and bsd formats only".to_owned());
            }
        };
        let takes_stdin = args
            .paths
            .iter()
            .any(|path| crate::parse::args::is_dash(path));
        if args.shard.is_some() && (takes_stdin || args.walk.files_from.is_some()) {
            return Err("--shard shares out trees, neither lists nor standard input".to_owned());
        }
        args.walk.check_shard(args.shard)?;
        let is_dir = |path: &&OsString| std::fs::metadata(path).is_ok_and(|meta| meta.is_dir());
        if let (true, Some(other)) = (args.dirs, args.paths.iter().find(|path| !is_dir(path)))
            && (crate::parse::args::is_dash(other) || std::fs::metadata(other).is_ok())
        {
            return Err(format!(
                "{}: no directory, and --dirs prints digests of directories",
                bc_fs::escape(other.as_encoded_bytes())
            ));
        }
        let is_file = |path: &&OsString| !crate::parse::args::is_dash(path);
        let roots: Vec<OsString> = args.paths.iter().filter(is_file).cloned().collect();
        Ok(HashPlan {
            algorithms,
            dirs: args.dirs,
            format,
            end,
            stdin: roots.len() < args.paths.len(),
            part: args.shard.map(|shard| part(args, &roots, shard)),
            roots,
            changed: match args.allow_changed {
                true => Changed::Allow,
                false => Changed::Refuse,
            },
        })
    }

    /// Returns true if only standard input is hashed, if no list names files.
    pub fn is_stdin_alone(&self) -> bool {
        self.stdin && self.roots.is_empty()
    }

    /// Returns how many files are hashed at once by each worker.
    pub fn width(&self) -> usize {
        Batch::new(self.algorithms, CpuFeatures::detect()).width()
    }
}

/// Returns the part that this list is, of which work, to be recorded in it.
fn part(args: &HashArgs, roots: &[OsString], shard: Shard) -> ListPart {
    let job = resume::job("hash", &args.algorithms, roots, &args.walk);
    let job = resume::flag(job, "--relative", args.relative);
    let printed = roots.iter().map(|root| ("path", root.as_encoded_bytes()));
    // Which part a directory is in does not depend on the version.
    let fields = job.fields().filter(|(name, _)| *name != "version");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let fields = fields
        .chain(printed)
        .map(|(name, value)| (name.to_owned(), text(value)));
    ListPart {
        shard: ShardHeader {
            index: shard.index(),
            of: shard.of(),
        },
        job: fields.collect(),
    }
}
