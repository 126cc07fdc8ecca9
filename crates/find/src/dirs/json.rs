//! The JSON document and lines.
//!
//! As for a search, and `"ignore_names"`, `"digest_algorithm"`, in `"stats"` the counts of
//! directories, `"errors"` of everything, then
//! `"directories":[{"files","bytes","wasted_bytes","digest","filtered",
//! "paths":[{"path","reference"}]}]`, `"contained":[{"path","in","same_contents","files","bytes",
//! "filtered"}]`, `"similar":[{"path","with","percent","shared_bytes","files","bytes","with_files",
//! "with_bytes","filtered"}]`, where manifests were asked `"offline":[{"path","files","bytes",
//! "filtered","manifests":[{"path"}]}]`, `"groups"` with those groups of files that no group of
//! directories covers, and `"not_comparable":[{"path","reason"}]`. A path that is not UTF-8 has its
//! bytes as base64 beside it, in `path_b64`, `in_b64` or `with_b64`.

use std::io::{self, Write};

use bc_manifest::json::{JsonPath, insert_bytes, write_array, write_head, write_line};
use bc_walk::{DirId, EntryId};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Contained, DirGroup, DirNames, Directories, DirsOptions, Obstacle, OfflineDir, Similar,
};
use crate::report::{ScanReport, json as report};
use crate::scan::Group;

const COMMAND: &str = "dup dirs";

/// Parts of a report of directories.
#[derive(Clone, Copy)]
pub struct DirsReport<'a> {
    /// The search.
    pub scan: ScanReport<'a>,
    /// Directories that were found by means of it.
    pub found: &'a Directories,
    /// Options of that search for directories.
    pub options: &'a DirsOptions,
    /// Directories all of whose files are in manifests.
    pub offline: &'a [OfflineDir],
    /// The paths of the manifests, by number.
    pub manifests: &'a [&'a [u8]],
}

