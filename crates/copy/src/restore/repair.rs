//! Repair of the names of one file, from a copy that holds its content.

use std::collections::VecDeque;
use std::os::fd::AsFd;

use bc_digest::{Algorithm, Digest, Hasher, hash};
use bc_edit::content;
use bc_fs::dirfd;
use bc_fs::path::split;
use bc_parity::RebuiltContent;
use bc_walk::{Error, FileKind, FileStat, Identity};
use rustix::io::Errno;

use super::make::{GroupProgress, LinkSource, NotRepaired, Present, RepairWorker, UnrepairedName};
use super::needs::{NameGroup, Need};
use super::options::Loss;
use super::sources::{Candidate, CandidateBytes, SourceIndex, open_regular};
use super::{Reach, RepairSource};
use crate::decide::digest_of;
use crate::meta::stat_at;
use crate::place::DestDir;
use crate::stage::put::is_at;

impl RepairWorker<'_, '_> {
    /// Repairs names from files at their recorded paths, or, with an index, from any. Names without
    /// a source stay unsettled.
    pub(super) fn repair(&mut self, group: &NameGroup, index: Option<&SourceIndex>) {
        let names = self.names(group);
        let Some(first) = names.first() else {
            return;
        };
        self.at = first.need;
        let need = self.need(first);
        let Some(wanted) = need.digest() else {
            return;
        };
        match index {
            None => self.nearby(names, need, wanted),
            Some(index) => self.anywhere(names, wanted, index),
        }
    }

    /// Repairs names from a candidate; returns false if it does not have their content.
    pub(super) fn repair_from(&mut self, group: &NameGroup, candidate: &Candidate<'_>) -> bool {
        let names = self.names(group);
        let Some(first) = names.first() else {
            return true;
        };
        self.at = first.need;
        self.copy(names, Some(candidate)).is_empty()
    }

    /// Reports names as repaired from a volume of parity that could give their content.
    pub(super) fn foresee_from(&mut self, group: &NameGroup, volume: &[u8]) {
        let names = self.names(group);
        if let Some(first) = names.first() {
            self.at = first.need;
            self.foretell(names, RepairSource::Copy(volume));
        }
    }

    /// Returns the names of a group that are as verify has found them.
    fn names(&mut self, group: &NameGroup) -> Vec<UnrepairedName> {
        let restore = self.restore;
        let mut names = Vec::with_capacity(group.needs.len());
        for &need in group
            .needs
            .iter()
            .filter(|need| !restore.is_settled(**need) && !restore.is_left(**need))
        {
            self.at = need;
            match self.look(&restore.plan.needs[need]) {
                Ok(present) => names.push(UnrepairedName { need, present }),
                Err(error) => restore.failed(need, &error),
            }
        }
        names
    }

    /// Returns the existing file, if it is the one that verify has found.
    fn look(&mut self, need: &Need) -> Result<Option<Present>, Error> {
        let restore = self.restore;
        let shown = || restore.shown(&need.path);
        let said = |text: &'static str| Err(Error::with_message(shown(), "restore", text));
        let (dir, name) = split(&need.path);
        let dir = dirfd::open_below(restore.plan.top.fd.as_fd(), dir).map_err(Errno::from);
        match (dir.and_then(|dir| stat_at(dir, name)), need.loss) {
            (Err(Errno::NOENT), Loss::Removed) => Ok(None),
            (Ok(_), Loss::Removed) => said("is there again: left as it is"),
            (Err(errno), _) => Err(Error::new(shown(), "open", errno)),
            (Ok(stat), _) => {
                let by_us = restore.touched().contains(&stat.id);
                let same = need.seen.fits(&stat) || by_us && need.seen.fits_but_for_ctime(&stat);
                let is_reported = need.seen.fits(&stat) && !need.seen.has_no_stamp();
                let same = same && stat.kind() == FileKind::File;
                if !same || !is_reported && !self.holds(need) {
                    return said("changed since it was verified: left as it is");
                }
                let digest = need.seen.digest;
                Ok(Some(Present { stat, digest }))
            }
        }
    }

    /// True if the existing file has the content that verify found there.
    fn holds(&mut self, need: &Need) -> bool {
        let top = self.restore.plan.top.fd.as_fd();
        let opened = open_regular(top, &need.path, Vec::new()).ok().flatten();
        let found = opened.and_then(|there| self.digest_of(&there));
        found.is_some() && found == need.seen.digest
    }

    fn digest_of(&mut self, candidate: &Candidate<'_>) -> Option<Digest> {
        let restore = self.restore;
        let go_on = || !restore.means.cancel.is_cancelled();
        let algorithm = restore.plan.algorithm;
        let found = match &candidate.bytes {
            CandidateBytes::File(file) => digest_of(file, algorithm, &mut self.buffer, &go_on),
            CandidateBytes::Computed(content) => {
                return digest_of_computed(content, algorithm, &mut self.buffer, &go_on);
            }
        };
        found.unwrap_or_else(|errno| {
            self.unreadable(&Error::new(&candidate.shown[..], "read", errno));
            None
        })
    }

