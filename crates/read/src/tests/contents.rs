//! Content that the pump delivers is that of the files, whatever their sizes.

use std::fs;
use std::path::PathBuf;

use bc_pool::{Cancel, Waiting};
use bc_walk::Metadata;

use super::{Pretend, Recorder, each_backend, files, list, options, pretend, read_all, walk};
use crate::{Backend, Changed, Choice, Plan, ReadOptions, SizeTrust, Want, pump};

const PAGE: usize = 4096;

fn lengths(slot: usize) -> Vec<usize> {
    let mut lengths = vec![0, 1, 4095, 4096, 4097, (1 << 20) + 3];
    for near in [slot, 2 * slot, 16 << 10] {
        lengths.extend([near - 1, near, near + 1]);
    }
    lengths
}

#[test]
fn every_size_through_every_width_and_slot_size() {
    for slot_size in [PAGE, 5 * PAGE, 128 << 10] {
        let (_tree, paths, contents) = files(&lengths(slot_size));
        for metadata in [Metadata::None, Metadata::Basic] {
            let listing = list(&paths, metadata);
            for width in [1, 3, 16] {
                each_backend(|backend| {
                    for slots in [1, 4, 128] {
                        let options = ReadOptions {
                            slot_size,
                            slots,
                            ..options(backend)
                        };
                        let mut recorder = Recorder::new(width);
                        let stats = read_all(&listing, &options, &mut recorder);
                        assert!(recorder.contents(&listing) == contents);
                        assert_eq!(stats.files, contents.len() as u64);
                        assert_eq!(stats.errors, 0);
                        let total: usize = contents.iter().map(Vec::len).sum();
                        assert_eq!(stats.bytes, total as u64);
                        assert_eq!(recorder.widest.min(2), width.min(2));
                    }
                });
            }
        }
    }
}

#[test]
fn sizes_that_are_not_trusted_and_changes_that_are_allowed() {
    let (_tree, paths, contents) = files(&lengths(2 * PAGE));
    let listing = list(&paths, Metadata::None);
    each_backend(|backend| {
        for sizes in [SizeTrust::Trusted, SizeTrust::Untrusted] {
            for changed in [Changed::Refuse, Changed::Allow] {
                let options = ReadOptions {
                    slot_size: 2 * PAGE,
                    sizes,
                    changed,
                    ..options(backend)
                };
                let mut recorder = Recorder::new(3);
                read_all(&listing, &options, &mut recorder);
                assert!(recorder.contents(&listing) == contents);
            }
        }
    });
}

#[test]
fn a_small_file_takes_one_read() {
    let (_tree, paths, contents) = files(&[0, 1, 700, 16383, 16384, 16385, 131_071]);
    let listing = list(&paths, Metadata::Basic);
    for width in [1, 4] {
        let mut recorder = Recorder::new(width);
        let stats = read_all(&listing, &options(Choice::Sync), &mut recorder);
        assert_eq!(stats.reads, contents.len() as u64);
        assert_eq!((stats.queued, stats.backend), (0, Backend::Sync));
        assert!(recorder.pieces.values().all(|pieces| pieces.len() == 1));
    }
}

#[test]
fn ranges_and_ends() {
    let lengths = [0, 5, 999, 1999, 2000, 2001, 10_000, 300_000];
    let (_tree, paths, contents) = files(&lengths);
    let listing = list(&paths, Metadata::Basic);
    each_backend(|backend| {
        for (offset, len) in [(0, 0), (0, 999), (1000, 1001), (5, u64::MAX), (1 << 40, 7)] {
            let mut recorder = Recorder::new(2);
            recorder.want = Want::Range { offset, len };
            read_all(&listing, &options(backend), &mut recorder);
            let wanted: Vec<Vec<u8>> = contents
                .iter()
                .map(|content| {
                    let start = content.len().min(offset as usize);
                    let end = content.len().min(offset.saturating_add(len) as usize);
                    content[start..end.max(start)].to_vec()
                })
                .collect();
            assert!(recorder.contents(&listing) == wanted, "{offset} {len}");
        }
        let mut recorder = Recorder::new(2);
        recorder.want = Want::Ends { len: 1000 };
        read_all(&listing, &options(backend), &mut recorder);
        let read = recorder.contents(&listing);
        for (entry, content) in listing.ids().zip(&contents) {
            let (expected, pieces) = if content.len() < 2000 {
                (content.clone(), vec![content.len()])
            } else {
                let ends = [&content[..1000], &content[content.len() - 1000..]].concat();
                (ends, vec![1000, 1000])
            };
            assert!(read[entry.0 as usize] == expected);
            assert_eq!(recorder.pieces[&entry], pieces);
        }
    });
}

