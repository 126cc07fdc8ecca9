//! Which file of a group stays: keep rules, reference files, roots. Pure
//! decisions on what a scan or a report said; nothing here opens a file, and none is asked for anything
//! but a time that those cannot hold.

use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use bc_edit::names::is_temporary;
use bc_edit::names::prune::is_ours;
use bc_find::groups::{FileGroup, FileRef};
use bc_walk::{Globs, Identity};

use crate::skip::Skip;

/// One rule for choosing the file that stays.
#[derive(Clone, Debug)]
pub enum Keep {
    /// The first by root argument, then path.
    First,
    /// The last by root argument, then path.
    Last,
    /// Latest modification time.
    Newest,
    /// Earliest modification time.
    Oldest,
    /// Fewest bytes in its path.
    ShortestPath,
    /// Most bytes in its path.
    LongestPath,
    /// Most names.
    MostLinks,
    /// Its path below the root, its whole path, or one of its directories matches.
    Path(Pattern),
    /// Its base name matches.
    Name(Pattern),
}

/// A compiled glob that remembers whether it ever matched.
#[derive(Debug)]
pub struct Pattern {
    text: String,
    globs: Globs,
    /// Nothing else depends on it.
    matched: AtomicBool,
}

impl Clone for Pattern {
    fn clone(&self) -> Pattern {
        Pattern {
            text: self.text.clone(),
            globs: self.globs.clone(),
            matched: AtomicBool::new(self.has_matched()),
        }
    }
}

/// A keep rule that cannot be understood.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeepError {
    message: String,
}

impl fmt::Display for KeepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for KeepError {}

impl std::str::FromStr for Keep {
    type Err = KeepError;

    fn from_str(text: &str) -> Result<Keep, KeepError> {
        Keep::parse(text.as_bytes())
    }
}

impl Keep {
    /// Reads a rule, of which the pattern need not be UTF-8.
    ///
    /// # Errors
    /// For an unknown word and an invalid pattern.
    pub fn parse(text: &[u8]) -> Result<Keep, KeepError> {
        let shown = || match std::str::from_utf8(text) {
            Ok(text) => text.to_owned(),
            Err(_) => bc_fs::escape(text).into_owned(),
        };
        let pattern = |glob: &[u8]| {
            let globs = Globs::new(&[glob.to_vec()]).map_err(|error| KeepError {
                message: error.to_string(),
            })?;
            Ok(Pattern {
                text: shown(),
                globs,
                matched: AtomicBool::new(false),
            })
        };
        Ok(match text {
            b"first" => Keep::First,
            b"last" => Keep::Last,
            b"newest" => Keep::Newest,
            b"oldest" => Keep::Oldest,
            b"shortest-path" => Keep::ShortestPath,
            b"longest-path" => Keep::LongestPath,
            b"most-links" => Keep::MostLinks,
            _ => match (text.strip_prefix(b"path:"), text.strip_prefix(b"name:")) {
                (Some(glob), _) => Keep::Path(pattern(glob)?),
                (_, Some(glob)) => Keep::Name(pattern(glob)?),
                _ => {
                    let text = shown();
                    return Err(KeepError {
                        message: format!(
                            "unknown keep rule {text:?}: expected first, last, newest, oldest, \
                             shortest-path, longest-path, most-links, path:GLOB or name:GLOB"
                        ),
                    });
                }
            },
        })
    }

    /// `Less`: `a` is the better file to keep.
    fn compare(&self, a: &FileRef, b: &FileRef) -> Ordering {
        match self {
            Keep::First => position(a).cmp(&position(b)),
            Keep::Last => position(b).cmp(&position(a)),
            Keep::Newest => by_time(b, a),
            Keep::Oldest => by_time(a, b),
            Keep::ShortestPath => a.path.len().cmp(&b.path.len()),
            Keep::LongestPath => b.path.len().cmp(&a.path.len()),
            Keep::MostLinks => b.nlink.cmp(&a.nlink),
            Keep::Path(pattern) => Reverse(pattern.path(a)).cmp(&Reverse(pattern.path(b))),
            Keep::Name(pattern) => Reverse(pattern.name(a)).cmp(&Reverse(pattern.name(b))),
        }
    }

