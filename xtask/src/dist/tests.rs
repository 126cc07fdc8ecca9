//! The completions in real shells, and the manual pages before real formatters.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use bc_testkit::{Pty, TestTree, left_out, tool};
use serde_json::Value;

use super::{NAMES, Node, collect, completions, man};

/// What `bc --describe` of this build says.
fn tree() -> &'static Value {
    static TREE: OnceLock<Value> = OnceLock::new();
    TREE.get_or_init(|| {
        let bc = binary();
        let out = Command::new(&bc).arg("--describe").output();
        let out = out.unwrap_or_else(|e| panic!("{}: {e}", bc.display()));
        serde_json::from_slice(&out.stdout).unwrap()
    })
}

/// The program beside this test; a test of this package alone builds it.
fn binary() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let bc = profile.join("bc");
    if !bc.is_file() {
        let mut cargo = crate::sh::cargo();
        cargo.args(["build", "--quiet", "--locked", "--package", "bit-crafts"]);
        cargo.arg("--target-dir").arg(profile.parent().unwrap());
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().unwrap().success());
    }
    bc
}

fn with_nodes<T>(f: impl FnOnce(&[Node<'_>], &[&str]) -> T) -> T {
    let mut nodes = Vec::new();
    collect(tree(), &mut Vec::new(), &mut nodes);
    let names: Vec<&str> = ["bc"].into_iter().chain(NAMES).collect();
    f(&nodes, &names)
}

/// What is typed before the tabulator, and the words that are then there.
const TYPED: &[(&str, &str)] = &[
    ("bc ha", "hash"),
    ("bc hash che", "hash check"),
    ("bc hash check --ignore-m", "hash check --ignore-missing"),
    ("bc hash --ignore-f", "hash --ignore-files"),
    ("bc dup scan --format=scr", "dup scan --format=script"),
    ("bc hash --type=xxh1", "hash --type=xxh128"),
    ("bc dup --format=fd", "dup --format=fdupes"),
    ("bc dup prune --acti", "dup prune --action="),
    (
        "bc dup prune --yes --keep=first read",
        "dup prune --yes --keep=first readme",
    ),
    (
        "bc integrity verify --mode=con",
        "integrity verify --mode=content",
    ),
    ("bc install --symb", "install --symbolic"),
    ("bitcrafts integrity exp", "integrity export"),
    ("bchash di", "diff"),
    ("bcdup sum", "summary"),
    ("bcintegrity upd", "update"),
];

/// Types each line with a tabulator and Enter into a shell where the programs are functions that
/// print their arguments.
fn types_well(shell: &str, arguments: &[&str], environment: &[(&str, &Path)]) {
    let t = TestTree::new();
    t.write("readme", "");
    for (typed, expected) in TYPED {
        let pty = Pty::new(200, 50);
        let mut run = t.run(shell).args(arguments).env("TERM", "dumb");
        for (name, value) in environment {
            run = run.env(name, value);
        }
        let mut command = run.command();
        command
            .stdin(pty.stream())
            .stdout(pty.stream())
            .stderr(pty.stream());
        let session = pty.start(command);
        session.wait_for("a prompt", |bytes| has(bytes, "ready>"));
        session.type_keys(format!("{typed}\t\n").as_bytes());
        session.wait_for("the arguments", |bytes| has(bytes, "]end"));
        session.type_keys(b"exit\n");
        let (_, bytes) = session.end();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let got = text
            .rsplit_once("got[")
            .and_then(|(_, rest)| rest.split_once("]end"));
        // zsh takes a = off again when nothing follows it.
        let got = got.map(|(got, _)| got.trim_end_matches('='));
        assert_eq!(
            got,
            Some(expected.trim_end_matches('=')),
            "{shell}: {typed}\n{text}"
        );
    }
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|part| part == text.as_bytes())
}

/// Functions under all the names that print what they were given.
fn functions(names: &[&str]) -> String {
    names
        .iter()
        .map(|name| format!("{name}() {{ printf 'got[%s]%s\\n' \"$*\" end; }}\n"))
        .collect()
}

#[test]
fn bash_completes() {
    if tool("bash").is_none() {
        return left_out("bash is not installed");
    }
    let t = TestTree::new();
    with_nodes(|nodes, names| {
        let completion = completions::bash(nodes, names);
        t.write(
            "rc",
            format!("PS1='ready> '\n{completion}\n{}", functions(names)),
        );
    });
    let rc = t.join("rc");
    types_well("bash", &["--rcfile", rc.to_str().unwrap(), "-i"], &[]);
    let out = t.run("bash").args(["-n", "rc"]).go();
    out.code(0).stderr_is("");
}

#[test]
fn zsh_completes() {
    if tool("zsh").is_none() {
        return left_out("zsh is not installed");
    }
    let t = TestTree::new();
    with_nodes(|nodes, names| {
        t.write("functions/_bc", completions::zsh(nodes, names));
        let start = format!(
            "fpath=({} $fpath)\nautoload -Uz compinit\ncompinit -u -d {}\nPS1='ready> '\n{}",
            t.join("functions").display(),
            t.join("dump").display(),
            functions(names)
        );
        t.write(".zshrc", start);
    });
    types_well("zsh", &["-d", "-i"], &[("ZDOTDIR", t.path())]);
    let out = t.run("zsh").args(["-n", "functions/_bc"]).go();
    out.code(0).stderr_is("");
}

#[test]
fn fish_completes() {
    if tool("fish").is_none() {
        return left_out("fish is not installed");
    }
    let t = TestTree::new();
    t.write("readme", "");
    with_nodes(|nodes, names| {
        t.write("bc.fish", completions::fish(nodes, names))
            .path()
            .to_owned()
    });
    for (typed, expected) in TYPED {
        let script = format!("source bc.fish; complete -C '{typed}'");
        let out = t
            .run("fish")
            .args(["--no-config", "-c", &script])
            .env("TERM", "dumb")
            .go();
        out.code(0);
        let offered = out.text();
        let mut offered = offered.lines().map(|line| line.split('\t').next().unwrap());
        let last = expected.split(' ').next_back().unwrap();
        let last = last.trim_end_matches('=');
        assert!(offered.any(|word| word == last), "{typed}: {out}");
    }
}

#[test]
fn manual_pages_are_clean() {
    let t = TestTree::new();
    with_nodes(|nodes, _| {
        assert!(nodes.len() >= 18, "{}", nodes.len());
        for node in nodes {
            t.write(format!("{}.1", node.words.join("-")), man::page(node));
        }
    });
    let pages: Vec<PathBuf> = std::fs::read_dir(t.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    if tool("groff").is_some() {
        let out = t
            .run("groff")
            .args(["-man", "-ww", "-Tutf8", "-z"])
            .args(&pages)
            .go();
        out.code(0).stderr_is("");
    } else {
        left_out("groff is not installed");
    }
    if tool("mandoc").is_some() {
        let out = t
            .run("mandoc")
            .args(["-T", "lint", "-W", "warning"])
            .args(&pages)
            .go();
        out.code(0).stdout_is("");
    } else {
        left_out("mandoc is not installed");
    }
    if tool("man").is_some() {
        let page = t.join("bc-hash-check.1");
        let out = t.run("man").arg("-l").arg(page).env("MANWIDTH", "80").go();
        out.code(0)
            .stderr_is("")
            .stdout_has("unlisted")
            .stdout_has("bc hash check SHA256SUMS");
    }
}
