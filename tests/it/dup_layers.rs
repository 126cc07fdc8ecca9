//! prune where a change copies files up from a lower layer: the names of one file go their own
//! ways there, what is removed frees nothing, and what is linked or moved takes space.

use bc_testkit::{Outcome, TestTree, left_out};

use crate::file_systems::{missing, script};

/// Five names of three equal files of 20,000 bytes in `low`: `b` has two, `c` two and `a` one.
fn three_copies() -> TestTree {
    let tree = TestTree::new();
    for (name, other) in [("a", None), ("b", Some("b2")), ("c", Some("c2"))] {
        tree.write(format!("low/{name}"), "content".repeat(20_000 / 7));
        tree.mtime(format!("low/{name}"), 1_500_000_000, 0);
        if let Some(other) = other {
            tree.hard_link(format!("low/{name}"), format!("low/{other}"));
        }
    }
    tree
}

/// Shell words that mount or end the test, and a run of prune: `act NAME OPTION...`.
const MEANS: &str = r#"
    trap 'umount $M 2>/dev/null || true' EXIT
    orelse() { "$@" 2>err.txt || { echo cannot mount: $(cat err.txt) >&2; exit 77; }; }
    overlay() { mkdir -p up work; orelse mount -t overlay overlay -o lowerdir=low,upperdir=up,workdir=work${1-} $M; }
    act() { name=$1; shift; $BC dup prune --yes --metrics=$name.json "$@" $M >$name.out 2>$name.err || echo $name ends $?; }
    figure() { grep -o "\"$2\": *[0-9]*" $1.json | grep -o '[0-9]*$'; }
    "#;

fn run(tools: &[&str], text: &str) -> Option<Outcome> {
    if let Some(reason) = missing(tools) {
        left_out(&reason);
        return None;
    }
    script(&three_copies(), &format!("{MEANS}{text}"))
}

/// A rename gives one name of a lower file another number and leaves its others below, but for
/// overlays with an index.
#[test]
fn every_name_of_a_lower_file_goes_and_comes_back() {
    for options in [",index=off", ",index=on"] {
        for action in ["delete", "symlink", "move:mnt/moved", "move:away"] {
            let Some(outcome) = run(
                &[],
                &format!(
                    "overlay {options}
                    act dry --keep=name:a --dry-run --action={action}
                    act real --keep=name:a --journal=j --action={action}
                    cmp dry.out real.out; echo $(wc -l <real.out) done
                    for name in freed_bytes used_bytes; do test $(figure dry $name) = $(figure real $name); done
                    act more --keep=name:a --journal=k --action={action}; echo $(wc -l <more.out) more
                    $BC dup undo j >undo.out 2>undo.err || echo undo ends $?
                    grep without real.err undo.err || true
                    test $M/b -ef $M/b2; test $M/c -ef $M/c2; ! test $M/b -ef $M/c
                    cmp $M/a $M/b; cmp $M/a $M/c"
                ),
            ) else {
                return;
            };
            outcome.code(0);
            let text = outcome.text();
            assert_eq!(text, "4 done\n0 more\n", "{options} {action}");
        }
    }
}

/// Links of what lies in a lower layer free nothing and copy it up: only if that is meant.
#[test]
fn links_of_lower_files_are_made_by_force_alone() {
    for options in [",index=off", ",index=on"] {
        let Some(outcome) = run(
            &[],
            &format!(
                "overlay {options}
                act dry --dry-run --action=hardlink; act real --journal=j --action=hardlink
                cat dry.err real.err; find up -type f
                act dry --force --dry-run --action=hardlink --keep=name:a
                act real --force --journal=k --action=hardlink --keep=name:a
                cmp dry.out real.out; echo $(wc -l <real.out) linked
                echo $(figure dry used_bytes) $(figure real used_bytes) $(figure real freed_bytes)
                test $(stat -c %h $M/a) = 5
                $BC dup undo k >undo.out 2>undo.err || echo undo ends $?
                test $M/b -ef $M/b2; ! test $M/a -ef $M/b; cmp $M/a $M/c"
            ),
        ) else {
            return;
        };
        outcome.code(0);
        let skipped = "bc dup: nothing to do; 3 skipped: nothing to share\n";
        let expected = format!("{skipped}{skipped}4 linked\n20480 20480 0\n");
        assert_eq!(outcome.text(), expected, "{options}");
    }
}

