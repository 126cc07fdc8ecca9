//! Random trees, hostile names, metadata, links, and trees that change.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;

use proptest::prelude::*;
use rustix::fs::{CWD, Mode, mknodat};

use super::*;
use crate::{DirId, ErrorKind, FileStats, Metadata, Symlinks};

fn paths(listing: &Listing) -> Vec<Vec<u8>> {
    listing.ids().map(|id| listing.path(id)).collect()
}

fn all() -> WalkOptions {
    WalkOptions {
        entries: Entries::All,
        ..WalkOptions::default()
    }
}

/// Returns names of few letters, so that they collide and are prefixes of each other; bytes below
/// and above the slash.
fn name() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(
        prop::sample::select(&b"ab-.0 \n\x01\x7f\xff\xc3"[..]),
        1..10,
    )
    .prop_filter("not a name", |name| name != b"." && name != b"..")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn any_tree_is_listed_as_by_a_naive_recursion(
        paths_to_add in prop::collection::vec(
            (prop::collection::vec(name(), 1..6), prop::bool::ANY), 0..60)
    ) {
        let tree = Tree::new();
        for (components, is_file) in paths_to_add {
            let path = tree.path(&components.join(&b'/'));
            // A file may be in the way.
            if fs::create_dir_all(path.parent().unwrap()).is_ok() {
                let _ = if is_file { fs::write(&path, "") } else { fs::create_dir(&path) };
            }
        }
        for options in [WalkOptions::default(), all()] {
            let listing = in_every_way(Given::Roots, &[tree.root()], &options);
            prop_assert_eq!(paths(&listing), naive(tree.0.path(), options.entries));
            prop_assert!(listing.errors().is_empty());
        }
    }
}

#[test]
fn hostile_names() {
    let tree = Tree::new();
    let longest = [b'x'; 255];
    for name in [
        &b"-rf"[..],
        b" ",
        b"a\nb",
        b"\xff\xfe",
        b"$(id)",
        b"'\"`",
        b"\\",
        b"...",
        b"\x1b[2J",
        b"d",
        b"d-",
        b"d.",
        b"d0",
        b"*",
        b"~",
        b"\xe2\x80\xae",
        &longest,
    ] {
        tree.add(&[name, b"-file"].concat()[..name.len().min(250)]);
        tree.add(&[b"dir/", name, b"/", name].concat());
    }
    let listing = in_every_way(Given::Roots, &[tree.root()], &WalkOptions::default());
    assert_eq!(paths(&listing), naive(tree.0.path(), Entries::Files));
    for id in listing.ids() {
        assert_eq!(listing.name_bytes(id), listing.name(id).to_bytes());
        assert_eq!(
            fs::metadata(PathBuf::from(OsString::from_vec(listing.path(id))))
                .unwrap()
                .ino(),
            listing.inode_hint(id)
        );
    }
}

#[test]
fn contents_of_a_directory_sort_with_its_slash() {
    let tree = Tree::with(&["d/x", "d-a", "d.b", "d0", "d!", "c", "e"]);
    let (names, _) = walked(&tree, &[], &WalkOptions::default());
    assert_eq!(names, ["c", "d!", "d-a", "d.b", "d/x", "d0", "e"]);
    let (names, _) = walked(&tree, &[], &all());
    assert_eq!(names, ["", "c", "d", "d!", "d-a", "d.b", "d/x", "d0", "e"]);
}

