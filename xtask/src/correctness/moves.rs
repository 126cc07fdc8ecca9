//! `bc move` beside `mv` and `rsync --remove-source-files`: the same trees afterwards, within a file
//! system, to another one, and into directories that are there.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use bc_testkit::{Rng, TestTree, seen};

use super::{Checks, expect_code};

/// Random trees for each comparison.
const TREES: u64 = 8;

/// Name of the manifest that a move to another file system leaves.
const MANIFEST: &str = ".bc-copy-manifest.jsonl";

pub(super) fn check(checks: &mut Checks) {
    let here = checks.scratch.clone();
    for seed in 1..=TREES {
        let name = format!("move, random tree {seed}");
        checks.check(format!("{name}: mv within a file system"), |checks| {
            beside(checks, seed, &here, Peer::Mv)
        });
        checks.check(format!("{name}: rsync, merged"), |checks| {
            beside(checks, seed, &here, Peer::Rsync)
        });
        match other_disk(&here) {
            Some(there) => {
                checks.check(format!("{name}: mv to another file system"), |checks| {
                    beside(checks, seed, &there, Peer::Mv)
                });
                checks.check(format!("{name}: rsync to another, merged"), |checks| {
                    beside(checks, seed, &there, Peer::Rsync)
                });
            }
            None => checks.not_run(
                format!("{name}: to another file system"),
                "/dev/shm is none",
            ),
        }
    }
}

/// Returns a directory on another file system.
fn other_disk(here: &Path) -> Option<PathBuf> {
    let shared = Path::new("/dev/shm");
    let dev = |path: &Path| path.metadata().map(|meta| meta.dev()).ok();
    (dev(shared).is_some() && dev(shared) != dev(here)).then(|| shared.to_owned())
}

/// A program that moves trees.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Peer {
    Mv,
    /// It merges directories, which mv cannot.
    Rsync,
}

/// Moves two equal trees to a directory on the file system of `disk`, and compares what is there.
fn beside(checks: &Checks, seed: u64, disk: &Path, peer: Peer) -> Result<String> {
    let (from, to) = (TestTree::new_in(&checks.scratch), TestTree::new_in(disk));
    let mut sides = Vec::new();
    for side in ["ours", "theirs"] {
        let (source, target) = (from.path().join(side), to.path().join(side));
        make(&source, seed)?;
        if peer == Peer::Rsync {
            // Other files in the same directories.
            make(&target, seed + 1000)?;
        }
        sides.push((source, target));
    }
    let [(ours, our_target), (theirs, their_target)] = &sides[..] else {
        bail!("there are two sides");
    };
    let mut bc = checks.bc(&[
        "move",
        "--quiet",
        "--no-target-directory",
        "--on-conflict=replace",
    ]);
    let moved = bc.arg(ours).arg(our_target).output()?;
    expect_code(&moved, 0, "bc move")?;
    match peer {
        Peer::Mv => {
            let moved = Command::new("mv")
                .arg("-T")
                .arg(theirs)
                .arg(their_target)
                .output()?;
            expect_code(&moved, 0, "mv")?;
        }
        Peer::Rsync => {
            let mut rsync = Command::new("rsync");
            rsync.args(["-aHX", "--ignore-times", "--remove-source-files"]);
            let source = [theirs.as_os_str().as_encoded_bytes(), b"/"].concat();
            let source = String::from_utf8(source).context("the scratch directory's path")?;
            let moved = rsync.arg(source).arg(their_target).output()?;
            expect_code(&moved, 0, "rsync")?;
            let find = Command::new("find")
                .arg(theirs)
                .args(["-depth", "-type", "d", "-empty", "-delete"])
                .output()?;
            expect_code(&find, 0, "find")?;
        }
    }
    for source in [ours, theirs] {
        if source.symlink_metadata().is_ok() {
            bail!("{} is still there", source.display());
        }
    }
    let (one, other) = (seen(our_target, MANIFEST)?, seen(their_target, MANIFEST)?);
    if let Some((path, _)) = one
        .iter()
        .find(|(path, ours)| other.get(*path) != Some(*ours))
    {
        bail!("{}: differs", path.display());
    }
    if one.len() != other.len() {
        bail!("{} entries, {} of theirs", one.len(), other.len());
    }
    Ok(format!("{} entries", one.len()))
}

/// Makes a random tree: the same for a seed. Seeds that differ by 1000 share names of directories.
fn make(root: &Path, seed: u64) -> Result<()> {
    let mut rng = Rng::new(seed);
    let dirs: Vec<PathBuf> = (0..12)
        .map(|nth| match nth {
            0 => root.to_owned(),
            nth => root
                .join(format!("d{}", nth % 4))
                .join(format!("e{}", nth / 4)),
        })
        .collect();
    for dir in &dirs {
        fs::create_dir_all(dir)?;
    }
    let mut files: Vec<PathBuf> = Vec::new();
    for nth in 0..60 + rng.below(60) {
        let dir = &dirs[rng.below(dirs.len() as u64) as usize];
        let path = dir.join(format!("{}-{nth}", seed % 3));
        match (rng.below(10), files.last()) {
            (0, Some(file)) => fs::hard_link(file, &path)?,
            (1, _) => symlink(format!("nowhere-{nth}"), &path)?,
            _ => {
                let length = match rng.below(8) {
                    0 => rng.below(300_000),
                    _ => rng.below(5000),
                };
                fs::write(&path, vec![nth as u8 + 1; length as usize])?;
                let mode = [0o644, 0o600, 0o755, 0o444][rng.below(4) as usize];
                fs::set_permissions(&path, PermissionsExt::from_mode(mode))?;
                files.push(path);
            }
        }
    }
    // Times of long ago, links' too, so that both sides have the same.
    let touched = Command::new("find")
        .arg(root)
        .args([
            "-depth",
            "-exec",
            "touch",
            "-h",
            "-d",
            "@1000000000.25",
            "{}",
            "+",
        ])
        .output()?;
    expect_code(&touched, 0, "touch")
}
