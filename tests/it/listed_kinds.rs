//! Views whose directories list another kind than is there, as unions of several file systems do: what
//! is no regular file is neither opened nor taken for one that changes.

use bc_testkit::{Behaviour, TestTree, fuse_disk, left_out, tool};
use rustix::fs::{CWD, FileType, Mode};

use crate::common::{BC, Bc};

#[test]
fn pipes_and_devices_that_are_listed_as_files_are_never_opened() {
    let behaviour = Behaviour {
        lists_all_as_files: true,
        ..Behaviour::default()
    };
    let disk = match fuse_disk(behaviour) {
        Ok(disk) => disk,
        Err(reason) => return left_out(&reason),
    };
    let at = |name: &str| disk.path().join(name);
    std::fs::write(at("file"), "content").unwrap();
    let mode = Mode::from_raw_mode(0o600);
    for (name, kind, device) in [
        ("pipe", FileType::Fifo, 0),
        ("device", FileType::CharacterDevice, 0x103),
        ("socket", FileType::Socket, 0),
    ] {
        rustix::fs::mknodat(CWD, at(name), kind, mode, device).unwrap();
    }
    let t = TestTree::new();
    let root = disk.path().to_str().unwrap();
    for line in [
        "hash ROOT",
        "dup scan ROOT",
        "integrity manifest --output=m ROOT",
        "integrity verify ROOT m",
        "copy ROOT copied",
    ] {
        let line = line.replace("ROOT", root);
        let out = t.bc_line(&line).go();
        out.code(0);
        assert!(!out.error_text().contains("changed"), "{out}");
        if tool("strace").is_none() {
            continue;
        }
        t.run("strace")
            .args(["-f", "-o", "calls", "-e", "trace=open,openat,openat2", BC])
            .args(line.split_whitespace())
            .go();
        let calls = String::from_utf8(t.read("calls")).unwrap();
        for call in calls.lines().filter(|call| !call.contains("O_PATH")) {
            let opens = |name: &str| call.contains(&format!("{name}\""));
            assert!(
                !["pipe", "device", "socket"].into_iter().any(opens),
                "{line}: {call}"
            );
        }
    }
    let manifest = String::from_utf8(t.read("m")).unwrap();
    for kind in ["fifo", "char", "socket"] {
        assert!(
            manifest.contains(&format!("\"kind\":\"{kind}\"")),
            "{manifest}"
        );
    }
}
