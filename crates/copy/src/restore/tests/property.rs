//! Random trees, random damage, random copies that hold a part: in every case no path has less than
//! before, no content is gone, and all contents that some copy holds are restored.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use bc_integrity::RootCheck;
use bc_testkit::{Rng, Seen};
use bc_walk::job::Setting;

use super::super::RestoreOptions;
use super::Ground;

/// The last one found something once: a directory that was made for nothing.
const SEEDS: [u64; 8] = [0, 1, 2, 3, 4, 5, 6, 18];

type Content = Vec<u8>;

/// Content by path, of files alone.
type Files = BTreeMap<PathBuf, Content>;

#[test]
fn no_content_is_gone_and_what_a_copy_holds_is_healed() {
    // Another one than ever before, too; a failure names it.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let fresh = now.unwrap().subsec_nanos();
    let fresh = (0..bc_testkit::cases(1) as u64).map(|nth| u64::from(fresh) + nth);
    for seed in SEEDS.into_iter().chain(fresh) {
        let reported = std::panic::catch_unwind(|| once(seed));
        assert!(reported.is_ok(), "failed, see above: seed {seed}");
    }
}

fn once(seed: u64) {
    let mut rng = Rng::new(seed);
    let ground = Ground::new();
    let alike = ground.at("root").metadata().unwrap().created().is_ok();
    let recorded = grow(&ground, &mut rng, alike);
    ground.record();
    tick(&ground);
    let held = copies(&ground, &recorded, &mut rng);
    // Numbers of their own, so that the seeds play what they have found.
    let mut names = Rng::new(!seed);
    let (mut edited, mut taken) = rename(&ground, &recorded, &mut names);
    edited.extend(wound(&ground, &recorded, &edited, &mut rng));
    taken.retain(|path| ground.at("root").join(path).symlink_metadata().is_ok());
    rename_dirs(&ground, edited.iter().chain(&taken), &mut names);
    let before = files(&ground);
    let discards = rng.below(4) == 0;
    let (asked, _) = ground.try_heal(&["one", "two"], |options| options.dry_run = true);
    let root_check = match asked {
        Ok(_) => RootCheck::Careful,
        // All of it is lost.
        Err(error) if error.setting() == Some(Setting::Force) => {
            let is_left = |path: &PathBuf| before.contains_key(path);
            assert!(!recorded.keys().any(is_left), "seed {seed}: {error}");
            RootCheck::Forced
        }
        Err(error) => panic!("seed {seed}: {error}"),
    };
    let heal = |change: &dyn Fn(&mut RestoreOptions<'_>)| {
        ground.heal(&["one", "two"], |options| {
            options.root_check = root_check;
            change(options);
        })
    };
    let (foreseen, _) = heal(&|options| options.dry_run = true);
    assert_eq!(files(&ground), before, "seed {seed}: a dry run");
    let (done, reported) = heal(&|options| options.discard_damaged = discards);
    let after = files(&ground);
    let say = |path: &Path| format!("seed {seed}: {}: {reported:#?}", path.display());
    assert_eq!(done.failed, 0, "seed {seed}: {reported:#?}");
    assert_eq!(
        (foreseen.repaired, foreseen.missing),
        (done.repaired, done.missing),
        "seed {seed}: {reported:#?}"
    );

    let good: BTreeSet<&Content> = recorded.values().collect();
    // By content: what was anywhere is somewhere, unless it was damaged and not wanted.
    let now: BTreeSet<&Content> = after.values().collect();
    for (path, content) in &before {
        assert!(
            now.contains(content) || discards && !good.contains(content),
            "{}",
            say(path)
        );
    }
    // By path: what was right is right; what was not is what it was, or right.
    for (path, content) in &before {
        let is = after.get(path).unwrap_or_else(|| panic!("{}", say(path)));
        assert!(
            is == content || !good.contains(content) && good.contains(is),
            "{}",
            say(path)
        );
        if edited.contains(path) {
            assert_eq!(is, content, "{}", say(path));
        }
    }
    // All contents that are held somewhere are there.
    let is_lost = |path: &PathBuf| !edited.contains(path) && !taken.contains(path);
    for (path, content) in recorded.iter().filter(|(path, _)| is_lost(path)) {
        let is_elsewhere = before
            .iter()
            .chain(&after)
            .any(|(at, is)| is == content && !recorded.contains_key(at));
        match after.get(path) {
            Some(is) => assert!(is == content || !held.contains(content), "{}", say(path)),
            None => assert!(is_elsewhere || !held.contains(content), "{}", say(path)),
        }
    }
    // What has another name by now is none of the lost; what something else has is named.
    for path in &taken {
        let line = format!("! {}: something of another kind", path.display());
        let is_named = reported.iter().any(|told| told.starts_with(&line));
        let is_elsewhere = after.values().any(|is| *is == recorded[path]);
        assert!(is_named || is_elsewhere, "{}", say(path));
    }
    // Once more there is nothing to do but what no copy holds.
    let (again, reported) = heal(&|_| {});
    assert_eq!(
        (again.repaired, again.missing),
        (0, done.missing),
        "seed {seed}: {reported:#?}"
    );
    assert_eq!(files(&ground), after, "seed {seed}");
}

