//! The formats that `bc hash hash` writes, in path order.

use std::ffi::OsString;
use std::io::{self, Write};

use bc_digest::{Algorithm, Digest, Plain};
use bc_find::dirs::{DirDigests, HashedDir};
use bc_fs::PathError;
use bc_hash::{EntryOutcome, Hashes};
use bc_manifest::jsonl::DirCounts;
use bc_manifest::{End, Failure, ListPart, ListPartEnd, bsd, csv, gnu, jsonl};
use bc_walk::{DirectorySet, EntryId, Listing};

use super::args::HashFormat;
use super::plan::HashPlan;
use super::stdin::Stdin;
use crate::files::output::Output;
use crate::report::diagnostic::record;

/// Everything that is printed.
pub struct Hashed<'a> {
    pub plan: &'a HashPlan<'a>,
    pub listing: Option<&'a Listing>,
    pub hashes: Option<&'a Hashes>,
    /// Directories to print instead of files.
    pub dirs: Option<&'a DirDigests>,
    pub stdin: Option<Stdin>,
    /// Print paths below their root.
    pub relative: bool,
    pub elapsed: f64,
    pub roots: &'a [OsString],
}

/// Result for one path.
enum FileRow<'a> {
    Digests {
        size: u64,
        digests: &'a [Digest],
    },
    Failed(&'a bc_walk::Error),
    /// A directory; no digests where it has none.
    Dir {
        counts: DirCounts,
        digests: &'a [Digest],
    },
}

/// Bytes gathered before they are handed on.
const CHUNK: usize = 64 << 10;

/// Writes all of it.
pub fn write(to: &mut Output, hashed: &Hashed<'_>) -> io::Result<()> {
    let mut writer = ResultsWriter {
        to,
        hashed,
        plan: hashed.plan,
        text: Vec::with_capacity(4 << 10),
        first: true,
    };
    writer.head();
    writer.rows()?;
    writer.tail();
    writer.to.write_all(&writer.text)
}

impl Hashed<'_> {
    /// Returns all failures in path order: paths that the walk could not look at, and files that
    /// could not be read.
    fn errors(&self) -> Vec<&bc_walk::Error> {
        let walked = self.listing.map_or(&[][..], Listing::errors).iter();
        let read = self.hashes.into_iter().flat_map(Hashes::errors);
        let stdin = self.stdin.iter().filter_map(|stdin| stdin.error.as_ref());
        let dirs = self.dirs.into_iter().flat_map(|dirs| &dirs.errors);
        let mut all: Vec<_> = walked
            .chain(read.map(|(_, error)| error))
            .chain(stdin)
            .chain(dirs)
            .collect();
        all.sort_by_key(|error| (error.path(), error.op()));
        all
    }
}

struct ResultsWriter<'a> {
    to: &'a mut Output,
    hashed: &'a Hashed<'a>,
    plan: &'a HashPlan<'a>,
    text: Vec<u8>,
    first: bool,
}

