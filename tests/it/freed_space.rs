//! What `prune` says it frees, in a dry run and in a real one, is what the file system has got back
//! afterwards, within a block per file: on file systems that share extents, compress them, keep
//! small files in the metadata, take snapshots, or lie in layers. Each in an image of its own.

use bc_testkit::{Outcome, TestTree, left_out};

use crate::file_systems::{missing, script};

/// Puts files into `$M/d`: copies, reflinks where there are such, hard links, and small ones; some
/// share their blocks with files elsewhere.
const FILES: &str = "
    noise() { head -c $1 /dev/urandom; }
    copy() { cp --reflink=never $1 $2; }
    clone() { cp --reflink=$REFLINK $1 $2; }
    fill() {
        rm -rf $M/d $M/elsewhere; mkdir $M/d $M/elsewhere; cd $M/d
        noise 100001 >copies.1; copy copies.1 copies.2; copy copies.1 copies.3
        noise 300000 >mixed.1; clone mixed.1 mixed.2; copy mixed.1 mixed.3
        noise 200000 >pairs.1; clone pairs.1 pairs.2; copy pairs.1 pairs.3; clone pairs.3 pairs.4
        noise 150000 >links.1; copy links.1 links.2; ln links.2 links.3; ln links.2 links.4
        noise 120000 >kept.1; copy kept.1 kept.2; ln kept.2 ../elsewhere/kept
        noise 400000 >shared.1; clone shared.1 ../elsewhere/shared; copy shared.1 shared.2
        clone shared.2 ../elsewhere/shared.too
        noise 1000 >small.1; copy small.1 small.2; copy small.1 small.3
        seq 200000 >text.1; copy text.1 text.2; clone text.1 text.3
        printf x >part.1; truncate -s 1M part.1; copy part.1 part.2
        cd $OLDPWD
    }
    ";

/// Mounts an image as `$MOUNT` says, measures, acts: one line for each action and rule.
const MEASURE: &str = r#"
    show() { mount $MOUNT 2>err.txt || { echo cannot mount: $(cat err.txt) >&2; exit 77; }; }
    freed() { grep -o '"freed_bytes": *[0-9]*' $1 | grep -o '[0-9]*$'; }
    measure() {
        fill; umount $M; show
        files=$(find $M/d -type f | wc -l)
        options="--action=$1 --keep=$2 --metrics=m.json"
        $BC dup prune $options --dry-run $M/d >/dev/null 2>log || { cat log >&2; exit 1; }
        dry=$(freed m.json)
        before=$(used)
        $BC dup prune $options --yes --journal=j.$1.$2 $M/d >/dev/null 2>log || { cat log >&2; exit 1; }
        umount $M; show
        echo "$1-$2 $files $dry $(freed m.json) $((before - $(used)))"
    }
    "#;

/// By `statfs`.
const USED: &str = "used() { stat -f -c '%b %f %S' $M | { read all free size; echo $(((all - free) * size)); }; }\n";

/// The data of a Btrfs, which has its own count of metadata.
const USED_DATA: &str = "used() { btrfs filesystem df -b $M | sed -n 's/^Data.*used=//p'; }\n";

/// Runs the actions on an image and compares the figures.
fn figures_agree(
    tools: &[&str],
    make: &str,
    reflink: &str,
    used: &str,
    mount: &str,
    actions: &[&str],
) {
    let all: Vec<&str> = ["losetup", "truncate"]
        .iter()
        .chain(tools)
        .copied()
        .collect();
    if let Some(reason) = missing(&all) {
        return left_out(&reason);
    }
    let tree = TestTree::new();
    let mut text = format!(
        "{FILES}{MEASURE}{used}MOUNT=\"{mount} $PWD/img $M\"; REFLINK={reflink}\n{make}\nshow\n"
    );
    for (nth, action) in actions.iter().enumerate() {
        // Both ways for all would take twice the time.
        let keep = ["first", "last"][nth % 2];
        text += &format!("measure {action} {keep}\n");
    }
    let Some(outcome) = script(&tree, &(text + "umount $M")) else {
        return;
    };
    outcome.code(0);
    // XFS gives blocks back behind the run's back: those that `pairs.3` and
    // `pairs.4` share, where the run is quicker.
    let late = if tools == ["mkfs.xfs"] { 200_000 } else { 0 };
    check(&outcome, actions.len(), late);
}