#[test]
fn pseudo_files_are_read_to_their_end() {
    let paths: Vec<_> = ["/proc/version", "/proc/cpuinfo"]
        .into_iter()
        .map(std::path::PathBuf::from)
        .collect();
    let expected = fs::read("/proc/version").unwrap();
    let listing = list(&paths, Metadata::None);
    let version = listing
        .ids()
        .find(|&id| listing.path(id) == b"/proc/version")
        .unwrap();
    each_backend(|backend| {
        for sizes in [SizeTrust::Trusted, SizeTrust::Untrusted] {
            let options = ReadOptions {
                sizes,
                slot_size: PAGE,
                ..options(backend)
            };
            let mut recorder = Recorder::new(2);
            read_all(&listing, &options, &mut recorder);
            let contents = recorder.contents(&listing);
            assert!(contents.iter().all(|content| !content.is_empty()));
            assert_eq!(contents[version.0 as usize], expected);
        }
    });
}

/// Checks a size of 4096 with shorter content: only pseudo file systems may do that.
#[test]
fn sizes_made_up_by_sysfs_are_seen_through() {
    let path = std::path::PathBuf::from("/sys/kernel/mm/transparent_hugepage/enabled");
    let Ok(expected) = fs::read(&path) else {
        return bc_testkit::left_out("no sysfs here");
    };
    let listing = list(&[path], Metadata::None);
    each_backend(|backend| {
        let mut recorder = Recorder::new(1);
        read_all(&listing, &options(backend), &mut recorder);
        assert_eq!(recorder.contents(&listing)[0], expected);
    });
}

/// Returns the addresses of a line of `/proc/PID/maps`, and the rest of it.
fn mapping(line: &str) -> (std::ops::Range<u64>, &str) {
    let (range, rest) = line.split_once(' ').unwrap();
    let (start, end) = range.split_once('-').unwrap();
    let address = |text| u64::from_str_radix(text, 16).unwrap();
    (address(start)..address(end), rest)
}

/// Checks that an error in the middle is reported: `/proc/PID/mem` gives data up to the end of a
/// mapping, and then EIO.
#[test]
fn an_error_in_the_middle_is_an_error() {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mappings: Vec<_> = maps.lines().map(mapping).collect();
    let starts = mappings.iter().skip(1).map(|(range, _)| range.start);
    let gaps = mappings.iter().zip(starts.chain([u64::MAX]));
    // A wide gap that no other thread's mapping fills meanwhile, nor the heap, which grows at its end.
    let lasting = gaps.filter(|((range, rest), next)| {
        next - range.end > 1 << 32 && rest.starts_with('r') && !rest.ends_with("[heap]")
    });
    let hole = lasting.last().expect("a gap in the address space").0.0.end;
    let path = format!("/proc/{}/mem", std::process::id());
    let listing = list(&[path.clone().into()], Metadata::None);
    each_backend(|backend| {
        let mut recorder = Recorder::new(1);
        recorder.want = Want::Range {
            offset: hole - 4096,
            len: 65536,
        };
        let stats = read_all(&listing, &options(backend), &mut recorder);
        let error = recorder.error(0);
        assert_eq!((error.op(), error.errno()), ("read", Some(5)));
        assert_eq!(error.path(), path.as_bytes());
        assert_eq!(stats.bytes, 4096, "the part before the error was read");
        assert_eq!((stats.files, stats.errors), (0, 1));
    });
}

/// Returns whether all of a file could be read without waiting for the disk; `None` if not even a
/// part.
fn resident(path: &std::path::Path) -> Option<bool> {
    let file = fs::File::open(path).unwrap();
    let len = file.metadata().unwrap().len() as usize;
    let mut bytes = vec![0; len];
    let mut room = [std::io::IoSliceMut::new(&mut bytes)];
    let read = rustix::io::preadv2(&file, &mut room, 0, rustix::io::ReadWriteFlags::NOWAIT);
    match read {
        Err(rustix::io::Errno::AGAIN) => None,
        read => Some(read == Ok(len)),
    }
}