    /// Records if a pattern matches any of the files, which says more than if it decided: a rule
    /// that comes second is not asked where the first has chosen.
    fn note(&self, files: &[FileRef]) {
        let (Keep::Path(pattern) | Keep::Name(pattern)) = self else {
            return;
        };
        let matches = |file: &FileRef| match self {
            Keep::Path(_) => pattern.path(file),
            _ => pattern.name(file),
        };
        if !pattern.has_matched() && files.iter().any(matches) {
            pattern.matched.store(true, Relaxed);
        }
    }

    /// The rule as written, if it holds a pattern that no file matched so far.
    pub fn unmatched(&self) -> Option<&str> {
        match self {
            Keep::Path(pattern) | Keep::Name(pattern) if !pattern.has_matched() => {
                Some(&pattern.text)
            }
            _ => None,
        }
    }
}

/// Compares the times of the last change of content.
fn by_time(a: &FileRef, b: &FileRef) -> Ordering {
    let (one, other) = (a.stamp.mtime_ns, b.stamp.mtime_ns);
    match one == other && matches!(one, i64::MIN | i64::MAX) {
        true => distant_time(a).cmp(&distant_time(b)),
        false => one.cmp(&other),
    }
}

/// Time of a file that is too far off for nanoseconds in 64 bits (before 1677, after 2262), as the
/// file system has it; `None` if the file is another one by now.
fn distant_time(file: &FileRef) -> Option<(i64, i64)> {
    let meta = std::fs::symlink_metadata(OsStr::from_bytes(&file.path)).ok()?;
    let same = (meta.dev(), meta.ino()) == (file.id.dev, file.id.ino);
    same.then(|| (meta.mtime(), meta.mtime_nsec()))
}

fn position(file: &FileRef) -> (u32, &[u8]) {
    (file.root, &file.path)
}

impl Pattern {
    /// The rule as written, with the `path:` or `name:` before the pattern; escaped if it is not
    /// UTF-8.
    pub fn text(&self) -> &str {
        &self.text
    }

    fn has_matched(&self) -> bool {
        self.matched.load(Relaxed)
    }

    fn path(&self, file: &FileRef) -> bool {
        let whole = file.path.strip_prefix(b"/").unwrap_or(&file.path);
        self.covers(file.relative()) || self.covers(whole)
    }

    /// Returns true if the path matches, or a directory on its way does.
    fn covers(&self, path: &[u8]) -> bool {
        self.globs.matches_file(path)
            || (0..path.len())
                .filter(|at| path[*at] == b'/')
                .any(|at| self.globs.matches_directory(&path[..at]))
    }

    fn name(&self, file: &FileRef) -> bool {
        self.globs.matches_file(file.name())
    }
}

/// Names that may be acted on, by the kept file's root.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Roots {
    /// All.
    #[default]
    Any,
    /// Only names under another root than the kept file's.
    Across,
    /// Only names of other roots than the first, and what is kept is always of that: somebody chose
    /// it, and nothing takes its place.
    Chosen,
}

/// Rules for choosing the file that stays.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct KeepRules {
    /// Applied in order, the next where the ones before are undecided; then
    /// the first by root and path. If empty, `most-links` is the rule.
    pub keep: Vec<Keep>,
    /// Names that may be acted on.
    pub roots: Roots,
    /// Number of files of a content that stay at least, each with bytes of its own; 0 is 1.
    pub copies: usize,
}

bc_fs::setters! {
    KeepRules:
    copies: usize,
}

impl KeepRules {
    /// Returns these rules, in order, for these names.
    pub fn new(keep: Vec<Keep>, roots: Roots) -> KeepRules {
        KeepRules {
            keep,
            roots,
            copies: 1,
        }
    }
}