    fn nearby(&mut self, mut names: Vec<UnrepairedName>, need: &Need, wanted: Digest) {
        let restore = self.restore;
        let reach = Reach::of(wanted);
        if reach == Reach::Anywhere && restore.plan.trusts {
            for path in restore.siblings(need) {
                names = self.join(names, path, wanted);
            }
        }
        if need.entry.size() == Some(0) && wanted == hash(restore.plan.algorithm, b"") {
            names = self.copy(names, None);
        }
        let mut paths: Vec<&[u8]> = Vec::new();
        for need in names.iter().map(|name| self.need(name)) {
            match reach {
                Reach::Nowhere => return,
                Reach::SamePath if need.entry.size().is_none() => return,
                Reach::SamePath => paths.push(&need.recorded_at),
                Reach::Anywhere => paths.extend([&need.recorded_at[..], &need.path]),
            }
        }
        paths.dedup();
        for from in &restore.plan.from {
            for path in &paths {
                if names.is_empty() {
                    return;
                }
                match from.at(path) {
                    Ok(Some(candidate)) => names = self.copy(names, Some(&candidate)),
                    Ok(None) => {}
                    Err(error) => self.unreadable(&error),
                }
            }
        }
    }

    fn anywhere(&mut self, mut names: Vec<UnrepairedName>, wanted: Digest, index: &SourceIndex) {
        let restore = self.restore;
        for id in index.holders(&wanted) {
            if names.is_empty() {
                return;
            }
            match index.open(&restore.plan.from, *id) {
                Ok(Some(candidate)) => names = self.copy(names, Some(&candidate)),
                Ok(None) => {}
                Err(error) => self.unreadable(&error),
            }
        }
    }

    /// Makes the names further names of a file of the tree that was recorded as the same one, if it
    /// has the recorded content. Returns the names for which it has not.
    fn join(
        &mut self,
        names: Vec<UnrepairedName>,
        path: &[u8],
        wanted: Digest,
    ) -> Vec<UnrepairedName> {
        let restore = self.restore;
        let top = restore.plan.top.fd.as_fd();
        let opened = open_regular(top, path, restore.shown(path)).ok().flatten();
        let candidate = opened.filter(|_| !names.is_empty());
        let Some((candidate, file)) = candidate
            .as_ref()
            .and_then(|candidate| Some((candidate, candidate.file()?)))
        else {
            return names;
        };
        let need = names.first().map(|first| self.need(first));
        let is_damaged = is_one_of(&names, candidate.stat.id);
        if is_damaged
            || !need.is_some_and(|need| self.may_join(need, &candidate.stat))
            || self.digest_of(candidate) != Some(wanted)
        {
            return names;
        }
        if restore.plan.dry_run {
            self.foretell(names, RepairSource::Name(path));
            return Vec::new();
        }
        let Ok(dir) = DestDir::open(top, split(path).0) else {
            return names;
        };
        let mut group = GroupProgress::of(&names);
        if group.is_durable
            && let Err(failed) = content::sync(file)
        {
            self.unreadable(&Error::new(&candidate.shown[..], failed.op, failed.errno));
            return names;
        }
        let id = candidate.stat.id;
        restore.touched().insert(id);
        let source = LinkSource {
            dir: &dir,
            path,
            id,
        };
        let rest = self.link_all(names.into(), &source, &mut group);
        self.copy(rest.into(), Some(candidate))
    }

    /// True if a file of the tree that has the name of a recorded one is that, or replaces it, so
    /// that others may become names of it: with its owner and mode, and with no names but those
    /// that are recorded unless it is the recorded file itself. Else they would be another's.
    fn may_join(&self, need: &Need, now: &FileStat) -> bool {
        let Some(meta) = need.entry.meta else {
            return false;
        };
        let own = rustix::process::geteuid();
        let is_owners = (now.uid, now.gid) == (meta.uid, meta.gid)
            // A file of another user cannot be made again either.
            || !own.is_root() && now.uid == own.as_raw();
        let top = self.restore.plan.top.fd.as_fd();
        let leads_there = |path: &&Vec<u8>| {
            let (dir, name) = split(path);
            dirfd::open_below(top, dir)
                .map_err(Errno::from)
                .is_ok_and(|dir| is_at(dir.as_fd(), name, now.id))
        };
        let names = || {
            self.restore
                .siblings(need)
                .iter()
                .filter(leads_there)
                .count()
        };
        is_owners
            && now.mode & 0o7777 == meta.mode & 0o7777
            && (now.id.ino == meta.ino || now.nlink <= names() as u64)
    }

