//! What an ordinary user may not do with others' files: a dry run says so as well.

use std::os::unix::fs::chown;
use std::path::Path;

use bc_testkit::{NOBODY, TestTree, is_root, left_out, tool};

use crate::common::{BC, Bc};

/// Somebody who is neither root nor the one who runs the program.
const ANOTHER: u32 = 1;

/// Who owns the files and the directories, and their modes; the second of two equal files and its
/// directory.
struct Case {
    action: &'static str,
    files: (u32, u32),
    dirs: (u32, u32),
}

#[test]
fn dry_runs_foresee_what_another_users_files_allow() {
    if !is_root() {
        return left_out("not root: files cannot be given to another user");
    }
    let owners = [ANOTHER, NOBODY];
    // All trees first: files that were written a moment ago are waited for.
    let mut cases = Vec::new();
    for dirs in owners
        .map(|owner| [(owner, 0o777), (owner, 0o1777)])
        .as_flattened()
    {
        for owner in owners {
            for mode in [0o644, 0o666, 0o4666, 0o2676, 0o600] {
                for action in ["hardlink", "symlink --yes", "delete --yes"] {
                    let case = Case {
                        action,
                        files: (owner, mode),
                        dirs: *dirs,
                    };
                    cases.push((case.tree(), case));
                }
            }
        }
    }
    let refused = cases.iter().filter(|(tree, case)| !case.is_done(tree));
    let refused = refused.count();
    assert!(refused > 10, "{refused}");
}

impl Case {
    fn tree(&self) -> TestTree {
        let t = TestTree::new();
        t.write("a/one", "the same").write("b/two", "the same");
        for file in ["a/one", "b/two"] {
            t.mtime(file, 1_000_000, 0);
            let (owner, mode) = self.files;
            chown(t.join(file), Some(owner), Some(owner)).unwrap();
            t.mode(file, mode);
        }
        for dir in ["a", "b"] {
            let (owner, mode) = self.dirs;
            chown(t.join(dir), Some(owner), Some(owner)).unwrap();
            t.mode(dir, mode);
        }
        t
    }

    /// True if the action was done, after a dry run that said so.
    fn is_done(&self, t: &TestTree) -> bool {
        let action = self.action;
        let journal = t.scratch("journals");
        std::fs::create_dir(&journal).unwrap();
        chown(&journal, Some(NOBODY), Some(NOBODY)).unwrap();
        let line = format!("dup prune --keep=first --action={action} a b");
        let run = |more: &str| {
            let journal = format!("--journal={}", journal.join("one").display());
            let line = format!("{line} {more}");
            let run = t.bc_line(&line);
            let run = if more.is_empty() {
                run.arg(journal)
            } else {
                run
            };
            run.as_nobody().go()
        };
        let (dry, real) = (run("--dry-run"), run(""));
        let context = format!(
            "{action}, files of {:?}, directories of {:?}: {} against {}",
            self.files,
            self.dirs,
            dry.error_text(),
            real.error_text(),
        );
        assert_eq!(dry.status.code(), real.status.code(), "{context}");
        assert_eq!(dry.text(), real.text(), "{context}");
        !real.text().is_empty()
    }
}

/// Root of a user namespace is nobody to files whose owner the namespace does not know.
#[test]
fn dry_runs_foresee_what_a_user_namespace_allows() {
    if !is_root() {
        return left_out("not root: files cannot be given to another user");
    }
    if tool("unshare").is_none() {
        return left_out("unshare is not installed");
    }
    // All trees first: files that were written a moment ago are waited for.
    let mut cases = Vec::new();
    for (dir_owner, dir_mode) in [(0, 0o755), (0, 0o1777), (ANOTHER, 0o1777)] {
        for (owner, group) in [(0, 0), (0, ANOTHER), (ANOTHER, ANOTHER), (NOBODY, NOBODY)] {
            for mode in [0o644, 0o666] {
                for action in ["hardlink", "delete", "move"] {
                    let t = TestTree::new();
                    // On another file system, where there is one.
                    let memory = Path::new("/dev/shm");
                    let other = tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir());
                    let other = other.unwrap();
                    let to = format!("move:{}", other.path().display());
                    let action = action.replace("move", &to);
                    for file in ["a/one", "b/two"] {
                        t.write(file, "the same").mtime(file, 1_000_000, 0);
                        chown(t.join(file), Some(owner), Some(group)).unwrap();
                        t.mode(file, mode);
                    }
                    chown(t.join("b"), Some(dir_owner), Some(dir_owner)).unwrap();
                    t.mode("b", dir_mode);
                    let what = format!("{owner}:{group} {mode:o} in {dir_owner} {dir_mode:o}");
                    cases.push((t, other, action, what));
                }
            }
        }
    }
    let mut done = [0, 0];
    for (t, _other, action, what) in &cases {
        let line = format!("dup prune --keep=first --yes --action={action} a b");
        let run = |more: &str| {
            let run = t.run("unshare").args(["-U", "-r", BC]);
            run.args(line.split_whitespace()).arg(more).go()
        };
        let dry = run("--dry-run");
        if dry.error_text().starts_with("unshare: ") {
            return left_out(&dry.error_text());
        }
        let real = run("--journal=../journal");
        let context = format!(
            "{action}, {what}: {} against {}",
            dry.error_text(),
            real.error_text(),
        );
        assert_eq!(dry.status.code(), real.status.code(), "{context}");
        assert_eq!(dry.text(), real.text(), "{context}");
        done[usize::from(real.text().is_empty())] += 1;
    }
    assert!(done[0] > 10 && done[1] > 10, "{done:?}");
}
