//! The decision about one group: which file stays, and which names are acted on, in which order.
//! Pure: whoever runs it says what became of each.

use std::collections::{HashSet, VecDeque};

use bc_find::groups::{FileGroup, FileRef};
use bc_walk::Identity;

use super::keep::{Inode, KeepRules, NameOrder, OrderedName};

/// The way through a group.
pub(crate) struct GroupPlan<'g> {
    group: &'g FileGroup,
    rules: &'g KeepRules,
    /// The physical files, the best one first.
    inodes: Vec<Inode>,
    /// Names that may be kept, in order, with the number of the file of each.
    candidates: VecDeque<(usize, &'g FileRef)>,
    /// Files of which no name could be opened to be kept.
    unusable: HashSet<Identity>,
    /// Files that stay beside the kept one.
    reserved: HashSet<Identity>,
    kept: Option<&'g FileRef>,
    /// The file that comes next.
    at: usize,
    names: Option<PendingNames<'g>>,
}

/// Names of the file at hand that are still to come.
struct PendingNames<'g> {
    rest: VecDeque<OrderedName<'g>>,
    end: Option<&'g FileRef>,
    /// The first that is known to stay.
    stays: Option<&'g FileRef>,
    /// Number of those to be acted on that are still to come, and one.
    pending: u64,
}

/// A name that is to be acted on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct TargetName<'g> {
    pub(crate) file: &'g FileRef,
    /// A killed run left it.
    pub(crate) is_leftover: bool,
    /// True if no other name of the group follows.
    pub(crate) is_last: bool,
    /// Another name of the file, which no step takes or a later one: where undo finds the file.
    pub(crate) other: Option<&'g FileRef>,
    /// Number of names of the file that are still to be acted on, including this one.
    pub(crate) pending: u64,
}

/// Result of the proof that a file is a further copy of the content.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CopyProof {
    /// It has the same bytes, on blocks of its own.
    Copy,
    /// It shares all its blocks with one that counts: where these are damaged, both are.
    Shared,
    /// It could not be proven.
    Unproven,
}

/// Result of a step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Acted {
    /// The name was changed, or would be.
    Changed,
    /// It is as it was.
    Stays,
    /// It is as it was, and has to be the kept file from here on.
    TakesOver,
}

impl<'g> GroupPlan<'g> {
    pub(crate) fn new(group: &'g FileGroup, rules: &'g KeepRules) -> GroupPlan<'g> {
        let inodes = rules.order(group);
        // A reference's stays if the group has one.
        let had_reference = inodes.first().is_some_and(|inode| inode.protected);
        let eligible = inodes
            .iter()
            .enumerate()
            .take_while(|(_, inode)| inode.protected || !had_reference);
        let names = |(at, inode): (usize, &Inode)| -> Vec<_> {
            let names = rules.may_be_kept(group, inode);
            names.map(|file| (at, file)).collect()
        };
        GroupPlan {
            group,
            rules,
            candidates: eligible.flat_map(names).collect(),
            inodes,
            unusable: HashSet::new(),
            reserved: HashSet::new(),
            kept: None,
            at: 0,
            names: None,
        }
    }

    /// Returns one name of each physical file.
    pub(crate) fn files(&self) -> Vec<&'g FileRef> {
        let names = self.inodes.iter().map(|inode| inode.names[0]);
        names.map(|index| &self.group.files[index]).collect()
    }

    /// Returns the first name by the rules for which `open` succeeds, which is the kept file from
    /// here on.
    pub(crate) fn choose<T>(
        &mut self,
        mut open: impl FnMut(&'g FileRef) -> Option<T>,
    ) -> Option<T> {
        let mut failed = HashSet::new();
        while let Some((at, file)) = self.candidates.pop_front() {
            let id = self.inodes[at].id;
            if let Some(opened) = open(file) {
                failed.remove(&id);
                self.unusable = failed;
                self.kept = Some(file);
                return Some(opened);
            }
            failed.insert(id);
        }
        None
    }

    /// Chooses the files that stay beside the kept one: the first by the rules which `prove` finds to
    /// be copies by a name. A file that cannot be proven is left alone; one that shares its blocks is a
    /// target, unless there are too few copies: then nothing goes, and the first names of such files
    /// are returned. Nothing is asked where no file would be left to act on.
    pub(crate) fn reserve(
        &mut self,
        mut prove: impl FnMut(&'g FileRef) -> CopyProof,
    ) -> Vec<&'g FileRef> {
        let (Some(kept), most) = (self.kept, self.rules.further()) else {
            return Vec::new();
        };
        let others = self.rules.lasting(self.group, &self.inodes, kept.id);
        let others: Vec<&Inode> = others
            .filter(|inode| !self.unusable.contains(&inode.id))
            .collect();
        if others.len() <= most {
            self.reserved.extend(others.iter().map(|inode| inode.id));
            return Vec::new();
        }
        let mut shared = Vec::new();
        for inode in others {
            if self.reserved.len() == most {
                break;
            }
            let names = self.rules.may_be_kept(self.group, inode);
            let mut proofs = names.map(&mut prove);
            match proofs.find(|proof| *proof != CopyProof::Unproven) {
                Some(CopyProof::Copy) => drop(self.reserved.insert(inode.id)),
                Some(CopyProof::Shared) => shared.push(inode),
                Some(CopyProof::Unproven) | None => drop(self.unusable.insert(inode.id)),
            }
        }
        if self.reserved.len() == most {
            return Vec::new();
        }
        self.unusable.extend(shared.iter().map(|inode| inode.id));
        let names = shared.iter().map(|inode| inode.names[0]);
        names.map(|index| &self.group.files[index]).collect()
    }

    /// Returns the next name to act on; `None` at the end, and before a file was chosen.
    pub(crate) fn next(&mut self) -> Option<TargetName<'g>> {
        let kept = self.kept?;
        loop {
            let is_end = self.at == self.inodes.len();
            while let Some(names) = &mut self.names
                && let Some(name) = names.rest.pop_front()
            {
                if !name.is_acted_on {
                    continue;
                }
                names.pending = names.pending.saturating_sub(1);
                let other = names.stays.or(names.end);
                return Some(TargetName {
                    file: name.file,
                    is_leftover: name.is_leftover,
                    is_last: is_end && names.rest.is_empty(),
                    other: other.filter(|other| other.path != name.file.path),
                    pending: names.pending,
                });
            }
            let inode = self.inodes.get(self.at)?;
            self.at += 1;
            if self.unusable.contains(&inode.id) || self.reserved.contains(&inode.id) {
                continue;
            }
            let order = NameOrder::of(self.group, inode, kept, self.rules);
            self.names = Some(PendingNames {
                end: order.names.last().map(|name| name.file),
                stays: order.stays(),
                pending: order.acted() + 1,
                rest: order.names.into(),
            });
        }
    }

    /// Takes note of what became of the last target. Returns true if it is the kept file from here
    /// on; then the names behind it are not tried.
    pub(crate) fn acted(&mut self, target: &TargetName<'g>, acted: Acted) -> bool {
        let takes_over = acted == Acted::TakesOver && self.rules.may_stay(target.file);
        if takes_over {
            self.kept = Some(target.file);
            self.names = None;
        } else if acted != Acted::Changed
            && let Some(names) = &mut self.names
        {
            names.stays = names.stays.or(Some(target.file));
        }
        takes_over
    }
}

