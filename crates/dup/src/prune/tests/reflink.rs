//! reflink on real file systems that can: images mounted through a loop
//! device, where this is root and the tools are there.

use super::*;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

/// A mounted image, unmounted on drop.
struct Mount {
    at: PathBuf,
    _base: TestTree,
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.at).status();
    }
}

fn run_tool(program: &str, args: &[&str]) -> Result<(), String> {
    let output = Command::new(program)
        .args(args)
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        let text = String::from_utf8_lossy(&output.stderr);
        Err(format!("{program}: {}", text.trim()))
    }
}

fn mount(kind: &str) -> Result<Mount, String> {
    if !bc_testkit::is_root() {
        return Err("needs root to mount".to_owned());
    }
    let base = TestTree::new();
    let image = base.scratch("image");
    let at = base.path().to_owned();
    let file = fs::File::create(&image).map_err(|error| error.to_string())?;
    file.set_len(400 << 20).map_err(|error| error.to_string())?;
    let image = image.to_str().ok_or("odd temporary directory")?;
    run_tool(&format!("mkfs.{kind}"), &["-q", image])?;
    let target = at.to_str().ok_or("odd temporary directory")?;
    run_tool("mount", &["-o", "loop", image, target])?;
    Ok(Mount { at, _base: base })
}

#[test]
fn btrfs() {
    shares_blocks_on("btrfs");
}

#[test]
fn xfs() {
    shares_blocks_on("xfs");
}

fn shares_blocks_on(kind: &str) {
    let mounted = match mount(kind) {
        Ok(mounted) => mounted,
        Err(why) => {
            bc_testkit::left_out(&format!("reflink on {kind}: {why}"));
            return;
        }
    };
    // Longer than what one call of btrfs shares, and not a whole block at the end.
    let content: Vec<u8> = (0..(40u32 << 20) / 4 + 25)
        .flat_map(|index| index.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    for name in ["one", "two", "three"] {
        let path = mounted.at.join(name);
        fs::write(&path, &content).unwrap();
        fs::File::open(&path).unwrap().sync_all().unwrap();
    }
    let mtime = mounted.at.join("two").metadata().unwrap().mtime_nsec();
    let before = snapshot(&mounted.at);
    let options = options(Action::Reflink);
    let (summary, lines) = run_groups(groups(&mounted.at), &options, None);
    assert!(summary.is_clean(), "{kind}: {lines:?}");
    assert_eq!(summary.changed, 2, "{kind}: {lines:?}");
    assert!(
        summary.freed >= 2 * (content.len() as u64 - 4096),
        "{kind}: {summary:?}"
    );
    assert_eq!(snapshot(&mounted.at), before);
    assert_eq!(
        mounted.at.join("two").metadata().unwrap().mtime_nsec(),
        mtime
    );
    let extents = |name: &str| {
        let file = fs::File::open(mounted.at.join(name)).unwrap();
        bc_read::extents::extents(&file, bc_read::extents::Dirty::Leave).unwrap()
    };
    assert_eq!(extents("one"), extents("two"));
    assert!(extents("one").iter().all(|extent| extent.shared));

    let (second, lines) = run_groups(groups(&mounted.at), &options, None);
    assert_eq!((second.changed, second.errors), (0, 0), "{kind}: {lines:?}");
    assert_eq!(second.skipped["already shared"], 2);

    // Shared files are separate files: changing one changes no other.
    fs::write(mounted.at.join("two"), "new").unwrap();
    assert_eq!(fs::read(mounted.at.join("one")).unwrap(), content);
}

#[test]
fn where_it_is_not_supported_nothing_happens() {
    let tree = sample();
    let before = snapshot(tree.path());
    let inodes: Vec<u64> = before.keys().map(inode).collect();
    let (summary, lines) = run(&tree, &options(Action::Reflink));
    // On a file system that can, it simply works.
    assert!(summary.changed == 3 || summary.errors == 3, "{lines:?}");
    assert_eq!(snapshot(tree.path()), before);
    assert_eq!(before.keys().map(inode).collect::<Vec<_>>(), inodes);
}
