//! `bc --generate`: completions in real shells, and manual pages before real formatters.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use bc_testkit::{Pty, TestTree, left_out, tool};
use serde_json::Value;

use crate::common::Bc;

/// The names that every completion serves.
const NAMES: [&str; 7] = [
    "bc",
    "bitcrafts",
    "bchash",
    "bcdup",
    "bcintegrity",
    "bccopy",
    "bcmove",
];

/// What is typed before the tabulator, and the words that are then there.
const TYPED: &[(&str, &str)] = &[
    ("bc ha", "hash"),
    ("bc --gen", "--generate="),
    ("bc --generate=complete-z", "--generate=complete-zsh"),
    ("bc hash che", "hash check"),
    ("bc hash check --ignore-m", "hash check --ignore-missing"),
    ("bc hash --ignore-f", "hash --ignore-files"),
    ("bc dup prune --acti", "dup prune --action="),
    (
        "bc dup prune --yes --keep=first read",
        "dup prune --yes --keep=first readme",
    ),
    ("bc hash --type sha256 read", "hash --type sha256 readme"),
    ("bc hash -o read", "hash -o readme"),
    ("bc copy --on-conf", "copy --on-conflict="),
    ("bc dup --cache read", "dup --cache readme"),
    ("bc hash -t xxh1", "hash -t xxh128"),
    ("bc dup prune --action=hardl", "dup prune --action=hardlink"),
    ("bc dup prune --action mov", "dup prune --action move:"),
    ("bc hash --threads comp", "hash --threads compute"),
    ("bc install --symb", "install --symbolic"),
    ("bitcrafts integrity exp", "integrity export"),
    ("bchash di", "diff"),
    ("bc hash --algorithm xxh1", "hash --algorithm xxh128"),
    ("bc dup --type bla", "dup --type blake3"),
    ("bc copy --algorithm=no", "copy --algorithm=none"),
    ("bchash --form", "--format="),
    ("bcdup sum", "summary"),
    ("bcintegrity upd", "update"),
];

/// What is typed where files have no place, and stays as it is.
const STAYS: &[(&str, &str)] = &[("bc read", "read"), ("bcintegrity read", "read")];

/// The lines above, and for each option with a set of values one of them after `=`, after a space
/// and, where it takes several, after a comma.
fn typed() -> Vec<(String, String)> {
    let own = TYPED
        .iter()
        .chain(STAYS)
        .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()));
    let mut all: Vec<(String, String)> = own.collect();
    let mut sets = BTreeSet::new();
    for (command, tree) in crate::commands::described() {
        for argument in tree["arguments"].as_array().unwrap() {
            let values = strings(&argument["allowed"]);
            let Some((stem, value)) = with_stem(&values) else {
                assert!(values.is_empty(), "{command}: {values:?}");
                continue;
            };
            let option = argument["long"].as_str().unwrap();
            // What all commands share is typed for one of them.
            if !sets.insert((option.to_owned(), values.join(" "))) {
                continue;
            }
            // The value of --sync may be left out, so the word behind a space is none.
            let between = if option == "sync" {
                &["="][..]
            } else {
                &["=", " "]
            };
            for between in between {
                let head = format!("{command} --{option}{between}");
                all.push((format!("bc {head}{stem}"), format!("{head}{value}")));
                if argument["delimiter"] == "," {
                    let head = format!("{head}{},", values[0]);
                    all.push((format!("bc {head}{stem}"), format!("{head}{value}")));
                }
            }
        }
    }
    assert!(sets.len() > 12, "{sets:?}");
    all
}

/// A value, and what of it none of the others begins with.
fn with_stem(values: &[&str]) -> Option<(String, String)> {
    values.iter().skip(1).find_map(|value| {
        let stem = &value[..value.len() - 1];
        let alone = values.iter().filter(|one| one.starts_with(stem)).count() == 1;
        (alone && !stem.is_empty()).then(|| (stem.to_owned(), (*value).to_owned()))
    })
}

fn strings(value: &Value) -> Vec<&str> {
    let all = value.as_array().into_iter().flatten();
    all.filter_map(Value::as_str).collect()
}

