//! One file system on two devices, which numbers of devices do not tell.

use bc_testkit::{TestTree, left_out};

use crate::file_systems::{missing, script};

/// The file system, and the options to mount it beside itself.
const SYSTEMS: [(&str, &str, &str); 2] = [
    ("ext4", "64M", "ro,noload"),
    ("xfs", "400M", "ro,norecovery,nouuid"),
];

/// Nothing is taken for its own duplicate there, by any action that would remove it, in either
/// order; what is another file is.
#[test]
fn a_file_is_not_its_own_duplicate_on_another_device() {
    for (kind, size, options) in SYSTEMS {
        if let Some(reason) = missing(&[&format!("mkfs.{kind}"), "losetup", "truncate"]) {
            left_out(&reason);
            continue;
        }
        let tree = TestTree::new();
        let text = format!(
            "truncate -s {size} img; mkfs.{kind} -q img; mkdir A B
            up() {{ mount -o $1 $2 $3 2>err.txt || {{ echo cannot mount: $(cat err.txt) >&2; exit 77; }}; }}
            one=$(losetup -f --show img) || {{ echo cannot mount by loop >&2; exit 77; }}
            other=
            trap 'umount A B 2>/dev/null; losetup -d $one; [ -z \"$other\" ] || losetup -d $other' EXIT
            up rw $one A
            mkdir A/d; echo the same >A/d/p; echo other >A/d/q
            # Leaves nothing to be written that the other device would not see.
            umount A; up rw $one A
            other=$(losetup -r -f --show img); up {options} $other B
            for action in delete symlink move:out; do
                for more in --dry-run --journal=j; do
                    $BC dup prune --action=$action --yes $more B A || echo rc $?
                done
            done
            cp A/d/p A/copy
            $BC dup prune --action=delete --yes --journal=j2 B/d A/copy || echo rc $?
            ls A/d A/copy 2>&1"
        );
        let Some(outcome) = script(&tree, &text) else {
            continue;
        };
        let text = outcome.text();
        let refused = text.lines().filter(|line| *line == "rc 1").count();
        assert_eq!(refused, 6, "{kind}: {text}\n{}", outcome.error_text());
        assert!(
            text.contains("delete A/copy") && text.contains("p\nq\n"),
            "{kind}: {text}"
        );
        outcome.stderr_has("perhaps the kept file itself");
    }
}
