//! Copied entries and their targets.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use bc_digest::Algorithm;
use bc_fs::faults::{self, Fault};
use bc_walk::job::ErrorKind;
use rustix::fs::{FileType, Mode, Timespec, Timestamps, XattrFlags};

use super::{Ground, done, run, seen};
use crate::{Durability, OnConflict, ReadBack, Target, When};

/// Something of everything.
fn populate(ground: &Ground) {
    ground.write("from/a/small", b"content");
    ground.write("from/a/empty", b"");
    ground.write("from/a/medium", &vec![7; 700_000]);
    ground.write("from/b/deep/er/file", b"x");
    ground.write("from/b/second", b"one");
    std::fs::hard_link(ground.at("from/b/second"), ground.at("from/a/first")).unwrap();
    symlink("../nowhere", ground.at("from/b/link")).unwrap();
    let odd = ground.at("from").join(OsStr::from_bytes(b"odd\xff\n"));
    std::fs::write(odd, b"odd").unwrap();
    ground.write(&format!("from/{}", "n".repeat(255)), b"long");
    ground.write(&format!("from/{}/x", "d".repeat(255)), b"longer");
    let mode = Mode::from_raw_mode(0o640);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        ground.at("from/b/pipe"),
        FileType::Fifo,
        mode,
        0,
    )
    .unwrap();
    let sparse = std::fs::File::create(ground.at("from/sparse")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"end", 3 << 20).unwrap();
    sparse.set_len(5 << 20).unwrap();
    std::fs::set_permissions(ground.at("from/a/small"), PermissionsExt::from_mode(0o4751)).unwrap();
    let _ = rustix::fs::setxattr(
        ground.at("from/a/small"),
        c"user.test",
        b"value",
        XattrFlags::empty(),
    );
    std::fs::set_permissions(ground.at("from/b/deep"), PermissionsExt::from_mode(0o550)).unwrap();
    for (path, seconds) in [
        ("from/a/small", 5),
        ("from/b/link", 7),
        ("from/b", 9),
        ("from", 11),
    ] {
        let time = Timespec {
            tv_sec: seconds,
            tv_nsec: 123_456_789,
        };
        let times = Timestamps {
            last_access: time,
            last_modification: time,
        };
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::utimensat(rustix::fs::CWD, ground.at(path), &times, flags).unwrap();
    }
}

fn open_up(ground: &Ground) {
    for tree in ["from", "to", "into/from"] {
        let path = ground.at(tree).join("b/deep");
        if path.exists() {
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o750)).unwrap();
        }
    }
}

#[test]
fn a_copy_is_its_source_in_everything() {
    let ground = Ground::new();
    populate(&ground);
    let copied = done(&ground.options(&["from"], "to"));
    assert_eq!(copied.walked, 18);
    let (from, to) = (seen(&ground.at("from")), seen(&ground.at("to")));
    assert_eq!(
        from.keys().collect::<Vec<_>>(),
        to.keys().collect::<Vec<_>>()
    );
    for (path, one) in &from {
        assert_eq!(Some(one), to.get(path), "{}", path.display());
    }
    let blocks = |path: &str| std::fs::metadata(ground.at(path)).unwrap().blocks();
    assert!(blocks("to/sparse") <= blocks("from/sparse") + 16);
    assert!(ground.litter().is_empty(), "{:?}", ground.litter());
    open_up(&ground);
}

#[test]
fn every_way_gives_the_same_copy() {
    let ground = Ground::new();
    populate(&ground);
    let from = seen(&ground.at("from"));
    let mut nth = 0;
    let mut copied = |change: &dyn Fn(&mut crate::CopyOptions)| {
        nth += 1;
        let to = format!("to{nth}");
        let options = ground.options(&["from"], &to).clone_with(change);
        done(&options);
        let to = seen(&ground.at(&to));
        assert!(
            from.iter().all(|(path, one)| to.get(path) == Some(one)),
            "{options:?}"
        );
        assert_eq!(from.len(), to.len());
    };
    for durability in Durability::ALL {
        copied(&|options| options.durability = durability);
    }
    for algorithm in ["none", "sha256", "xxh128", "blake2b"] {
        copied(&|options| options.algorithm = Algorithm::from_name(algorithm));
    }
    for sparse in When::ALL {
        copied(&|options| options.sparse = sparse);
    }
    for read_back in ReadBack::ALL {
        copied(&|options| options.read_back = read_back);
    }
    for workers in [1, 3, 16] {
        copied(&|options| options.workers = workers);
    }
    copied(&|options| options.reflink = When::Never);
    copied(&|options| options.strict = true);
    copied(&|options| options.state = None);
    assert!(ground.litter().is_empty(), "{:?}", ground.litter());
    for tree in std::fs::read_dir(ground.dir.path()).unwrap() {
        let deep = tree.unwrap().path().join("b/deep");
        if deep.exists() {
            std::fs::set_permissions(deep, PermissionsExt::from_mode(0o750)).unwrap();
        }
    }
}

