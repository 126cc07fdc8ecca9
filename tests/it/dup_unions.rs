//! Unions of which a reference is one branch: what is made beside another branch's file may land in
//! the reference, so nothing is.

use crate::dup_views::{ACTIONS, run, state, tree};

/// A file of another branch of a union: what is made beside it may land in the reference.
#[test]
fn nothing_is_made_in_a_reference_that_is_a_branch_of_a_union() {
    let fuse = "unionfs -o cow ref=RW:other=RO m";
    for (needed, mount) in [
        ("mergerfs", "mergerfs other:ref m"),
        ("mergerfs", "mergerfs ref:other m"),
        ("mergerfs", "mergerfs -o category.create=mfs other:ref m"),
        ("unionfs", fuse),
        ("unionfs", "unionfs ref=RW:other=RW m"),
        ("unionfs", "unionfs other=RW:ref=RW m"),
        (
            "mount",
            "mount -t overlay overlay -o lowerdir=other,upperdir=ref,workdir=wk m",
        ),
        (
            "fuse-overlayfs",
            "fuse-overlayfs -o lowerdir=other,upperdir=ref,workdir=wk m",
        ),
    ] {
        let t = tree();
        // Beside entries of the reference, below one that it has not, and in its place.
        for name in [
            "other/zz",
            "other/only/deep/z",
            "other/sub/z",
            "other/none/z",
        ] {
            t.write(name, "else");
        }
        t.write("other/f1", "another").write("in/z", "else");
        t.write("box/one", "two").write("box/other", "two");
        let before = state(&t.join("ref"));
        let prune = |action| {
            format!(
                "dup prune --yes --force --action={action} --keep=path:in/z --reference=ref in m"
            )
        };
        let mut lines: Vec<_> = ACTIONS.map(prune).into();
        lines.push("dup prune --yes --action=move:m/only/new --reference=ref box".to_owned());
        let Some((codes, said)) = run(&t, (needed, mount), &lines) else {
            continue;
        };
        // Where small files lie in the metadata, reflink has nothing to do.
        let refused = |(at, code): (usize, &i32)| *code > 0 || ACTIONS.get(at) == Some(&"reflink");
        assert!(codes.iter().enumerate().all(refused), "{codes:?} {said}");
        assert_eq!(state(&t.join("ref")), before, "{said}");
        for name in ["zz", "only/deep/z", "sub/z", "none/z"] {
            assert_eq!(t.read(format!("other/{name}")), b"else", "{said}");
        }
    }
}

/// An overlay above the reference writes elsewhere, but that is not looked into.
#[test]
fn other_layers_of_an_overlay_above_a_reference_are_left_alone() {
    let t = tree();
    t.write("other/only/z", "else").write("other/zz", "else");
    t.write("in/z", "else");
    let before = state(&t.join("ref"));
    let mount = "mount -t overlay overlay -o lowerdir=other:ref,upperdir=up,workdir=wk m";
    let line = "dup prune --yes --force --action=delete --keep=path:in/z --reference=ref in/z m";
    let Some((codes, said)) = run(&t, ("mount", mount), &[line.to_owned()]) else {
        return;
    };
    assert_eq!(codes, [1], "{said}");
    assert!(said.contains("reference or not is unknown"), "{said}");
    assert_eq!(state(&t.join("ref")), before, "{said}");
    assert_eq!(t.read("other/zz"), b"else");
}
