//! What a file system cannot do with any of its files: found before a file is
//! read, in a dry run as in a real one, and told once.

use std::collections::HashSet;
use std::fmt;

use bc_fs::mount::{Answer, Inodes, Links, Mounts, Shows, Traits};
use rustix::io::Errno;

use super::guard::Held;
use super::options::Mode;
use super::run::Run;
use super::step::{Skip, StepKind};
use super::{symlink, sys};

/// A file system and what it cannot do.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Unable {
    /// Its device number.
    pub dev: u64,
    /// What to call it.
    pub system: &'static str,
    /// What it lacks.
    pub lack: Lack,
}

/// What a file system lacks.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Lack {
    /// Shared blocks.
    Reflinks,
    /// An answer to whether it has them, other than by trying.
    KnownReflinks,
    /// More than one name for a file.
    Links,
    /// The file's inode number for all of its names.
    LinkNumbers,
    /// An answer to whether it gives names that, other than by trying.
    KnownLinks,
    /// An answer to whether two of its files are one, other than by trying.
    KnownFiles,
    /// Symbolic links.
    Symlinks,
    /// Symbolic links that lead out of their directory.
    SymlinksUp,
    /// An answer to whether it has them, other than by trying.
    KnownSymlinks,
    /// Being writable, here.
    Writing,
}

impl Unable {
    /// A key for counts.
    pub(crate) fn reason(self) -> &'static str {
        match self.lack {
            Lack::Reflinks | Lack::Links | Lack::LinkNumbers => "not supported by the file system",
            Lack::Symlinks | Lack::SymlinksUp => "not supported by the file system",
            Lack::KnownReflinks | Lack::KnownLinks | Lack::KnownFiles | Lack::KnownSymlinks => {
                "not known before it is tried"
            }
            Lack::Writing => "read-only file system",
        }
    }
}

impl fmt::Display for Unable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let system = self.system;
        match self.lack {
            Lack::Reflinks => write!(f, "{system} cannot share blocks"),
            Lack::KnownReflinks => {
                write!(
                    f,
                    "whether {system} can share blocks shows when it is tried"
                )
            }
            Lack::Links => write!(f, "{system} has no hard links"),
            Lack::LinkNumbers => {
                write!(f, "{system} numbers the names of one file differently")
            }
            Lack::KnownLinks => {
                write!(
                    f,
                    "whether hard links work on {system} shows when it is tried"
                )
            }
            Lack::KnownFiles => write!(
                f,
                "whether this is another name of the kept file shows on {system} when it is tried"
            ),
            Lack::Symlinks => write!(f, "{system} has no symbolic links"),
            Lack::SymlinksUp => write!(
                f,
                "{system} follows no symbolic links out of their directory"
            ),
            Lack::KnownSymlinks => write!(
                f,
                "whether symbolic links work on {system} shows when it is tried"
            ),
            Lack::Writing => write!(f, "{system} is mounted read-only"),
        }?;
        f.write_str("; said once for all files there")
    }
}

/// What a run found out.
#[derive(Default)]
pub(super) struct Abilities {
    pub(super) mounts: Mounts,
    /// Devices that turned out to be unable to do what this run does.
    refused: HashSet<u64>,
    /// Devices that turned out to follow no links upwards.
    contained: HashSet<u64>,
    told: HashSet<Unable>,
    /// Whether it was told that files cannot be told apart.
    unstable: bool,
    /// Whether it was told that layers cannot be told apart.
    layers: bool,
}

impl Abilities {
    /// Whether this was told before.
    pub(super) fn is_told(&mut self, skip: &Skip) -> bool {
        match skip {
            Skip::Unable(unable) => !self.told.insert(*unable),
            Skip::UnstableInodes => std::mem::replace(&mut self.unstable, true),
            Skip::UnknownLayer => std::mem::replace(&mut self.layers, true),
            _ => false,
        }
    }
}

