//! Phase B: puts the workers' findings into path order, in linear time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;

use bc_pool::LastRun;

use crate::columns::{AttributeClass, Columns, EntryRun};
use crate::listing::{
    Began, Dir, DirId, EntryId, Listing, NO_PARENT, NO_WALK_ROOT, PackedEntry, PathPrefix, Tag,
};
use crate::open::Opener;
use crate::roots::ListedFile;
use crate::tree::{Item, NO_CHILD, SharedTree, WalkRoot, WorkerOutput};
use crate::{DirectorySet, Entries, FileStats, Gap, Metadata, Skipped, WalkOptions};

/// Parts that a listing is made of.
pub(crate) struct Parts<'w> {
    pub(crate) options: &'w WalkOptions,
    pub(crate) cancelled: bool,
    pub(crate) last_run: LastRun,
    pub(crate) opener: Opener,
    pub(crate) prefixes: Vec<PathPrefix>,
    pub(crate) walk_roots: Vec<WalkRoot>,
    /// Sorted by path.
    pub(crate) files: Vec<ListedFile<'w>>,
    pub(crate) shared: SharedTree,
    pub(crate) outputs: Vec<WorkerOutput>,
    pub(crate) passed_by: Vec<Vec<u8>>,
}

/// Position of a directory: output and index in it.
#[derive(Clone, Copy)]
struct DirPosition {
    output: u32,
    dir: u32,
}

const NOWHERE: DirPosition = DirPosition {
    output: u32::MAX,
    dir: u32::MAX,
};

/// A directory whose items are being put out.
struct Frame {
    dir: u32,
    output: u32,
    at: usize,
    end: usize,
    first_child: u32,
}

/// The listing in the making.
struct Builder<'p> {
    outputs: &'p [WorkerOutput],
    positions: Vec<DirPosition>,
    entries: Vec<PackedEntry>,
    runs: Vec<EntryRun>,
    dirs: Vec<Dir>,
    /// Gaps by ticket.
    gaps: HashMap<u32, Gap>,
    found_gaps: Vec<(DirId, Gap)>,
}

/// Unit of sorting: the tree of a root, or a file that is a root.
enum Unit<'p> {
    Tree { prefix: u32, ticket: u32 },
    File(ListedFile<'p>),
}

