//! Abilities that a file system lacks for all of its files, and operations that the kernel refuses to
//! every user or to this process: found before a file is read, in a dry run as in a real one; the
//! first are reported once.

use std::collections::HashSet;
use std::time::Duration;

use bc_fs::caller::{Caller, FIXED, FileOwner, FixedName};
use bc_fs::dirfd;
use bc_fs::meta;
use bc_fs::mount::{Answer, Inodes, Links, Mounts, Shows, Traits};
use bc_fs::volume;
use bc_read::space::Space;
use rustix::fs::{OFlags, StatxAttributes, fcntl_getfl};
use rustix::io::Errno;

use crate::act::symlink;
use crate::check::denied::denied;
use crate::check::open_file::OpenFile;
use crate::options::{PruneOptions, RunMode};
use crate::skip::{Lack, Skip, Unable};
use crate::step::StepKind;

/// Time of all waits for blocks to be given back in a run, beyond a few for each file.
const PATIENCE: Duration = Duration::from_millis(250);

/// Abilities of the file systems that a run met, with the run's own permissions.
pub(crate) struct Abilities<'a> {
    pub(crate) options: &'a PruneOptions,
    pub(crate) mounts: Mounts,
    pub(crate) caller: Caller,
    /// Devices that turned out to be unable to do this run's action.
    refused: HashSet<u64>,
    /// Devices that turned out to follow no links upwards.
    contained: HashSet<u64>,
    /// Time that is left to wait for blocks to be given back.
    pub(crate) patience: Duration,
}

