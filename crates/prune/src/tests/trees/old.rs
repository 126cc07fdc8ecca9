//! Directories that versions before moved to another file system, name by name: no run does so any
//! more, and the part that such a run had done when it was killed is undone by its journal.

use super::*;
use crate::act::moving::copy::digest;
use crate::check::meta::give_metadata;
use crate::check::open_file::OpenFile;
use crate::check::pace::ReadPace;
use crate::journal::record::CopyOrigin;
use crate::journal::{About, TreeAction};
use bc_edit::metadata::PresentAcl;
use bc_edit::names::prune as prune_names;
use bc_edit::names::prune::Mark;
use bc_fs::dirfd;

/// Replays such a run, up to so many changes.
struct OldMove<'a> {
    journal: &'a Journal,
    left: usize,
    number: usize,
    /// Paths at which files with several names arrived.
    arrived: std::collections::HashMap<u64, PathBuf>,
}

/// No more changes are left: it was killed.
struct Killed;

fn hold(path: &Path) -> OpenFile {
    let bytes = path.as_os_str().as_bytes();
    let dir = dirfd::open_root(path.parent().unwrap().as_os_str().as_bytes()).unwrap();
    let name = dirfd::name(path.file_name().unwrap().as_bytes()).unwrap();
    let meta = path.symlink_metadata().unwrap();
    let opened = match meta {
        _ if meta.is_dir() => dirfd::open_listed(&dir, &name),
        _ if meta.is_symlink() => dirfd::open_link(&dir, &name),
        _ => dirfd::open_file(&dir, &name, dirfd::Access::Read),
    };
    OpenFile::link(opened.unwrap(), &dir, &name, bytes).unwrap()
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

impl OldMove<'_> {
    fn change(&mut self, change: impl FnOnce()) -> Result<(), Killed> {
        self.left = self.left.checked_sub(1).ok_or(Killed)?;
        change();
        Ok(())
    }

    fn tree(&mut self, kept: &Path, from: &Path, to: &Path) -> Result<(), Killed> {
        let mut found = Vec::new();
        below(from, from, &mut found);
        let paths: Vec<PathBuf> = found.into_iter().map(|(path, _)| path).collect();
        let kind = |path: &PathBuf| from.join(path).symlink_metadata().unwrap().file_type();
        let mut dirs: Vec<PathBuf> = vec![PathBuf::new()];
        dirs.extend(paths.iter().filter(|path| kind(path).is_dir()).cloned());
        let links = paths.iter().filter(|path| kind(path).is_symlink());
        let links: Vec<PathBuf> = links.cloned().collect();
        let files = paths.iter().filter(|path| kind(path).is_file());
        for dir in &dirs {
            let (of, there) = (from.join(dir), to.join(dir));
            let both = (hold(&of), hold(&kept.join(dir)));
            let number = self.tree_step(TreeAction::Empty, &both, Some(&there), None);
            self.change(|| fs::create_dir_all(&there).unwrap())?;
            self.journal.end(number, &Ok(())).unwrap();
        }
        for file in files {
            self.file(&kept.join(file), &from.join(file), &to.join(file))?;
        }
        for link in &links {
            let (of, there) = (from.join(link), to.join(link));
            let both = (hold(&of), hold(&kept.join(link)));
            let text = fs::read_link(&of).unwrap();
            let number = self.tree_step(TreeAction::RemoveLink, &both, Some(&there), Some(&text));
            self.change(|| std::os::unix::fs::symlink(&text, &there).unwrap())?;
            self.change(|| fs::remove_file(&of).unwrap())?;
            self.journal.end(number, &Ok(())).unwrap();
        }
        for dir in dirs.iter().rev() {
            let of = from.join(dir);
            let both = (hold(&of), hold(&kept.join(dir)));
            let number = self.tree_step(TreeAction::RemoveDirectory, &both, None, None);
            self.change(|| fs::remove_dir(&of).unwrap())?;
            self.journal.end(number, &Ok(())).unwrap();
        }
        Ok(())
    }

    fn tree_step(
        &self,
        action: TreeAction,
        (held, kept): &(OpenFile, OpenFile),
        to: Option<&Path>,
        text: Option<&Path>,
    ) -> u64 {
        let begun = self
            .journal
            .begin_tree(action, held, kept, to.map(bytes), text.map(bytes));
        begun.unwrap()
    }

    fn file(&mut self, kept: &Path, from: &Path, to: &Path) -> Result<(), Killed> {
        let (held, kept) = (hold(from), hold(kept));
        let cancel = Cancel::new();
        let pace = ReadPace::new(&cancel, None);
        let digest = digest(&held.file, held.stat.stamp.size, pace).unwrap();
        let about = About {
            known: None,
            digest: &digest,
            destination: Some(bytes(to)),
            other: None,
        };
        let number = self.journal.begin("move", &held, &kept, about).unwrap();
        self.number += 1;
        let number_of_name = self.number;
        let temporary = |dir: &Path, mark: Mark, suffix: &str| {
            dir.join(format!(".bc-dup.4194305.7.{number_of_name}{mark}{suffix}"))
        };
        let part = temporary(to.parent().unwrap(), held.mark(), prune_names::PART);
        let arrived = self.arrived.get(&held.stat.id.ino).cloned();
        self.change(|| match arrived {
            Some(arrived) => fs::hard_link(arrived, &part).unwrap(),
            None => {
                fs::copy(from, &part).unwrap();
                let copied = hold(&part);
                give_metadata(
                    &held.metadata().unwrap(),
                    &copied.file,
                    PresentAcl::Inherited,
                );
            }
        })?;
        let copied = hold(&part);
        let aside = temporary(from.parent().unwrap(), copied.mark(), prune_names::NAME);
        let made = copied.metadata().unwrap();
        let journal = self.journal;
        self.change(|| {
            let copied = journal.copied(number, copied.mark(), CopyOrigin::Made, &made);
            copied.unwrap();
        })?;
        self.change(|| fs::hard_link(&part, to).unwrap())?;
        self.change(|| fs::rename(from, &aside).unwrap())?;
        self.change(|| fs::remove_file(&aside).unwrap())?;
        self.change(|| fs::remove_file(&part).unwrap())?;
        self.arrived.insert(held.stat.id.ino, to.to_owned());
        self.journal.end(number, &Ok(())).unwrap();
        Ok(())
    }
}