/// Compares the lines that `measure` printed. `late`: bytes that a run need not see coming back.
fn check(outcome: &Outcome, lines: usize, late: i64) {
    let text = outcome.text();
    assert_eq!(text.lines().count(), lines, "{text}");
    for line in text.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let number = |nth: usize| fields[nth].parse::<i64>().unwrap();
        let (files, dry, real, seen) = (number(1), number(2), number(3), number(4));
        let within = |one: i64, other: i64| (one - other).abs() <= files * 4096;
        assert!(within(dry, seen), "{text}");
        assert!(within(real, seen) || within(real + late, seen), "{text}");
    }
}

const ALL: [&str; 4] = ["hardlink", "reflink", "delete", "symlink"];

#[test]
fn on_btrfs() {
    let make = "truncate -s 200M img; mkfs.btrfs -q -m single img >/dev/null";
    let tools = ["mkfs.btrfs", "btrfs"];
    figures_agree(&tools, make, "always", USED_DATA, "-o loop", &ALL);
}

#[test]
fn on_compressed_btrfs() {
    let make = "truncate -s 200M img; mkfs.btrfs -q -m single img >/dev/null";
    let mount = "-o loop,compress=zstd";
    let tools = ["mkfs.btrfs", "btrfs"];
    figures_agree(
        &tools,
        make,
        "always",
        USED_DATA,
        mount,
        &["reflink", "delete"],
    );
}

#[test]
fn on_xfs() {
    let make = "truncate -s 400M img; mkfs.xfs -q -m reflink=1 img";
    figures_agree(
        &["mkfs.xfs"],
        make,
        "always",
        USED,
        "-o loop",
        &["reflink", "delete", "hardlink", "symlink", "symlink"],
    );
}

#[test]
fn on_ext4() {
    let make = "truncate -s 64M img; mkfs.ext4 -q img";
    figures_agree(
        &["mkfs.ext4"],
        make,
        "never",
        USED,
        "-o loop",
        &["hardlink", "delete", "symlink"],
    );
}