/// What lies in a lower layer stays there anyway: the copies of the upper one are linked to each
/// other, and to link them costs nothing.
#[test]
fn copies_of_the_upper_layer_are_linked_to_each_other() {
    let Some(outcome) = run(
        &[],
        "overlay
        for name in x y z; do cp $M/a $M/$name; touch -r $M/a $M/$name; done
        act dry --dry-run --action=hardlink --keep=name:a
        act real --journal=j --action=hardlink --keep=name:a
        cmp dry.out real.out; sed \"s,$M/,,g\" real.out
        echo $(figure dry freed_bytes) $(figure real freed_bytes) $(figure real used_bytes)
        test $M/x -ef $M/y; test $M/x -ef $M/z; ls up
        act more --journal=k --action=hardlink --keep=name:a; cat more.out",
    ) else {
        return;
    };
    outcome
        .code(0)
        .stdout_is("hardlink y to x\nhardlink z to x\n40960 40960 0\nx\ny\nz\n");
}

/// A move within the overlay copies, and says so before.
#[test]
fn a_move_says_what_it_takes() {
    let Some(outcome) = run(
        &[],
        "overlay
        act dry --dry-run --keep=name:a --action=move:$M/moved
        act real --journal=j --keep=name:a --action=move:$M/moved
        grep -o '4 files.*' dry.err; grep -o '4 files.*' real.err
        echo $(figure dry used_bytes) $(figure real used_bytes) $(find up -type f -printf '%b %i\\n' | sort -u | awk '{ n += $1 } END { print n * 512 }')",
    ) else {
        return;
    };
    outcome.code(0).stdout_is(
        "4 files would be changed, 40.0 KiB would be used to copy files up\n\
         4 files changed, 40.0 KiB used to copy files up\n40960 40960 40960\n",
    );
}

/// The layers of one overlay have device numbers of their own, but no file is in two of them.
#[test]
fn files_of_two_layers_are_told_apart() {
    let Some(outcome) = run(
        &[],
        "orelse mount -t tmpfs none low; trap 'umount $M low || true' EXIT
        echo content >low/lower; overlay; cp $M/lower $M/upper
        act real --keep=name:lower --journal=j --action=delete; ls $M",
    ) else {
        return;
    };
    outcome.code(0).stdout_is("lower\n");
}

/// FUSE file systems with layers do not tell which one a file is in.
#[test]
fn where_layers_are_not_known_the_worst_is_said() {
    let kinds = [
        ("unionfs", "unionfs -o cow up=RW:low=RO $M"),
        (
            "fuse-overlayfs",
            "fuse-overlayfs -o lowerdir=low,upperdir=up,workdir=work $M",
        ),
    ];
    for (tool, mount) in kinds {
        let Some(outcome) = run(
            &[tool],
            &format!(
                "mkdir -p up work; orelse {mount}
                act link --dry-run --action=hardlink
                grep -c 'a lower layer, where a link takes space; needs force' link.err || true
                act shared --dry-run --action=reflink; act shared2 --journal=i --action=reflink
                act dry --force --dry-run --keep=name:a --action=delete
                act real --force --journal=j --keep=name:a --action=delete
                cmp dry.out real.out; grep -o '4 files.*' real.err
                echo $(figure dry freed_bytes) $(figure real freed_bytes)"
            ),
        ) else {
            continue;
        };
        outcome.code(0);
        let text = outcome.text();
        let expected =
            "4 files changed, 0 B freed at worst, as the layers of 4 are not known\n0 0\n";
        assert_eq!(text, format!("link ends 1\n1\n{expected}"), "{tool}");
    }
}

/// Names of one file that are numbered differently: the dry run promises what is done, and leaves
/// open what only the run can find out.
#[test]
fn names_that_are_numbered_apart_are_promised_and_done() {
    for action in ["delete", "symlink", "move:away"] {
        let Some(outcome) = run(
            &["mergerfs"],
            &format!(
                "mkdir other; orelse mergerfs low:other $M
                {{ test $(stat -c %i $M/b) != $(stat -c %i $M/b2); }} 2>/dev/null || echo alike
                umount $M; orelse mergerfs low:other $M
                act dry --force --dry-run --keep=name:b --action={action}
                act real --force --journal=j --keep=name:b --action={action}
                cmp dry.out real.out; echo $(wc -l <real.out) done
                grep -c 'b2 .*another name of the kept file shows on mergerfs when it is tried' dry.err; grep -c 'b2 .*same file' real.err
                echo $(figure dry freed_bytes) $(figure real freed_bytes)"
            ),
        ) else {
            return;
        };
        let text = outcome.text();
        if text.starts_with("alike") {
            return left_out("this mergerfs keeps inode numbers");
        }
        outcome.code(0);
        let freed = match action {
            "move:away" => "0 0",
            _ => "40960 40960",
        };
        let expected = format!("dry ends 1\nreal ends 1\n3 done\n1\n1\n{freed}\n");
        assert_eq!(text, expected, "{action}");
    }
}