/// Waits until files are born later than what was recorded: the clock of the kernel has ticks.
pub(super) fn tick(ground: &Ground) {
    let time = || {
        ground.write("tick", "x");
        fs::metadata(ground.at("tick")).unwrap().modified().unwrap()
    };
    let before = time();
    while time() == before {}
}

fn files(ground: &Ground) -> Files {
    let is_file = |seen: &Seen| seen.mode & 0o170_000 == 0o100_000;
    let seen = ground.seen("root").into_iter();
    seen.filter(|(_, seen)| is_file(seen))
        .map(|(path, seen)| (path, seen.content))
        .collect()
}

/// Files of different contents, some of them with several names.
fn grow(ground: &Ground, rng: &mut Rng, alike: bool) -> Files {
    let mut files = Files::new();
    let dirs = ["", "a/", "a/b/", "c/"];
    for number in 0..4 + rng.below(8) {
        let path = format!("{}f{number}", dirs[rng.below(4) as usize]);
        let length = 8 + [0, 100, 5_000, 200_000][rng.below(4) as usize];
        let mut content = format!("{number:08}").into_bytes();
        content.extend(rng.bytes(length as usize));
        ground.write(&format!("root/{path}"), &content);
        // Only a time of birth distinguishes files of one size and time that have had the same
        // inode number.
        let seconds = match alike {
            true => 1_000_000,
            false => 1_000_000 + number,
        };
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        let file = fs::File::options()
            .write(true)
            .open(ground.at("root").join(&path));
        file.unwrap().set_modified(time).unwrap();
        files.insert(path.clone().into(), content.clone());
        if rng.below(3) == 0 {
            for further in 0..1 + rng.below(2) {
                let name = format!("{}f{number}-{further}", dirs[rng.below(4) as usize]);
                let full = ground.at("root").join(&name);
                fs::create_dir_all(full.parent().unwrap()).unwrap();
                fs::hard_link(ground.at("root").join(&path), full).unwrap();
                files.insert(name.into(), content.clone());
            }
        }
    }
    files
}

/// Makes two trees that hold some of it, at the same path, under other names, damaged, cut off, or
/// as a file that only looks like it. Returns the contents that they hold.
fn copies(ground: &Ground, recorded: &Files, rng: &mut Rng) -> BTreeSet<Content> {
    let mut held = BTreeSet::new();
    for tree in ["one", "two"] {
        fs::create_dir(ground.at(tree)).unwrap();
        ground.write(&format!("{tree}/other"), "other");
        for (number, (path, content)) in recorded.iter().enumerate() {
            let same = format!("{tree}/{}", path.display());
            let mut other = content.clone();
            match rng.below(8) {
                0 => {
                    ground.write(&same, content);
                    held.insert(content.clone());
                }
                1 => {
                    ground.write(&format!("{tree}/deep/er/{number}"), content);
                    held.insert(content.clone());
                }
                2 => {
                    let at = rng.below(other.len() as u64) as usize;
                    other[at] ^= 0x40;
                    ground.write(&same, &other);
                }
                3 => ground.write(&same, &other[..other.len() - 1]),
                4 => {
                    // Followed, it would lead to what is right.
                    ground.write(&format!("outside/{tree}{number}"), content);
                    let link = ground.at(&same);
                    fs::create_dir_all(link.parent().unwrap()).unwrap();
                    symlink(ground.at(format!("outside/{tree}{number}")), link).unwrap();
                }
                5 => {
                    let pipe = ground.at(&same);
                    fs::create_dir_all(pipe.parent().unwrap()).unwrap();
                    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
                    let kind = rustix::fs::FileType::Fifo;
                    rustix::fs::mknodat(rustix::fs::CWD, pipe, kind, mode, 0).unwrap();
                }
                _ => {}
            }
        }
    }
    held
}