impl DirsReport<'_> {
    /// Writes one document, with a line for each group, to `out`, which should be buffered.
    ///
    /// # Errors
    /// Errors of writing to `out`.
    pub fn document(&self, out: &mut dyn Write) -> io::Result<()> {
        write_head(out, &self.head(), &self.stats())?;
        report::errors(&self.errors(), out)?;
        let found = self.found;
        let groups = found.groups.iter().map(|one| self.group(one));
        let contained = found.contained.iter().map(|one| self.contained(one));
        let similar = found.similar.iter().map(|one| self.similar(one));
        let offline = self.offline.iter().map(|one| self.offline(one));
        let obstacles = found.obstacles.iter();
        let obstacles = obstacles.map(|(dir, why)| self.obstacle(*dir, why));
        array(out, "directories", groups)?;
        array(out, "contained", contained)?;
        array(out, "similar", similar)?;
        if !self.manifests.is_empty() {
            array(out, "offline", offline)?;
        }
        array(out, "groups", self.json_files())?;
        array(out, "not_comparable", obstacles)?;
        out.write_all(b"}\n")
    }

    /// Writes a header, a line for each group, each with its `type`, and a summary.
    ///
    /// # Errors
    /// Errors of writing to `out`.
    pub fn lines(&self, out: &mut dyn Write) -> io::Result<()> {
        let found = self.found;
        write_line(out, "header", &self.head())?;
        for one in &found.groups {
            write_line(out, "directories", &self.group(one))?;
        }
        for one in &found.contained {
            write_line(out, "contained", &self.contained(one))?;
        }
        for one in &found.similar {
            write_line(out, "similar", &self.similar(one))?;
        }
        for one in self.offline {
            write_line(out, "offline", &self.offline(one))?;
        }
        for one in self.json_files() {
            write_line(out, "group", &one)?;
        }
        for (dir, why) in &found.obstacles {
            write_line(out, "not_comparable", &self.obstacle(*dir, why))?;
        }
        report::error_lines(&self.errors(), out)?;
        write_line(out, "summary", &self.stats())
    }

    /// All that failed, in path order: in the walk, in the search, and afterwards.
    pub fn errors(&self) -> Vec<&bc_walk::Error> {
        let mut all = self.scan.errors();
        all.extend(&self.found.errors);
        all.sort_by_key(|error| (error.path(), error.op()));
        all
    }

    fn head(&self) -> Value {
        let mut head = report::head(&self.scan, COMMAND);
        head["ignore_names"] = json!(self.options.names == DirNames::Ignore);
        let algorithm = super::digest_algorithm(self.scan.algorithm);
        head["digest_algorithm"] = json!(algorithm.name());
        head
    }

    fn stats(&self) -> Value {
        let mut stats = report::stats(&self.scan);
        let found = self.found;
        for (name, value) in [
            ("directories", self.scan.listing.directories()),
            ("not_comparable", found.not_comparable),
            ("too_common", found.too_common),
            ("ended", found.ended),
        ] {
            stats[name] = json!(value);
        }
        stats["errors"] = json!(stats["errors"].as_u64().unwrap_or(0) + found.errors.len() as u64);
        stats
    }

    fn group(&self, group: &DirGroup) -> Value {
        let path = |dir: &DirId| {
            let mut path = json!(self.path(*dir));
            path["reference"] = json!(self.scan.scan.is_reference_dir(*dir));
            path
        };
        json!({
            "files": group.files, "bytes": group.bytes, "wasted_bytes": group.wasted,
            "digest": group.digest.map(|digest| digest.to_string()),
            "filtered": group.filtered,
            "paths": group.dirs.iter().map(path).collect::<Vec<_>>(),
        })
    }

    fn contained(&self, one: &Contained) -> Value {
        let mut value = json!(self.path(one.dir));
        self.other(&mut value, "in", one.within);
        for (name, figure) in [("files", one.files), ("bytes", one.bytes)] {
            value[name] = json!(figure);
        }
        value["same_contents"] = json!(one.is_mutual);
        value["filtered"] = json!(one.filtered);
        value
    }

    fn offline(&self, one: &OfflineDir) -> Value {
        let mut value = json!(self.path(one.dir));
        for (name, figure) in [
            ("files", one.files),
            ("bytes", one.bytes),
            ("filtered", one.filtered),
        ] {
            value[name] = json!(figure);
        }
        let manifests = one.manifests.iter();
        let manifests = manifests.map(|number| JsonPath::new(self.manifests[*number]));
        value["manifests"] = json!(manifests.collect::<Vec<_>>());
        value
    }

    fn similar(&self, one: &Similar) -> Value {
        let mut value = json!(self.path(one.dirs[0]));
        self.other(&mut value, "with", one.dirs[1]);
        value["percent"] = json!((one.percent() * 100.0).floor() / 100.0);
        for (name, figure) in [
            ("shared_bytes", one.shared),
            ("files", one.files[0]),
            ("bytes", one.bytes[0]),
            ("with_files", one.files[1]),
            ("with_bytes", one.bytes[1]),
            ("filtered", one.filtered),
        ] {
            value[name] = json!(figure);
        }
        value
    }

    /// The groups of files that no group of directories covers, each with its names: a file that is
    /// a root and was met below another one as well has one of the two.
    pub fn files(&self) -> impl Iterator<Item = (Group<'_>, Vec<EntryId>)> {
        let mut numbers = self.found.files.iter().peekable();
        let groups = (0_u32..).zip(self.scan.scan.groups());
        groups.filter_map(move |(number, group)| {
            numbers.next_if(|next| **next == number)?;
            let mut names = self.scan.names(group);
            names.retain(|name| !self.found.repeated.contains(name));
            Some((group, names))
        })
    }

    fn json_files(&self) -> impl Iterator<Item = report::JsonGroup> {
        let files = self.files();
        files.map(|(group, names)| report::of_names(&self.scan, group, names))
    }

    fn obstacle(&self, dir: DirId, obstacle: &Obstacle) -> Value {
        let mut value = json!(self.path(dir));
        value["reason"] = json!(obstacle.text());
        value
    }

    fn path(&self, dir: DirId) -> JsonPath {
        JsonPath::new(&self.scan.listing.dir_path(dir))
    }

    /// A second path of an object, under a name of its own.
    fn other(&self, value: &mut Value, name: &str, dir: DirId) {
        let object = value.as_object_mut().expect("an object");
        insert_bytes(object, name, &self.scan.listing.dir_path(dir));
    }
}

fn array<T: Serialize>(
    out: &mut dyn Write,
    name: &str,
    values: impl Iterator<Item = T>,
) -> io::Result<()> {
    write_array(out, name, values)?;
    out.write_all(b"]")
}
