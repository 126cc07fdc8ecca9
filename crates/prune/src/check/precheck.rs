//! Every check of one target, in the order from cheap to dear; nothing is
//! changed here but leftovers of dead runs removed on the way.

use std::ffi::CString;
use std::sync::{Arc, PoisonError};

use bc_digest::Digest;
use bc_edit::metadata::FileMetadata;
use bc_find::groups::FileRef;
use bc_fs::mount::Answer;
use bc_walk::Identity;

use crate::act::reflink;
use crate::act::symlink;
use crate::check::abilities;
use crate::check::compare::check_distinct;
use crate::check::compare::compare_while;
use crate::check::dir::CheckedAt;
use crate::check::freed::TakenSpace;
use crate::check::meta::difference;
use crate::check::open_file::{self, OpenFile, Watched};
use crate::leftovers::StageSources;
use crate::means::{GroupState, PruneRun};
use crate::options::Force;
use crate::plan::{Fact, Facts, Need, Opened, StepDecision, StepRules, next};
use crate::skip::Skip;
use crate::step::StepKind;

/// Bytes of a file that takes so long to compare that no directory is kept locked meanwhile, and a
/// spinning disk longer to read than to find.
const LONG: u64 = 1 << 20;

/// A target that passed every check.
pub(crate) struct Ready {
    pub(crate) held: OpenFile,
    /// Identity that it was found with; a copy-up gives it another number.
    pub(crate) id: Identity,
    pub(crate) digest: Digest,
    /// FileMetadata of it and of the kept file, where they were compared before both were proven to be
    /// in the scanned state.
    pub(crate) metadata: Option<(FileMetadata, FileMetadata)>,
    /// Time of that proof.
    pub(crate) proven: CheckedAt,
    pub(crate) links_left: u64,
    pub(crate) taken: TakenSpace,
}

