//! The cache: a second search opens nothing, and nothing stale, damaged or
//! foreign is ever believed.

use super::*;
use crate::{Cache, Location};

fn tree() -> TestTree {
    let tree = TestTree::new();
    for index in 0..40u32 {
        let size = [100, 9000, 200_000, 1_500_000][index as usize % 4];
        let mut content = vec![7; size];
        // Every second pair of files is equal, others part in their middle.
        content[size / 2] = if index % 8 < 4 { 0 } else { index as u8 };
        tree.write(format!("{index:02}"), content);
    }
    tree
}

/// Opens the cache of a search that started when the files were long written.
fn cache(path: &Path) -> Cache {
    let mut cache = Cache::open(path, Location::Named).unwrap();
    cache.pretend_later(10_000_000_000);
    cache.pretend_disk();
    cache
}

fn search_with(root: &Path, options: &ScanOptions, cache: &mut Cache) -> (Listing, Scan) {
    let listing = list(root);
    let progress = ScanProgress::default();
    let scan = scan(&listing, options, Some(cache), &Cancel::new(), &progress).unwrap();
    (listing, scan)
}

#[test]
fn second_search_opens_nothing_and_finds_the_same() {
    for algorithm in ALGORITHMS {
        let tree = tree();
        let file = tree.scratch("cache");
        let options = ScanOptions {
            algorithm,
            ..ScanOptions::default()
        };
        let expected = found(tree.path(), &options);
        assert!(!expected.is_empty());
        let mut first = cache(&file);
        let (listing, scan) = search_with(tree.path(), &options, &mut first);
        assert!(first.messages().is_empty(), "{:?}", first.messages());
        assert!(scan.stats.bytes_read > 0);
        let wasted = scan.wasted();
        drop(listing);

        let mut second = cache(&file);
        let (listing, scan) = search_with(tree.path(), &options, &mut second);
        assert!(second.messages().is_empty(), "{:?}", second.messages());
        assert_eq!(scan.stats.bytes_read, 0, "{algorithm}: {:?}", scan.stats);
        assert_eq!(scan.wasted(), wasted);
        let names: Vec<Vec<Vec<u8>>> = paths(&listing, &scan, &options);
        let expected: Vec<Vec<Vec<u8>>> = expected
            .iter()
            .map(|group| group.iter().map(|name| name.clone().into_bytes()).collect())
            .collect();
        assert_eq!(names, expected);
    }
}

#[test]
fn what_changed_is_read_again_even_with_its_mtime_set_back() {
    let tree = tree();
    let file = tree.scratch("cache");
    let options = ScanOptions::default();
    search_with(tree.path(), &options, &mut cache(&file));
    let before = fs::metadata(tree.join("00")).unwrap().modified().unwrap();
    let mut content = tree.read("00");
    content[30] ^= 1;
    fs::write(tree.join("00"), content).unwrap();
    let handle = fs::File::options()
        .write(true)
        .open(tree.join("00"))
        .unwrap();
    handle.set_modified(before).unwrap();
    let listing = list(tree.path());
    let fresh = search(&listing, &options);
    let (listing, scan) = search_with(tree.path(), &options, &mut cache(&file));
    assert_eq!(
        paths(&listing, &scan, &options),
        paths(&listing, &fresh, &options)
    );
    assert!(scan.stats.bytes_read > 0);
    // And a new file with an old one's content meets the remembered one.
    tree.write("new", tree.read("08"));
    let expected = found(tree.path(), &options);
    let (listing, scan) = search_with(tree.path(), &options, &mut cache(&file));
    let names = paths(&listing, &scan, &options);
    assert_eq!(names.len(), expected.len());
    assert!(names.iter().any(|group| group.contains(&b"new".to_vec())));
}

