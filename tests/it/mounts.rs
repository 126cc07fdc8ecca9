//! One file seen twice, through mounts that give it two identities: no action may take the kept
//! file away together with its "duplicate".

use std::os::unix::fs::MetadataExt;

use bc_testkit::{TestTree, is_root, left_out, tool};

use crate::common::BC;

/// Runs `mounts` in a mount namespace of its own, then `bc dup prune` with every action over the
/// two roots in both orders, with and without `--force`, and expects `original` to be as it was,
/// whatever the program says.
fn original_stays(needs: &[&str], mounts: &str, original: &str, roots: [&str; 2]) {
    for needed in ["unshare", "mount"].iter().chain(needs) {
        if tool(needed).is_none() {
            return left_out(&format!("{needed} is not installed"));
        }
    }
    let orders = [roots, [roots[1], roots[0]]];
    for action in ["delete", "symlink", "move:../moved", "hardlink"] {
        for [one, other] in orders {
            for force in ["", "--force"] {
                let t = TestTree::new();
                t.write(original, "the only copy")
                    .write("upper/keep", "")
                    .write("work/keep", "");
                t.write("view/none", "");
                for dir in ["upper/keep", "work/keep", "view/none"] {
                    std::fs::remove_file(t.join(dir)).unwrap();
                }
                let id = std::fs::metadata(t.join(original)).unwrap().ino();
                let prune = format!(
                    "{BC} dup prune --yes --keep=first {force} --action={action} {one} {other}"
                );
                let script = format!("{{ {mounts}; }} || exit 77\n{prune}\necho code $?");
                let mut run = t.run("unshare");
                if !is_root() {
                    run = run.arg("-r");
                }
                let outcome = run.args(["-m", "sh", "-c", &script]).go();
                if outcome.status.code() != Some(0) {
                    return left_out(&format!("cannot mount: {}", outcome.error_text()));
                }
                let reported = format!("{prune}: {}{}", outcome.text(), outcome.error_text());
                let there = std::fs::read(t.join(original));
                assert_eq!(
                    there.ok().as_deref(),
                    Some(&b"the only copy"[..]),
                    "{reported}"
                );
                let now = std::fs::symlink_metadata(t.join(original)).unwrap();
                assert_eq!((now.is_file(), now.ino()), (true, id), "{reported}");
            }
        }
    }
}

#[test]
fn an_overlay_and_its_lower_layer() {
    let mount = "mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work view";
    original_stays(&[], mount, "lower/f", ["view", "lower"]);
}

#[test]
fn an_overlay_and_its_upper_layer() {
    let mount = "mkdir lower && mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work view";
    original_stays(&[], mount, "upper/f", ["view", "upper"]);
}

#[test]
fn a_view_through_bindfs() {
    original_stays(&["bindfs"], "bindfs real view", "real/f", ["view", "real"]);
}

#[test]
fn a_view_through_fuse_overlayfs() {
    let mount = "fuse-overlayfs -o lowerdir=lower,upperdir=upper,workdir=work view";
    original_stays(&["fuse-overlayfs"], mount, "lower/f", ["view", "lower"]);
}

#[test]
fn a_view_through_mergerfs() {
    original_stays(
        &["mergerfs"],
        "mergerfs real view",
        "real/f",
        ["view", "real"],
    );
}

#[test]
fn a_bind_mount() {
    original_stays(&[], "mount --bind real view", "real/f", ["view", "real"]);
}