impl PruneRun<'_> {
    /// Opens `file`; returns its directory's identity and its name too.
    fn open_target(
        &mut self,
        kept_file: &OpenFile,
        file: &FileRef,
        state: &mut GroupState<'_>,
    ) -> Result<((Identity, CString), OpenFile), Skip> {
        let (dir, id, name) = self.means.parents.of(file)?;
        let entry = (id, name);
        if state.entries.contains(&entry) {
            return Err(Skip::SameName);
        }
        let sources = StageSources {
            kept_file,
            copies: &state.copies,
            dir: &dir,
        };
        if self.sweep(&dir, &entry.0, &file.path, sources) {
            state.refresh_copies();
        }
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
    pub(crate) fn precheck(
        &mut self,
        kept_file: &mut OpenFile,
        file: &FileRef,
        state: &mut GroupState<'_>,
        kind: &mut StepKind,
    ) -> Result<Ready, Refusal> {
        let open = |run: &mut PruneRun<'_>| run.open_target(kept_file, file, state);
        let (entry, held) = self.with_descriptors(2, open)?;
        let mut facts = Facts::of(Opened {
            is_kept_file: held.stat.id == kept_file.stat.id,
            is_mounted: held.is_mounted(),
            is_reflinked: state.ledger.is_reflinked(held.stat.id),
        });
        let mut found = OpenedTarget {
            held,
            metadata: None,
            digest: None,
        };
        let (on_metadata_diff, force) = (self.options.on_metadata_diff, self.options.force);
        loop {
            let rules = StepRules {
                kind,
                on_metadata_diff,
                force,
            };
            match next(&rules, &facts) {
                StepDecision::Need(need) => {
                    let fact = self.find_out(need, kept_file, &mut found, state, kind)?;
                    facts.learn(need, fact);
                }
                StepDecision::Skip(skip) => return Err(skip.into()),
                StepDecision::Keep(skip) => return Err(Refusal::Keep(Box::new(found.held), skip)),
                StepDecision::Step => break,
            }
        }
        let OpenedTarget {
            mut held,
            metadata,
            digest,
        } = found;
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
            // No step happens without it.
            digest: digest.ok_or(Skip::Changed)?,
            metadata,
            proven: CheckedAt::now(),
            links_left,
            taken,
        })
    }

    /// Looks for what the decision needs next.
    fn find_out(
        &mut self,
        need: Need,
        kept_file: &mut OpenFile,
        found: &mut OpenedTarget,
        state: &mut GroupState<'_>,
        kind: &mut StepKind,
    ) -> Result<Fact, Skip> {
        let held = &mut found.held;
        match need {
            Need::KeptUnchanged => {
                if !std::mem::take(&mut state.is_fresh) {
                    kept_file.check().map_err(Skip::of_kept_file)?;
                }
                state.check_copies()?;
            }
            Need::Apart => return Ok(Fact::Is(self.abilities.across(kept_file, held)?)),
            Need::Flags => {
                let (kept, own) = (kept_file.flags()?, held.flags()?);
                return Ok(Fact::Encryption {
                    is_same: kept.same_encryption(own),
                    flag: own.difference(kept),
                });
            }
            Need::Metadata => {
                let (kept, own) = (kept_file.metadata()?, held.metadata()?);
                let differs = difference(&kept, &own);
                found.metadata = Some((own, kept));
                return Ok(Fact::Differs(differs));
            }
            Need::Names => {
                let most = self.abilities.max_links(kept_file);
                return Ok(Fact::Names {
                    has: kept_file.links,
                    most: self.options.max_links.unwrap_or(most).min(most),
                });
            }
            Need::Blocks => reflink::check(kept_file, held)?,
            Need::Distinct => check_distinct(kept_file, held)?,
            Need::Numbered => self.abilities.apart(kept_file, held)?,
            Need::LinkText => {
                let places = self.means.shared.real_places();
                *kind = StepKind::Symlink(symlink::text(kept_file, held, places)?);
            }
            Need::Destination => {
                if let StepKind::Move(to) = kind {
                    let sources = StageSources {
                        kept_file,
                        copies: &state.copies,
                        dir: &held.dir,
                    };
                    if self.sweep_destination(to, sources) {
                        state.refresh_copies();
                    }
                    self.check_destination(to, kept_file, held)?;
                }
                if let StepKind::Trash(_) = kind {
                    self.trash_for(held)?;
                }
            }
            Need::Writable => self.abilities.writable(held, kind)?,
            Need::Permitted => {
                abilities::check_permitted(&self.abilities.caller, kept_file, held, kind)?
            }
            Need::Below => {
                let is_usable = self.abilities.check_layers(kept_file, held, kind)?;
                return Ok(Fact::Is(!is_usable));
            }
            Need::Able => self.abilities.able(kept_file, held, kind)?,
            Need::Shareable => self.abilities.shareable(kept_file, held)?,
            Need::Content => {
                found.digest = Some(self.prove_content(kept_file, held, kind)?);
            }
        }
        Ok(Fact::Holds)
    }

    /// Proves that both files have the same bytes, while nobody writes to either.
    pub(crate) fn prove_content(
        &mut self,
        kept_file: &mut OpenFile,
        held: &mut OpenFile,
        kind: &StepKind,
    ) -> Result<Digest, Skip> {
        let disk = Arc::clone(&self.means.shared.disk);
        let mut _turn = None;
        if kept_file.stat.stamp.size > LONG {
            self.means.parents.let_go();
            kept_file.dir.unlock();
            held.dir.unlock();
            // Two pairs at a time would keep the heads of a disk on their way. Nothing is leased yet.
            let seeks = |file: &OpenFile| bc_read::order::seeks(&file.file, file.stat.id.dev);
            if seeks(kept_file) || seeks(held) {
                _turn = Some(disk.lock().unwrap_or_else(PoisonError::into_inner));
            }
        }
        // The kernel compares the ranges that it is to share under its own lock, and the target is
        // opened for writing then, which a lease of ours would hold up.
        if *kind != StepKind::Reflink {
            self.watch(kept_file).map_err(Skip::of_kept_file)?;
            self.watch(held)?;
            if self.abilities.traits(held).network == Answer::No {
                held.file.lock(self.options.mode)?;
            }
        }
        self.compare(kept_file, held)
    }

    /// Watches for writers of the file, as far as the system allows; reports once if it does not.
    pub(crate) fn watch(&mut self, held: &mut OpenFile) -> Result<(), Skip> {
        if let Watched::No(errno) = held.watch()? {
            self.outcomes.unwatched(&held.path, errno);
        }
        Ok(())
    }

    /// Proves that both files have the same bytes and are unchanged.
    pub(crate) fn compare(&self, kept_file: &OpenFile, held: &OpenFile) -> Result<Digest, Skip> {
        let size = kept_file.stat.stamp.size;
        let unwritten = || {
            kept_file.check_lease().map_err(Skip::of_kept_file)?;
            held.check_lease()
        };
        let (one, other) = (&kept_file.file, &held.file);
        let digest = compare_while(one, other, size, self.pace(), unwritten)?;
        kept_file.check().map_err(Skip::of_kept_file)?;
        held.check()?;
        unwritten()?;
        Ok(digest)
    }

    pub(crate) fn distinct(&self, kept_file: &OpenFile, held: &OpenFile) -> Result<(), Skip> {
        match self.options.force {
            Force::Yes => Ok(()),
            Force::No => check_distinct(kept_file, held),
        }
    }
}

/// A target that is open, and what was found of it on the way.
struct OpenedTarget {
    held: OpenFile,
    metadata: Option<(FileMetadata, FileMetadata)>,
    digest: Option<Digest>,
}

pub(crate) enum Refusal {
    Skip(Skip),
    /// Nothing can be linked to the kept file, for this reason; this file takes over.
    Keep(Box<OpenFile>, Skip),
}

impl From<Skip> for Refusal {
    fn from(skip: Skip) -> Refusal {
        Refusal::Skip(skip)
    }
}
