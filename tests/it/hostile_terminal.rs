//! Nothing that stands in a name, a manifest or an argument may act on a terminal: every command
//! in every format, in a pseudo-terminal. Programs get what the formats define.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::Stdio;

use bc_testkit::{Pty, TestTree, left_out};
use serde_json::Value;

use crate::commands::{SAMPLES, Sample, described, tree};
use crate::common::Bc;

/// Names that would move the cursor, colour, retitle, break or turn around a line. The colour is
/// one that is never ours.
const NAMES: &[&[u8]] = &[
    b"esc \x1b[35mgreen\x1b]0;title\x07",
    b"c0 \x01\x08\x0b\x0c\x0e\x7f",
    "c1 \u{9b}35m \u{85}\u{90}".as_bytes(),
    b"raw c1 \x9b35m",
    "bidi \u{202e}gpj.exe \u{2066}x\u{200f}\u{61c}\u{2028}".as_bytes(),
    b"nl\nOWNED line",
    b"crlf\r\nOWNED line",
    b"cr\rOWNED line",
    b"tab\tx",
    b"invalid \xff\xc3",
    b"cut \xe2\x80",
    b"back\\slash\x1b[35m \\n",
    b"quote'\"\x1b[35m,\nOWNED line",
];

/// Sequences that we send ourselves: red, yellow, plain.
pub const OURS: &[&str] = &[
    "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m",
];
/// What the status line begins with.
const ERASE: &str = "\r\x1b[J";

fn os(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}

fn joined(parts: &[&[u8]]) -> OsString {
    OsString::from_vec(parts.concat())
}

/// Files, directories, links, link targets and attributes with such names, some of which change.
pub fn hostile() -> TestTree {
    let fill = |t: &TestTree| {
        for (i, name) in NAMES.iter().enumerate() {
            let dir = joined(&[b"r/d ", name]);
            std::fs::create_dir(t.join(&dir)).unwrap();
            let content = format!("content {}", i / 2);
            std::fs::write(t.join(joined(&[b"r/", name])), &content).unwrap();
            std::fs::write(t.join(&dir).join(os(name)), &content).unwrap();
            let link = t.join(joined(&[b"r/l ", name]));
            std::os::unix::fs::symlink(os(name), link).unwrap();
            let attribute = joined(&[b"user.", name]);
            let twin = t.join("r/twin");
            let flags = rustix::fs::XattrFlags::empty();
            if let Err(error) = rustix::fs::setxattr(&twin, attribute.as_os_str(), name, flags) {
                left_out(&format!("no attribute of that name here: {error}"));
            }
        }
        t.mode(joined(&[b"r/", NAMES[0]]), 0);
    };
    let change = |t: &TestTree| {
        for (i, name) in NAMES.iter().enumerate() {
            let file = t.join(joined(&[b"r/", name]));
            let link = t.join(joined(&[b"r/l ", name]));
            match i % 4 {
                0 => std::fs::rename(file, t.join(joined(&[b"r/moved ", name]))).unwrap(),
                1 => std::fs::write(file, "an edit").unwrap(),
                2 => {
                    std::fs::remove_file(&file).unwrap();
                    std::os::unix::fs::symlink(os(name), &file).unwrap();
                }
                _ => {
                    let time = file.metadata().unwrap().modified().unwrap();
                    std::fs::write(&file, "CONTENT 0").unwrap();
                    let file = std::fs::File::options().write(true).open(&file).unwrap();
                    file.set_modified(time).unwrap();
                }
            }
            std::fs::remove_file(&link).unwrap();
            std::os::unix::fs::symlink(joined(&[b"other ", name]), link).unwrap();
        }
    };
    tree(fill, change)
}

/// What a terminal gets of `bc ARGUMENTS`, with the line ends that the terminal makes undone.
fn shown(
    t: &TestTree,
    name: &[u8],
    arguments: &[OsString],
    variables: &[(&str, &OsStr)],
) -> Vec<u8> {
    let pty = Pty::new(200, 50);
    let mut run = t.bc().arg0(os(name)).args(arguments).env("TERM", "xterm");
    for (variable, value) in variables {
        run = run.env(variable, value);
    }
    let mut command = run.command();
    command
        .stdin(Stdio::null())
        .stdout(pty.stream())
        .stderr(pty.stream());
    pty.start(command).end().1
}