/// What is new is in the upper layer, what is not stays where it is, and to link a kept file of a
/// lower layer copies it.
#[test]
fn on_an_overlay() {
    if let Some(reason) = missing(&["mkfs.ext4", "losetup", "truncate"]) {
        return left_out(&reason);
    }
    let tree = TestTree::new();
    let text = format!(
        "{MEASURE}truncate -s 64M img; mkfs.ext4 -q img; mkdir disk
        mount -o loop img disk 2>err.txt || {{ echo cannot mount: $(cat err.txt) >&2; exit 77; }}
        MOUNT=\"-t overlay overlay -o lowerdir=disk/l,upperdir=disk/u,workdir=disk/w $M\"
        used() {{ sync; stat -f -c '%b %f %S' disk | {{ read all free size; echo $(((all - free) * size)); }}; }}
        noise() {{ head -c $1 /dev/urandom; }}
        fill() {{
            umount $M; rm -rf disk/*; mkdir -p disk/l/d disk/u disk/w
            for file in 1 2 3; do noise 500000 >disk/l/d/alone.$file; done
            noise 300000 >disk/l/d/lower.1; cp disk/l/d/lower.1 disk/l/d/lower.2
            noise 200000 >disk/l/d/mixed.2; cp disk/l/d/mixed.2 disk/l/d/mixed.4
            show
            noise 100000 >$M/d/upper.1; cp $M/d/upper.1 $M/d/upper.2; cp $M/d/upper.1 $M/d/upper.3
            cp $M/d/mixed.2 $M/d/mixed.1; cp $M/d/mixed.2 $M/d/mixed.3; cp $M/d/mixed.2 $M/d/mixed.5
        }}
        mkdir -p disk/l disk/u disk/w; show
        measure delete first; measure symlink last; measure hardlink first
        umount $M disk"
    );
    let Some(outcome) = script(&tree, &text) else {
        return;
    };
    outcome.code(0);
    check(&outcome, 3, 0);
}

/// Small files of a snapshot lie in metadata that it shares: whatever is done to them costs space.
#[test]
fn snapshots_free_nothing_and_small_files_share_nothing() {
    if let Some(reason) = missing(&["mkfs.btrfs", "btrfs", "losetup", "truncate"]) {
        return left_out(&reason);
    }
    let tree = TestTree::new();
    let text = format!(
        "{MEASURE}{USED_DATA}MOUNT=\"-o loop $PWD/img $M\"
        truncate -s 200M img; mkfs.btrfs -q -m single img >/dev/null; show
        btrfs subvolume create $M/d >/dev/null
        for file in $(seq 40); do echo \"text $((file / 4))\" >$M/d/small.$file; done
        for file in $(seq 20); do seq $((file / 4 * 10000)) 60000 >$M/d/large.$file; done
        btrfs subvolume snapshot $M/d $M/snapshot >/dev/null; sync
        fill() {{ :; }}
        measure reflink first
        for run in 1 2; do
            $BC dup prune --action=reflink --journal=again.$run $M/d; btrfs filesystem sync $M
        done
        btrfs subvolume delete $M/snapshot >/dev/null
        umount $M"
    );
    let Some(outcome) = script(&tree, &text) else {
        return;
    };
    outcome.code(0);
    check(&outcome, 1, 0);
    outcome
        .stderr_has("nothing to do")
        .stderr_has("nothing to share");
    assert!(outcome.text().contains(" 0 0 0\n"), "{}", outcome.text());
}

/// No rename leads out of a subvolume; what is moved takes its blocks along, with all that share them.
#[test]
fn a_move_to_another_subvolume_takes_nothing() {
    if let Some(reason) = missing(&["mkfs.btrfs", "btrfs", "losetup", "truncate"]) {
        return left_out(&reason);
    }
    let text = format!(
        "{USED_DATA}truncate -s 200M img; mkfs.btrfs -q -m single img >/dev/null
        mount -o loop img $M 2>err.txt || {{ echo cannot mount: $(cat err.txt) >&2; exit 77; }}
        btrfs subvolume create $M/d >/dev/null
        head -c 5000001 /dev/urandom >$M/d/a; cp --reflink=always $M/d/a $M/d/b; cp $M/d/b whole
        sync -f $M; before=$(used)
        $BC dup prune --yes --keep=name:a --journal=j --action=move:$M/moved $M/d >/dev/null
        sync -f $M; echo $(($(used) - before))
        cmp whole $(find $M/moved -name b); ls $M/d
        $BC dup undo j; cmp whole $M/d/b; ls $M/d
        umount $M"
    );
    if let Some(outcome) = script(&TestTree::new(), &text) {
        outcome.code(0);
        assert!(outcome.text().starts_with("0\na\n"), "{}", outcome.text());
        assert!(outcome.text().ends_with("a\nb\n"), "{}", outcome.text());
    }
}

#[test]
fn a_reflinked_pair_hides_no_copy() {
    for (kind, make) in [
        (
            "btrfs",
            "truncate -s 200M img; mkfs.btrfs -q img >/dev/null",
        ),
        ("xfs", "truncate -s 400M img; mkfs.xfs -q -m reflink=1 img"),
    ] {
        let mkfs = format!("mkfs.{kind}");
        if let Some(reason) = missing(&[&mkfs, "losetup", "truncate"]) {
            left_out(&reason);
            continue;
        }
        let tree = TestTree::new();
        let text = format!(
            "{make}
            mount -o loop img $M 2>err.txt || {{ echo cannot mount: $(cat err.txt) >&2; exit 77; }}
            cd $M; head -c 500000 /dev/urandom >a; cp --reflink=always a b; cp --reflink=never a c
            wasted() {{
                $BC dup summary --metrics=../m.json . >/dev/null
                grep -o '\"wasted_bytes\": *[0-9]*' ../m.json | grep -o '[0-9]*$'
            }}
            wasted; sync; wasted
            $BC dup prune --quiet --action=reflink --journal=../j . >/dev/null; wasted
            cd ..; umount $M"
        );
        let Some(outcome) = script(&tree, &text) else {
            continue;
        };
        outcome.code(0);
        let text = outcome.text();
        let figures: Vec<&str> = text.lines().collect();
        assert_eq!(figures, ["503808", "503808", "0"], "{kind}");
    }
}