#[cfg(test)]
mod tests {
    use bc_walk::Stamp;

    use super::super::keep::Roots;
    use super::*;

    fn file(path: &str, ino: u64) -> FileRef {
        FileRef {
            path: path.into(),
            root_len: 1,
            root: u32::from(path.starts_with('b')),
            id: Identity { dev: 1, ino },
            stamp: Stamp {
                size: 1,
                mtime_ns: 0,
                ctime_ns: 0,
            },
            nlink: 1,
            protected: path.ends_with("ref"),
        }
    }

    fn group(files: &[(&str, u64)]) -> FileGroup {
        FileGroup {
            files: files.iter().map(|(path, ino)| file(path, *ino)).collect(),
        }
    }

    /// Goes through a group: the file that was chosen, and the targets with what becomes of them.
    fn go(
        group: &FileGroup,
        rules: &KeepRules,
        opens: impl Fn(&FileRef) -> bool,
        acts: impl Fn(&str) -> Acted,
    ) -> (Option<String>, Vec<String>) {
        let text = |file: &FileRef| String::from_utf8(file.path.clone()).unwrap();
        let mut plan = GroupPlan::new(group, rules);
        let chosen = plan.choose(|file| opens(file).then(|| text(file)));
        let mut lines = Vec::new();
        while let Some(target) = plan.next() {
            let path = text(target.file);
            let end = if target.is_last { " last" } else { "" };
            let other = target.other.map(|other| format!(" +{}", text(other)));
            let pending = target.pending;
            lines.push(format!(
                "{path} {pending}{}{end}",
                other.unwrap_or_default()
            ));
            plan.acted(&target, acts(&path));
        }
        (chosen, lines)
    }

    fn by_path(roots: Roots) -> KeepRules {
        KeepRules::new(vec!["first".parse().unwrap()], roots)
    }

    #[test]
    fn all_but_the_first_go() {
        let group = group(&[("a/3", 3), ("a/1", 1), ("a/2", 2), ("a/22", 2), ("a/11", 1)]);
        let rules = by_path(Roots::Any);
        let (kept, lines) = go(&group, &rules, |_| true, |_| Acted::Changed);
        assert_eq!(kept.as_deref(), Some("a/1"));
        assert_eq!(lines, ["a/2 2 +a/22", "a/22 1", "a/3 1 last"]);
        // Where a name stays, undo finds the file there.
        let (_, lines) = go(&group, &rules, |_| true, |_| Acted::Stays);
        assert_eq!(lines, ["a/2 2 +a/22", "a/22 1 +a/2", "a/3 1 last"]);
    }