/// Characters but newlines that a terminal could obey, or that turn the reading direction.
fn acting(text: &str) -> Vec<char> {
    let acts = |c: &char| {
        c.is_control()
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().filter(|c| *c != '\n').filter(acts).collect()
}

/// Panics unless only text reaches the terminal, and in it no line that a name has begun.
#[track_caller]
pub fn assert_harmless(bytes: &[u8], ours: &[&str], what: &[OsString]) {
    let text = std::str::from_utf8(bytes)
        .unwrap_or_else(|error| panic!("{what:?}: {error}: {}", bytes.escape_ascii()));
    let mut text = without_status(text)
        .replace("\r\r\n", "\n")
        .replace("\r\n", "\n");
    for sequence in ours {
        text = text.replace(sequence, "");
    }
    let found = acting(&text);
    assert!(found.is_empty(), "{what:?}: {found:?} in {text:?}");
    // A path with which a line of the program begins still has its newline, escaped.
    let owned: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("OWNED") && !line.starts_with("OWNED\\n"))
        .collect();
    assert!(owned.is_empty(), "{what:?}: {owned:?} in {text:?}");
}

/// Takes out the status lines, which a run shows that takes its time: each is drawn behind [`ERASE`],
/// and the cursor goes back.
fn without_status(text: &str) -> String {
    let mut pieces = text.split(ERASE);
    let mut rest = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        rest += match piece.split_once('\r') {
            Some((status, rest)) if acting(status).is_empty() && !status.contains('\n') => rest,
            _ => piece,
        };
    }
    rest
}

#[track_caller]
fn assert_harmless_run(t: &TestTree, arguments: &[OsString]) -> Vec<u8> {
    let bytes = shown(t, b"bc", arguments, &[]);
    assert_harmless(&bytes, OURS, arguments);
    bytes
}

pub fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

/// The samples in every format that `--describe` knows of, and with every other way to write
/// records.
fn every_format() -> Vec<String> {
    let commands = described();
    let mut lines = Vec::new();
    for Sample { command, arguments } in SAMPLES {
        let (_, tree) = commands.iter().find(|(name, _)| name == command).unwrap();
        let all = tree["arguments"].as_array().unwrap();
        let line = format!("{command} {arguments}");
        lines.push(line.clone());
        let long = |argument: &Value| argument["long"].as_str().map(str::to_owned);
        for argument in all {
            match long(argument).as_deref() {
                Some("format") if !arguments.contains("--format") => {
                    let allowed = argument["allowed"].as_array().unwrap();
                    assert!(allowed.len() > 1, "{command}: --describe lists no formats");
                    let formats = allowed.iter().map(|format| format.as_str().unwrap());
                    lines.extend(formats.map(|format| format!("{line} --format={format}")));
                }
                // Not for --files-from, and not to read what is not so.
                Some("zero") if command.ends_with("hash hash") => {
                    lines.push(format!("{line} -z"));
                    lines.push(format!("{line} -z --format=bsd"));
                }
                Some("relative") => lines.push(format!("{line} --relative")),
                Some("output") => {
                    lines.push(format!("{line} --output=/dev/stdout"));
                    lines.push(format!("{line} --output=/dev/stderr"));
                }
                _ => {}
            }
        }
    }
    lines
}

#[test]
fn no_command_in_any_format_lets_a_name_act() {
    let t = hostile();
    let lines = every_format();
    for format in ["csv", "jsonl", "fdupes", "script", "html", "mtree", "-z"] {
        assert!(lines.iter().any(|line| line.contains(format)), "{lines:#?}");
    }
    for line in lines {
        let bytes = assert_harmless_run(&t, &words(&line));
        assert!(!bytes.is_empty(), "{line}");
        for more in [
            "-v --color=always",
            "-v --color=never",
            "--log-format=json -v",
            "--progress=always -q",
        ] {
            let arguments = words(&format!("{line} {more}"));
            let bytes = shown(&t, b"bc", &arguments, &[]);
            let ours = if more.contains("never") { &[] } else { OURS };
            assert_harmless(&bytes, ours, &arguments);
        }
    }
}