/// Files with holes are copied apart from the batch that they are met in.
#[test]
fn small_files_beside_others_with_holes() {
    let ground = Ground::new();
    for number in 0..40_u8 {
        ground.write(&format!("from/{number:02}"), &vec![number + 1; 3000]);
        if number % 5 == 0 {
            let sparse = std::fs::File::create(ground.at(&format!("from/{number:02}-holes")));
            let at = 90_000 + u64::from(number);
            std::os::unix::fs::FileExt::write_all_at(&sparse.unwrap(), &[number + 1], at).unwrap();
        }
    }
    done(&ground.options(&["from"], "to"));
    assert_eq!(seen(&ground.at("from")), seen(&ground.at("to")));
}

/// They are read in another way than what was written a moment ago.
#[test]
fn files_that_nobody_has_written_to_for_long() {
    let ground = Ground::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut options = ground.options(&[], "to");
    options.sources.push(from.clone().into());
    done(&options);
    let copy = seen(&ground.at("to"));
    for (path, mut one) in seen(&from) {
        // They need not be this user's.
        one.owner = copy[&path].owner;
        assert!(copy[&path] == one, "{}", path.display());
    }
}

#[test]
fn where_it_goes_is_as_with_cp() {
    let ground = Ground::new();
    ground.write("from/a", b"a");
    std::fs::create_dir(ground.at("into")).unwrap();
    done(&ground.options(&["from"], "into"));
    assert!(ground.at("into/from/a").exists());
    let mut exactly = ground.options(&["from"], "into");
    exactly.target = Target::Exactly;
    done(&exactly);
    assert!(ground.at("into/a").exists());
    // A dot is its content.
    std::fs::create_dir(ground.at("dot")).unwrap();
    done(&ground.options(&["from/."], "dot"));
    assert!(ground.at("dot/a").exists());
    done(&ground.options(&["from/a"], "file"));
    assert_eq!(std::fs::read(ground.at("file")).unwrap(), b"a");
    done(
        &ground
            .options(&["from/a", "file"], "dot/../into/from/../../dot")
            .clone_with(|options| {
                options.on_conflict = OnConflict::Skip;
            }),
    );
    assert!(ground.at("dot/file").exists());
    let (refused, _) = run(&ground.options(&["from/a", "file"], "none"));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Usage);
}

#[test]
fn nothing_is_copied_into_itself() {
    let ground = Ground::new();
    ground.write("from/a/file", b"a");
    symlink("from/a", ground.at("way")).unwrap();
    for to in [
        "from/new", "from/a", "from/a/x", "way", "way/new", "from", ".",
    ] {
        let before = seen(&ground.at("from"));
        let (refused, reported) = run(&ground.options(&["from"], to));
        assert!(refused.is_err(), "{to} {reported:?}");
        assert_eq!(seen(&ground.at("from")), before, "{to}");
    }
}

#[test]
fn links_in_the_destination_are_not_followed() {
    let ground = Ground::new();
    ground.write("from/a/file", b"a");
    ground.write("from/other", b"o");
    std::fs::create_dir_all(ground.at("into/from")).unwrap();
    std::fs::create_dir(ground.at("elsewhere")).unwrap();
    symlink("../../elsewhere", ground.at("into/from/a")).unwrap();
    let (copied, reported) = run(&ground.options(&["from"], "into"));
    let copied = copied.unwrap();
    assert_eq!(
        (copied.walked, copied.copied, copied.failed),
        (4, 2, 2),
        "{reported:?}"
    );
    assert!(
        reported.iter().any(|line| line.contains("symbolic link")),
        "{reported:?}"
    );
    assert_eq!(
        std::fs::read_dir(ground.at("elsewhere")).unwrap().count(),
        0
    );
    assert!(ground.at("into/from/other").exists());
}