/// Types each line with a tabulator and Enter into a shell where the programs are functions that
/// print their arguments.
fn types_well(shell: &str, arguments: &[&str], environment: &[(&str, &Path)]) {
    let t = TestTree::new();
    t.write("readme", "");
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
    let typed = typed();
    for (nth, (line, _)) in typed.iter().enumerate() {
        session.wait_for("a prompt", |bytes| times(bytes, "ready>") > nth);
        session.type_keys(format!("{line}\t\n").as_bytes());
        session.wait_for(line, |bytes| times(bytes, "]end") > nth);
    }
    session.type_keys(b"exit\n");
    let (_, bytes) = session.end();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let mut got = text.split("got[").skip(1);
    for (line, expected) in typed {
        let got = got.next().and_then(|rest| rest.split_once("]end"));
        // zsh takes a = off again when nothing follows it.
        let got = got.map(|(got, _)| got.trim_end_matches('='));
        assert_eq!(got, Some(expected.trim_end_matches('=')), "{shell}: {line}");
    }
}

fn times(bytes: &[u8], text: &str) -> usize {
    let parts = bytes.windows(text.len());
    parts.filter(|part| *part == text.as_bytes()).count()
}

/// Functions under all the names that print what they were given.
fn functions() -> String {
    let one = |name| format!("{name}() {{ printf 'got[%s]%s\\n' \"$*\" end; }}\n");
    NAMES.iter().map(one).collect()
}

#[test]
fn bash_completes() {
    if tool("bash").is_none() {
        return left_out("bash is not installed");
    }
    let t = TestTree::new();
    t.bc_line("--generate=complete-bash --output=bc.bash")
        .go()
        .code(0)
        .stdout_is("");
    let rc = format!(
        "PS1='ready> '\n. {}\n{}",
        t.join("bc.bash").display(),
        functions()
    );
    t.write("rc", rc);
    let rc = t.join("rc");
    types_well("bash", &["--rcfile", rc.to_str().unwrap(), "-i"], &[]);
    t.run("bash")
        .args(["-n", "bc.bash"])
        .go()
        .code(0)
        .stderr_is("");
}

#[test]
fn zsh_completes() {
    if tool("zsh").is_none() {
        return left_out("zsh is not installed");
    }
    let t = TestTree::new();
    t.dir("functions");
    t.bc_line("--generate=complete-zsh --output=functions/_bc")
        .go()
        .code(0);
    let start = format!(
        "fpath=({} $fpath)\nautoload -Uz compinit\ncompinit -u -d {}\nPS1='ready> '\n{}",
        t.join("functions").display(),
        t.join("dump").display(),
        functions()
    );
    t.write(".zshrc", start);
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
    t.bc_line("--generate=complete-fish --output=bc.fish")
        .go()
        .code(0);
    let typed = typed();
    let mut script = String::from("source bc.fish\n");
    for (nth, (line, _)) in typed.iter().enumerate() {
        writeln!(script, "echo '<{nth}>'; complete -C '{line}'").unwrap();
    }
    t.write("script", script);
    let out = t
        .run("fish")
        .args(["--no-config", "script"])
        .env("TERM", "dumb")
        .go();
    out.code(0).stderr_is("");
    let text = out.text();
    for (nth, (line, expected)) in typed.iter().enumerate() {
        let (_, offered) = text.split_once(&format!("<{nth}>\n")).unwrap();
        let offered = offered.lines().take_while(|line| !line.starts_with('<'));
        let mut offered =
            offered.map(|line| line.split('\t').next().unwrap().trim_end_matches('='));
        if STAYS.contains(&(line.as_str(), expected.as_str())) {
            assert!(!offered.any(|word| word == "readme"), "{line}\n{text}");
            continue;
        }
        let last = expected.rsplit(' ').next().unwrap().trim_end_matches('=');
        assert!(offered.any(|word| word == last), "{line}: {last}\n{text}");
    }
}

/// All pages as the program of this name writes them.
fn pages(t: &TestTree, name: &str) -> Vec<PathBuf> {
    let out = t.bc_line("--generate=man --output=man").arg0(name).go();
    out.code(0).stdout_is("").stderr_is("");
    let pages = std::fs::read_dir(t.join("man")).unwrap();
    let mut pages: Vec<PathBuf> = pages.map(|entry| entry.unwrap().path()).collect();
    pages.sort();
    pages
}

