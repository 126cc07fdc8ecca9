//! Reports of a search, for people and programs: text, fdupes, CSV, JSON, JSON lines and a shell
//! script; and the way back from JSON to groups that prune can check again.

pub(crate) mod json;
mod script;

use std::collections::HashSet;
use std::fmt::Display;
use std::io::{self, Write};

use bc_digest::Algorithm;
use bc_edit::names::{self, lasts};
use bc_fs::path::below;
use bc_manifest::csv::write_record;
use bc_walk::{EntryId, Listing};

use crate::groups::{FileGroup, FileRef};
use crate::scan::{self, Scan};

pub use json::{ReadError, Saved, read};

/// A way to write a report.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ReportFormat {
    /// Groups separated by blank lines.
    Text,
    /// One document with everything that prune checks again.
    Json,
    /// A header, a line per group, a line per failure, a summary.
    Jsonl,
    /// A record per file.
    Csv,
    /// Lines as fdupes prints them: groups with a blank line after each.
    Fdupes,
    /// A POSIX shell script that compares each pair before it acts.
    Script,
}

impl ReportFormat {
    /// All of them.
    pub const ALL: [ReportFormat; 6] = [
        ReportFormat::Text,
        ReportFormat::Json,
        ReportFormat::Jsonl,
        ReportFormat::Csv,
        ReportFormat::Fdupes,
        ReportFormat::Script,
    ];

    /// `text`, `json`, `jsonl`, `csv`, `fdupes` or `script`.
    pub fn name(self) -> &'static str {
        match self {
            ReportFormat::Text => "text",
            ReportFormat::Json => "json",
            ReportFormat::Jsonl => "jsonl",
            ReportFormat::Csv => "csv",
            ReportFormat::Fdupes => "fdupes",
            ReportFormat::Script => "script",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<ReportFormat> {
        let mut all = ReportFormat::ALL.into_iter();
        all.find(|format| format.name() == name)
    }

    /// Returns true for the formats that are JSON.
    pub fn is_json(self) -> bool {
        matches!(self, ReportFormat::Json | ReportFormat::Jsonl)
    }
}

/// Spelling of names in the formats that print them as they are: fdupes, CSV, script. Text has each in
/// one line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PathSpelling {
    /// Byte for byte, for programs.
    Exact,
    /// Escaped by [`bc_fs::escape`](fn@bc_fs::escape), for people: a newline in a name ends no
    /// line.
    OneLine,
}

/// Parts of a report.
#[derive(Clone, Copy)]
pub struct ScanReport<'a> {
    /// The walked files.
    pub listing: &'a Listing,
    /// Result of the search.
    pub scan: &'a Scan,
    /// The digests' algorithm.
    pub algorithm: Algorithm,
    /// The root arguments in order.
    pub roots: &'a [Vec<u8>],
    /// Indices of the roots that are references, whose files are never changed.
    pub reference_roots: &'a [usize],
    /// RFC 3339.
    pub started_at: &'a str,
}