#[test]
fn every_kind_is_told_apart_and_none_is_opened() {
    let tree = Tree::with(&["dir/inner", "file"]);
    tree.link("file", "link");
    tree.link("nowhere", "broken");
    let fifo = tree.path(b"fifo");
    mknodat(CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(tree.path(b"socket")).unwrap();

    let (names, listing) = walked(&tree, &[], &WalkOptions::default());
    assert_eq!(names, ["dir/inner", "file"]);
    assert_eq!(listing.skipped().symlinks, 2);
    assert_eq!(listing.skipped().special, 2);

    let (names, listing) = walked(&tree, &[], &all());
    assert_eq!(
        names,
        [
            "",
            "broken",
            "dir",
            "dir/inner",
            "fifo",
            "file",
            "link",
            "socket"
        ]
    );
    let kinds: Vec<_> = listing.ids().map(|id| listing.kind(id)).collect();
    let (file, dir, link) = (FileKind::File, FileKind::Dir, FileKind::Symlink);
    assert_eq!(
        kinds,
        [
            dir,
            link,
            dir,
            file,
            FileKind::Fifo,
            file,
            link,
            FileKind::Socket
        ]
    );
    assert_eq!(*listing.skipped(), Skipped::default());
    assert_eq!(listing.directories(), 2);
    let root = listing.ids().next().unwrap();
    assert_eq!(listing.name(root), c".");
    let mut relative = Vec::new();
    listing.write_relative(root, &mut relative);
    assert_eq!(relative, b".");
}

#[test]
fn files_are_left_alone_unless_the_walk_has_to_look() {
    let tree = Tree::with(&["a", "d/b", "d/e/"]);
    tree.link("a", "link");
    let left = |min_size| WalkOptions {
        metadata: Metadata::Full,
        file_stats: FileStats::Left,
        min_size,
        ..all()
    };
    let full = WalkOptions {
        metadata: Metadata::Full,
        ..all()
    };
    let (names, truth) = walked(&tree, &[], &full);
    let (same, listing) = walked(&tree, &[], &left(0));
    assert_eq!(names, same);
    for id in listing.ids() {
        if listing.kind(id) == FileKind::File {
            assert_eq!((listing.stat(id), listing.meta(id)), (None, None));
        } else {
            assert_eq!(listing.stat(id), truth.stat(id));
        }
    }
    let (_, listing) = walked(&tree, &[], &left(1));
    assert!(listing.ids().all(|id| listing.stat(id) == truth.stat(id)));
}

#[test]
fn metadata_is_what_stat_says() {
    let tree = Tree::with(&["a", "d/b", "d/e/"]);
    fs::hard_link(tree.path(b"a"), tree.path(b"d/second")).unwrap();
    tree.link("a", "link");
    // For root only.
    let device = mknodat(
        CWD,
        tree.path(b"null"),
        rustix::fs::FileType::CharacterDevice,
        Mode::RUSR,
        rustix::fs::makedev(1, 3),
    );
    for level in [Metadata::None, Metadata::Basic, Metadata::Full] {
        let options = WalkOptions {
            metadata: level,
            ..all()
        };
        let (names, listing) = walked(&tree, &[], &options);
        assert_eq!(names.len(), 7 + usize::from(device.is_ok()));
        for id in listing.ids() {
            let path = PathBuf::from(OsString::from_vec(listing.path(id)));
            let truth = fs::symlink_metadata(path).unwrap();
            assert_eq!(listing.meta(id).is_some(), level >= Metadata::Basic);
            assert_eq!(listing.stat(id).is_some(), level == Metadata::Full);
            if let Some(meta) = listing.meta(id) {
                assert_eq!((meta.id.dev, meta.id.ino), (truth.dev(), truth.ino()));
                assert_eq!(meta.stamp.size, truth.size());
                let mtime = truth.mtime() * 1_000_000_000 + truth.mtime_nsec();
                assert_eq!(meta.stamp.mtime_ns, mtime);
                assert_eq!(meta.nlink, truth.nlink());
            }
            if let Some(stat) = listing.stat(id) {
                assert_eq!(stat.meta(), listing.meta(id).unwrap());
                assert_eq!(stat.mode, truth.mode());
                assert_eq!((stat.uid, stat.gid), (truth.uid(), truth.gid()));
                assert_eq!(stat.rdev, truth.rdev());
            }
        }
    }
}

#[test]
fn records_stay_small() {
    assert_eq!(size_of::<crate::listing::PackedEntry>(), 16);
    assert_eq!(size_of::<crate::tree::Item>(), 16);
    assert_eq!(size_of::<crate::tree::FoundEntry>(), 24);
    assert!(size_of::<crate::listing::Dir>() <= 48);
}

/// Checks that a listing takes the memory that its documentation promises, whatever the shape: so
/// 10 million files fit in a gigabyte beside an engine's own data.
#[test]
fn a_listing_takes_few_bytes_a_file() {
    const FILES: usize = 400;
    for in_one in [1, 20, FILES] {
        let tree = Tree::new();
        for nth in 0..FILES {
            tree.add(format!("{}/a-name-of16-{nth:04}", nth / in_one).as_bytes());
        }
        for (metadata, bytes) in [
            (Metadata::None, 16),
            (Metadata::Basic, 16 + 28),
            (Metadata::Full, 16 + 28),
        ] {
            let options = WalkOptions {
                metadata,
                ..WalkOptions::default()
            };
            let root = tree.path(b"").into_os_string();
            let listing = crate::walk(&[root], &options, 1, &Cancel::new()).unwrap();
            let dirs = listing.dirs() * (size_of::<crate::listing::Dir>() + 8);
            let most = FILES * (bytes + 16 + 2) + dirs + 1024;
            let memory = listing.memory() as usize;
            assert!(
                memory <= most,
                "{in_one} {metadata:?}: {memory}, not {most}"
            );
        }
    }
}

#[test]
fn a_small_tree_starts_no_threads() {
    let tree = Tree::with(&["a", "b/c", "d/e/f"]);
    let paths = vec![tree.root()];
    let cancel = Cancel::new();
    let tuning = Tuning {
        alone: Duration::from_secs(3600),
        metering: waiting(),
    };
    let listing = list(
        Given::Roots,
        &paths,
        &WalkOptions::default(),
        Workers::adaptive(8),
        &cancel,
        &tuning,
    )
    .unwrap();
    assert_eq!(listing.len(), 3);
    // One arena of the only worker, and one for roots that are files.
    assert_eq!(listing.arenas.len(), 2);
}

fn follow() -> WalkOptions {
    WalkOptions {
        symlinks: Symlinks::Follow,
        ..WalkOptions::default()
    }
}

#[test]
fn followed_links() {
    let outside = Tree::with(&["far/one", "further/two"]);
    outside.link("../further", "far/on");
    let tree = Tree::with(&["a/file", "z/last"]);
    tree.link(".", "cycle");
    tree.link("..", "a/up");
    tree.link("nowhere", "broken");
    tree.link("loop", "loop");
    tree.link("a/file", "to-file");
    tree.link("z", "again");
    tree.link(outside.path(b"far").to_str().unwrap(), "out");
    tree.link(outside.path(b"far").to_str().unwrap(), "out-again");

    let (names, listing) = walked(&tree, &[], &follow());
    assert_eq!(
        names,
        ["a/file", "out/on/two", "out/one", "to-file", "z/last"]
    );
    assert!(listing.errors().is_empty(), "{:?}", listing.errors());
    assert_eq!(listing.skipped().symlinks, 2, "broken and loop");
    assert_eq!(
        listing.skipped().repeated,
        3 + 1,
        "cycle, up, again; out-again"
    );
    for id in listing.ids() {
        assert_eq!(listing.kind(id), FileKind::File);
        assert_eq!(listing.follow(id), listing.name(id) == c"to-file");
        listing.open_dir(listing.dir(id)).unwrap();
    }
    let (names, _) = walked(&tree, &[], &WalkOptions::default());
    assert_eq!(names, ["a/file", "z/last"]);
}

#[test]
fn a_link_above_the_root_does_not_walk_it_again() {
    let tree = Tree::with(&["top/in/file", "top/other"]);
    tree.link("..", "top/in/up");
    let (names, listing) = walked(&tree, &["top/in"], &follow());
    assert_eq!(names, ["top/in/file", "top/in/up/other"]);
    assert_eq!(listing.skipped().repeated, 1);
}

#[test]
fn a_removed_directory_is_an_error_and_the_others_are_listed() {
    let tree = Tree::with(&["gone/", "here/file"]);
    let gone = fs::File::open(tree.path(b"gone")).unwrap();
    fs::remove_dir(tree.path(b"gone")).unwrap();
    use std::os::fd::AsRawFd as _;
    let root = format!("/proc/self/fd/{}", gone.as_raw_fd()).into_bytes();
    let roots = [root.clone(), tree.bytes("here")];
    // The descriptor is opened again each time, and empty.
    let listing = in_every_way(Given::Roots, &roots, &WalkOptions::default());
    assert_eq!(below(&tree, &listing), ["here/file"]);
    let [error] = listing.errors() else {
        panic!("{:?}", listing.errors());
    };
    assert_eq!(error.path(), root);
    assert_eq!(error.op(), "read directory");
    assert_eq!(error.kind(), ErrorKind::System(Errno::NOENT.raw_os_error()));
}

#[test]
fn an_unreadable_directory_is_an_error() {
    use std::os::unix::fs::PermissionsExt as _;
    let tree = Tree::with(&["a/file", "locked/file", "z"]);
    let locked = tree.path(b"locked");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
    let may_read = fs::read_dir(&locked).is_ok();
    let (names, listing) = walked(&tree, &[], &WalkOptions::default());
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o700)).unwrap();
    if may_read {
        // The superuser reads everything.
        assert_eq!(names, ["a/file", "locked/file", "z"]);
        assert!(listing.errors().is_empty());
    } else {
        assert_eq!(names, ["a/file", "z"]);
        let [error] = listing.errors() else {
            panic!("{:?}", listing.errors());
        };
        assert_eq!(
            (error.path(), error.op()),
            (&tree.bytes("locked")[..], "open")
        );
        assert_eq!(error.errno(), Some(13));
    }
}

