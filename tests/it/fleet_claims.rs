//! Questions about many manifests where one of them says something that must not be believed as it
//! stands: what is newer, what is a copy, what is one machine, what is one place.

use bc_testkit::{TestTree, duckdb};

use crate::common::Bc;

/// A file of a made-up manifest.
fn file(path: &str, digest: u32, more: &str) -> String {
    format!(
        "{{\"type\":\"entry\",\"path\":\"{path}\",\"kind\":\"file\",\"size\":10,\"mode\":33188,\
         \"mtime_ns\":5,\"ctime_ns\":5,\"ino\":{digest},\"nlink\":1,\"digest\":\"{digest:064x}\"{more}}}"
    )
}

/// Writes a manifest of machine `m`, root `/r` and file system `u`, but for what `header` says in
/// their place.
fn manifest(t: &TestTree, name: &str, header: &str, files: &[String]) {
    let mut fields = String::new();
    for (key, value) in [
        ("host", "\"h\""),
        ("machine", "\"m\""),
        ("root", "\"/r\""),
        ("fs_uuid", "\"u\""),
        ("mount_source", "\"/dev/sda\""),
        ("created_at", "\"2026-01-01T00:00:00Z\""),
        ("options", "{}"),
    ] {
        if !header.contains(&format!("\"{key}\":")) {
            fields.push_str(&format!(",\"{key}\":{value}"));
        }
    }
    let comma = if header.is_empty() { "" } else { "," };
    let mut text = format!(
        "{{\"type\":\"header\",\"schema\":1,\"algorithm\":\"sha256\",\"scope\":null,\
         \"shard\":null{fields}{comma}{header}}}\n"
    );
    for file in files {
        text.push_str(file);
        text.push('\n');
    }
    let (count, bytes) = (files.len(), files.len() * 10);
    text.push_str(&format!(
        "{{\"type\":\"trailer\",\"entries\":{count},\"files\":{count},\"dirs\":0,\
         \"bytes\":{bytes},\"errors\":0,\"sha256\":\"{name}\"}}\n"
    ));
    t.write(name, text);
}

/// The rows of warnings and of the question. `None` without the engine.
fn ask(t: &TestTree, args: &[&str]) -> Option<Vec<String>> {
    let sql = t.bc_line("integrity sql").args(args).go();
    sql.code(0).stderr_is("");
    let out = duckdb(t, &sql.text())?;
    assert!(out.code(0).error_text().is_empty(), "{}", out.error_text());
    Some(
        out.text()
            .lines()
            .map(|line| line.replace('"', ""))
            .collect(),
    )
}

/// How many rows have all of these texts.
fn count(lines: &[String], texts: &[&str]) -> usize {
    let has = |line: &&String| texts.iter().all(|text| line.contains(text));
    lines.iter().filter(has).count()
}

fn digest(of: u32) -> String {
    format!("{of:064x}")
}

/// An update is as new as its time says, whatever was made in between.
#[test]
fn an_update_is_newer_than_what_it_came_after() {
    let t = TestTree::new();
    let one = |path, digest| [file(path, digest, "")];
    manifest(
        &t,
        "old.jsonl",
        "\"created_at\":\"2026-02-01T00:00:00Z\"",
        &one("gone", 1),
    );
    let updated =
        "\"created_at\":\"2026-01-01T00:00:00Z\",\"updated_at\":\"2026-03-01T00:00:00.25Z\"";
    manifest(
        &t,
        "a.jsonl",
        updated,
        &[file("new", 2, ""), file("more", 3, "")],
    );
    let Some(lost) = ask(&t, &["--query=lost", "*.jsonl"]) else {
        return;
    };
    assert_eq!(count(&lost, &[&digest(1)]), 1, "{lost:#?}");
    assert_eq!(lost.len(), 1, "{lost:#?}");
    let found = ask(&t, &["--query=find", "--param=path=gone", "*.jsonl"]).unwrap();
    assert_eq!(count(&found, &["gone", "alse,old.jsonl"]), 1, "{found:#?}");
    let growth = [
        "--query=growth",
        "--param=from=2026-02-02",
        "--param=to=2026-03-01",
        "*.jsonl",
    ];
    let growth = ask(&t, &growth).unwrap();
    let row = "2026-02-01T00:00:00Z,2026-03-01T00:00:00.25Z,1,10";
    assert_eq!(count(&growth, &[row]), 1, "{growth:#?}");
}