/// Moves `b` of the tree to this directory as those versions did, with so many changes at most;
/// whether that was enough.
pub(super) fn move_as_before(tree: &TestTree, to: &Path, changes: usize) -> bool {
    let action = Action::Move(bytes(to).to_vec());
    let groups = vec![group(tree.path(), &["a", "b"])];
    let journal = journal_of(tree, &action, &groups);
    let mut run = OldMove {
        journal: &journal,
        left: changes,
        number: 0,
        arrived: std::collections::HashMap::new(),
    };
    let to = step::path_below(bytes(to), &copy_path(tree));
    let to = PathBuf::from(std::ffi::OsStr::from_bytes(&to));
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    run.tree(&tree.join("a"), &tree.join("b"), &to).is_ok()
}

#[test]
fn what_they_were_killed_over_comes_back() {
    for changes in 0.. {
        let tree = super::kill::rich_copies(&quick_place());
        let other = tempfile::tempdir().unwrap();
        let before = all_of(tree.path(), false);
        let whole = super::kill::whole_of(&tree);
        let is_over = move_as_before(&tree, other.path(), changes);
        let context = format!("{changes} changes");
        let dry = crate::undo(
            tree.scratch("journal"),
            RunMode::DryRun,
            &Cancel::new(),
            &mut |_| {},
        );
        let dry = dry.unwrap();
        let undone = undo_all(&tree);
        let reported = |undone: &UndoSummary| (undone.restored, undone.failed, undone.incomplete);
        assert_eq!((undone.failed, undone.incomplete), (0, 0), "{context}");
        assert_eq!(reported(&dry), reported(&undone), "{context}");
        check_back(&tree, &before, &context);
        super::kill::check_whole(&tree, &whole, &context);
        let left = all_of(other.path(), false);
        let left = left.values().filter(|what| !what.contains("directory"));
        assert_eq!(left.count(), 0, "{context}");
        assert_eq!(temporaries(tree.path()), Vec::<PathBuf>::new(), "{context}");
        if is_over {
            assert!(changes > 20 && !tree.exists("moved"), "{context}");
            break;
        }
    }
}

/// Another process saves a link of its own where the moved one is, before any call of undo.
#[test]
fn a_link_that_is_saved_where_it_was_moved_to_stays() {
    let theirs = Path::new("theirs");
    let (mut saved_in, mut sweep) = (0, Sweep::new(FEW).but(&faults::PURE));
    while let Some(point) = sweep.next() {
        let tree = super::kill::rich_copies(&quick_place());
        let other = tempfile::tempdir().unwrap();
        assert!(move_as_before(&tree, other.path(), usize::MAX));
        let to = step::path_below(bytes(other.path()), &copy_path(&tree));
        let to = PathBuf::from(std::ffi::OsStr::from_bytes(&to)).join("link");
        let is_saved = std::rc::Rc::new(std::cell::Cell::new(false));
        let (note, new, link) = (is_saved.clone(), other.path().join("new"), to.clone());
        let save = move || {
            if link.symlink_metadata().is_ok() {
                std::os::unix::fs::symlink(theirs, &new).unwrap();
                fs::rename(&new, &link).unwrap();
                note.set(true);
            }
        };
        faults::arm(point.clone(), faults::Fault::Run(Box::new(save)));
        let undone = undo_all(&tree);
        saw(&mut sweep, &faults::disarm());
        let context = format!("before {point}: {undone:?}");
        if is_saved.get() {
            assert_eq!(fs::read_link(&to).unwrap(), theirs, "{context}");
            saved_in += 1;
        }
        for place in [tree.path(), other.path()] {
            assert_eq!(temporaries(place), Vec::<PathBuf>::new(), "{context}");
        }
    }
    assert!(saved_in >= 3, "{saved_in}");
}
