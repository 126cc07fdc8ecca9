//! Wherever an error stands in JSON it has the same fields: applet, path, operation, errno, reason.
//! In results, in reports and on stderr alike.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use bc_testkit::{Outcome, TestTree};
use rustix::io::Errno;
use serde_json::Value;

use crate::common::Bc;

/// A tree whose `r` has a directory and two files that cannot be read, one of them with a name that
/// is not UTF-8, and files of their size, so that a search for duplicates has to read them. `sums`,
/// `m` and `report` tell of it as it was, with a file that is gone since.
fn tree() -> TestTree {
    let t = TestTree::new();
    for (name, content) in [
        ("a", "alike"),
        ("b", "alike"),
        ("gone", "gone!"),
        ("closed/below", "below"),
        ("secret", "other"),
    ] {
        t.write(format!("r/{name}"), content);
    }
    t.write_bytes(b"r/odd\xff", "odd!!");
    t.bc_line("hash r -o sums").go().code(0);
    t.bc_line("integrity manifest r -o m").go().code(0);
    t.bc_line("dup --format=json r -o report").go().code(0);
    t.remove("r/gone");
    for (name, mode) in [
        (".", 0o777),
        ("sums", 0o644),
        ("m", 0o644),
        ("report", 0o644),
        ("r/closed", 0),
        ("r/secret", 0),
    ] {
        t.mode(name, mode);
    }
    t.mode(OsStr::from_bytes(b"r/odd\xff"), 0);
    t
}

/// What is said of one error.
#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Said {
    path: Vec<u8>,
    operation: String,
    errno: i32,
}

fn said(path: impl AsRef<[u8]>, operation: &str, errno: Errno) -> Said {
    Said {
        path: path.as_ref().to_vec(),
        operation: operation.to_owned(),
        errno: errno.raw_os_error(),
    }
}

/// What the object says, which has all the fields, as the error of `applet`.
fn of(object: &Value, applet: &str) -> Said {
    let text = |key: &str| {
        let text = object[key].as_str();
        text.unwrap_or_else(|| panic!("no {key}: {object}"))
    };
    assert_eq!(text("applet"), applet);
    let errno = object["errno"].as_i64().unwrap() as i32;
    let system = std::io::Error::from_raw_os_error(errno).to_string();
    assert_eq!(text("reason"), system);
    let path = match object.get("path_b64") {
        None => text("path").as_bytes().to_vec(),
        Some(raw) => {
            let raw = bc_manifest::base64::decode(raw.as_str().unwrap().as_bytes()).unwrap();
            assert_eq!(text("path"), String::from_utf8_lossy(&raw));
            assert!(std::str::from_utf8(&raw).is_err());
            raw
        }
    };
    said(path, text("operation"), Errno::from_raw_os_error(errno))
}

fn objects(lines: &[&[u8]]) -> Vec<Value> {
    let object = |line: &&[u8]| serde_json::from_slice(line).unwrap();
    lines.iter().map(object).collect()
}

/// The errors among lines of stdout.
fn errors(out: &Outcome, applet: &str) -> Vec<Said> {
    let lines = objects(&out.lines());
    let errors = lines.iter().filter(|line| line["type"] == "error");
    errors.map(|error| of(error, applet)).collect()
}

/// The errors on stderr, all of which are about a path; sorted, since each is told when it is met.
fn logged(out: &Outcome, applet: &str) -> Vec<Said> {
    let lines = objects(&out.error_lines());
    let errors = lines.iter().filter(|line| line["level"] == "error");
    let mut all: Vec<Said> = errors
        .map(|error| {
            assert!(error["message"].is_string() && error["time"].is_string());
            of(error, applet)
        })
        .collect();
    all.sort();
    all
}

/// What cannot be read of `missing` and `r`.
fn refused() -> Vec<Said> {
    vec![
        said("missing", "stat", Errno::NOENT),
        said("r/closed", "open", Errno::ACCESS),
        said(b"r/odd\xff", "open", Errno::ACCESS),
        said("r/secret", "open", Errno::ACCESS),
    ]
}