/// Of two of one second, or of none that can be believed, nothing is silently the newest.
#[test]
fn times_that_say_nothing_are_named() {
    let t = TestTree::new();
    manifest(
        &t,
        "srv-2.jsonl",
        "",
        &[file("new", 1, "").replace("\"ctime_ns\":5", "\"ctime_ns\":9")],
    );
    manifest(&t, "srv-old.jsonl", "", &[file("gone", 2, "")]);
    for (name, time) in [
        ("future", "2999-01-01T00:00:00Z"),
        ("east", "2026-05-01T00:00:00+05:00"),
    ] {
        let header = format!("\"created_at\":\"{time}\"");
        manifest(
            &t,
            &format!("{name}.jsonl"),
            &header,
            &[file("never", 3, "")],
        );
    }
    let Some(lost) = ask(&t, &["--query=lost", "*.jsonl"]) else {
        return;
    };
    assert_eq!(
        count(&lost, &["as old as another", "srv-2.jsonl"]),
        1,
        "{lost:#?}"
    );
    for name in ["future", "east"] {
        assert_eq!(
            count(&lost, &["counts as the oldest", name]),
            1,
            "{lost:#?}"
        );
    }
    for (digit, rows) in [(1, 0), (2, 1), (3, 1)] {
        assert_eq!(count(&lost, &[&digest(digit)]), rows, "{digit}: {lost:#?}");
    }
}

/// What a manifest knows to be damaged, unreadable or not mounted is no copy.
#[test]
fn known_damage_is_no_copy() {
    let t = TestTree::new();
    let source = "\"root\":\"/s\",\"fs_uuid\":\"s\"";
    manifest(
        &t,
        "src.jsonl",
        source,
        &[1, 2, 3, 4].map(|n| file(&format!("f{n}"), n, "")),
    );
    let all = [1, 2, 3, 4].map(|n| file(&format!("f{n}"), n, ""));
    manifest(&t, "bak/1.jsonl", "", &all);
    let time = "2026-02-01T00:00:00Z";
    let states = [
        "",
        &format!(",\"tried_at\":\"{time}\",\"found\":\"damaged\""),
        &format!(",\"tried_at\":\"{time}\",\"found\":\"unreadable\""),
        &format!(",\"unseen_at\":\"{time}\""),
    ];
    let kept: Vec<_> = (1..)
        .zip(states)
        .map(|(n, more)| file(&format!("f{n}"), n, more))
        .collect();
    manifest(
        &t,
        "bak/2.jsonl",
        &format!("\"updated_at\":\"{time}\""),
        &kept,
    );
    let args = [
        "--query=unprotected",
        "--param=backups=bak/2.jsonl",
        "src.jsonl",
    ];
    let Some(unprotected) = ask(&t, &args) else {
        return;
    };
    for (digit, rows) in [(1, 0), (2, 1), (3, 1), (4, 1)] {
        let found = count(&unprotected, &[&digest(digit)]);
        assert_eq!(found, rows, "{digit}: {unprotected:#?}");
    }
    for what in [
        "1 entries are known to be damaged",
        "1 entries could not be read again",
        "1 entries are kept",
    ] {
        assert_eq!(
            count(&unprotected, &[what, "bak/2.jsonl"]),
            1,
            "{what}: {unprotected:#?}"
        );
    }
    // The decay is told, and once.
    t.write(
        "bak/3.jsonl",
        String::from_utf8(t.read("bak/2.jsonl"))
            .unwrap()
            .replace("2026-02-01T00:00:00Z\"}", "2026-03-01T00:00:00Z\"}")
            .replace("bak/2", "bak/3"),
    );
    let decayed = ask(&t, &["--query=decayed", "bak/*.jsonl"]).unwrap();
    assert_eq!(
        count(&decayed, &["f2,f2,10", &digest(2)]),
        1,
        "{decayed:#?}"
    );
    // What nobody has any more is lost, and what could not be seen is not.
    let lost = ask(&t, &["--query=lost", "bak/*.jsonl"]).unwrap();
    assert_eq!(count(&lost, &["/r/f"]), 1, "{lost:#?}");
    assert_eq!(count(&lost, &[&digest(2)]), 1, "{lost:#?}");
}