impl ResultsWriter<'_> {
    fn rows(&mut self) -> io::Result<()> {
        let hashed = self.hashed;
        let mut stdin = hashed.stdin.as_ref().filter(|s| !s.digests.is_empty());
        let mut path = Vec::new();
        let mut digests: Vec<Digest> = Vec::with_capacity(self.plan.algorithms.len());
        if let (Some(listing), Some(dirs)) = (hashed.listing, hashed.dirs) {
            return self.dirs(listing, dirs);
        }
        if let (Some(listing), Some(hashes)) = (hashed.listing, hashed.hashes) {
            for id in order(listing, hashed.relative) {
                path.clear();
                if hashed.relative {
                    listing.write_relative(id, &mut path);
                } else {
                    listing.write_path(id, &mut path);
                }
                if stdin.is_some_and(|_| path.as_slice() > b"-".as_slice()) {
                    self.stdin(stdin.take());
                }
                match hashes.outcome(id) {
                    EntryOutcome::Hashed { size, .. } => {
                        digests.clear();
                        digests.extend(hashes.digests(id).into_iter().flatten());
                        self.row(
                            &path,
                            FileRow::Digests {
                                size,
                                digests: &digests,
                            },
                        );
                    }
                    EntryOutcome::Failed(error) => self.row(&path, FileRow::Failed(error)),
                    EntryOutcome::NotDone => {}
                }
                if self.text.len() >= CHUNK {
                    self.to.write_all(&self.text)?;
                    self.text.clear();
                }
            }
        }
        self.stdin(stdin.take());
        Ok(())
    }

    fn dirs(&mut self, listing: &Listing, dirs: &DirDigests) -> io::Result<()> {
        let is_json = matches!(self.plan.format, HashFormat::Json | HashFormat::Jsonl);
        let path = |dir: &HashedDir<'_>| {
            let mut path = Vec::new();
            match self.hashed.relative {
                true => listing.write_relative(dir.entry, &mut path),
                false => path = listing.dir_path(dir.dir),
            }
            // So that it is taken for no file.
            if !is_json && !path.ends_with(b"/") {
                path.push(b'/');
            }
            path
        };
        let mut all: Vec<_> = dirs.iter().map(|dir| (path(&dir), dir)).collect();
        // A root before what is in it, whose name may begin with a byte before the dot.
        let is_below = |path: &[u8]| path != b"." && path != b"./";
        all.sort_by(|(one, _), (other, _)| (is_below(one), one).cmp(&(is_below(other), other)));
        for (path, dir) in all {
            let counts = DirCounts {
                files: dir.files,
                bytes: dir.bytes,
                filtered: dir.filtered,
            };
            let digests = dir.digests.unwrap_or_default();
            self.row(&path, FileRow::Dir { counts, digests });
            if self.text.len() >= CHUNK {
                self.to.write_all(&self.text)?;
                self.text.clear();
            }
        }
        Ok(())
    }

    fn stdin(&mut self, stdin: Option<&Stdin>) {
        if let Some(Stdin { size, digests, .. }) = stdin {
            let (size, digests) = (*size, digests.as_slice());
            self.row(b"-", FileRow::Digests { size, digests });
        }
    }

    fn row(&mut self, path: &[u8], row: FileRow<'_>) {
        let out = &mut self.text;
        let HashPlan {
            algorithms,
            format,
            end,
            ..
        } = *self.plan;
        match (format, row) {
            (
                HashFormat::Gnu | HashFormat::Bsd | HashFormat::Csv,
                FileRow::Dir { digests: [], .. },
            ) => {}
            (HashFormat::Gnu, FileRow::Dir { counts, digests }) => {
                line(out, algorithms[0], digests[0], counts.bytes, path, end);
            }
            (HashFormat::Csv, FileRow::Dir { counts, digests }) => {
                let path = &self.to.shown(path);
                csv::write_file(
                    out,
                    path,
                    counts.bytes,
                    digests.iter().map(Digest::as_bytes),
                );
            }
            // These formats have no place for a failure; stderr and the exit code report it.
            (HashFormat::Gnu | HashFormat::Bsd, FileRow::Failed(_)) => {}
            (HashFormat::Gnu, FileRow::Digests { size, digests }) => {
                line(out, algorithms[0], digests[0], size, path, end);
            }
            (HashFormat::Bsd, FileRow::Digests { digests, .. } | FileRow::Dir { digests, .. }) => {
                for (algorithm, digest) in algorithms.iter().zip(digests) {
                    bsd::write_line(out, algorithm.tag(), digest.as_bytes(), path, end);
                }
            }
            (HashFormat::Csv, FileRow::Digests { size, digests }) => {
                let path = &self.to.shown(path);
                csv::write_file(out, path, size, digests.iter().map(Digest::as_bytes));
            }
            (HashFormat::Csv, FileRow::Failed(error)) => {
                let path = &self.to.shown(path);
                csv::write_error(out, path, None, algorithms.len(), &failure(error));
            }
            (HashFormat::Jsonl, row) => object(out, algorithms, path, row),
            (HashFormat::Json, row) => {
                out.extend_from_slice(if self.first { b"    " } else { b",\n    " });
                self.first = false;
                object(out, algorithms, path, row);
                // The newline: a comma may have to come before it.
                out.pop();
            }
        }
    }

    fn head(&mut self) {
        let algorithms = self.plan.algorithms.iter();
        let names: Vec<String> = algorithms.map(|a| a.name().to_owned()).collect();
        match self.plan.format {
            HashFormat::Csv => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                csv::write_header(&mut self.text, &names);
            }
            HashFormat::Jsonl => {
                let header = jsonl::Header {
                    schema: jsonl::SCHEMA,
                    tool: "bc hash".to_owned(),
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                    algorithms: names,
                    extra: self
                        .plan
                        .part
                        .as_ref()
                        .map(ListPart::to_fields)
                        .unwrap_or_default(),
                };
                jsonl::write_header(&mut self.text, &header);
            }
            HashFormat::Json => {
                let roots: Vec<String> = self
                    .hashed
                    .roots
                    .iter()
                    .map(|r| r.to_string_lossy().into_owned())
                    .collect();
                let head = format!(
                    "{{\n  \"schema\": {},\n  \"command\": \"hash\",\n  \"version\": \"{}\",\n  \
                     \"algorithms\": {},\n  \"roots\": {},\n  \"{}\": [\n",
                    jsonl::SCHEMA,
                    env!("CARGO_PKG_VERSION"),
                    serde_json::json!(names),
                    serde_json::json!(roots),
                    match self.plan.dirs {
                        true => "directories",
                        false => "files",
                    },
                );
                self.text.extend_from_slice(head.as_bytes());
            }
            HashFormat::Gnu | HashFormat::Bsd => {}
        }
    }

    /// Returns the sets of directories that are needed to put the parts of a tree together, where
    /// this is one.
    fn part_end(&self) -> Option<ListPartEnd> {
        let listing = self.hashed.listing.filter(|_| self.plan.part.is_some())?;
        let set = |set: DirectorySet| (set.count(), set.sum());
        Some(ListPartEnd {
            settled: set(listing.settled()),
            met: set(listing.met()),
        })
    }

    fn tail(&mut self) {
        if !matches!(self.plan.format, HashFormat::Json | HashFormat::Jsonl) {
            return;
        }
        let totals = self
            .hashed
            .hashes
            .map(|h| h.totals().clone())
            .unwrap_or_default();
        let extra = self.hashed.stdin.as_ref().filter(|s| !s.digests.is_empty());
        let errors = self.hashed.errors();
        let summary = jsonl::Summary {
            files: totals.read.files + extra.map_or(0, |_| 1),
            errors: errors.len() as u64,
            // As if nothing had been read before this run.
            bytes: totals.read.bytes + totals.taken.bytes + extra.map_or(0, |s| s.size),
            wall_ns: (self.hashed.elapsed * 1e9) as u64,
            threads: totals.workers.max(1) as u64,
            reader: totals.read.backend.name().to_owned(),
            extra: self
                .part_end()
                .map(ListPartEnd::to_fields)
                .unwrap_or_default(),
        };
        if self.plan.format == HashFormat::Jsonl {
            for error in errors {
                record("hash", &PathError::from(error)).write_line(&mut self.text);
            }
            jsonl::write_summary(&mut self.text, &summary);
            return;
        }
        self.text.extend_from_slice(b"\n  ],\n  \"errors\": [");
        for (nth, error) in errors.into_iter().enumerate() {
            let start = if nth == 0 { "\n    " } else { ",\n    " };
            self.text.extend_from_slice(start.as_bytes());
            record("hash", &PathError::from(error)).write(&mut self.text);
        }
        let text = serde_json::to_string(&summary).unwrap_or_default();
        self.text
            .extend_from_slice(format!("\n  ],\n  \"summary\": {text}\n}}\n").as_bytes());
    }
}

