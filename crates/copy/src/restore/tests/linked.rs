//! Names of one file: what they replace goes only when it is on the disk, and a file system without
//! links is asked for one of them.

use std::collections::HashSet;
use std::fs;

use bc_fs::faults::{self, Fault};
use rustix::io::Errno;

use super::Ground;

/// Names of one file, beside another one, and a copy of the first name.
fn ground(names: usize) -> Ground {
    let ground = Ground::new();
    ground.write("root/kept", "kept");
    ground.write("root/n0", "content");
    for number in 1..names {
        fs::hard_link(ground.at("root/n0"), ground.at(format!("root/n{number}"))).unwrap();
    }
    ground.record();
    ground.write("copy/n0", "content");
    ground
}

/// After a power cut the damaged file would be gone, and the good one not there yet.
#[test]
fn what_replaces_a_file_is_on_the_disk_whichever_name_it_had_first() {
    for from in [&["copy"][..], &[]] {
        let ground = ground(2);
        if from.is_empty() {
            // The other name still leads to the recorded file.
            let time = fs::metadata(ground.at("root/n0")).unwrap().modified();
            ground.write("new", "cOntent");
            let new = fs::File::options().write(true).open(ground.at("new"));
            new.unwrap().set_modified(time.unwrap()).unwrap();
            fs::rename(ground.at("new"), ground.at("root/n1")).unwrap();
        } else {
            ground.damage("root/n1");
            fs::remove_file(ground.at("root/n0")).unwrap();
        }
        faults::watch();
        let (done, reported) = ground.heal(from, |options| options.discard_damaged = true);
        let seen = faults::disarm();
        assert_eq!(done.missing + done.failed, 0, "{reported:#?}");
        assert_eq!(ground.inode("root/n0"), ground.inode("root/n1"));
        assert_eq!(ground.text("root/n1"), "content");
        assert!(
            seen.first("fsync") < seen.first("exchange"),
            "{from:?}: {:?}",
            seen.calls
        );
    }
}

#[test]
fn links_that_are_refused_are_tried_once() {
    for (errno, nth, links, files) in [
        (Errno::PERM, 1, 1, 5),
        (Errno::OPNOTSUPP, 1, 1, 5),
        // The second name is the last that the first file may have; the others are of another one.
        (Errno::MLINK, 2, 4, 2),
    ] {
        let ground = ground(5);
        let names: Vec<String> = (0..5).map(|number| format!("root/n{number}")).collect();
        for name in &names {
            fs::remove_file(ground.at(name)).unwrap();
        }
        faults::arm(("link".to_owned(), nth), Fault::Errno(errno));
        let (done, reported) = ground.heal(&["copy"], |_| {});
        let seen = faults::disarm();
        assert!(seen.reached, "{errno}: {:?}", seen.calls);
        assert_eq!((done.repaired, done.wanted), (5, 5), "{reported:#?}");
        let made: HashSet<u64> = names.iter().map(|name| ground.inode(name)).collect();
        assert_eq!(made.len(), files, "{errno}: {reported:#?}");
        assert!(names.iter().all(|name| ground.text(name) == "content"));
        let tried = seen.calls.iter().filter(|call| **call == "link").count();
        assert_eq!(tried, links, "{errno}: {:?}", seen.calls);
    }
}