/// What `update` writes where it finds damage.
#[test]
fn damage_that_an_update_finds_is_no_copy() {
    let t = TestTree::new();
    t.write("src/f", "one")
        .write("bak/f", "one")
        .mtime("bak/f", 1_000_000_000, 0);
    t.bc_line("integrity manifest -o src.jsonl src")
        .go()
        .code(0);
    t.bc_line("integrity manifest -o bak.jsonl bak")
        .go()
        .code(0);
    t.write("bak/f", "two").mtime("bak/f", 1_000_000_000, 0);
    t.bc_line("integrity update bak bak.jsonl").go().code(3);
    let args = [
        "--query=unprotected",
        "--param=backups=bak.jsonl",
        "src.jsonl",
    ];
    if let Some(rows) = ask(&t, &args) {
        assert_eq!(count(&rows, &[":", "src/f"]), 1, "{rows:#?}");
        assert_eq!(count(&rows, &["known to be damaged"]), 1, "{rows:#?}");
    }
}

/// One that says to be of a machine that another is of as well hides nothing of it.
#[test]
fn several_machines_under_one_name_hide_nothing() {
    for (one, two, warning) in [
        // A cloned machine id.
        (
            "\"host\":\"web1\",\"fs_uuid\":\"u1\"",
            "\"host\":\"web2\",\"fs_uuid\":\"u2\"",
            "one machine and root under several host names or in several places",
        ),
        // No machine id at all.
        (
            "\"machine\":null,\"fs_uuid\":\"u1\"",
            "\"machine\":\"uninitialized\",\"fs_uuid\":\"u2\"",
            "one machine and root under several",
        ),
        // Put together from parts of several hosts.
        (
            "\"host\":null,\"machine\":null,\"fs_uuid\":null,\"mount_source\":\"nasA:/t\"",
            "\"host\":null,\"machine\":null,\"fs_uuid\":null,\"mount_source\":\"nasB:/t\"",
            "one machine and root under several",
        ),
    ] {
        let t = TestTree::new();
        manifest(&t, "1.jsonl", one, &[file("a", 1, "")]);
        let later = format!("{two},\"created_at\":\"2026-02-01T00:00:00Z\"");
        manifest(&t, "2.jsonl", &later, &[file("b", 2, "")]);
        let Some(rows) = ask(&t, &["--query=lost", "*.jsonl"]) else {
            return;
        };
        assert_eq!(count(&rows, &[warning]), 2, "{rows:#?}");
        assert_eq!(count(&rows, &["/r/"]), 0, "{rows:#?}");
        let rows = ask(&t, &["--query=unprotected", "*.jsonl"]).unwrap();
        assert_eq!(count(&rows, &["/r/"]), 2, "{rows:#?}");
    }
}

/// Where nothing tells two machines apart, that is said.
#[test]
fn machines_without_an_id_are_named() {
    let t = TestTree::new();
    manifest(&t, "1.jsonl", "\"machine\":null", &[file("a", 1, "")]);
    let later = "\"machine\":null,\"created_at\":\"2026-02-01T00:00:00Z\"";
    manifest(&t, "2.jsonl", later, &[file("b", 2, "")]);
    // A cloned disk, on a machine of its own.
    manifest(
        &t,
        "3.jsonl",
        "\"machine\":\"other\",\"host\":\"g\"",
        &[file("b", 2, "")],
    );
    if let Some(rows) = ask(&t, &["--query=lost", "*.jsonl"]) {
        assert_eq!(count(&rows, &["no machine id", "2.jsonl"]), 1, "{rows:#?}");
        assert_eq!(
            count(&rows, &["several machines list this file system"]),
            3,
            "{rows:#?}"
        );
    }
}