/// Renames some files one after the other, and gives the names of some to something else. Returns the
/// paths that have another file, and those that have none.
fn rename(
    ground: &Ground,
    recorded: &Files,
    rng: &mut Rng,
) -> (BTreeSet<PathBuf>, BTreeSet<PathBuf>) {
    let (mut edited, mut taken) = (BTreeSet::new(), BTreeSet::new());
    let at = |path: &Path| ground.at("root").join(path);
    let paths: Vec<&PathBuf> = recorded.keys().collect();
    let mut some = || paths[rng.below(paths.len() as u64) as usize].clone();
    let (first, second, third) = (some(), some(), some());
    let has_one_name = |path: &PathBuf| {
        let same = recorded
            .values()
            .filter(|content| **content == recorded[path]);
        same.count() == 1
    };
    let are_apart = first != second && has_one_name(&first) && has_one_name(&second);
    if are_apart && rng.below(2) == 0 {
        fs::rename(at(&second), at(Path::new("rotated"))).unwrap();
        fs::rename(at(&first), at(&second)).unwrap();
        edited.extend([first.clone(), second.clone()]);
    }
    if ![first, second].contains(&third) && rng.below(3) == 0 {
        fs::remove_file(at(&third)).unwrap();
        match rng.below(2) {
            0 => fs::create_dir(at(&third)).unwrap(),
            _ => symlink("kept", at(&third)).unwrap(),
        }
        taken.insert(third);
    }
    (edited, taken)
}

/// Renames directories, but for those of paths that are to stay.
fn rename_dirs<'p>(
    ground: &Ground,
    stay: impl Iterator<Item = &'p PathBuf> + Clone,
    rng: &mut Rng,
) {
    let root = ground.at("root");
    for dir in ["a/b", "c"] {
        let is_left = stay.clone().any(|path| path.starts_with(dir));
        if rng.below(3) == 0 && !is_left && root.join(dir).exists() {
            fs::rename(
                root.join(dir),
                root.join(format!("renamed-{}", &dir[dir.len() - 1..])),
            )
            .unwrap();
        }
    }
}

/// Damages the tree as years may do, but for the names that have other files. Returns the paths of
/// edited files.
fn wound(
    ground: &Ground,
    recorded: &Files,
    renamed: &BTreeSet<PathBuf>,
    rng: &mut Rng,
) -> BTreeSet<PathBuf> {
    let mut edited = BTreeSet::new();
    let root = ground.at("root");
    for (number, path) in recorded.keys().enumerate() {
        let full = root.join(path);
        if !full.is_file() || full.is_symlink() || renamed.contains(path) {
            continue;
        }
        let name = format!("root/{}", path.display());
        match rng.below(12) {
            0 | 1 => ground.damage(&name),
            8 | 9 => {
                // Gone, and a new one, of its size and time, that may have its number.
                let (mut content, meta) = (fs::read(&full).unwrap(), fs::metadata(&full).unwrap());
                fs::remove_file(&full).unwrap();
                content[..8].copy_from_slice(format!("{:08}", 9000 + number).as_bytes());
                let new = format!("fresh{number}");
                ground.write(&format!("root/{new}"), &content);
                let file = fs::File::options().write(true).open(root.join(&new));
                file.unwrap()
                    .set_modified(meta.modified().unwrap())
                    .unwrap();
                edited.insert(new.into());
            }
            2 | 3 => fs::remove_file(&full).unwrap(),
            4 => {
                let seen = ground.seen("root");
                edited.extend(seen[path].names.iter().cloned());
                fs::write(&full, format!("an edit, number {number}")).unwrap();
            }
            5 => fs::rename(&full, root.join(format!("moved{number}"))).unwrap(),
            6 => {
                ground.damage(&name);
                fs::rename(&full, root.join(format!("moved{number}"))).unwrap();
            }
            7 => {
                // A file of its own now, and damaged.
                let mut content = fs::read(&full).unwrap();
                let time = fs::metadata(&full).unwrap().modified().unwrap();
                content[0] ^= 1;
                fs::write(root.join("new"), content).unwrap();
                let new = fs::File::options().write(true).open(root.join("new"));
                new.unwrap().set_modified(time).unwrap();
                fs::rename(root.join("new"), &full).unwrap();
            }
            _ => {}
        }
    }
    if rng.below(3) == 0 && root.join("a/b").exists() {
        let gone: BTreeSet<PathBuf> = edited
            .iter()
            .filter(|path| path.starts_with("a/b"))
            .cloned()
            .collect();
        if gone.is_empty() {
            fs::remove_dir_all(root.join("a/b")).unwrap();
        }
    }
    ground.write("root/added", "added");
    edited
}