/// One physical file of a group: every name that the scan saw.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Inode {
    /// Identity of the file.
    pub id: Identity,
    /// True if a name of it is never to be changed.
    pub protected: bool,
    /// Indices into the group, the best name first.
    pub names: Vec<usize>,
}

impl KeepRules {
    fn compare(&self, a: &FileRef, b: &FileRef) -> Ordering {
        let by_rules = if self.keep.is_empty() {
            Keep::MostLinks.compare(a, b)
        } else {
            self.compare_by_choice(a, b)
        };
        // Leftovers of a killed run are the last choice.
        b.protected
            .cmp(&a.protected)
            .then_with(|| is_leftover(a).cmp(&is_leftover(b)))
            .then(by_rules)
            .then_with(|| position(a).cmp(&position(b)))
    }

    /// Returns the physical files of the group, the one to keep first. If any is protected, the
    /// first is. Left out are deleted files, and names of files that file systems and programs of
    /// ours will remove: no other file may go because of those.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn order(&self, group: &FileGroup) -> Vec<Inode> {
        self.keep.iter().for_each(|rule| rule.note(&group.files));
        let lasts = |at: &usize| fleeting(&group.files[*at]).is_none();
        let mut order: Vec<usize> = (0..group.files.len()).filter(lasts).collect();
        order.sort_by(|a, b| self.compare(&group.files[*a], &group.files[*b]));
        let mut inodes: Vec<Inode> = Vec::new();
        let mut known = HashMap::new();
        for index in order {
            let file = &group.files[index];
            let at = *known.entry(file.id).or_insert(inodes.len());
            if at == inodes.len() {
                inodes.push(Inode {
                    id: file.id,
                    protected: false,
                    names: Vec::new(),
                });
            }
            inodes[at].names.push(index);
            inodes[at].protected |= file.protected;
        }
        inodes
    }

    /// Returns true if `target`, a name of `inode`, is to be acted on when `kept_file` stays.
    pub(crate) fn acts_on(&self, inode: &Inode, kept_file: &FileRef, target: &FileRef) -> bool {
        let left_over = is_ours(target.name()) && !target.protected;
        let stays = inode.id == kept_file.id || inode.protected;
        target.path != kept_file.path && (left_over || !stays && self.allow(kept_file, target))
    }

    /// Returns true if `target` may be acted on when `kept_file` stays.
    pub(crate) fn allow(&self, kept_file: &FileRef, target: &FileRef) -> bool {
        let is_other = match self.roots {
            Roots::Any => true,
            Roots::Across => kept_file.root != target.root,
            Roots::Chosen => self.may_stay(kept_file) && !self.may_stay(target),
        };
        !target.protected && is_other
    }

    /// Returns the names of a file that may be kept, in order: none that a run will take away.
    pub(crate) fn may_be_kept<'g>(
        &self,
        group: &'g FileGroup,
        inode: &Inode,
    ) -> impl Iterator<Item = &'g FileRef> {
        let names = inode.names.iter().map(|index| &group.files[*index]);
        names.filter(|file| !is_ours(file.name()) && self.may_stay(file))
    }

    /// Returns the number of files that stay beside the kept one.
    pub(crate) fn further(&self) -> usize {
        self.copies.saturating_sub(1)
    }

    /// Returns the files that can stay beside the kept one, in order: those with a name that may be
    /// kept.
    pub(crate) fn lasting<'a>(
        &'a self,
        group: &'a FileGroup,
        inodes: &'a [Inode],
        kept: Identity,
    ) -> impl Iterator<Item = &'a Inode> {
        let others = inodes.iter().filter(move |inode| inode.id != kept);
        others.filter(|inode| self.may_be_kept(group, inode).next().is_some())
    }

    /// True if other names may go because this one stays.
    pub(crate) fn may_stay(&self, file: &FileRef) -> bool {
        self.roots != Roots::Chosen || file.root == 0
    }

    /// Compares by the rules that were given, and by nothing else.
    pub(crate) fn compare_by_choice(&self, a: &FileRef, b: &FileRef) -> Ordering {
        let mut orderings = self.keep.iter().map(|rule| rule.compare(a, b));
        let decided = orderings.find(|ordering| ordering.is_ne());
        decided.unwrap_or(Ordering::Equal)
    }

    /// The file of a group that the rules which were given keep, if they prefer one to all others.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn chosen<'g>(&self, group: &'g FileGroup) -> Option<&'g FileRef> {
        let inodes = self.order(group);
        let mut files = inodes.iter().map(|inode| &group.files[inode.names[0]]);
        let (first, second) = (files.next()?, files.next()?);
        self.compare_by_choice(first, second)
            .is_lt()
            .then_some(first)
    }
}