impl<'a> Abilities<'a> {
    pub(crate) fn new(options: &'a PruneOptions) -> Abilities<'a> {
        Abilities {
            options,
            mounts: Mounts::default(),
            caller: Caller::own(),
            refused: HashSet::new(),
            contained: HashSet::new(),
            patience: PATIENCE,
        }
    }

    pub(crate) fn traits(&mut self, held: &OpenFile) -> Traits {
        self.mounts.of(held.stat.id.dev, || Some(&held.file))
    }

    pub(crate) fn space(&mut self, held: &OpenFile) -> Space {
        let traits = self.traits(held);
        Space::of(&held.file, &held.stat, &traits)
    }

    /// Returns the reason that the file system of `held` lacks this.
    fn unable(&mut self, held: &OpenFile, lack: Lack) -> Skip {
        let (dev, system) = (held.stat.id.dev, self.traits(held).name);
        Skip::Unable(Unable { dev, system, lack })
    }

    /// Refuses a file that can be changed under no name, or not under this one.
    pub(crate) fn writable(&mut self, target: &OpenFile, kind: &StepKind) -> Result<(), Skip> {
        if self.traits(target).immutable {
            return Err(self.unable(target, Lack::Writing));
        }
        if target.dir.is_writable.get() {
            return Ok(());
        }
        // By each name's own directory: a disk may be mounted twice.
        match dirfd::may_change(&target.dir) {
            Err(failed) if failed.errno == Errno::ROFS => Err(self.unable(target, Lack::Writing)),
            // A reflink changes no name.
            Err(failed) if failed.errno == Errno::ACCESS && *kind != StepKind::Reflink => {
                Err(failed.into())
            }
            Ok(()) => {
                target.dir.is_writable.set(true);
                Ok(())
            }
            Err(_) => Ok(()),
        }
    }

    /// Refuses an action that is impossible with any file of `target`'s file system.
    pub(crate) fn able(
        &mut self,
        kept_file: &OpenFile,
        target: &OpenFile,
        kind: &StepKind,
    ) -> Result<(), Skip> {
        let traits = self.traits(target);
        let lack = match kind {
            StepKind::Reflink => self.lack_of_reflinks(kept_file, target, &traits)?,
            StepKind::Symlink(text) if !traits.read_only => {
                self.lack_of_symlinks(target, &traits, text)
            }
            StepKind::Hardlink => self.lack_of_links(target, &traits),
            _ => None,
        };
        lack.map_or(Ok(()), |lack| Err(self.unable(target, lack)))
    }

    /// Returns the reason why a file cannot share its blocks with another one of its file system;
    /// `None` if it can.
    fn lack_of_reflinks(
        &self,
        kept_file: &OpenFile,
        target: &OpenFile,
        traits: &Traits,
    ) -> Result<Option<Lack>, Skip> {
        if traits.reflinks == Answer::No || self.refused.contains(&target.stat.id.dev) {
            return Ok(Some(Lack::Reflinks));
        }
        if self.options.mode == RunMode::Execute {
            return Ok(None);
        }
        // Asks for no bytes at all, and so changes none.
        let asked = bc_edit::content::dedupe_range(&kept_file.file, &target.file, 0, 0);
        Ok(match asked {
            Err(failed) if failed.errno == Errno::ROFS => Some(Lack::Writing),
            Err(failed) if traits.reflinks != Answer::Yes && is_lack_of_reflinks(failed.errno) => {
                Some(Lack::Reflinks)
            }
            // Another user's file, another file system, and another mount of one before Linux 5.18.
            Err(failed) => return Err(failed.into()),
            Ok(_) => (traits.reflinks == Answer::Unknown).then_some(Lack::KnownReflinks),
        })
    }

    /// Returns the reason why a file cannot be given another name; `None` if it can.
    fn lack_of_links(&self, target: &OpenFile, traits: &Traits) -> Option<Lack> {
        match traits.links {
            Links::One => Some(Lack::Links),
            _ if self.refused.contains(&target.stat.id.dev) => Some(Lack::LinkNumbers),
            Links::Unknown => (self.options.mode == RunMode::DryRun).then_some(Lack::KnownLinks),
            _ => None,
        }
    }

    /// Refuses a dry run where only the run itself can find out if `held` is another name of the
    /// kept file, as the names of one file may be numbered differently. Copies that were made at
    /// one moment and have several names look the same.
    pub(crate) fn apart(&mut self, kept_file: &OpenFile, held: &OpenFile) -> Result<(), Skip> {
        let one_device = held.stat.id.dev == kept_file.stat.id.dev;
        if !one_device || !self.foresees_names(held) {
            return Ok(());
        }
        let (one, other) = (
            meta::stat_now(&kept_file.file, c"")?,
            meta::stat_now(&held.file, c"")?,
        );
        let alike = one.stamp == other.stamp && one.nlink == other.nlink && one.nlink > 1;
        match alike {
            true => Err(self.unable(held, Lack::KnownFiles)),
            false => Ok(()),
        }
    }

    /// Returns true if files that look the same may be names of one file. Only a dry run has to
    /// foresee that; the run itself finds it.
    pub(crate) fn foresees_names(&mut self, held: &OpenFile) -> bool {
        self.options.mode == RunMode::DryRun && self.traits(held).shows == Shows::Others
    }

    /// Returns the reason why a symbolic link with this text cannot be made in a file's place;
    /// `None` if it can.
    fn lack_of_symlinks(&self, target: &OpenFile, traits: &Traits, text: &[u8]) -> Option<Lack> {
        let dev = target.stat.id.dev;
        match traits.symlinks {
            Answer::Yes => None,
            Answer::No => Some(Lack::Symlinks),
            Answer::Unknown if self.refused.contains(&dev) => Some(Lack::Symlinks),
            Answer::Unknown if self.contained.contains(&dev) && symlink::leads_up(text) => {
                Some(Lack::SymlinksUp)
            }
            Answer::Unknown => {
                (self.options.mode == RunMode::DryRun).then_some(Lack::KnownSymlinks)
            }
        }
    }

    /// The highest number of names that `file` can have, where that is known. Others
    /// are asked by trying.
    pub(crate) fn max_links(&mut self, file: &OpenFile) -> u64 {
        match self.traits(file).links {
            Links::UpTo(most) => most,
            Links::One | Links::Many | Links::Unknown => u64::MAX,
        }
    }

    /// Learns from a step that failed, where the table knows nothing and the
    /// failure is one of all files there.
    pub(crate) fn learn(
        &mut self,
        kept_file: &OpenFile,
        target: &OpenFile,
        kind: &StepKind,
        skip: Skip,
    ) -> Skip {
        if let StepKind::Symlink(text) = kind {
            return self.learn_symlinks(target, text, skip);
        }
        let errno = match skip {
            Skip::System {
                op: "dedupe",
                errno,
            } => errno,
            Skip::LinkDiffers => return self.learn_links(kept_file, target),
            _ => return skip,
        };
        let dev = target.stat.id.dev;
        let traits = self.traits(target);
        let errno = Errno::from_raw_os_error(errno);
        let lack = match errno {
            Errno::ROFS => Lack::Writing,
            Errno::INVAL if traits.name == volume::BTRFS => return Skip::StoredOtherwise,
            // On an overlay both files are in the upper layer.
            _ if is_lack_of_reflinks(errno) && traits.reflinks == Answer::Unknown => {
                self.refused.insert(dev);
                Lack::Reflinks
            }
            _ => return skip,
        };
        self.unable(target, lack)
    }

    /// A symbolic link could not be made, or does not lead where its text says.
    fn learn_symlinks(&mut self, target: &OpenFile, text: &[u8], skip: Skip) -> Skip {
        let Skip::System { op, errno } = skip else {
            return skip;
        };
        let dev = target.stat.id.dev;
        let traits = self.traits(target);
        if traits.symlinks != Answer::Unknown {
            return skip;
        }
        let lack = match (op, Errno::from_raw_os_error(errno)) {
            ("symlink", Errno::NOSYS | Errno::OPNOTSUPP) => {
                self.refused.insert(dev);
                Lack::Symlinks
            }
            (symlink::FOLLOW, Errno::PERM | Errno::ACCESS) if symlink::leads_up(text) => {
                self.contained.insert(dev);
                Lack::SymlinksUp
            }
            _ => return skip,
        };
        self.unable(target, lack)
    }

    /// Handles a link to the kept file that was another file: the kept file's name was given away
    /// meanwhile, or the file system numbers each name separately.
    fn learn_links(&mut self, kept_file: &OpenFile, target: &OpenFile) -> Skip {
        let traits = self.traits(target);
        if traits.inodes == Inodes::Stable || kept_file.check_name().is_err() {
            return Skip::KeptFileChanged;
        }
        self.refused.insert(target.stat.id.dev);
        self.unable(target, Lack::LinkNumbers)
    }
}

fn is_lack_of_reflinks(errno: Errno) -> bool {
    [Errno::OPNOTSUPP, Errno::NOTTY, Errno::INVAL, Errno::NOSYS].contains(&errno)
}

/// Refuses steps that the kernel would refuse.
pub(crate) fn check_permitted(
    caller: &Caller,
    kept_file: &OpenFile,
    target: &OpenFile,
    kind: &StepKind,
) -> Result<(), Skip> {
    let immutable = StatxAttributes::IMMUTABLE;
    if *kind == StepKind::Reflink {
        return match target.marks.contains(immutable) {
            true => Err(denied("dedupe", FixedName::OfMarkedFile.reason())),
            false => Ok(()),
        };
    }
    check_removable(caller, target)?;
    let dir = target.dir.facts()?;
    if *kind != StepKind::Hardlink {
        return Ok(());
    }
    if kept_file.marks.intersects(FIXED) {
        let why = "the kept file is append-only or immutable (chattr)";
        return Err(denied("link", why));
    }
    // The temporary name is one of the kept file.
    if !caller.may_remove(&dir.stat, owner(kept_file)) {
        return Err(denied("rename", FixedName::InStickyDir.reason()));
    }
    let why = "the kept file is another user's (fs.protected_hardlinks)";
    match may_link(caller, kept_file) {
        true => Ok(()),
        false => Err(denied("link", why)),
    }
}

/// Refuses to take a name from its directory where the kernel would.
pub(crate) fn check_removable(caller: &Caller, target: &OpenFile) -> Result<(), Skip> {
    let removable = caller.check_removable(target.dir.facts()?, target.marks, owner(target));
    removable.map_err(|fixed| denied("rename", fixed.reason()))
}

/// The owner and the group of a file.
pub(crate) fn owner(file: &OpenFile) -> FileOwner {
    FileOwner {
        uid: file.stat.uid,
        gid: file.stat.gid,
    }
}

/// Returns true if the kernel would give the file another name for this process.
pub(crate) fn is_linkable(caller: &Caller, file: &OpenFile) -> bool {
    !file.marks.intersects(FIXED) && may_link(caller, file)
}

/// Returns true if the file may be given another name.
fn may_link(caller: &Caller, file: &OpenFile) -> bool {
    caller.may_link(&file.dir, &file.name, &file.stat) || opened_as_owner(file)
}

/// True if the kernel took the caller for the file's owner when it was opened: to others it refuses
/// `O_NOATIME`.
fn opened_as_owner(file: &OpenFile) -> bool {
    fcntl_getfl(&file.file).is_ok_and(|flags| flags.contains(OFlags::NOATIME))
}