impl Run<'_> {
    /// Refuses what can be changed under no name, or not under this one.
    pub(super) fn writable(&mut self, target: &Held, kind: &StepKind) -> Result<(), Skip> {
        let dev = target.stat.id.dev;
        let traits = self.abilities.mounts.of(dev, || Some(&target.file));
        let (system, lack) = (traits.name, Lack::Writing);
        let unable = Err(Skip::Unable(Unable { dev, system, lack }));
        if traits.immutable {
            return unable;
        }
        // By each name's own directory: a disk may be mounted twice.
        match sys::may_change(&target.dir) {
            Err(failed) if failed.errno == Errno::ROFS => unable,
            // A reflink changes no name.
            Err(failed) if failed.errno == Errno::ACCESS && *kind != StepKind::Reflink => {
                Err(failed.into())
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Refuses what no file of `target`'s file system can have done to it.
    pub(super) fn able(&mut self, target: &Held, kind: &StepKind) -> Result<(), Skip> {
        let dev = target.stat.id.dev;
        let traits = self.abilities.mounts.of(dev, || Some(&target.file));
        let unable = |lack| {
            let system = traits.name;
            Err(Skip::Unable(Unable { dev, system, lack }))
        };
        if *kind == StepKind::Reflink {
            if traits.reflinks == Answer::No || self.abilities.refused.contains(&dev) {
                return unable(Lack::Reflinks);
            }
            if self.options.mode == Mode::DryRun {
                // Asks for no bytes at all, and so changes none.
                match bc_read::dedupe::dedupe_range(&target.file, &target.file, 0, 0) {
                    Err(error) if Errno::from_io_error(&error) == Some(Errno::ROFS) => {
                        return unable(Lack::Writing);
                    }
                    Err(error) if traits.reflinks != Answer::Yes && is_lack_of_reflinks(&error) => {
                        return unable(Lack::Reflinks);
                    }
                    Ok(_) | Err(_) if traits.reflinks == Answer::Unknown => {
                        return unable(Lack::KnownReflinks);
                    }
                    Ok(_) | Err(_) => {}
                }
            }
            return Ok(());
        }
        if let StepKind::Symlink(text) = kind
            && !traits.read_only
            && let Some(lack) = self.lack_of_symlinks(dev, &traits, text)
        {
            return unable(lack);
        }
        if *kind == StepKind::Hardlink {
            match traits.links {
                Links::One => return unable(Lack::Links),
                _ if self.abilities.refused.contains(&dev) => return unable(Lack::LinkNumbers),
                Links::Unknown if self.options.mode == Mode::DryRun => {
                    return unable(Lack::KnownLinks);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Refuses a dry run what only the run itself finds out: whether `held` is another name of the
    /// kept file, where the names of one file may be numbered differently. Copies that were made
    /// at one moment and have several names look the same.
    pub(super) fn apart(&mut self, keeper: &Held, held: &Held) -> Result<(), Skip> {
        let dev = held.stat.id.dev;
        if self.options.mode == Mode::Execute || dev != keeper.stat.id.dev {
            return Ok(());
        }
        let traits = self.abilities.mounts.of(dev, || Some(&held.file));
        if traits.shows != Shows::Others {
            return Ok(());
        }
        let (one, other) = (
            sys::stat_now(&keeper.file, c"")?,
            sys::stat_now(&held.file, c"")?,
        );
        let alike = one.stamp == other.stamp && one.nlink == other.nlink && one.nlink > 1;
        match alike {
            true => {
                let (system, lack) = (traits.name, Lack::KnownFiles);
                Err(Skip::Unable(Unable { dev, system, lack }))
            }
            false => Ok(()),
        }
    }

    /// Whether files that look the same may be names of one file, which a dry run has to foresee and
    /// the run itself finds so.
    pub(super) fn foresees_names(&mut self, held: &Held) -> bool {
        self.options.mode == Mode::DryRun && self.traits(held).shows == Shows::Others
    }

    /// What keeps a symbolic link with this text from being made on a device.
    fn lack_of_symlinks(&self, dev: u64, traits: &Traits, text: &[u8]) -> Option<Lack> {
        let abilities = &self.abilities;
        match traits.symlinks {
            Answer::Yes => None,
            Answer::No => Some(Lack::Symlinks),
            Answer::Unknown if abilities.refused.contains(&dev) => Some(Lack::Symlinks),
            Answer::Unknown if abilities.contained.contains(&dev) && symlink::leads_up(text) => {
                Some(Lack::SymlinksUp)
            }
            Answer::Unknown => (self.options.mode == Mode::DryRun).then_some(Lack::KnownSymlinks),
        }
    }

    /// The highest number of names that `file` can have, where that is known. Others
    /// are asked by trying.
    pub(super) fn max_links(&mut self, file: &Held) -> u64 {
        let traits = self
            .abilities
            .mounts
            .of(file.stat.id.dev, || Some(&file.file));
        match traits.links {
            Links::UpTo(most) => most,
            Links::One | Links::Many | Links::Unknown => u64::MAX,
        }
    }

    /// Learns from a step that failed, where the table knows nothing and the
    /// failure is one of all files there.
    pub(super) fn learn(
        &mut self,
        keeper: &Held,
        target: &Held,
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
            Skip::LinkDiffers => return self.learn_links(keeper, target),
            _ => return skip,
        };
        let dev = target.stat.id.dev;
        let traits = self.abilities.mounts.of(dev, || Some(&target.file));
        let error = std::io::Error::from_raw_os_error(errno);
        let lack = match Errno::from_raw_os_error(errno) {
            Errno::ROFS => Lack::Writing,
            // On an overlay both files are in the upper layer.
            _ if is_lack_of_reflinks(&error) && traits.reflinks == Answer::Unknown => {
                self.abilities.refused.insert(dev);
                Lack::Reflinks
            }
            _ => return skip,
        };
        let system = traits.name;
        Skip::Unable(Unable { dev, system, lack })
    }

    /// A symbolic link could not be made, or does not lead where its text says.
    fn learn_symlinks(&mut self, target: &Held, text: &[u8], skip: Skip) -> Skip {
        let Skip::System { op, errno } = skip else {
            return skip;
        };
        let dev = target.stat.id.dev;
        let traits = self.abilities.mounts.of(dev, || Some(&target.file));
        if traits.symlinks != Answer::Unknown {
            return skip;
        }
        let lack = match (op, Errno::from_raw_os_error(errno)) {
            ("symlink", Errno::NOSYS | Errno::OPNOTSUPP) => {
                self.abilities.refused.insert(dev);
                Lack::Symlinks
            }
            (symlink::FOLLOW, Errno::PERM | Errno::ACCESS) if symlink::leads_up(text) => {
                self.abilities.contained.insert(dev);
                Lack::SymlinksUp
            }
            _ => return skip,
        };
        let system = traits.name;
        Skip::Unable(Unable { dev, system, lack })
    }

    /// A link to the keeper was another file: the keeper's name was given away
    /// meanwhile, or the file system numbers each name anew.
    fn learn_links(&mut self, keeper: &Held, target: &Held) -> Skip {
        let dev = target.stat.id.dev;
        let traits = self.abilities.mounts.of(dev, || Some(&target.file));
        if traits.inodes == Inodes::Stable || keeper.check_name().is_err() {
            return Skip::KeeperChanged;
        }
        self.abilities.refused.insert(dev);
        let (system, lack) = (traits.name, Lack::LinkNumbers);
        Skip::Unable(Unable { dev, system, lack })
    }
}

fn is_lack_of_reflinks(error: &std::io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL | Errno::NOSYS)
    )
}
