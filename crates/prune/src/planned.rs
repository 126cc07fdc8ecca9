//! Extent of a planned run, counted before the user confirms it: the names that the rules leave to
//! act on, and the disk space that goes with them. Nothing is compared yet, so a run may find
//! reasons to do less.

use bc_find::groups::{FileGroup, FileRef};
use bc_fs::dirfd::{self, Access};
use bc_fs::meta;
use bc_fs::mount::Mounts;
use bc_pool::Cancel;
use bc_read::space::{Shares, Space};
use bc_walk::Identity;

use crate::check::dir;
use crate::options::PruneOptions;
use crate::references::WatchedPlaces;
use crate::step::Action;

/// The figures of a run that is planned.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Planned {
    /// Names to act on.
    pub files: u64,
    /// Bytes of disk space that would be freed, or whose files would be moved.
    pub bytes: u64,
    /// Groups with such names.
    pub groups: u64,
    /// The first of the names, at most [`Planned::FIRST`].
    pub first: Vec<Vec<u8>>,
}

impl Planned {
    /// Most names in [`first`](Planned::first).
    pub const FIRST: usize = 5;

    /// Adds a name to the first ones, unless there are enough.
    pub fn show(&mut self, path: &[u8]) {
        if self.first.len() < Planned::FIRST {
            self.first.push(path.to_vec());
        }
    }
}

/// Counts the names that [`prune`](super::prune) would act on. Files that have changed since they
/// were found, or cannot be opened, do not count. Ends early when cancelled.
pub fn at_stake(groups: &[FileGroup], options: &PruneOptions, cancel: &Cancel) -> Planned {
    let mut places = WatchedPlaces::new(&options.references, &options.action, cancel);
    let mut mounts = Mounts::default();
    let mut planned = Planned::default();
    for group in groups.iter().take_while(|_| !cancel.is_cancelled()) {
        let mut group = group.clone();
        places.sort_out(&mut group);
        group.files.retain(|file| !places.is_in_trash(&file.path));
        let before = planned.files;
        add_group(&mut planned, &group, options, &mut mounts);
        planned.groups += u64::from(planned.files > before);
    }
    planned
}

fn add_group(
    planned: &mut Planned,
    group: &FileGroup,
    options: &PruneOptions,
    mounts: &mut Mounts,
) {
    let inodes = options.rules.order(group);
    let Some(kept) = inodes.first() else {
        return;
    };
    let kept_file = &group.files[kept.names[0]];
    let mut look = |index: &usize| Some((*index, find(&group.files[*index], mounts)?));
    let found: Vec<Vec<(usize, PlannedFile)>> = inodes
        .iter()
        .map(|inode| inode.names.iter().filter_map(&mut look).collect())
        .collect();
    let spaces = found.iter().map(|names| Some(&names.first()?.1.space));
    let mut shares = Shares::of(spaces);
    let reserved = options
        .rules
        .lasting(group, &inodes, kept_file.id)
        .take(options.rules.further());
    let reserved: Vec<Identity> = reserved.map(|inode| inode.id).collect();
    let moved = matches!(options.action, Action::Move(_) | Action::Trash(_));
    for (nth, (inode, found)) in inodes.iter().zip(&found).enumerate() {
        let Some((_, file)) = found.first() else {
            continue;
        };
        if reserved.contains(&inode.id) {
            continue;
        }
        let acted = |(index, _): &&(usize, PlannedFile)| {
            let target = &group.files[*index];
            options.rules.acts_on(inode, kept_file, target)
        };
        let mut names = 0;
        for (index, _) in found.iter().filter(acted) {
            names += 1;
            planned.show(&group.files[*index].path);
        }
        planned.files += names;
        if moved && names > 0 {
            planned.bytes += file.allocated;
        } else if names > 0 && names >= file.links {
            planned.bytes += file.space.own + shares.take(nth);
        }
    }
}

/// A file that is unchanged since it was found.
struct PlannedFile {
    links: u64,
    /// Bytes of its blocks, whichever files share them.
    allocated: u64,
    space: Space,
}

fn find(file: &FileRef, mounts: &mut Mounts) -> Option<PlannedFile> {
    let (dir, name) = dir::open_parent(file).ok()?;
    let opened = dirfd::open_file(&dir, &name, Access::Read).ok()?;
    let stat = meta::stat(&opened).ok()?;
    let traits = mounts.of(stat.id.dev, || Some(&opened));
    (stat.id == file.id && stat.stamp == file.stamp).then(|| PlannedFile {
        links: stat.nlink,
        allocated: Space::allocated(&stat).own,
        space: Space::of(&opened, &stat, &traits),
    })
}