#[test]
fn manual_pages_are_clean() {
    for name in ["bc", "bitcrafts"] {
        let t = TestTree::new();
        let pages = pages(&t, name);
        let has = |page: &str| pages.contains(&t.join(format!("man/{page}.1")));
        // That of the calculator lies in the same directories.
        assert!(has("bitcrafts") && !has("bc"), "{pages:?}");
        assert!(pages.len() >= 17, "{pages:?}");
        if tool("groff").is_some() {
            let format = t.run("groff").args(["-man", "-ww", "-Tutf8", "-z"]);
            format.args(&pages).go().code(0).stderr_is("");
        } else {
            left_out("groff is not installed");
        }
        if tool("mandoc").is_some() {
            let lint = t.run("mandoc").args(["-T", "lint", "-W", "warning"]);
            lint.args(&pages).go().code(0).stdout_is("");
        } else {
            left_out("mandoc is not installed");
        }
    }
}

#[test]
fn pages_say_what_help_says_and_more() {
    let t = TestTree::new();
    let plain = |page: &str| {
        page.replace("\\-", "-")
            .replace("\\e", "\\")
            .replace("\\(aq", "'")
    };
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (command, tree) in crate::commands::described() {
        let out = t.bc_line(&format!("--generate=man {command}")).go();
        let page = plain(&out.code(0).text());
        for section in [
            "SYNOPSIS",
            "OPTIONS",
            "EXIT STATUS",
            "ENVIRONMENT",
            "FILES",
            "EXAMPLES",
            "SEE ALSO",
        ] {
            assert!(
                page.contains(&format!("\n.SH {section}\n")),
                "{command}: {section}"
            );
        }
        let said = words(&page);
        for argument in tree["arguments"].as_array().unwrap() {
            let help = words(argument["help"].as_str().unwrap());
            assert!(said.contains(&help), "{command}: {help}");
        }
        let help = t.bc_line(&format!("{command} --help")).go().text();
        let examples = help.split("Example").nth(1).unwrap();
        for line in examples.lines().filter(|line| line.starts_with("  bc ")) {
            assert!(page.contains(line), "{command}: {line}\n{page}");
        }
    }
    let page = t.bc_line("--generate=man").go().text();
    assert!(page.contains(".SH EXAMPLES\n") && page.contains("\\-\\-version"));
    let page = t.bc_line("--generate=man dup undo").go().text();
    assert!(page.contains("$XDG_STATE_HOME/bc/") && page.contains("BC_THREADS"));
    // The options of the command that may be left out are on the page of the applet.
    let page = t.bc_line("--generate=man hash").go().text();
    assert!(page.contains("\\-\\-allow\\-changed"), "{page}");
}

/// Beside the calculator nothing is called bc, and nothing says that it is.
#[test]
fn pages_beside_the_calculator_never_say_bc() {
    for called in ["bitcrafts", "bchash", "bc-dup"] {
        let t = TestTree::new();
        let pages = pages(&t, called);
        let names: Vec<_> = pages.iter().map(|page| page.file_stem().unwrap()).collect();
        for name in [
            "bitcrafts",
            "bchash",
            "bchash-check",
            "bcdup-prune",
            "bcintegrity",
            "bccopy",
            "bitcrafts-install",
        ] {
            assert!(names.iter().any(|one| *one == name), "{name}: {names:?}");
        }
        for page in pages {
            let text = std::fs::read_to_string(&page).unwrap();
            for line in text.lines() {
                let mut words =
                    line.split(|c: char| !c.is_alphanumeric() && !"/_.-\\=$".contains(c));
                let escaped = line.contains("fBbc ") || line.contains("fBbc\\-");
                assert!(
                    !escaped && words.all(|word| word != "bc"),
                    "{}: {line}",
                    page.display()
                );
            }
        }
    }
}

#[test]
fn dates_are_those_of_the_build_where_it_says_so() {
    let t = TestTree::new();
    let out = t
        .bc_line("--generate=man")
        .env("SOURCE_DATE_EPOCH", "86400")
        .go();
    out.code(0).stdout_has(".TH BITCRAFTS 1 1970-01-02 ");
}

#[test]
fn what_cannot_be_made_is_told() {
    let t = TestTree::new();
    t.write("file", "");
    for (line, said) in [
        ("--generate", "--generate"),
        ("--generate=tcsh", "complete-bash"),
        (
            "--generate=man hash chek",
            "there is no command 'hash chek'",
        ),
        ("--generate=man --output=file", "file: mkdir: File exists"),
        (
            "--generate=complete-zsh hash",
            "completions are for all commands",
        ),
    ] {
        t.bc_line(line).go().code(2).stdout_is("").stderr_has(said);
    }
    t.bc_line("--generate=man --help")
        .go()
        .code(0)
        .stdout_has("--generate=man");
}