#[test]
fn directories_that_come_and_go() {
    let tree = Tree::with(&["stay/file", "zz"]);
    let stop = Cancel::new();
    let churn = || {
        while !stop.is_cancelled() {
            tree.add(b"now/and/then");
            fs::rename(tree.path(b"now"), tree.path(b"later")).unwrap();
            fs::remove_dir_all(tree.path(b"later")).unwrap();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(churn);
        for _ in 0..300 {
            let cancel = Cancel::new();
            let paths = vec![tree.root()];
            let options = WalkOptions {
                metadata: Metadata::Basic,
                ..WalkOptions::default()
            };
            let listing = list(
                Given::Roots,
                &paths,
                &options,
                2.into(),
                &cancel,
                &at_once(),
            )
            .unwrap();
            let names = below(&tree, &listing);
            assert!(names.contains(&"stay/file".to_owned()) && names.contains(&"zz".to_owned()));
            for error in listing.errors() {
                assert_eq!(error.errno(), Some(Errno::NOENT.raw_os_error()), "{error}");
                let below = &error.path()[tree.root().len() + 1..];
                assert!(
                    below.starts_with(b"now") || below.starts_with(b"later"),
                    "{error}"
                );
            }
        }
        stop.cancel(1);
    });
}

#[test]
fn a_directory_replaced_by_a_link_is_not_entered() {
    let tree = Tree::with(&["d/sub/file", "elsewhere/sub/file"]);
    for opener in [Opener::new(), Opener::without_openat2()] {
        let cancel = Cancel::new();
        let path = tree.bytes("d");
        let (options, tuning) = (WalkOptions::default(), at_once());
        let listing = list_with(
            Given::Roots,
            &[&path],
            &options,
            || 1.into(),
            (&cancel).into(),
            &tuning,
            opener,
        )
        .unwrap();
        let dir = listing.dir(listing.ids().next().unwrap());
        assert_eq!(listing.dir_path(dir), tree.bytes("d/sub"));
        listing.open_dir(dir).unwrap();
        fs::rename(tree.path(b"d/sub"), tree.path(b"d/moved")).unwrap();
        tree.link("../elsewhere/sub", "d/sub");
        let error = listing.open_dir(dir).unwrap_err();
        assert_eq!(
            (error.path(), error.op()),
            (&tree.bytes("d/sub")[..], "open")
        );
        // The root is still the same directory, whatever it is called.
        fs::rename(tree.path(b"d"), tree.path(b"renamed")).unwrap();
        listing.open_dir(DirId(0)).unwrap();
        fs::rename(tree.path(b"renamed"), tree.path(b"d")).unwrap();
        fs::remove_file(tree.path(b"d/sub")).unwrap();
        fs::rename(tree.path(b"d/moved"), tree.path(b"d/sub")).unwrap();
    }
}

#[test]
fn cancelled_before_it_begins() {
    let tree = Tree::with(&["a", "b/c"]);
    for workers in [1, 4] {
        let cancel = Cancel::new();
        cancel.cancel(15);
        let paths = vec![tree.root(), tree.bytes("a")];
        let options = WalkOptions::default();
        let listing = list(
            Given::Roots,
            &paths,
            &options,
            workers.into(),
            &cancel,
            &at_once(),
        );
        let listing = listing.unwrap();
        assert!(listing.is_empty());
        assert_eq!(listing.directories(), 0);
    }
}

#[test]
fn many_entries_in_one_directory() {
    let tree = Tree::new();
    for number in 0..12_000 {
        fs::write(
            tree.path(format!("file-{number:07}-{:060}", 0).as_bytes()),
            "",
        )
        .unwrap();
    }
    let listing = in_every_way(Given::Roots, &[tree.root()], &WalkOptions::default());
    assert_eq!(paths(&listing), naive(tree.0.path(), Entries::Files));
}
