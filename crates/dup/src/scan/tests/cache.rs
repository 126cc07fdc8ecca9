//! The cache: a second search opens nothing, and nothing stale, damaged or
//! foreign is ever believed.

use super::*;
use crate::Cache;

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

/// As a search begun when the files were long written.
fn cache(path: &Path) -> Cache {
    let mut cache = Cache::new(path);
    cache.pretend_later(10_000_000_000);
    cache
}

fn search_with(root: &Path, options: &Options, cache: &mut Cache) -> (Listing, Scan) {
    let listing = list(root);
    let progress = Progress::default();
    let scan = scan(&listing, options, Some(cache), &Cancel::new(), &progress).unwrap();
    (listing, scan)
}

#[test]
fn second_search_opens_nothing_and_finds_the_same() {
    for algorithm in ALGORITHMS {
        let tree = tree();
        let file = tree.scratch("cache");
        let options = Options {
            algorithm,
            ..Options::default()
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
    let options = Options::default();
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
    // And a new file with an old one's content meets what is remembered.
    tree.write("new", tree.read("08"));
    let expected = found(tree.path(), &options);
    let (listing, scan) = search_with(tree.path(), &options, &mut cache(&file));
    let names = paths(&listing, &scan, &options);
    assert_eq!(names.len(), expected.len());
    assert!(names.iter().any(|group| group.contains(&b"new".to_vec())));
}

#[test]
fn files_written_just_now_are_not_remembered() {
    let tree = tree();
    let file = tree.scratch("cache");
    // Not pretending: the files are younger than two seconds before the search.
    let mut now = Cache::new(&file);
    search_with(tree.path(), &Options::default(), &mut now);
    let (_, scan) = search_with(tree.path(), &Options::default(), &mut cache(&file));
    assert_eq!(scan.stats.remembered, 0);
}

#[test]
fn nothing_is_recorded_or_recalled_where_inode_numbers_may_move() {
    let tree = tree();
    let file = tree.scratch("cache");
    let options = Options::default();
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
fn damaged_and_foreign_caches_are_set_aside() {
    let options = Options::default();
    let tree = tree();
    let expected = found(tree.path(), &options);
    let file = tree.scratch("cache");
    search_with(tree.path(), &options, &mut cache(&file));
    let sound = fs::read(&file).unwrap();
    let mut samples: Vec<Vec<u8>> = vec![
        b"my diary\n".to_vec(),
        sound[..sound.len() / 2].to_vec(),
        sound[..100].to_vec(),
        vec![0; 4096],
    ];
    // Bytes flipped all over the file.
    for step in 0..24 {
        let mut damaged = sound.clone();
        for at in (step * 97..damaged.len()).step_by(24 * 97) {
            damaged[at] ^= 0x55;
        }
        samples.push(damaged);
    }
    let mut told = 0;
    for sample in samples {
        fs::write(&file, &sample).unwrap();
        let mut used = cache(&file);
        let (listing, scan) = search_with(tree.path(), &options, &mut used);
        let names: Vec<Vec<Vec<u8>>> = paths(&listing, &scan, &options);
        let expected: Vec<Vec<Vec<u8>>> = expected
            .iter()
            .map(|group| group.iter().map(|name| name.clone().into_bytes()).collect())
            .collect();
        assert_eq!(names, expected);
        if !used.messages().is_empty() {
            told += 1;
            let aside = tree.scratch("cache.damaged");
            if aside.exists() {
                assert_eq!(fs::read(&aside).unwrap(), sample);
                fs::remove_file(&aside).unwrap();
            }
        }
        // The next search is served by a sound one again, or by none.
        let mut next = cache(&file);
        let (listing, scan) = search_with(tree.path(), &options, &mut next);
        assert_eq!(paths(&listing, &scan, &options), expected);
    }
    assert!(told > 4, "{told}");
}

#[test]
fn two_searches_at_once_are_safe() {
    let tree = tree();
    let file = tree.scratch("cache");
    let options = Options::default();
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
    let expected = found(tree.path(), &Options::default());
    for place in [tree.scratch("plain/cache"), tree.path().to_owned()] {
        let mut cache = cache(&place);
        let (listing, scan) = search_with(tree.path(), &Options::default(), &mut cache);
        assert_eq!(
            paths(&listing, &scan, &Options::default()).len(),
            expected.len()
        );
        assert_eq!(cache.messages().len(), 1, "{:?}", cache.messages());
    }
    assert!(tree.path().is_dir());
}
