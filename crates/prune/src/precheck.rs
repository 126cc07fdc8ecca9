//! Every check of one target, in the order from cheap to dear; nothing is
//! changed here but leftovers of dead runs removed on the way.

use std::ffi::CString;
use std::sync::{Arc, PoisonError};

use bc_digest::Digest;
use bc_edit::metadata::FileMetadata;
use bc_find::groups::FileRef;
use bc_fs::mount::Answer;
use bc_walk::Identity;
use rustix::io::Errno;

use super::checked_at::CheckedAt;
use super::compare::compare_while;
use super::distinct;
use super::freed::TakenSpace;
use super::meta::difference;
use super::open_file::{self, OpenFile, Watched};
use super::options::{Force, OnMetadataDiff};
use super::skip::Skip;
use super::state::{Run, State};
use super::step::StepKind;
use super::{permitted, reflink, symlink};

/// Bytes of a file that takes so long to compare that no directory is kept locked meanwhile, and a
/// spinning disk longer to read than to find.
const LONG: u64 = 1 << 20;

/// A target that passed every check.
pub(super) struct Ready {
    pub(super) held: OpenFile,
    /// Identity that it was found with; a copy-up gives it another number.
    pub(super) id: Identity,
    pub(super) digest: Digest,
    /// FileMetadata of it and of the kept file, where they were compared before both were proven to be
    /// in the scanned state.
    pub(super) metadata: Option<(FileMetadata, FileMetadata)>,
    /// Time of that proof.
    pub(super) proven: CheckedAt,
    pub(super) links_left: u64,
    pub(super) taken: TakenSpace,
}