/// Checks that data that is on the disk only goes through the ring, where there is one.
#[test]
fn cold_files_are_queued() {
    let (_tree, paths, contents) = files(&[100_000; 40]);
    for path in &paths {
        let file = fs::File::open(path).unwrap();
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    }
    let cold = paths.iter().any(|path| resident(path).is_none());
    let listing = list(&paths, Metadata::Basic);
    let mut recorder = Recorder::new(4);
    let stats = read_all(&listing, &options(Choice::Auto), &mut recorder);
    assert!(recorder.contents(&listing) == contents);
    if !cold {
        return bc_testkit::left_out("this file system keeps its data in memory");
    }
    match crate::uring_available() {
        Ok(()) => assert!(stats.queued > 0 && stats.backend == Backend::Mixed),
        Err(_) => assert!(stats.queued == 0 && stats.refused.is_some()),
    }
    // And now they are resident, unless something else has the page cache emptied: it may do so
    // now and then, but not each time.
    let warm = (0..DISTURBED).any(|_| {
        let ready = paths.iter().all(|path| {
            fs::read(path).unwrap();
            resident(path) == Some(true)
        });
        let mut recorder = Recorder::new(4);
        let stats = read_all(&listing, &options(Choice::Auto), &mut recorder);
        assert!(recorder.contents(&listing) == contents);
        ready && (stats.queued, stats.backend) == (0, Backend::Sync)
    });
    assert!(warm, "resident files were queued each time");
}

/// Number of times that a condition is made again that other processes on the machine may take
/// away.
const DISTURBED: u32 = 200;

/// Checks that resident data never wait for a ring, that other data go there, and that unknown ones
/// never do, whose files are opened there once opens have been slow.
#[test]
fn auto_goes_by_what_it_is_told() {
    if !bc_testkit::has_descriptors(1024) {
        return;
    }
    let (_tree, paths, contents) = files(&[3000; 200]);
    let listing = list(&paths, Metadata::Basic);
    let ring = crate::uring_available().is_ok();
    // The first read of all shows whether others may go there.
    let (some, all) = match resident(&paths[0]) {
        Some(false) => (0..=200, 200..=200),
        _ => (199..=200, 399..=400),
    };
    for (what, queued) in [
        (Pretend::Nothing, 0..=0),
        (Pretend::Unknown, 0..=0),
        (Pretend::UnknownSlow, 150..=199),
        (Pretend::Decompresses, 0..=0),
        (Pretend::Mixed, some),
        (Pretend::Cold, all),
    ] {
        pretend(what);
        let mut recorder = Recorder::new(4);
        let stats = read_all(&listing, &options(Choice::Auto), &mut recorder);
        assert!(recorder.contents(&listing) == contents);
        if what == Pretend::Unknown && stats.queued > 0 {
            // A machine so busy that plain reads are slow indeed.
            continue;
        }
        if ring {
            assert!(queued.contains(&stats.queued), "{what:?}: {}", stats.queued);
        } else {
            assert_eq!(stats.queued, 0);
        }
    }
}

#[test]
fn thousands_of_files_in_nested_directories_with_several_workers() {
    if !bc_testkit::has_descriptors(1024) {
        return;
    }
    let tree = bc_testkit::TestTree::new();
    let mut expected = std::collections::BTreeMap::new();
    for at in 0..4000_usize {
        let name = format!("d{}/e{}/f{at}", at % 7, at % 31);
        let content = super::bytes(at * 37 % 9000, at);
        tree.write(&name, &content);
        expected.insert(
            tree.join(&name).into_os_string().into_encoded_bytes(),
            content,
        );
    }
    let listing = walk(tree.path(), Metadata::Basic);
    assert_eq!(listing.len(), expected.len());
    each_backend(|backend| {
        let plan = Plan::all(&listing, 3);
        let options = options(backend);
        let cancel = bc_pool::Cancel::new();
        let recorders = bc_pool::run(3, |_| {
            let mut recorder = Recorder::new(5);
            let stats = pump(&listing, &plan, &options, &cancel, &mut recorder);
            assert_eq!(stats.files, recorder.done.len() as u64);
            recorder.done
        })
        .unwrap();
        let mut seen = std::collections::BTreeMap::new();
        for (entry, result) in recorders.into_iter().flatten() {
            let (opened, bytes) = result.unwrap();
            assert_eq!(opened.stat.stamp.size, bytes.len() as u64);
            assert!(seen.insert(listing.path(entry), bytes).is_none());
        }
        assert!(seen == expected);
    });
}