pub(crate) fn merge(parts: Parts<'_>) -> Listing {
    let Parts {
        options,
        mut prefixes,
        walk_roots,
        files,
        mut outputs,
        mut passed_by,
        shared,
        ..
    } = parts;
    let mut sizes = files.iter().map(|file| Some(file.seen.stat()?.stamp.size));
    let sum = || sizes.try_fold(0, |sum: u64, size| Some(sum.saturating_add(size?)));
    let named_bytes = walk_roots.is_empty().then(sum).flatten();
    let items: usize = outputs.iter().map(|output| output.items.len()).sum();
    assert!(
        items + files.len() <= u32::MAX as usize,
        "more than 4294967295 entries"
    );
    let directories = outputs.iter().map(|output| output.dirs.len() as u64).sum();
    let (mut errors, mut skipped_paths) = (Vec::new(), Vec::new());
    let mut skipped = Skipped::default();
    let (mut settled, mut met) = (DirectorySet::default(), DirectorySet::default());
    for output in &mut outputs {
        skipped.add(&output.skipped);
        settled.add(output.settled);
        met.add(output.met);
        skipped_paths.append(&mut output.skipped_paths);
        errors.append(&mut output.errors);
    }
    passed_by.sort_unstable();
    let gaps: HashMap<u32, Gap> = outputs
        .iter_mut()
        .flat_map(|output| output.gaps.drain(..))
        .collect();

    let units = units(&prefixes, &walk_roots, files, options.entries);
    let mut own = WorkerOutput::default();
    let mut listed = Vec::new();
    let mut pieces: Vec<Range<usize>> = Vec::new();
    let mut builder = Builder {
        positions: positions(&outputs, shared.tickets()),
        entries: Vec::with_capacity(items),
        runs: Vec::new(),
        dirs: Vec::with_capacity(outputs.iter().map(|output| output.dirs.len()).sum()),
        gaps,
        found_gaps: Vec::new(),
        outputs: &outputs,
    };
    let mut files_dir = None;
    let mut dirs_of_files = HashMap::new();
    for unit in units {
        let start = builder.entries.len();
        let follows_file = files_dir.is_some();
        match unit {
            Unit::Tree { prefix, ticket } => {
                builder.emit_tree(prefix, ticket);
                files_dir = None;
            }
            Unit::File(file) => {
                let output = FileOutput {
                    own: &mut own,
                    prefixes: &mut prefixes,
                    metadata: options.metadata,
                    shared: &shared,
                    dirs: &mut dirs_of_files,
                };
                files_dir = Some(builder.emit_file(&file, output, files_dir));
                listed.push((EntryId(start as u32), file.root));
            }
        }
        let end = builder.entries.len();
        match pieces.last_mut() {
            // Files among themselves are in order.
            Some(piece) if follows_file && files_dir.is_some() => piece.end = end,
            _ if end > start => pieces.push(start..end),
            _ => {}
        }
    }
    let Builder {
        entries,
        runs,
        dirs,
        found_gaps,
        ..
    } = builder;

    outputs.push(own);
    let mut arenas = Vec::with_capacity(outputs.len());
    let mut columns = Vec::with_capacity(outputs.len());
    for output in outputs {
        let mut names = output.names;
        names.shrink_to_fit();
        arenas.push(names);
        columns.push(output.columns);
    }
    skipped_paths.sort();
    errors.sort_by(|a, b| a.path().cmp(b.path()).then(a.op().cmp(b.op())));
    let mut listing = Listing {
        entries,
        columns: Columns::gather(columns, &runs),
        classes: shared.into_classes(),
        dirs,
        began: walk_roots
            .iter()
            .map(|walk_root| Began {
                dev: walk_root.id.dev,
                decompression: walk_root.traits.decompression,
            })
            .collect(),
        arenas,
        prefixes,
        listed,
        named_bytes,
        errors,
        absent: Vec::new(),
        skipped,
        skipped_paths,
        settled,
        met,
        passed_by,
        gaps: found_gaps,
        directories,
        symlinks: options.symlinks,
        opener: parts.opener,
        file_metadata: match options.file_stats {
            FileStats::Walked => options.metadata,
            FileStats::Left => Metadata::None,
        },
        cancelled: parts.cancelled,
        last_run: parts.last_run,
    };
    if let Some(order) = interleave(&listing, &pieces) {
        reorder(&mut listing, &order);
    }
    listing.entries.shrink_to_fit();
    listing
}

/// Returns trees and files, each with the least path that can be in it.
fn units<'p>(
    prefixes: &[PathPrefix],
    walk_roots: &[WalkRoot],
    files: Vec<ListedFile<'p>>,
    entries: Entries,
) -> Vec<Unit<'p>> {
    // Nothing comes between files: they have an order already.
    if walk_roots.is_empty() {
        return files.into_iter().map(Unit::File).collect();
    }
    let mut units = Vec::with_capacity(prefixes.len() + files.len());
    for walk_root in walk_roots
        .iter()
        .filter(|walk_root| walk_root.path.is_empty())
    {
        let prefix = &prefixes[walk_root.prefix as usize];
        let least = match entries {
            Entries::Files => &prefix.printed,
            Entries::All => &prefix.path,
        };
        let unit = Unit::Tree {
            prefix: walk_root.prefix,
            ticket: walk_root.ticket,
        };
        units.push((least.clone(), unit));
    }
    for file in files {
        units.push((file.path.to_vec(), Unit::File(file)));
    }
    units.sort_by(|(a, _), (b, _)| a.cmp(b));
    units.into_iter().map(|(_, unit)| unit).collect()
}

/// Returns the position of each ticket's directory.
fn positions(outputs: &[WorkerOutput], tickets: usize) -> Vec<DirPosition> {
    let mut positions = vec![NOWHERE; tickets];
    for (output, found) in outputs.iter().enumerate() {
        for (dir, record) in found.dirs.iter().enumerate() {
            positions[record.ticket as usize] = DirPosition {
                output: output as u32,
                dir: dir as u32,
            };
        }
    }
    positions
}