#[test]
fn of_hash() {
    let t = tree();
    let run = |line: &str| t.bc_line(line).as_nobody().go();
    let out = run("hash --format=jsonl missing r --log-format=json");
    assert_eq!(errors(out.code(1), "hash"), refused());
    assert_eq!(logged(&out, "hash"), refused());
    let last: Value = serde_json::from_slice(out.lines().last().unwrap()).unwrap();
    assert_eq!(last["errors"], refused().len());
    let document: Value =
        serde_json::from_slice(&run("hash --format=json missing r").code(1).stdout).unwrap();
    let listed = document["errors"].as_array().unwrap();
    let listed: Vec<Said> = listed.iter().map(|error| of(error, "hash")).collect();
    assert_eq!(listed, refused());
    let none: Value =
        serde_json::from_slice(&run("hash --format=json r/a").code(0).stdout).unwrap();
    assert_eq!(none["errors"], serde_json::json!([]));
    // Both are manifests all the same.
    t.write("list", &out.stdout);
    t.mode("list", 0o644);
    run("hash check list").code(1).stdout_has("r/a: OK\n");

    let out = run("hash check sums --log-format=json");
    let mut checked = refused();
    checked[0] = said("r/gone", "stat", Errno::NOENT);
    checked[1] = said("r/closed/below", "stat", Errno::ACCESS);
    checked.sort();
    assert_eq!(logged(out.code(1), "hash"), checked);
    for line in ["hash check missing", "hash diff sums missing"] {
        let out = run(&format!("{line} --log-format=json"));
        let expected = [said("missing", "open", Errno::NOENT)];
        assert_eq!(logged(out.code(2), "hash"), expected, "{out}");
    }
    let out = run("hash r/a --output=none/sums --log-format=json");
    let expected = [said("none/sums", "create", Errno::NOENT)];
    assert_eq!(logged(out.code(2), "hash"), expected);
}

#[test]
fn of_dup() {
    let t = tree();
    let run = |line: &str| t.bc_line(line).as_nobody().go();
    let out = run("dup --format=jsonl missing r --log-format=json");
    assert_eq!(errors(out.code(1), "dup"), refused());
    assert_eq!(logged(&out, "dup"), refused());
    let last: Value = serde_json::from_slice(out.lines().last().unwrap()).unwrap();
    assert_eq!(last["errors"], refused().len());
    let out = run("dup --format=json missing r");
    let document: Value = serde_json::from_slice(&out.code(1).stdout).unwrap();
    let listed = document["errors"].as_array().unwrap();
    let listed: Vec<Said> = listed.iter().map(|error| of(error, "dup")).collect();
    assert_eq!(listed, refused());
    assert_eq!(document["stats"]["errors"], listed.len());
    // It is a report all the same; and what it tells of has vanished by now.
    t.write("after", &out.stdout).remove("r/b");
    let line = "dup prune --action=delete --dry-run --log-format=json --from=after";
    let out = t.bc_line(line).go();
    let expected = [said("r/b", "open", Errno::NOENT)];
    assert_eq!(logged(out.code(1), "dup"), expected, "{out}");
    for (line, path) in [
        ("dup prune --action=delete --yes --from=missing", "missing"),
        ("dup undo missing", "missing"),
        ("dup scan --reference=missing r/a", "missing"),
    ] {
        let out = run(&format!("{line} --log-format=json"));
        let [error] = &logged(out.code(2), "dup")[..] else {
            panic!("{out}");
        };
        assert_eq!(error.path, path.as_bytes(), "{out}");
        assert_eq!(error.errno, Errno::NOENT.raw_os_error(), "{out}");
    }
}

#[test]
fn of_copy() {
    let t = tree();
    t.dir("to").mode("to", 0o777);
    let run = |line: &str| t.bc_line(line).as_nobody().go();
    let out = run("copy missing r to --log-format=json");
    assert_eq!(logged(out.code(1), "copy"), refused(), "{out}");
    let out = run("copy r none/x/y --log-format=json");
    let expected = [said("none/x", "open directory", Errno::NOENT)];
    assert_eq!(logged(out.code(2), "copy"), expected, "{out}");
}