#[test]
fn no_path_list_or_manifest_of_such_names_acts() {
    let t = hostile();
    for name in NAMES {
        let missing = joined(&[b"missing ", name]);
        for line in [
            "hash",
            "hash check",
            "dup",
            "dup summary",
            "dup undo",
            "integrity manifest",
            "integrity export --format=gnu",
            "integrity import",
            "install",
            "hash --files-from",
            "hash --config",
            "dup prune --action=hardlink --from",
        ] {
            let mut arguments = words(line);
            arguments.push(missing.clone());
            assert_harmless_run(&t, &arguments);
            if !line.starts_with("install") {
                arguments.extend(words("--log-format=json"));
                assert_harmless_run(&t, &arguments);
            }
        }
        // Manifests that hold such names as they are, and ones that are called so.
        let own = joined(&[b"sums ", name]);
        let digest = "0".repeat(64);
        let lines = [
            [digest.as_bytes(), b"  ", name, b"\n"].concat(),
            [b"SHA256 (", *name, b") = ", digest.as_bytes(), b"\n"].concat(),
            [
                b"{\"type\":\"header\",\"schema\":1,\"algorithms\":[\"",
                *name,
                b"\"]}\n",
            ]
            .concat(),
            [b"path,size,", *name, b"\r\n", name, b",1,00,,\r\n"].concat(),
            [
                b"%%%% HASHDEEP-1.0\n%%%% size,md5,filename\n1,00,",
                *name,
                b"\n",
            ]
            .concat(),
            [b"#mtree\n", *name, b" type=file\n"].concat(),
        ];
        for lines in lines {
            std::fs::write(t.join(&own), &lines).unwrap();
            for line in [
                "hash check -w",
                "hash check --base=r",
                "hash diff sums",
                "integrity import",
                "integrity verify r",
                "integrity verify --force r",
                "integrity export --force --format=mtree",
                "dup undo",
                "dup prune --action=hardlink --from",
                "hash --config",
                "hash --files-from",
            ] {
                let mut arguments = words(line);
                arguments.push(own.clone());
                assert_harmless_run(&t, &arguments);
            }
        }
    }
    // Strings of manifests that are well-formed JSON, where no name is.
    let manifest = std::fs::read_to_string(t.join("m")).unwrap();
    for (from, to) in [
        ("\"sha256\"", "\"sha\\u001b[35m\\u009b\""),
        ("\"version\":\"", "\"version\":\"\\u001b[35m\\u009b"),
        (
            "\"kind\":\"symlink\"",
            "\"kind\":\"\\u001b[35m\\nOWNED line\"",
        ),
        (
            "\"type\":\"entry\"",
            "\"type\":\"\\u001b[35m\\nOWNED line\"",
        ),
    ] {
        t.write("tampered", manifest.replacen(from, to, 1));
        for line in [
            "verify r tampered",
            "verify --force r tampered",
            "diff --force tampered m",
            "diff -v --force m tampered",
            "export --force --format=gnu tampered",
        ] {
            assert_harmless_run(&t, &words(&format!("integrity {line}")));
        }
    }
}

#[test]
fn no_argument_acts() {
    let t = TestTree::new();
    t.write("r/a", "abc").write("r/b", "abc");
    t.bc_line("hash r -o sums").go().code(0);
    let worst = [NAMES[0], NAMES[2], NAMES[5], b"OWNED\n\x1b[35m\xff\x9b"];
    for (command, tree) in described() {
        for argument in tree["arguments"].as_array().unwrap() {
            let option: Vec<u8> = match (argument["long"].as_str(), &argument["takes_value"]) {
                (Some(long), Value::Bool(true)) => format!("--{long}=").into_bytes(),
                (Some(long), _) => format!("--{long}").into_bytes(),
                (None, _) => Vec::new(),
            };
            for value in worst {
                let mut arguments = words(&command);
                arguments.push(joined(&[&option, value]));
                if option != b"--describe" {
                    assert_harmless_run(&t, &arguments);
                }
                if value != worst[3] {
                    continue;
                }
                arguments.extend(words("--log-format=json --color=always"));
                let bytes = shown(&t, b"bc", &arguments, &[]);
                assert_harmless(&bytes, OURS, &arguments);
            }
        }
    }
    for value in worst {
        for line in ["", "hash", "hash check", "help", "dup scan", "integrity"] {
            let mut arguments = words(line);
            arguments.push(os(value).to_owned());
            assert_harmless_run(&t, &arguments);
        }
        for arguments in ["hash --help", "hash", "", "--list", "hash -x --nonsense"] {
            let arguments = words(arguments);
            let called = [b"bc", value].concat();
            assert_harmless(&shown(&t, &called, &arguments, &[]), OURS, &arguments);
        }
        for variable in [
            "BC_THREADS",
            "BC_TYPE",
            "BC_EXCLUDE",
            "BC_COLOR",
            "BC_CONFIG",
        ] {
            let arguments = words("hash r");
            let bytes = shown(&t, b"bc", &arguments, &[(variable, os(value))]);
            assert_harmless(&bytes, OURS, &arguments);
        }
    }
    for text in [
        "\"a\\u001b[35m\\nOWNED\" = 1\n",
        "[\"\\u009b\\nOWNED\"]\n",
        "threads = \"\\u001b[35m\\nOWNED\"\n",
        "threads = \u{9b}\n",
        "type = [\"\\u001b[35m\\nOWNED\"]\n",
    ] {
        t.write("config", text);
        assert_harmless_run(&t, &words("hash --config=config r"));
    }
}