/// Files that hold no whole line leave no line to be seen by.
#[test]
fn empty_files_and_names_given_twice_are_named() {
    let t = TestTree::new();
    t.dir("m").write("d/f", "content");
    t.bc_line("integrity manifest -o m/a.jsonl.zst d")
        .go()
        .code(0);
    let whole = t.read("m/a.jsonl.zst");
    t.write_bytes(b"m/e[1]*.jsonl.zst", &whole[..whole.len() / 2]);
    t.write("m/empty.jsonl", "").write("m/none.jsonl.zst", "");
    t.bc_line("integrity manifest -o m/twice.jsonl d")
        .go()
        .code(0);
    let args = [
        "--query=find",
        "--param=path=f",
        "m/*",
        "m/twice.jsonl",
        "m/twice.jsonl",
    ];
    let Some(rows) = ask(&t, &args) else {
        return;
    };
    for name in ["m/e[1]*.jsonl.zst", "m/empty.jsonl", "m/none.jsonl.zst"] {
        assert_eq!(
            count(&rows, &["incomplete: in no answer", name]),
            1,
            "{name}: {rows:#?}"
        );
    }
    assert_eq!(
        count(&rows, &["named more than once", "m/twice.jsonl"]),
        1,
        "{rows:#?}"
    );
    assert_eq!(count(&rows, &[",f,f,7,"]), 1, "{rows:#?}");
    let rows = ask(
        &t,
        &[
            "--query=find",
            "--param=path=f",
            "m/twice.jsonl",
            "m/twice.jsonl",
        ],
    );
    assert_eq!(rows.unwrap().len(), 1);
}

/// A file system has one place, whichever root it was listed from, and whoever mounts it.
#[test]
fn one_file_system_is_one_place() {
    let mount = |n: u32, more: &str| {
        format!(
            "{{\"type\":\"entry\",\"path\":\"n\",\"kind\":\"dir\",\"mode\":1,\"ino\":9,\"dev\":{n}{more}}}"
        )
    };
    // Below a mount point, without a UUID, and as a root of its own.
    let t = TestTree::new();
    let below = [
        mount(2, ",\"mount\":\"/dev/vda\",\"mount_root\":\"/t\""),
        file("n/f", 1, ",\"dev\":2"),
    ];
    let tmpfs = "\"fs_uuid\":null,\"mount_source\":\"tmpfs\"";
    manifest(&t, "1.jsonl", tmpfs, &below);
    let own = "\"root\":\"/t\",\"fs_uuid\":null,\"mount_source\":\"/dev/vda\"";
    manifest(&t, "2.jsonl", own, &[file("f", 1, "")]);
    let Some(rows) = ask(&t, &["--query=duplicates", "*.jsonl"]) else {
        return;
    };
    assert!(rows.is_empty(), "{rows:#?}");
    // Under another number, since something else is mounted as well.
    let later = format!("{tmpfs},\"created_at\":\"2026-02-01T00:00:00Z\"");
    let below = [
        mount(1, ",\"mount\":\"/dev/vda\",\"mount_root\":\"/t\""),
        file("n/f", 7, ",\"dev\":1"),
    ];
    manifest(&t, "3.jsonl", &later, &below);
    let rows = ask(&t, &["--query=decayed", "*.jsonl"]).unwrap();
    assert_eq!(count(&rows, &["n/f", &digest(7)]), 1, "{rows:#?}");
    // Names that clusters and servers have.
    for (one, two, places) in [
        ("user@fsid.fs=/path", "user@fsid.fs=/path/", 1),
        ("nas:/t", "nas:/t/", 1),
        ("//nas/t", "//nas/t", 1),
        ("nas:dir", "nas:dir", 1),
        ("/dev/sda", "/dev/sda", 2),
        ("gpfs", "gpfs", 2),
    ] {
        let t = TestTree::new();
        for (nth, source) in [one, two].into_iter().enumerate() {
            let header = format!(
                "\"machine\":\"m{nth}\",\"host\":\"h{nth}\",\"fs_uuid\":null,\"mount_source\":\"{source}\""
            );
            manifest(&t, &format!("{nth}.jsonl"), &header, &[file("f", 1, "")]);
        }
        let rows = ask(&t, &["--query=duplicates", "*.jsonl"]).unwrap();
        assert_eq!(rows.len(), places - 1, "{one}: {rows:#?}");
    }
}