/// Checks that the buffers of all workers together have a bound where these wait.
#[test]
fn many_workers_that_wait_fill_few_slots_each() {
    let widest = |what, workers, size| {
        let (_tree, paths, contents) = files(&[size; 80]);
        let listing = list(&paths, Metadata::None);
        pretend(what);
        let plan = Plan::all(&listing, workers);
        // Those that have joined leave nothing to the ring.
        plan.set_usual(2);
        let mut recorder = Recorder::new(16);
        let options = options(Choice::Auto);
        pump(&listing, &plan, &options, &Cancel::new(), &mut recorder);
        pretend(Pretend::Nothing);
        assert!(recorder.contents(&listing) == contents);
        recorder.widest
    };
    assert_eq!(widest(Pretend::UnknownSlow, 2, 3000), 16);
    assert_eq!(widest(Pretend::UnknownSlow, 64, 3000), 4);
    assert_eq!(widest(Pretend::UnknownSlow, 1000, 3000), 1);
    assert_eq!(widest(Pretend::Unknown, 64, 3000), 16);
    // No more than a few bytes, either.
    assert_eq!(widest(Pretend::UnknownSlow, 64, 30_000), 3);
    assert_eq!(widest(Pretend::Unknown, 64, 30_000), 16);
}

#[test]
fn whoever_may_wait_is_looked_at_while_files_are_small() {
    let dir = tempfile::tempdir().unwrap();
    let mut paths: Vec<PathBuf> = (0..60)
        .map(|number| dir.path().join(format!("{number:02}")))
        .collect();
    paths.iter().for_each(|path| fs::write(path, "x").unwrap());
    let looks = |what, choice, paths: &[PathBuf]| {
        pretend(what);
        let listing = list(paths, Metadata::None);
        let mut recorder = Recorder::new(1);
        read_all(&listing, &options(choice), &mut recorder);
        pretend(Pretend::Nothing);
        recorder.contents(&listing);
        let begins = |run: &&Waiting| **run == Waiting::Begins;
        let begun = recorder.waiting.iter().filter(begins).count();
        (begun, recorder.waiting.len() - begun)
    };
    // Workers that have joined elsewhere are sent away.
    let joined = |what| {
        pretend(what);
        let listing = list(&paths, Metadata::None);
        let plan = Plan::all(&listing, 1);
        plan.set_usual(1);
        plan.set_workers(2);
        let mut recorder = Recorder::new(1);
        pump(
            &listing,
            &plan,
            &options(Choice::Auto),
            &Cancel::new(),
            &mut recorder,
        );
        pretend(Pretend::Nothing);
        recorder.waiting
    };
    let no_help = |run: &Waiting| *run == Waiting::NoHelp;
    let waited = joined(Pretend::Cold);
    assert!(waited.len() >= 50, "{waited:?}");
    assert!(waited.iter().all(no_help), "{waited:?}");
    let waited = joined(Pretend::Unknown);
    assert!(!waited.iter().any(no_help), "{waited:?}");
    for what in [Pretend::Unknown, Pretend::Decompresses] {
        assert_eq!(looks(what, Choice::Auto, &paths), (1, 7), "{what:?}");
        assert_eq!(looks(what, Choice::Sync, &paths), (0, 0), "{what:?}");
    }
    // The ring reads what a disk has, and others would not help it.
    assert_eq!(looks(Pretend::Cold, Choice::Auto, &paths), (0, 0));
    // A long one among them: they begin again.
    let long = fs::File::create(&paths[30]).unwrap();
    long.set_len(1 << 20).unwrap();
    drop(long);
    paths.sort();
    assert_eq!(looks(Pretend::Decompresses, Choice::Auto, &paths), (2, 6));
}