#[test]
fn what_is_done_with_a_name_that_is_taken() {
    for (policy, skipped, failed, expected) in [
        (OnConflict::Fail, 0, 3, ["old", "older", "same"]),
        (OnConflict::Skip, 3, 0, ["old", "older", "same"]),
        (OnConflict::Replace, 0, 0, ["new1", "new2", "same"]),
        (OnConflict::Update, 2, 0, ["new1", "older", "same"]),
        (OnConflict::Verify, 1, 0, ["new1", "new2", "same"]),
    ] {
        let ground = Ground::new();
        ground.write("from/1", b"new1");
        ground.write("from/2", b"new2");
        ground.write("from/3", b"same");
        ground.write("into/from/1", b"old");
        ground.write("into/from/2", b"older");
        ground.write("into/from/3", b"same");
        let long_ago = std::time::SystemTime::UNIX_EPOCH;
        let set = |path: &str, time| {
            let file = std::fs::File::options()
                .write(true)
                .open(ground.at(path))
                .unwrap();
            file.set_modified(time).unwrap();
        };
        set("into/from/1", long_ago);
        set("from/2", long_ago);
        set("from/3", long_ago);
        let mut options = ground.options(&["from"], "into");
        options.on_conflict = policy;
        let (copied, reported) = run(&options);
        let copied = copied.unwrap();
        assert_eq!(
            (copied.skipped, copied.failed),
            (skipped, failed),
            "{policy:?} {reported:?}"
        );
        for (name, content) in ["1", "2", "3"].iter().zip(expected) {
            let path = ground.at("into/from").join(name);
            assert_eq!(
                std::fs::read_to_string(path).unwrap(),
                content,
                "{policy:?}"
            );
        }
        assert!(ground.litter().len() <= 1, "{:?}", ground.litter());
    }
}

#[test]
fn roots_that_are_no_directories() {
    let ground = Ground::new();
    symlink("nowhere", ground.at("from/link")).unwrap();
    let mode = Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        ground.at("from/pipe"),
        FileType::Fifo,
        mode,
        0,
    )
    .unwrap();
    std::fs::create_dir(ground.at("into")).unwrap();
    done(&ground.options(&["from/link", "from/pipe"], "into"));
    assert_eq!(seen(&ground.at("into")).len(), 3);
    assert_eq!(
        std::fs::read_link(ground.at("into/link")).unwrap(),
        Path::new("nowhere")
    );
    let (copied, reported) = run(&ground.options(&["from/link", "none"], "into"));
    let copied = copied.unwrap();
    // The link is what an earlier copy has made of it.
    assert_eq!((copied.walked, copied.failed), (2, 1), "{reported:?}");
}

impl crate::CopyOptions {
    fn clone_with(&self, change: impl FnOnce(&mut crate::CopyOptions)) -> crate::CopyOptions {
        let mut options = self.clone();
        change(&mut options);
        options
    }
}

#[test]
fn state_that_has_no_room_is_refused_before_anything_is_written() {
    let ground = Ground::new();
    populate(&ground);
    let mut options = ground.options(&["from"], "to");
    options.most_memory = Some(100);
    let error = run(&options).0.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    let text = error.to_string();
    let (_, rest) = text.split_once("kept of the files, and ").unwrap();
    let needed: u64 = rest.split(' ').next().unwrap().parse().unwrap();
    assert!(!ground.at("to").exists());
    options.most_memory = Some(needed);
    done(&options);
    assert!(ground.at("to/a/small").exists());
}

/// Copies `from/a` and its further name `from/b`, while another program saves a file as `taken`
/// before a call: stages have names, and there is no journal, so that only further names are links.
fn copied_while_taken(taken: &str, call: &str) -> Ground {
    let ground = Ground::new();
    ground.write("from/a", b"content");
    std::fs::hard_link(ground.at("from/a"), ground.at("from/b")).unwrap();
    ground.write("other", b"another program's");
    let mut options = ground.options(&["from"], "to");
    (options.read_back, options.state) = (ReadBack::Read, None);
    let (other, taken) = (ground.at("other"), ground.at(taken));
    let save = move || std::fs::rename(other, taken).unwrap();
    faults::arm((call.to_owned(), 1), Fault::Run(Box::new(save)));
    let _ = run(&options);
    assert!(faults::disarm().reached);
    assert!(ground.litter().is_empty(), "{:?}", ground.litter());
    ground
}

/// Another program takes the first name just before a further one is made of it.
#[test]
fn a_further_name_leads_to_no_file_of_another_program() {
    let ground = copied_while_taken("to/a", "link");
    let text = |path| std::fs::read_to_string(ground.at(path)).unwrap();
    assert_eq!(
        (&*text("to/a"), &*text("to/b")),
        ("another program's", "content")
    );
}

/// Another program saves a file where a further name was, once the first one is copied.
#[test]
fn a_further_name_that_leads_elsewhere_by_now_is_no_link() {
    let ground = copied_while_taken("from/b", "rename");
    let text = |path| std::fs::read_to_string(ground.at(path)).ok();
    assert_eq!(text("to/a").as_deref(), Some("content"));
    let further = text("to/b");
    assert!(
        further
            .as_deref()
            .is_none_or(|text| text == "another program's"),
        "{further:?}"
    );
}