impl ScanReport<'_> {
    /// Writes it to `out`, which should be buffered.
    ///
    /// # Errors
    /// Errors of writing to `out`.
    pub fn write(
        &self,
        format: ReportFormat,
        names: PathSpelling,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        match format {
            ReportFormat::Text => text(self, PathSpelling::OneLine, out),
            ReportFormat::Fdupes => fdupes(self, names, out),
            ReportFormat::Json => json::document(self, out),
            ReportFormat::Jsonl => json::lines(self, out),
            ReportFormat::Csv => csv(self, names, out),
            ReportFormat::Script => script::script(self, names, out),
        }
    }

    /// The path of a file, written as `names` says.
    fn path(&self, id: EntryId, names: PathSpelling) -> Vec<u8> {
        let path = self.listing.path(id);
        match names {
            PathSpelling::Exact => path,
            PathSpelling::OneLine => bc_fs::escape(&path).into_owned().into_bytes(),
        }
    }

    /// Returns all failures, in path order: of the walk and of the search.
    pub fn errors(&self) -> Vec<&bc_walk::Error> {
        let all = self.listing.errors().iter().chain(&self.scan.errors);
        let mut all: Vec<_> = all.collect();
        all.sort_by_key(|error| (error.path(), error.op()));
        all
    }

    /// Returns all names of a group: reference files first, then in path order. Temporary names are
    /// last, so that none is kept for being the first.
    pub fn names(&self, group: scan::Group<'_>) -> Vec<EntryId> {
        let mut names: Vec<EntryId> = group
            .files()
            .flat_map(|f| f.names.iter().copied())
            .collect();
        names.sort_by_key(|id| (self.is_fleeting(*id), !self.is_reference(*id), *id));
        names
    }

    fn is_fleeting(&self, id: EntryId) -> bool {
        let links = self.listing.meta(id).map_or(1, |meta| meta.nlink);
        !lasts(self.listing.name(id).to_bytes(), links)
    }

    fn is_reference(&self, id: EntryId) -> bool {
        self.scan.is_reference(self.listing, id)
    }

    /// Returns the paths of files that are the originals of moves whose runs were killed and that
    /// are nothing's duplicates: prune, which acts on groups, never meets them, and no other part
    /// knows that their names are missing.
    pub fn originals(&self) -> Vec<Vec<u8>> {
        self.originals_but(|scan| scan.groups())
    }

    /// Returns the paths of all such files: a run with whole directories meets none of them.
    pub fn all_originals(&self) -> Vec<Vec<u8>> {
        self.originals_but(|_| std::iter::empty())
    }

    fn originals_but<'s, G>(&'s self, groups: impl FnOnce(&'s Scan) -> G) -> Vec<Vec<u8>>
    where
        G: Iterator<Item = scan::Group<'s>>,
    {
        let is_original =
            |id: &EntryId| names::prune::is_original(self.listing.name(*id).to_bytes());
        let mut found: Vec<EntryId> = self.listing.ids().filter(is_original).collect();
        if !found.is_empty() {
            let members = groups(self.scan).flat_map(|group| {
                let names = group.files().flat_map(|file| file.names);
                names.copied().collect::<Vec<_>>()
            });
            let members: HashSet<EntryId> = members.collect();
            found.retain(|id| !members.contains(id) && !self.is_reference(*id));
        }
        found.into_iter().map(|id| self.listing.path(id)).collect()
    }

    /// The groups as prune takes them.
    pub fn groups(&self) -> impl Iterator<Item = FileGroup> {
        self.scan.groups().map(|group| self.file_group(group))
    }

    /// Returns a group for prune: all names of each file, one file after the other.
    pub fn file_group(&self, group: scan::Group<'_>) -> FileGroup {
        let names = group.files().flat_map(|file| file.names);
        FileGroup {
            files: names.map(|id| self.file_ref(*id)).collect(),
        }
    }

    fn file_ref(&self, id: EntryId) -> FileRef {
        let meta = self.listing.meta(id).expect("the scan has metadata");
        let path = self.listing.path(id);
        let root = self.listing.root(id);
        FileRef {
            root_len: root_len(&path, self.roots.get(root).map_or(&[], Vec::as_slice)),
            path,
            root: root as u32,
            id: meta.id,
            stamp: meta.stamp,
            nlink: meta.nlink,
            protected: self.is_reference(id),
        }
    }
}

/// Bytes of `path` that are its root argument; all of them where it is the
/// root itself, or where it does not begin with it (then every link in the
/// directory part is followed, as in any path that was named directly); none
/// where there is no root.
pub(crate) fn root_len(path: &[u8], root: &[u8]) -> usize {
    match below(path, root) {
        Some(_) => root.len(),
        None if root.is_empty() => 0,
        None => path.len(),
    }
}

/// Groups with a blank line between two.
fn text(report: &ScanReport<'_>, names: PathSpelling, out: &mut dyn Write) -> io::Result<()> {
    for (i, group) in report.scan.groups().enumerate() {
        if i > 0 {
            out.write_all(b"\n")?;
        }
        for id in report.names(group) {
            let mut path = report.path(id, names);
            path.push(b'\n');
            out.write_all(&path)?;
        }
    }
    Ok(())
}

/// Groups with a blank line after each, the last one too.
fn fdupes(report: &ScanReport<'_>, names: PathSpelling, out: &mut dyn Write) -> io::Result<()> {
    text(report, names, out)?;
    if report.scan.groups().len() == 0 {
        Ok(())
    } else {
        out.write_all(b"\n")
    }
}

/// `group,size,digest,reference,path,path_b64`; a path that is not UTF-8 is
/// lossy in `path` and complete, as base64, in `path_b64`.
fn csv(report: &ScanReport<'_>, names: PathSpelling, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"group,size,digest,reference,path,path_b64\r\n")?;
    let mut record = Vec::new();
    for (number, group) in report.scan.groups().enumerate() {
        for id in report.names(group) {
            record.clear();
            let reference = u8::from(report.is_reference(id));
            let fields: [&dyn Display; 4] = [&(number + 1), &group.size, &group.digest, &reference];
            write_record(&mut record, &fields, &report.path(id, names));
            out.write_all(&record)?;
        }
    }
    Ok(())
}