/// Returns the reason why a deleted file or a temporary name neither stays for others nor goes;
/// `None` for other names.
pub(crate) fn fleeting(file: &FileRef) -> Option<Skip> {
    match file.nlink {
        0 => Some(Skip::Deleted),
        // Leftovers of a run are processed by name; a reference's stays as it is.
        _ if is_temporary(file.name()) || file.protected && is_leftover(file) => {
            Some(Skip::Temporary)
        }
        _ => None,
    }
}

/// Names of one file of a group, in the order in which a run comes to them: what killed runs left
/// first, as the other names follow to where one of these arrived.
pub(crate) struct NameOrder<'g> {
    pub(crate) names: Vec<OrderedName<'g>>,
}

/// One name, and its treatment.
pub(crate) struct OrderedName<'g> {
    pub(crate) file: &'g FileRef,
    pub(crate) is_leftover: bool,
    pub(crate) is_acted_on: bool,
}

impl<'g> NameOrder<'g> {
    /// Decides about the names of `inode` by the rules, when `kept_file` stays.
    pub(crate) fn of(
        group: &'g FileGroup,
        inode: &Inode,
        kept_file: &FileRef,
        rules: &KeepRules,
    ) -> NameOrder<'g> {
        let name = |index: &usize| {
            let file = &group.files[*index];
            OrderedName {
                file,
                is_leftover: is_ours(file.name()),
                is_acted_on: rules.acts_on(inode, kept_file, file),
            }
        };
        let mut names: Vec<OrderedName<'g>> = inode.names.iter().map(name).collect();
        names.sort_by_key(|name| !name.is_leftover);
        NameOrder { names }
    }

    /// Returns the first name, by the rules, that is not acted on.
    pub(crate) fn stays(&self) -> Option<&'g FileRef> {
        // No leftover comes before another name by the rules.
        let by_rule = |leftover| {
            let mut names = self.names.iter();
            names.find(|name| name.is_leftover == leftover && !name.is_acted_on)
        };
        by_rule(false)
            .or_else(|| by_rule(true))
            .map(|name| name.file)
    }

    /// Returns the number of names that are acted on.
    pub(crate) fn acted(&self) -> u64 {
        let names = self.names.iter();
        names.filter(|name| name.is_acted_on).count() as u64
    }
}