    #[test]
    fn a_file_that_cannot_be_opened_neither_stays_nor_goes() {
        let group = group(&[("a/1", 1), ("a/2", 2), ("a/22", 2), ("a/3", 3)]);
        let rules = by_path(Roots::Any);
        let (kept, lines) = go(&group, &rules, |file| file.id.ino == 3, |_| Acted::Changed);
        assert_eq!((kept.as_deref(), lines.len()), (Some("a/3"), 0));
        // Another name of it will do.
        let (kept, lines) = go(
            &group,
            &rules,
            |file| file.path != b"a/1" && file.path != b"a/2",
            |_| Acted::Changed,
        );
        assert_eq!(kept.as_deref(), Some("a/22"));
        assert_eq!(lines, ["a/3 1 last"]);
        let (kept, lines) = go(&group, &rules, |_| false, |_| Acted::Changed);
        assert_eq!((kept, lines.len()), (None, 0));
    }

    #[test]
    fn a_references_file_stays_or_none() {
        let group = group(&[("a/1", 1), ("b/ref", 2), ("b/3", 3)]);
        let rules = by_path(Roots::Any);
        let (kept, lines) = go(&group, &rules, |_| true, |_| Acted::Changed);
        assert_eq!(kept.as_deref(), Some("b/ref"));
        assert_eq!(lines, ["a/1 1", "b/3 1 last"]);
        let (kept, lines) = go(&group, &rules, |file| !file.protected, |_| Acted::Changed);
        assert_eq!((kept, lines.len()), (None, 0));
    }

    #[test]
    fn as_many_copies_stay_as_are_asked_for() {
        let group = group(&[("a/1", 1), ("a/2", 2), ("a/22", 2), ("a/3", 3), ("a/4", 4)]);
        let left_with = |copies: usize, equal: &[u64], cloned: &[u64]| {
            let rules = by_path(Roots::Any).copies(copies);
            let mut plan = GroupPlan::new(&group, &rules);
            plan.choose(|file| (file.id.ino == 1).then_some(()));
            let mut asked = Vec::new();
            let shared = plan.reserve(|file| {
                asked.push(file.id.ino);
                match file.id.ino {
                    ino if cloned.contains(&ino) => CopyProof::Shared,
                    ino if equal.contains(&ino) => CopyProof::Copy,
                    _ => CopyProof::Unproven,
                }
            });
            let shared: Vec<u64> = shared.iter().map(|file| file.id.ino).collect();
            let mut acted = Vec::new();
            while let Some(target) = plan.next() {
                acted.push(target.file.id.ino);
                plan.acted(&target, Acted::Changed);
            }
            (asked, acted, shared)
        };
        let left = |copies, equal: &[u64]| {
            let (asked, acted, shared) = left_with(copies, equal, &[]);
            assert!(shared.is_empty());
            (asked, acted)
        };
        assert_eq!(left(1, &[]), (vec![], vec![2, 2, 3, 4]));
        assert_eq!(left(2, &[2]), (vec![2], vec![3, 4]));
        assert_eq!(left(3, &[2, 3]), (vec![2, 3], vec![4]));
        // Another one stays for a file that is no copy any more, which is left alone.
        assert_eq!(left(2, &[3]), (vec![2, 2, 3], vec![4]));
        // Too few are proven: nothing goes.
        assert_eq!(left(3, &[4]).1, [0; 0]);
        // Nothing could go.
        assert_eq!(left(4, &[]), (vec![], vec![]));
        // A file that shares its blocks is none, and goes like any other.
        let cloned = left_with(2, &[3, 4], &[2]);
        assert_eq!(cloned, (vec![2, 3], vec![2, 2, 4], vec![]));
        // Unless too few are left.
        let cloned = left_with(3, &[3], &[2]);
        assert_eq!(cloned, (vec![2, 3, 4], vec![], vec![2]));
    }

    #[test]
    fn a_file_that_takes_over_stays_for_those_behind_it() {
        let group = group(&[("a/1", 1), ("a/2", 2), ("a/22", 2), ("a/3", 3), ("b/4", 4)]);
        let full = |path: &str| match path {
            "a/2" => Acted::TakesOver,
            _ => Acted::Changed,
        };
        let (_, lines) = go(&group, &by_path(Roots::Any), |_| true, full);
        assert_eq!(lines, ["a/2 2 +a/22", "a/3 1", "b/4 1 last"]);
        // Where somebody chose what stays, nothing takes its place.
        let takes_over = |_: &str| Acted::TakesOver;
        let (kept, lines) = go(&group, &by_path(Roots::Chosen), |_| true, takes_over);
        assert_eq!(kept.as_deref(), Some("a/1"));
        assert_eq!(lines, ["b/4 1 last"]);
        // Across roots, other names are targets once the kept file is another root's.
        let (_, lines) = go(&group, &by_path(Roots::Across), |_| true, takes_over);
        assert_eq!(lines, ["b/4 1 last"]);
    }
}
