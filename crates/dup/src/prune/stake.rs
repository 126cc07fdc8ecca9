//! What a run would do, counted before it is asked for: the names that the
//! rules leave to act on, and the disk space that goes with them. Nothing is
//! compared yet, so a run may find reasons to do less.

use std::collections::HashMap;

use bc_pool::Cancel;
use bc_walk::{FileStat, Identity};

use super::guard;
use super::plan::{FileRef, Group};
use super::protect::Places;
use super::run::Options;
use super::step::Action;
use super::sys::{self, Access};

/// The figures of a run that is planned.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Stake {
    /// Names to act on.
    pub files: u64,
    /// Bytes of disk space that would be freed, or whose files would be moved.
    pub bytes: u64,
    /// Groups with such names.
    pub groups: u64,
}

/// Counts what [`prune`](super::prune) would act on. Files that are no longer what they were
/// found to be, or cannot be opened, do not count. Ends early when cancelled.
pub fn at_stake(groups: &[Group], options: &Options, cancel: &Cancel) -> Stake {
    let mut places = Places::new(&options.references, &options.action, cancel);
    let mut stake = Stake::default();
    for group in groups.iter().take_while(|_| !cancel.is_cancelled()) {
        let mut group = group.clone();
        places.sort_out(&mut group);
        // Nothing is asked before it is agreed to.
        drop(places.take_open());
        let (files, bytes) = of_group(&group, options);
        stake.files += files;
        stake.bytes += bytes;
        stake.groups += u64::from(files > 0);
    }
    stake
}

fn of_group(group: &Group, options: &Options) -> (u64, u64) {
    let inodes = options.rules.order(group);
    let Some(kept) = inodes.first() else {
        return (0, 0);
    };
    let keeper = &group.files[kept.names[0]];
    let mut taken: HashMap<Identity, (u64, Own)> = HashMap::new();
    for inode in &inodes {
        for target in inode.names.iter().map(|index| &group.files[*index]) {
            if options.rules.acts_on(inode, keeper, target)
                && let Some(own) = own(target)
            {
                taken.entry(inode.id).or_insert((0, own)).0 += 1;
            }
        }
    }
    let moved = matches!(options.action, Action::Move(_));
    taken.values().fold((0, 0), |(files, bytes), (names, own)| {
        let goes = moved || *names >= own.links;
        (files + names, bytes + if goes { own.bytes } else { 0 })
    })
}

/// What is gone when a file is.
struct Own {
    links: u64,
    bytes: u64,
}

fn own(file: &FileRef) -> Option<Own> {
    let (dir, name) = guard::open_parent(file).ok()?;
    let opened = sys::open_file(&dir, &name, Access::Read).ok()?;
    let stat = FileStat::from(&sys::stat(&opened).ok()?);
    (stat.id == file.id && stat.stamp == file.stamp).then(|| Own {
        links: stat.nlink,
        bytes: guard::own_bytes(&opened, &stat),
    })
}