#[test]
fn the_question_shows_no_name_raw() {
    let t = hostile();
    for line in ["--action=delete", "--action=move:q", "--action=symlink"] {
        let command = t
            .bc_line(&format!("dup prune {line} r"))
            .env("TERM", "xterm")
            .command();
        let session = Pty::new(200, 50).start_in(command);
        session.type_keys(b"n\n");
        let (_, bytes) = session.end();
        assert_harmless(&bytes, OURS, &words(line));
    }
}

#[test]
fn on_a_terminal_json_stays_json() {
    let t = hostile();
    for line in [
        "hash r --format=jsonl",
        "integrity manifest r",
        "dup r --format=jsonl",
        "integrity verify --format=json r m",
    ] {
        let bytes = shown(&t, b"bc", &words(&format!("{line} -q")), &[]);
        let text = String::from_utf8(bytes).unwrap();
        for object in text.lines().filter(|line| line.starts_with('{')) {
            serde_json::from_str::<Value>(object)
                .unwrap_or_else(|e| panic!("{line}: {e}: {object}"));
        }
        assert!(
            text.contains("\\u009b") && text.contains("\\u202e"),
            "{line}: {text}"
        );
    }
}

/// Through a pipe each format has what it defines: raw names where names are raw, JSON without a
/// character that a terminal would obey should it get there later.
#[test]
fn programs_get_exact_names() {
    let t = hostile();
    let raw = |line: &str, around: [&[u8]; 2]| {
        let out = t.bc_line(line).go();
        for name in NAMES {
            let expected = [around[0], b"r/d ", name, b"/", name, around[1]].concat();
            let is_there = out.stdout.windows(expected.len()).any(|w| w == expected);
            assert!(is_there, "{line}: {}", name.escape_ascii());
        }
    };
    raw("hash -z r", [b"  ", b"\0"]);
    raw("hash -z --format=bsd r", [b"SHA256 (", b") = "]);
    // Again alike, after the changes.
    for (i, name) in NAMES.iter().enumerate() {
        let content = format!("again {}", i / 2);
        std::fs::write(t.join(joined(&[b"r/d ", name])).join(os(name)), content).unwrap();
        std::fs::write(
            t.join(joined(&[b"r/again ", name])),
            format!("again {}", i / 2),
        )
        .unwrap();
    }
    raw("dup --format=fdupes r", [b"", b"\n"]);
    // Text has a name a line, whoever reads it.
    let text = t.bc_line("dup r").go();
    for name in NAMES {
        let line = bc_fs::escape(&[b"r/d ", *name, b"/", name].concat()).into_owned();
        assert!(text.lines().contains(&line.as_bytes()), "{line}: {text}");
    }
    let lines = every_format();
    // It prints only the paths that it is given (`integrity_accept::names_of_any_bytes`).
    let prints_all = |line: &str| !line.starts_with("integrity accept");
    let json = lines
        .iter()
        .filter(|line| line.contains("=json") && prints_all(line));
    let stdout: Vec<String> = json.cloned().collect();
    assert!(stdout.len() >= 6, "{lines:?}");
    for line in stdout {
        let out = t.bc_line(&line).go();
        let text = String::from_utf8(out.stdout.clone()).unwrap();
        assert_eq!(acting(&text), [], "{line}");
        let mut paths = Vec::new();
        match serde_json::from_str::<Value>(&text) {
            Ok(document) => collect(&document, &mut paths),
            Err(_) => text.lines().for_each(|line| {
                collect(&serde_json::from_str(line).unwrap(), &mut paths);
            }),
        }
        let bidi = "bidi \u{202e}gpj.exe \u{2066}x\u{200f}\u{61c}\u{2028}";
        assert!(
            paths.iter().any(|path| path.ends_with(bidi)),
            "{line}: {paths:?}"
        );
        assert!(
            paths
                .iter()
                .any(|path| path.contains("c1 \u{9b}35m \u{85}\u{90}")),
            "{line}"
        );
    }
    for line in ["hash missing r", "hash check sums", "integrity verify r m"] {
        let out = t.bc_line(line).args(["-v", "--log-format=json"]).go();
        assert_eq!(acting(&out.error_text()), [], "{line}");
    }
    let out = t
        .bc_line("hash --log-format=json")
        .arg(os(b"missing \xff\x9b"))
        .go();
    let message: Value = serde_json::from_str(&out.error_text()).unwrap();
    assert_eq!(message["path_b64"], "bWlzc2luZyD/mw==");
    // A manifest's bytes are what its trailer proves: they are the same wherever they go.
    let manifest = t.bc_line("integrity manifest r").go().text();
    assert!(manifest.contains("c1 \u{9b}35m"));
}

/// Every string in it.
fn collect(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Array(all) => all.iter().for_each(|value| collect(value, into)),
        Value::Object(all) => all.values().for_each(|value| collect(value, into)),
        _ => {}
    }
}