/// Writes a line as the tool of this algorithm does. xxhsum marks XXH3 in plain lines, since its
/// digests look like XXH64's.
fn line(out: &mut Vec<u8>, algorithm: Algorithm, digest: Digest, size: u64, path: &[u8], end: End) {
    match (algorithm, algorithm.plain()) {
        (Algorithm::Xxh3, _) => gnu::write_xxh3_line(out, digest.as_bytes(), path, end),
        (_, Plain::Hex) => gnu::write_line(out, digest.as_bytes(), path, end),
        (_, plain) => {
            // cksum lets a newline in a name through.
            let escaped = end == End::Newline && gnu::needs_escape(path);
            if escaped {
                out.push(b'\\');
            }
            gnu::write_sum(out, plain, digest.as_bytes(), size);
            out.push(b' ');
            match escaped {
                true => gnu::escape_path(out, path),
                false => out.extend_from_slice(path),
            }
            out.push(end.byte());
        }
    }
}

/// Writes a line of JSON.
fn object(out: &mut Vec<u8>, algorithms: &[Algorithm], path: &[u8], row: FileRow<'_>) {
    match row {
        FileRow::Digests { size, digests } => {
            let digests = digests.iter().map(Digest::as_bytes);
            let named = algorithms.iter().map(|a| a.name()).zip(digests);
            jsonl::write_file(out, path, size, named);
        }
        FileRow::Failed(error) => jsonl::write_error(out, path, None, &failure(error)),
        FileRow::Dir { counts, digests } => {
            let digests = digests.iter().map(Digest::as_bytes);
            let named = algorithms.iter().map(|a| a.name()).zip(digests);
            jsonl::write_dir(out, path, counts, named);
        }
    }
}

/// Returns the failure as the manifest records it beside the file's path.
fn failure(error: &bc_walk::Error) -> Failure {
    Failure {
        op: error.op().to_owned(),
        errno: error.errno(),
        message: error.message(),
    }
}

/// Returns the entries in path order of the printed paths: the listing's own, unless several roots
/// print relative paths, which may interleave.
fn order(listing: &Listing, relative: bool) -> Vec<EntryId> {
    let mut ids: Vec<EntryId> = listing.ids().collect();
    if relative
        && ids
            .windows(2)
            .any(|pair| listing.root(pair[0]) != listing.root(pair[1]))
    {
        let relative = |id: &EntryId| {
            let mut path = Vec::new();
            listing.write_relative(*id, &mut path);
            path
        };
        ids.sort_by_cached_key(relative);
    }
    ids
}