/// What was left out this time looks lost, which is said.
#[test]
fn other_options_are_named() {
    let t = TestTree::new();
    manifest(&t, "1.jsonl", "", &[file("a", 1, "")]);
    let later = "\"created_at\":\"2026-02-01T00:00:00Z\",\"options\":{\"max_depth\":1}";
    manifest(&t, "2.jsonl", later, &[file("b", 2, "")]);
    if let Some(rows) = ask(&t, &["--query=lost", "*.jsonl"]) {
        assert_eq!(
            count(&rows, &["other options than", "2.jsonl"]),
            1,
            "{rows:#?}"
        );
    }
}

/// Hard links are one file, and trees that are new have a row without numbers.
#[test]
fn growth_counts_inodes() {
    let t = TestTree::new();
    let names = |names: &[&str]| -> Vec<String> {
        let linked = |name: &&str| file(name, 1, "").replace("\"nlink\":1", "\"nlink\":2");
        names.iter().map(linked).collect()
    };
    manifest(&t, "1.jsonl", "", &names(&["a"]));
    manifest(
        &t,
        "2.jsonl",
        "\"created_at\":\"2026-02-01T00:00:00Z\"",
        &names(&["a", "b"]),
    );
    manifest(
        &t,
        "3.jsonl",
        "\"root\":\"/new\",\"created_at\":\"2026-02-01T00:00:00Z\"",
        &names(&["a"]),
    );
    let args = [
        "--query=growth",
        "--param=from=2026-01-15",
        "--param=to=2026-02-15",
        "*.jsonl",
    ];
    if let Some(rows) = ask(&t, &args) {
        assert_eq!(count(&rows, &["/r,", ",0,0"]), 1, "{rows:#?}");
        assert_eq!(
            count(&rows, &["/new,", "2026-02-01T00:00:00Z"]),
            1,
            "{rows:#?}"
        );
    }
}

/// Short digests of contents of different sizes are no duplicates, and lists of other tools are
/// said to be what they are.
#[test]
fn sizes_tell_contents_apart_and_lists_are_named() {
    let t = TestTree::new();
    manifest(&t, "1.jsonl", "", &[file("a", 1, "")]);
    let other = "\"machine\":\"n\",\"host\":\"i\",\"fs_uuid\":\"v\"";
    let large = file("b", 1, "").replace("\"size\":10", "\"size\":11");
    manifest(&t, "2.jsonl", other, &[large]);
    let Some(rows) = ask(&t, &["--query=duplicates", "*.jsonl"]) else {
        return;
    };
    assert!(rows.is_empty(), "{rows:#?}");
    let bare = file(
        "a",
        1,
        ",\"error\":{\"op\":\"import\",\"message\":\"no metadata\"}",
    )
    .replace("\"mode\":33188,", "");
    let list =
        "\"machine\":null,\"host\":null,\"root\":null,\"fs_uuid\":null,\"mount_source\":null";
    manifest(&t, "3.jsonl", list, &[bare]);
    let rows = ask(&t, &["--query=duplicates", "*.jsonl"]).unwrap();
    assert_eq!(count(&rows, &["could not be read"]), 0, "{rows:#?}");
    assert_eq!(
        count(&rows, &["1 entries have no metadata", "3.jsonl"]),
        1,
        "{rows:#?}"
    );
}
