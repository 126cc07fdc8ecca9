//! What a file system cannot do with any of its files: found before a file is
//! read, in a dry run as in a real one, and told once.

use std::collections::HashSet;
use std::fmt;

use bc_fs::mount::{Answer, Links, Mounts, Shows};
use rustix::io::Errno;

use super::guard::Held;
use super::run::{Mode, Run};
use super::step::{Skip, StepKind};
use super::sys;

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
    Saying,
    /// More than one name for a file.
    Links,
    /// Being writable, here.
    Writing,
}

impl Unable {
    /// A key for counts.
    pub(crate) fn reason(self) -> &'static str {
        match self.lack {
            Lack::Reflinks | Lack::Links => "not supported by the file system",
            Lack::Saying => "not known before it is tried",
            Lack::Writing => "read-only file system",
        }
    }
}

impl fmt::Display for Unable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let system = self.system;
        match self.lack {
            Lack::Reflinks => write!(f, "{system} cannot share blocks"),
            Lack::Saying => write!(
                f,
                "whether {system} can share blocks shows when it is tried"
            ),
            Lack::Links => write!(f, "{system} has no hard links"),
            Lack::Writing => write!(f, "{system} is mounted read-only"),
        }?;
        f.write_str("; said once for all files there")
    }
}

/// What a run found out.
#[derive(Default)]
pub(super) struct Abilities {
    mounts: Mounts,
    /// Devices that turned out to share no blocks.
    refused: HashSet<u64>,
    told: HashSet<Unable>,
}

impl Abilities {
    /// Whether this was told before.
    pub(super) fn is_told(&mut self, skip: &Skip) -> bool {
        match skip {
            Skip::Unable(unable) => !self.told.insert(*unable),
            _ => false,
        }
    }
}

impl Run<'_> {
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
                    Err(error) if is_lack_of_reflinks(&error) => return unable(Lack::Reflinks),
                    Ok(_) | Err(_) if traits.reflinks == Answer::Unknown => {
                        return unable(Lack::Saying);
                    }
                    Ok(_) | Err(_) => {}
                }
            }
            return Ok(());
        }
        if *kind == StepKind::Hardlink && traits.links == Links::One {
            return unable(Lack::Links);
        }
        // By each name's own directory: a disk may be mounted twice.
        match sys::may_change(&target.dir) {
            Err(failed) if failed.errno == Errno::ROFS => unable(Lack::Writing),
            Err(failed) if failed.errno == Errno::ACCESS => Err(failed.into()),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Learns from a reflink that failed: where the table knows nothing and
    /// nothing was shared so far, nothing ever will be.
    pub(super) fn learn(&mut self, target: &Held, skip: Skip) -> Skip {
        let Skip::System {
            op: "dedupe",
            errno,
        } = skip
        else {
            return skip;
        };
        let dev = target.stat.id.dev;
        let traits = self.abilities.mounts.of(dev, || Some(&target.file));
        let error = std::io::Error::from_raw_os_error(errno);
        let lack = match Errno::from_raw_os_error(errno) {
            Errno::ROFS => Lack::Writing,
            // Of a file of an overlay's lower layer this says nothing of others.
            _ if is_lack_of_reflinks(&error)
                && traits.reflinks == Answer::Unknown
                && traits.shows != Shows::Layers =>
            {
                self.abilities.refused.insert(dev);
                Lack::Reflinks
            }
            _ => return skip,
        };
        let system = traits.name;
        Skip::Unable(Unable { dev, system, lack })
    }
}

fn is_lack_of_reflinks(error: &std::io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL | Errno::NOSYS)
    )
}