impl Run<'_> {
    /// Opens `file`; returns its directory's identity and its name too.
    fn open_target(
        &mut self,
        kept_file: &OpenFile,
        file: &FileRef,
        state: &State<'_>,
    ) -> Result<((Identity, CString), OpenFile), Skip> {
        let (dir, id, name) = self.parents.of(file)?;
        let entry = (id, name);
        if state.entries.contains(&entry) {
            return Err(Skip::SameName);
        }
        self.sweep(&dir, &entry.0, &file.path);
        let opened = match state.stamps.get(&file.id) {
            None if state.may_be_other_name(file) => {
                open_file::open_again_in(&dir, &entry.1, file, file.stamp)
            }
            None => open_file::open_in(&dir, &entry.1, file, file.stamp),
            Some(stamp) => open_file::open_again_in(&dir, &entry.1, file, *stamp),
        };
        let held = opened.or_else(|why| {
            let found = open_file::identity_at(&dir, &entry.1)?;
            Err(match found == Some(kept_file.stat.id) {
                true => Skip::AlreadyLinked,
                false => why,
            })
        })?;
        Ok((entry, held))
    }

    /// Everything that has to hold before `file` may be changed.
    pub(super) fn precheck(
        &mut self,
        kept_file: &mut OpenFile,
        file: &FileRef,
        state: &mut State<'_>,
        kind: &mut StepKind,
    ) -> Result<Ready, Refusal> {
        let open = |run: &mut Run<'_>| run.open_target(kept_file, file, state);
        let (entry, mut held) = self.with_descriptors(2, open)?;
        if held.stat.id == kept_file.stat.id {
            return Err(Skip::AlreadyLinked.into());
        }
        if held.is_mounted() {
            return Err(Skip::MountPoint.into());
        }
        if *kind == StepKind::Reflink && state.ledger.is_reflinked(held.stat.id) {
            return Err(Skip::AlreadyShared.into());
        }
        if !std::mem::take(&mut state.is_fresh) {
            kept_file.check().map_err(Skip::of_kept_file)?;
        }
        let (room, metadata) = self.refuse(kept_file, &held, kind)?;
        self.abilities.writable(&held, kind)?;
        permitted::check(&self.abilities.caller, kept_file, &held, kind)?;
        let room = match self.abilities.check_layers(kept_file, &held, kind)? {
            true => room,
            false => Room::Below,
        };
        self.abilities.able(kept_file, &held, kind)?;
        if *kind == StepKind::Reflink {
            self.abilities.shareable(kept_file, &held)?;
        }
        let disk = Arc::clone(&self.shared.disk);
        let mut _turn = None;
        if kept_file.stat.stamp.size > LONG {
            self.parents.let_go();
            kept_file.dir.unlock();
            held.dir.unlock();
            // Two pairs at a time would keep the heads of a disk on their way. Nothing is leased yet.
            let seeks = |file: &OpenFile| bc_read::order::seeks(&file.file, file.stat.id.dev);
            if seeks(kept_file) || seeks(&held) {
                _turn = Some(disk.lock().unwrap_or_else(PoisonError::into_inner));
            }
        }
        // The kernel compares the ranges that it is to share under its own lock, and the target is
        // opened for writing then, which a lease of ours would hold up.
        if *kind != StepKind::Reflink {
            self.watch(kept_file).map_err(Skip::of_kept_file)?;
            self.watch(&mut held)?;
            if self.abilities.traits(&held).network == Answer::No {
                held.file.lock(self.options.mode)?;
            }
        }
        let digest = self.compare(kept_file, &held)?;
        match room {
            Room::Free => {}
            Room::Full => return Err(Refusal::Keep(Box::new(held), Skip::NewKeeper)),
            Room::Below => return Err(Refusal::Keep(Box::new(held), Skip::KeeperBelow)),
        }
        let left = match state.links.get(&held.stat.id) {
            Some(left) => *left,
            None if self.abilities.foresees_names(&held) => {
                held.stat.nlink.saturating_sub(state.names_taken(&held))
            }
            None => held.stat.nlink,
        };
        let links_left = left.saturating_sub(1);
        held.links = links_left + 1;
        let taken = state
            .ledger
            .measure(&mut self.abilities, kept_file, &held, kind);
        state.entries.insert(entry);
        Ok(Ready {
            id: held.stat.id,
            held,
            digest,
            metadata,
            proven: CheckedAt::now(),
            links_left,
            taken,
        })
    }

    /// Watches for writers of the file, as far as the system allows; reports once if it does not.
    pub(super) fn watch(&mut self, held: &mut OpenFile) -> Result<(), Skip> {
        if let Watched::No(errno) = held.watch()? {
            self.unwatched(&held.path, errno);
        }
        Ok(())
    }

    /// Proves that both files have the same bytes and are unchanged.
    pub(super) fn compare(&self, kept_file: &OpenFile, held: &OpenFile) -> Result<Digest, Skip> {
        let size = kept_file.stat.stamp.size;
        let unwritten = || {
            kept_file.check_lease().map_err(Skip::of_kept_file)?;
            held.check_lease()
        };
        let digest = compare_while(&kept_file.file, &held.file, size, self.cancel, unwritten)?;
        kept_file.check().map_err(Skip::of_kept_file)?;
        held.check()?;
        unwritten()?;
        Ok(digest)
    }

    /// Refuses the steps that can be refused without reading.
    fn refuse(
        &mut self,
        kept_file: &OpenFile,
        held: &OpenFile,
        kind: &mut StepKind,
    ) -> Result<(Room, Option<(FileMetadata, FileMetadata)>), Skip> {
        let options = self.options;
        let across = self.abilities.across(kept_file, held)?;
        let same_metadata = || -> Result<Option<(FileMetadata, FileMetadata)>, Skip> {
            let (kept, flags) = (kept_file.flags()?, held.flags()?);
            if !kept.same_encryption(flags) {
                return Err(Skip::EncryptionDiffers);
            }
            if options.on_metadata_diff == OnMetadataDiff::Ignore {
                return Ok(None);
            }
            if let Some(what) = flags.difference(kept) {
                return Err(Skip::MetadataDiffers(what));
            }
            let (kept, own) = (kept_file.metadata()?, held.metadata()?);
            match difference(&kept, &own) {
                Some(what) => Err(Skip::MetadataDiffers(what)),
                None => Ok(Some((own, kept))),
            }
        };
        let mut metadata = None;
        let room = match kind {
            StepKind::Hardlink if across => Err(Skip::System {
                op: "link",
                errno: Errno::XDEV.raw_os_error(),
            }),
            StepKind::Hardlink => {
                metadata = same_metadata()?;
                let most = self.abilities.max_links(kept_file);
                let most = options.max_links.unwrap_or(most).min(most);
                Ok(if kept_file.links < most {
                    Room::Free
                } else {
                    Room::Full
                })
            }
            StepKind::Reflink => reflink::check(kept_file, held).map(|()| Room::Free),
            StepKind::Symlink(text) => {
                metadata = same_metadata()?;
                self.distinct(kept_file, held)?;
                self.abilities.apart(kept_file, held)?;
                *text = symlink::text(kept_file, held, self.shared.real_places())?;
                Ok(Room::Free)
            }
            StepKind::Delete => {
                self.distinct(kept_file, held)?;
                self.abilities.apart(kept_file, held)?;
                Ok(Room::Free)
            }
            StepKind::Move(to) => {
                self.distinct(kept_file, held)?;
                self.abilities.apart(kept_file, held)?;
                self.sweep_destination(to);
                self.check_destination(to, kept_file, held)?;
                Ok(Room::Free)
            }
            StepKind::Leftover => Ok(Room::Free),
        };
        Ok((room?, metadata))
    }

    pub(super) fn distinct(&self, kept_file: &OpenFile, held: &OpenFile) -> Result<(), Skip> {
        match self.options.force {
            Force::Yes => Ok(()),
            Force::No => distinct::check(kept_file, held),
        }
    }
}

/// Room for another name of the kept file.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Room {
    Free,
    /// It has all the names it can have.
    Full,
    /// It would have to be copied up for that.
    Below,
}

pub(super) enum Refusal {
    Skip(Skip),
    /// Nothing can be linked to the kept file, for this reason; this file takes over.
    Keep(Box<OpenFile>, Skip),
}

impl From<Skip> for Refusal {
    fn from(skip: Skip) -> Refusal {
        Refusal::Skip(skip)
    }
}