/// Output that roots that are files are put into.
struct FileOutput<'p> {
    own: &'p mut WorkerOutput,
    prefixes: &'p mut Vec<PathPrefix>,
    metadata: Metadata,
    shared: &'p SharedTree,
    /// Directories of the files so far, by the beginning of their paths: a subdirectory may come
    /// between two files of one.
    dirs: &'p mut HashMap<Vec<u8>, u32>,
}

impl Builder<'_> {
    /// Puts out a root's tree, depth first.
    fn emit_tree(&mut self, prefix: u32, ticket: u32) {
        let mut frames = Vec::new();
        let root = Dir {
            parent: NO_PARENT,
            prefix,
            path_len: 0,
            arena: 0,
            name_arena: 0,
            name_len: 0,
            walk_root: NO_WALK_ROOT,
            name: 0,
            names: 0,
            ino: 0,
        };
        frames.extend(self.open(ticket, root));
        while let Some(frame) = frames.last_mut() {
            let output = &self.outputs[frame.output as usize];
            let start = frame.at;
            let items = &output.items[start..frame.end];
            let entries = items.iter().take_while(|item| item.child == NO_CHILD);
            let dir = frame.dir;
            let before = self.entries.len();
            self.entries.extend(entries.map(|item| PackedEntry {
                name: item.name,
                dir,
                ino: item.ino,
            }));
            let len = self.entries.len() - before;
            if len > 0 {
                push_run(&mut self.runs, frame.output, start, len);
            }
            frame.at += len;
            let Some(item) = items.get(len) else {
                frames.pop();
                continue;
            };
            frame.at += 1;
            let parent = &self.dirs[dir as usize];
            let name = parent.names + u64::from(item.name) + 1;
            let name_len = output.names[name as usize..]
                .iter()
                .position(|&byte| byte == 0)
                .unwrap_or(0);
            let child = Dir {
                parent: dir,
                prefix,
                path_len: parent.path_len + name_len as u32 + 1,
                arena: 0,
                name_arena: frame.output as u16,
                name_len: name_len as u16,
                walk_root: NO_WALK_ROOT,
                name,
                names: 0,
                ino: 0,
            };
            let ticket = frame.first_child + item.child;
            frames.extend(self.open(ticket, child));
        }
    }

    /// Begins a directory, unless it has not been read.
    fn open(&mut self, ticket: u32, mut dir: Dir) -> Option<Frame> {
        let position = self.positions[ticket as usize];
        let output = self.outputs.get(position.output as usize)?;
        let record = &output.dirs[position.dir as usize];
        dir.arena = position.output as u16;
        dir.names = record.names;
        dir.walk_root = record.walk_root;
        dir.ino = record.ino;
        let id = self.dirs.len() as u32;
        self.dirs.push(dir);
        if let Some(gap) = self.gaps.get(&ticket) {
            self.found_gaps.push((DirId(id), *gap));
        }
        Some(Frame {
            dir: id,
            output: position.output,
            at: record.start as usize,
            end: record.end as usize,
            first_child: record.first_child,
        })
    }

    /// Puts out a root that is a file, in the same directory as the one before or another earlier
    /// one if that has the same path; returns the directory.
    fn emit_file(
        &mut self,
        file: &ListedFile<'_>,
        output: FileOutput<'_>,
        before: Option<u32>,
    ) -> u32 {
        let FileOutput {
            own,
            prefixes,
            metadata,
            shared,
            dirs: known_dirs,
        } = output;
        let (prefix, name) = file.path.split_at(file.prefix);
        let kind = file.seen.kind();
        // A path that ends in a slash names a directory: listed as that directory's `.`.
        let (prefix, path, name) = match (name, prefix) {
            (b"" | b".", _) => (prefix, file.path, &b"."[..]),
            (_, b"") => (prefix, &b"."[..], name),
            _ => (prefix, prefix, name),
        };
        let at = own.names.len() as u64;
        let arena = self.outputs.len() as u16;
        let is_same = |dir: &u32| {
            let dir = &self.dirs[*dir as usize];
            let known = &prefixes[dir.prefix as usize];
            known.printed == prefix && known.path == path && at - dir.names < 1 << 31
        };
        let reusable = before
            .filter(is_same)
            .or_else(|| known_dirs.get(prefix).copied().filter(is_same));
        let dir = reusable.unwrap_or(self.dirs.len() as u32);
        if reusable.is_none() {
            self.dirs.push(Dir {
                parent: NO_PARENT,
                prefix: prefixes.len() as u32,
                path_len: 0,
                arena,
                name_arena: arena,
                name_len: 0,
                walk_root: NO_WALK_ROOT,
                name: 0,
                names: at,
                ino: 0,
            });
            known_dirs.insert(prefix.to_vec(), dir);
            prefixes.push(PathPrefix {
                printed: prefix.to_vec(),
                path: path.to_vec(),
                root: file.root,
                fd: None,
                id: None,
            });
        }
        let names = self.dirs[dir as usize].names;
        let tag = own.push_name(Tag::following(kind), name) as u64;
        let run_start = own.items.len();
        self.entries.push(PackedEntry {
            name: (tag - names) as u32,
            dir,
            ino: file.seen.ino(),
        });
        // Only counted: the columns are parallel to them.
        own.items.push(Item {
            name: 0,
            child: NO_CHILD,
            ino: 0,
        });
        // A file whose metadata is asked for was looked at.
        if metadata != Metadata::None
            && let Some(stat) = file.seen.stat()
        {
            let class = AttributeClass::of(metadata, stat);
            let number = shared.class_number(class);
            own.columns.push(stat, &class, number);
        }
        push_run(&mut self.runs, u32::from(arena), run_start, 1);
        dir
    }
}