    /// Copies to the first name, and links the others to it; names that cannot be linked to it are
    /// copied and linked in turn. Returns the names if the candidate has not the recorded content.
    fn copy(
        &mut self,
        names: Vec<UnrepairedName>,
        candidate: Option<&Candidate<'_>>,
    ) -> Vec<UnrepairedName> {
        let restore = self.restore;
        if candidate.is_some_and(|candidate| !self.may_be(&names, candidate)) {
            return names;
        }
        if restore.plan.dry_run {
            return self.foresee(names, candidate);
        }
        let from = RepairSource::of(candidate);
        let mut group = GroupProgress::of(&names);
        let mut names = VecDeque::from(names);
        while let Some(first) = names.pop_front() {
            if restore.is_over() {
                return Vec::new();
            }
            let (dir, stage) = match self.stage(&first, candidate, &group) {
                Ok(staged) => staged,
                Err(NotRepaired::Unsuitable | NotRepaired::Unlinkable(_)) => {
                    names.push_front(first);
                    break;
                }
                Err(NotRepaired::Cancelled) => return Vec::new(),
                Err(NotRepaired::Failed(error)) => {
                    restore.failed(first.need, &error);
                    names.retain(|name| !restore.is_left(name.need));
                    continue;
                }
            };
            let second = match self.put(&dir, &stage.name, &first, &mut group) {
                Ok(second) => second,
                Err(error) => {
                    restore.failed(first.need, &error);
                    continue;
                }
            };
            restore.repaired(first.need, from, second.as_deref());
            let source = LinkSource {
                dir: &dir,
                path: &self.need(&first).path,
                id: stage.stat.id,
            };
            if group.no_links_on != Some(source.id.dev) {
                names = self.link_all(names, &source, &mut group);
            }
        }
        names.into()
    }

    /// True if a file can be the wanted one, as far as its stat shows.
    fn may_be(&self, names: &[UnrepairedName], candidate: &Candidate<'_>) -> bool {
        let Some(first) = names.first() else {
            return false;
        };
        let size = self.need(first).entry.size();
        size.is_none_or(|size| size == candidate.stat.stamp.size)
            && !is_one_of(names, candidate.stat.id)
    }

    /// Links names to a file that has the content. Returns the names that cannot be linked to it.
    fn link_all(
        &mut self,
        mut names: VecDeque<UnrepairedName>,
        source: &LinkSource<'_>,
        group: &mut GroupProgress,
    ) -> VecDeque<UnrepairedName> {
        let restore = self.restore;
        let mut rest = VecDeque::new();
        while let Some(name) = names.pop_front() {
            match self.link(&name, source, group) {
                Ok(second) => {
                    let linked = RepairSource::Name(source.path);
                    restore.repaired(name.need, linked, second.as_deref());
                }
                Err(NotRepaired::Unsuitable) => rest.push_back(name),
                Err(NotRepaired::Unlinkable(errno)) => {
                    // One that has all the links that it may have is not the last one.
                    if errno != Errno::MLINK {
                        group.no_links_on = Some(source.id.dev);
                    }
                    rest.push_back(name);
                    rest.append(&mut names);
                }
                Err(NotRepaired::Cancelled) => return VecDeque::new(),
                Err(NotRepaired::Failed(error)) => restore.failed(name.need, &error),
            }
        }
        rest
    }

    /// Reports the effects that [`copy`](Self::copy) would have.
    fn foresee(
        &mut self,
        names: Vec<UnrepairedName>,
        candidate: Option<&Candidate<'_>>,
    ) -> Vec<UnrepairedName> {
        let Some(wanted) = names.first().and_then(|first| self.need(first).digest()) else {
            return names;
        };
        if candidate.is_some_and(|candidate| self.digest_of(candidate) != Some(wanted)) {
            return names;
        }
        self.foretell(names, RepairSource::of(candidate));
        Vec::new()
    }

    /// Reports names as repaired, all but the first as names of that one.
    fn foretell<'n>(&'n self, names: Vec<UnrepairedName>, mut source: RepairSource<'n>) {
        let restore = self.restore;
        for name in names {
            let path = &self.need(&name).path;
            if let Err(error) = restore.means.dirs.may_name(restore, path, "create") {
                restore.failed(name.need, &error);
                continue;
            }
            restore.repaired(name.need, source, None);
            if !matches!(source, RepairSource::Name(_)) {
                source = RepairSource::Name(path);
            }
        }
    }
}

/// Returns the digest of a content that parity gives; `None` if it cannot be read, or `go_on` returns
/// false.
fn digest_of_computed(
    content: &RebuiltContent<'_>,
    algorithm: Algorithm,
    buffer: &mut Vec<u8>,
    go_on: &dyn Fn() -> bool,
) -> Option<Digest> {
    const PIECE: usize = 1 << 20;
    let mut hasher = Hasher::new(algorithm);
    buffer.resize(buffer.len().max(PIECE), 0);
    let mut at = 0;
    while at < content.size() {
        let count = (content.size() - at).min(PIECE as u64);
        let bytes = &mut buffer[..count as usize];
        go_on().then_some(())?;
        content.read_at(bytes, at).ok()?;
        hasher.update(bytes);
        at += count;
    }
    Some(hasher.finalize())
}

/// True if the file is one of those to be replaced.
fn is_one_of(names: &[UnrepairedName], id: Identity) -> bool {
    let mut present = names.iter().filter_map(|name| name.present.as_ref());
    present.any(|present| present.stat.id == id)
}