#[test]
fn of_integrity() {
    let t = tree();
    let run = |line: &str| t.bc_line(line).as_nobody().go();
    let out = run("integrity verify --format=json r m");
    let changes = objects(&out.code(1).lines());
    let unreadable = changes.iter().filter(|c| c["class"] == "unreadable");
    let reported: Vec<(Said, Said)> = unreadable
        .map(|change| {
            let mut own = change["error"].clone();
            let error = of(&own, "integrity");
            // The path of the change, of which the error may be another's above it.
            own["path"] = change["path"].clone();
            own["path_b64"] = change["path_b64"].clone();
            if own["path_b64"].is_null() {
                own.as_object_mut().unwrap().remove("path_b64");
            }
            (of(&own, "integrity"), error)
        })
        .collect();
    let expected = [
        ("closed", "closed"),
        ("closed/below", "closed"),
        ("odd\u{fffd}", "odd"),
        ("secret", "secret"),
    ]
    .map(|(path, failed)| {
        let raw = |path: &str| match path.starts_with("odd") {
            true => b"odd\xff".to_vec(),
            false => path.as_bytes().to_vec(),
        };
        let said = |path: &str| said(raw(path), "open", Errno::ACCESS);
        (said(path), said(failed))
    });
    assert_eq!(reported, expected, "{out}");

    let out = run("integrity manifest --log-format=json r");
    assert_eq!(logged(out.code(1), "integrity"), refused()[1..]);
    for line in [
        "integrity verify r missing",
        "integrity verify missing m",
        "integrity update r missing",
        "integrity diff m missing",
        "integrity export --format=gnu missing",
        "integrity import missing",
        "integrity manifest missing",
    ] {
        let out = run(&format!("{line} --log-format=json"));
        let [error] = &logged(out.code(2), "integrity")[..] else {
            panic!("{out}");
        };
        assert_eq!(error.path, b"missing", "{out}");
        assert_eq!(error.errno, Errno::NOENT.raw_os_error(), "{out}");
    }
}

/// A message about a file names it in fields, too, whether the system refused or the program did.
#[test]
fn refusals_and_warnings_name_their_path() {
    let t = TestTree::new();
    t.write("r/a", "one").write("r/b", "two").dir("empty");
    t.bc_line("integrity manifest -o m r").go().code(0);
    t.bc_line("integrity manifest --shard=1/2 -o part r")
        .go()
        .code(0);
    let manifest = String::from_utf8(t.read("m")).unwrap();
    let (head, tail) = manifest.split_at(manifest.find('\n').unwrap() + 1);
    let broken = format!("{head}no entry\n{tail}");
    t.write("broken", &broken);
    t.write("cut", head).write("none", "");
    for (line, path, operation, reason) in [
        ("verify r cut", "cut", "read", "truncated"),
        ("verify r none", "none", "read", "empty file"),
        ("verify r part", "part", "check", "part of a tree"),
        ("verify r empty", "empty", "check", "is a directory"),
        ("verify empty m", "empty", "check", "not mounted?"),
        ("verify m m", "m", "check", "is no directory"),
        ("verify --force r broken", "broken", "read", "line 2: "),
        ("diff --force broken m", "broken", "read", "line 2: "),
        ("diff --force m broken", "broken", "read", "line 2: "),
        ("update --force r broken", "broken", "read", "line 2: "),
        (
            "export --force --format=gnu broken",
            "broken",
            "read",
            "line 2: ",
        ),
        ("restore r cut", "cut", "read", "truncated"),
        (
            "restore --from=/dev/null r m",
            "/dev/null",
            "check",
            "neither",
        ),
        ("restore --from=empty r m", "empty", "open", "not mounted?"),
        ("manifest -o /dev/full r", "/dev/full", "write", "No space"),
        (
            "export --format=gnu -o /dev/full m",
            "/dev/full",
            "write",
            "No space",
        ),
    ] {
        let json = t
            .bc_line(&format!("integrity {line} --log-format=json"))
            .go();
        let objects = json.error_text();
        let objects: Vec<Value> = objects
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .filter(|object: &Value| object["level"] != "info")
            .collect();
        assert!(!objects.is_empty(), "{line}: {json}");
        for object in &objects {
            assert_eq!(object["path"], path, "{line}: {json}");
            assert_eq!(object["operation"], operation, "{line}: {json}");
        }
        let first = objects[0]["reason"].as_str().unwrap();
        assert!(first.contains(reason), "{line}: {json}");
        // An update has made a sound one of it.
        t.write("broken", &broken);
        let text = t.bc_line(&format!("integrity {line}")).go();
        text.stderr_has(format!("bc integrity: {path}: "));
        t.write("broken", &broken);
    }
}