/// Adds a run, or extends the last one that it continues.
fn push_run(runs: &mut Vec<EntryRun>, part: u32, start: usize, len: usize) {
    if let Some(last) = runs.last_mut()
        && last.part == part
        && last.start + u64::from(last.len) == start as u64
        && let Some(sum) = last.len.checked_add(len as u32)
    {
        last.len = sum;
        return;
    }
    runs.push(EntryRun {
        part,
        len: len as u32,
        start: start as u64,
    });
}

/// Returns the order of the entries, if the pieces are not one after the other already: a merge by
/// path, which only happens when roots overlap.
fn interleave(listing: &Listing, pieces: &[Range<usize>]) -> Option<Vec<u32>> {
    let path = |index: usize| listing.path(EntryId(index as u32));
    if pieces
        .windows(2)
        .all(|pair| path(pair[0].end - 1) <= path(pair[1].start))
    {
        return None;
    }
    let mut heads: BinaryHeap<_> = pieces
        .iter()
        .enumerate()
        .map(|(piece, range)| Reverse((path(range.start), piece, range.start)))
        .collect();
    let mut order = Vec::with_capacity(listing.len());
    while let Some(Reverse((mut buffer, piece, index))) = heads.pop() {
        order.push(index as u32);
        let next = index + 1;
        if next < pieces[piece].end {
            buffer.clear();
            listing.write_path(EntryId(next as u32), &mut buffer);
            heads.push(Reverse((buffer, piece, next)));
        }
    }
    Some(order)
}

fn reorder(listing: &mut Listing, order: &[u32]) {
    let mut runs = Vec::new();
    for &old in order {
        push_run(&mut runs, 0, old as usize, 1);
    }
    let entries = std::mem::take(&mut listing.entries);
    listing.entries = order.iter().map(|&old| entries[old as usize]).collect();
    let columns = std::mem::take(&mut listing.columns);
    listing.columns = Columns::gather(vec![columns], &runs);
    let roots: HashMap<EntryId, u32> = listing.listed.drain(..).collect();
    for (new, &old) in order.iter().enumerate() {
        if let Some(&root) = roots.get(&EntryId(old)) {
            listing.listed.push((EntryId(new as u32), root));
        }
    }
}