/// A write through a mapping that was made before may move no time.
#[test]
fn what_another_process_can_change_unseen_is_neither_remembered_nor_recalled() {
    let tree = tree();
    let probe = fs::File::open(tree.join("00")).unwrap();
    match bc_fs::lease::take(&probe) {
        Ok(()) => drop(probe),
        Err(why) => return bc_testkit::left_out(&format!("no leases here: {why:?}")),
    }
    let remembered = |file: &str| {
        let mut cache = cache(&tree.scratch(file));
        let scan = search_with(tree.path(), &ScanOptions::default(), &mut cache).1;
        scan.stats.remembered
    };
    assert_eq!(remembered("quiet"), 0);
    let all = remembered("quiet");
    let open = || {
        fs::File::options()
            .append(true)
            .open(tree.join("00"))
            .unwrap()
    };
    let writer = open();
    remembered("written");
    drop(writer);
    // It was not kept then, and is now.
    assert_eq!(remembered("written"), all - 1);
    assert_eq!(remembered("written"), all);
    let _writer = open();
    assert_eq!(remembered("written"), all - 1);
}

/// In memory nothing moves a time: no page is ever clean.
#[test]
fn nothing_in_memory_is_remembered() {
    let tree = tree();
    let traits = bc_fs::mount::basic_traits(fs::File::open(tree.path()).unwrap());
    if !traits.is_ok_and(|traits| traits.in_memory) {
        return bc_testkit::left_out("the tree lies on a disk");
    }
    let mut cache = Cache::open(tree.scratch("cache"), Location::Named).unwrap();
    cache.pretend_later(10_000_000_000);
    search_with(tree.path(), &ScanOptions::default(), &mut cache);
    assert_eq!(cache.messages().len(), 1);
    assert!(!tree.scratch("cache").exists());
}

#[test]
fn files_written_just_now_are_not_remembered() {
    let tree = tree();
    let file = tree.scratch("cache");
    // Not pretending: the files are younger than two seconds before the search.
    let mut now = Cache::open(&file, Location::Named).unwrap();
    search_with(tree.path(), &ScanOptions::default(), &mut now);
    let (_, scan) = search_with(tree.path(), &ScanOptions::default(), &mut cache(&file));
    assert_eq!(scan.stats.remembered, 0);
}

/// Silences expected panics, as the binary does.
fn quiet_about_expected_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !crate::panic_is_expected() {
                usual(info);
            }
        }));
    });
}

/// A tree, its groups, and the bytes of a sound cache of it.
fn sound_cache(tree: &TestTree, options: &ScanOptions) -> (Vec<Vec<Vec<u8>>>, Vec<u8>) {
    let expected = found(tree.path(), options)
        .iter()
        .map(|group| group.iter().map(|name| name.clone().into_bytes()).collect())
        .collect();
    let file = tree.scratch("sound");
    search_with(tree.path(), options, &mut cache(&file));
    (expected, fs::read(&file).unwrap())
}