fn is_leftover(file: &FileRef) -> bool {
    is_ours(file.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bc_walk::Stamp;

    fn file(path: &str, ino: u64, mtime_ns: i64, nlink: u64) -> FileRef {
        FileRef {
            path: path.into(),
            root_len: 1,
            root: u32::from(path.starts_with('b')),
            id: Identity { dev: 1, ino },
            stamp: Stamp {
                size: 1,
                mtime_ns,
                ctime_ns: 0,
            },
            nlink,
            protected: false,
        }
    }

    fn kept(rules: &[&str], group: &FileGroup) -> String {
        let rules = KeepRules {
            keep: rules.iter().map(|rule| rule.parse().unwrap()).collect(),
            ..KeepRules::default()
        };
        let first = &rules.order(group)[0];
        String::from_utf8(group.files[first.names[0]].path.clone()).unwrap()
    }

    #[test]
    fn rules_choose_in_order() {
        let group = FileGroup {
            files: vec![
                file("b/x", 1, 5, 1),
                file("a/long/x", 2, 9, 1),
                file("a/keep/y", 3, 5, 1),
                file("b/z", 4, 1, 2),
            ],
        };
        assert_eq!(kept(&[], &group), "b/z");
        assert_eq!(kept(&["first"], &group), "a/keep/y");
        assert_eq!(kept(&["last"], &group), "b/z");
        assert_eq!(kept(&["newest"], &group), "a/long/x");
        assert_eq!(kept(&["oldest"], &group), "b/z");
        assert_eq!(kept(&["shortest-path", "newest"], &group), "b/x");
        assert_eq!(kept(&["longest-path"], &group), "a/keep/y");
        assert_eq!(kept(&["name:y"], &group), "a/keep/y");
        assert_eq!(kept(&["path:long"], &group), "a/long/x");
        assert_eq!(kept(&["path:a/keep"], &group), "a/keep/y");
        assert_eq!(kept(&["path:nowhere", "path:b/*", "oldest"], &group), "b/z");
    }

    #[test]
    fn names_of_one_file_stay_together_and_reference_wins() {
        let mut group = FileGroup {
            files: vec![
                file("a/1", 1, 0, 3),
                file("a/2", 2, 0, 1),
                file("b/1", 1, 0, 3),
            ],
        };
        let order = KeepRules::default().order(&group);
        assert_eq!(order.len(), 2);
        assert_eq!(order[0].names, [0, 2]);
        group.files[1].protected = true;
        let order = KeepRules::default().order(&group);
        assert!(order[0].protected && !order[1].protected);
        assert_eq!(order[0].names, [1]);
    }

    #[test]
    fn unmatched_patterns_are_told() {
        let rules = KeepRules {
            keep: vec!["path:nowhere".parse().unwrap(), "first".parse().unwrap()],
            roots: Roots::Across,
            ..KeepRules::default()
        };
        let group = FileGroup {
            files: vec![file("a/1", 1, 0, 1), file("b/1", 2, 0, 1)],
        };
        rules.order(&group);
        assert_eq!(rules.keep[0].unmatched(), Some("path:nowhere"));
        assert_eq!(rules.keep[1].unmatched(), None);
        assert!(rules.allow(&group.files[0], &group.files[1]));
        assert!(!rules.allow(&group.files[0], &group.files[0]));
        assert!("nearest".parse::<Keep>().is_err());
        assert!("path:[".parse::<Keep>().is_err());
    }

    #[test]
    fn relative_paths() {
        let mut one = file("a/sub/x", 1, 0, 1);
        assert_eq!(one.relative(), b"sub/x");
        one.root_len = one.path.len();
        assert_eq!(one.relative(), b"x");
    }

    #[test]
    fn leftovers_are_acted_on_first_and_the_first_name_that_stays_is_known() {
        let files = ["b/.bc-dup.1.2.3.tmp", "b/2", "a/1", "c/3"];
        let group = FileGroup {
            files: files.map(|path| file(path, 2, 0, 1)).into(),
        };
        let inode = Inode {
            id: group.files[0].id,
            protected: false,
            names: vec![1, 3, 0],
        };
        let kept = file("a/1", 1, 0, 1);
        let rules = KeepRules::default();
        let order = NameOrder::of(&group, &inode, &kept, &rules);
        let names: Vec<&[u8]> = order
            .names
            .iter()
            .map(|name| name.file.path.as_slice())
            .collect();
        assert_eq!(names, [&b"b/.bc-dup.1.2.3.tmp"[..], b"b/2", b"c/3"]);
        assert_eq!((order.acted(), order.stays()), (3, None));
        // Of the file that stays the other names stay, too.
        let order = NameOrder::of(&group, &inode, &group.files[1], &rules);
        assert_eq!((order.acted(), order.stays()), (1, Some(&group.files[1])));
        let kept: Vec<&FileRef> = rules.may_be_kept(&group, &inode).collect();
        assert_eq!(kept, [&group.files[1], &group.files[3]]);
    }
}