fn write_private(file: &Path, content: &[u8]) {
    use std::os::unix::fs::PermissionsExt;
    // Another inode each time: a panic inside the store may leave the lock of one held.
    let _ = fs::remove_file(file);
    fs::write(file, content).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn nothing_is_recorded_or_recalled_where_inode_numbers_may_move() {
    let tree = tree();
    let file = tree.scratch("cache");
    let options = ScanOptions::default();
    let unstable = || {
        let mut cache = cache(&file);
        cache.pretend_unstable();
        cache
    };
    let mut first = unstable();
    search_with(tree.path(), &options, &mut first);
    assert!(
        first.messages()[0].contains("not used on"),
        "{:?}",
        first.messages()
    );
    let (_, scan) = search_with(tree.path(), &options, &mut cache(&file));
    assert_eq!(scan.stats.remembered, 0, "recorded all the same");
    let (_, scan) = search_with(tree.path(), &options, &mut cache(&file));
    assert!(scan.stats.remembered > 0);
    let (_, scan) = search_with(tree.path(), &options, &mut unstable());
    assert_eq!(scan.stats.remembered, 0, "recalled all the same");
}

#[test]
fn damaged_caches_are_set_aside_under_new_names() {
    quiet_about_expected_panics();
    let options = ScanOptions::default();
    let tree = tree();
    let (expected, sound) = sound_cache(&tree, &options);
    let file = tree.scratch("cache");
    tree.write("../cache.damaged", "the user's own");
    // Cut off behind the mark of a cache.
    let mark = sound.windows(8).position(|part| part == b"bc dup p");
    let end = (mark.unwrap() + 1024).min(sound.len() - 1);
    let mut samples = vec![sound[..end].to_vec()];
    // Bytes flipped all over the file, but in its first ones.
    for step in 1..24 {
        let mut damaged = sound.clone();
        for at in (step * 97..damaged.len()).step_by(24 * 97) {
            damaged[at] ^= 0x55;
        }
        samples.push(damaged);
    }
    let mut reported = 1;
    for sample in samples {
        write_private(&file, &sample);
        let mut used = cache(&file);
        let (listing, scan) = search_with(tree.path(), &options, &mut used);
        assert_eq!(paths(&listing, &scan, &options), expected);
        if !used.messages().is_empty() {
            reported += 1;
            let aside = tree.scratch(format!("cache.damaged-{reported}"));
            assert_eq!(fs::read(aside).unwrap(), sample);
        }
        // The next search is served by a sound one again.
        let mut next = cache(&file);
        let (listing, scan) = search_with(tree.path(), &options, &mut next);
        assert_eq!(paths(&listing, &scan, &options), expected);
        assert!(next.messages().is_empty(), "{:?}", next.messages());
    }
    assert!(reported > 4, "{reported}");
    let own = fs::read(tree.scratch("cache.damaged")).unwrap();
    assert_eq!(own, b"the user's own");
}

#[test]
fn whatever_byte_is_wrong_the_groups_are_right() {
    quiet_about_expected_panics();
    let options = ScanOptions::default();
    let tree = TestTree::new();
    for index in 0..12u8 {
        tree.write(format!("{index:02}"), vec![index / 2; 5000]);
    }
    let (expected, sound) = sound_cache(&tree, &options);
    // Bytes that are zero or free say nothing; the others are hit often.
    let telling: Vec<usize> = (0..sound.len()).filter(|at| sound[*at] != 0).collect();
    let mut rng = bc_testkit::Rng::new(5);
    let file = tree.scratch("cache");
    for round in 0..600 {
        let mut mutant = sound.clone();
        for _ in 0..=rng.below(3) {
            let at = match rng.below(2) {
                0 => telling[rng.below(telling.len() as u64) as usize],
                _ => rng.below(mutant.len().min(64 << 10) as u64) as usize,
            };
            mutant[at] = rng.next_u64() as u8;
        }
        write_private(&file, &mutant);
        match Cache::open(&file, Location::Named) {
            Err(_) => assert_eq!(fs::read(&file).unwrap(), mutant, "round {round}"),
            Ok(mut used) => {
                used.pretend_later(10_000_000_000);
                used.pretend_disk();
                let (listing, scan) = search_with(tree.path(), &options, &mut used);
                assert_eq!(paths(&listing, &scan, &options), expected, "round {round}");
            }
        }
        for left in fs::read_dir(tree.scratch("")).unwrap() {
            let left = left.unwrap();
            if left.file_name().to_string_lossy().contains(".damaged") {
                fs::remove_file(left.path()).unwrap();
            }
        }
    }
}

#[test]
fn what_never_was_a_cache_is_left_as_it_is() {
    quiet_about_expected_panics();
    let tree = tree();
    let options = ScanOptions::default();
    let (expected, sound) = sound_cache(&tree, &options);
    let foreign = tree.scratch("foreign.redb");
    let table: redb::TableDefinition<'_, u64, u64> = redb::TableDefinition::new("addresses");
    let database = redb::Database::create(&foreign).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(table).unwrap().insert(1, 2).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let foreign = fs::read(foreign).unwrap();
    let file = tree.scratch("photo");
    for content in [
        b"my diary\n".as_slice(),
        &[0; 4096],
        &[0xff; 3],
        b"redb",
        &sound[..100],
        &foreign,
        &foreign[..foreign.len() / 2],
    ] {
        write_private(&file, content);
        let before = fs::read_dir(tree.scratch("")).unwrap().count();
        let refused = Cache::open(&file, Location::Named).unwrap_err().to_string();
        assert!(refused.contains("not a cache of bc dup"), "{refused}");
        assert_eq!(fs::read(&file).unwrap(), content);
        assert_eq!(fs::read_dir(tree.scratch("")).unwrap().count(), before);
    }
    for place in [tree.path(), Path::new("/dev/null"), Path::new("/dev/zero")] {
        assert!(Cache::open(place, Location::Named).is_err());
        // Where caches are, nothing stops a search.
        assert_eq!(
            Cache::open(place, Location::Usual)
                .unwrap()
                .messages()
                .len(),
            1
        );
    }
    // Only an empty file is accepted, and any other file in the usual place makes room.
    for (content, location) in [("", Location::Named), ("half", Location::Usual)] {
        write_private(&file, content.as_bytes());
        let mut used = Cache::open(&file, location).unwrap();
        used.pretend_later(10_000_000_000);
        used.pretend_disk();
        search_with(tree.path(), &options, &mut used);
        assert_eq!(used.messages().len(), usize::from(!content.is_empty()));
        let (listing, scan) = search_with(tree.path(), &options, &mut cache(&file));
        assert_eq!(paths(&listing, &scan, &options), expected);
        assert_eq!(scan.stats.bytes_read, 0);
    }
}

#[test]
fn what_others_may_write_is_not_believed() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let tree = tree();
    let options = ScanOptions::default();
    let (_, sound) = sound_cache(&tree, &options);
    let file = tree.scratch("cache");
    for mode in [0o660, 0o606, 0o666] {
        write_private(&file, &sound);
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let used = cache(&file);
        assert!(
            used.messages()[0].contains("others may write"),
            "{:?}",
            used.messages()
        );
        assert!(!file.exists());
    }
    // The cache is readable by its owner alone, whatever the umask is.
    search_with(tree.path(), &options, &mut cache(&file));
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    if bc_testkit::is_root() {
        std::os::unix::fs::chown(&file, Some(bc_testkit::NOBODY), None).unwrap();
        let refused = Cache::open(&file, Location::Named).unwrap_err().to_string();
        assert!(refused.contains("belongs to user 65534"), "{refused}");
    } else {
        bc_testkit::left_out("caches of other users: only root can make them");
    }
}

#[test]
fn two_searches_at_once_are_safe() {
    let tree = tree();
    let file = tree.scratch("cache");
    let options = ScanOptions::default();
    let expected = found(tree.path(), &options);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..3 {
                    let mut cache = cache(&file);
                    let (listing, scan) = search_with(tree.path(), &options, &mut cache);
                    assert_eq!(paths(&listing, &scan, &options).len(), expected.len());
                    for message in cache.messages() {
                        assert!(message.contains("in use"), "{message}");
                    }
                }
            });
        }
    });
    let (_, scan) = search_with(tree.path(), &options, &mut cache(&file));
    assert_eq!(scan.stats.bytes_read, 0);
}

#[test]
fn unusable_places_are_done_without() {
    let tree = tree();
    tree.write("../plain", "a file");
    let expected = found(tree.path(), &ScanOptions::default());
    let mut cache = cache(&tree.scratch("plain/cache"));
    let (listing, scan) = search_with(tree.path(), &ScanOptions::default(), &mut cache);
    assert_eq!(
        paths(&listing, &scan, &ScanOptions::default()).len(),
        expected.len()
    );
    assert_eq!(cache.messages().len(), 1, "{:?}", cache.messages());
}
