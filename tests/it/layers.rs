//! Layers below the command line: which options they may set, which never, and
//! who is blamed for a bad value.

use bc_testkit::TestTree;
use serde_json::Value;

use crate::common::{ABC, BC, Bc};

/// Never from a file or the environment: they say what to do, change what a check means, or
/// weaken a guard.
const NEVER: &[&str] = &[
    "accept-damaged",
    "action",
    "describe",
    "discard-damaged",
    "dirs",
    "dry-run",
    "files-from",
    "force",
    "from",
    "ignore",
    "ignore-metadata",
    "ignore-missing",
    "journal",
    "keep",
    "mode",
    "null",
    "on-conflict",
    "only",
    "output",
    "reference",
    "resume",
    "preserve",
    "restart",
    "shard",
    "strict-metadata",
    "sync",
    "trust-list",
    "trust-metadata",
    "verify",
    "yes",
];

/// Every option: the applet, the subcommand, what `--describe` says of it.
fn every_option() -> Vec<(String, String, Value)> {
    let t = TestTree::new();
    let out = t.bc_line("--describe").go();
    let tree: Value = serde_json::from_slice(&out.code(0).stdout).unwrap();
    let mut found = Vec::new();
    let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
    for applet in tree["subcommands"].as_array().unwrap() {
        let below = applet["subcommands"].as_array().unwrap().iter();
        let mut commands: Vec<_> = below.map(|command| (name(command), command)).collect();
        if name(applet) == "copy" {
            // It is one command.
            commands.push((String::new(), applet));
        }
        for (command, described) in commands {
            for option in described["arguments"].as_array().unwrap() {
                if option["long"].is_string() {
                    found.push((name(applet), command.clone(), option.clone()));
                }
            }
        }
    }
    assert!(found.len() > 200, "{}", found.len());
    found
}

fn long(option: &Value) -> &str {
    option["long"].as_str().unwrap()
}

#[test]
fn what_weakens_a_guard_carries_no_mark() {
    for (applet, command, option) in every_option() {
        let never = NEVER.contains(&long(&option))
            || matches!(command.as_str(), "check" | "diff" | "verify")
                && ["type", "format", "zero"].contains(&long(&option));
        if never {
            assert_eq!(option["configurable"], false, "{applet} {command} {option}");
        }
    }
}

/// A value that the option takes.
fn value(option: &Value) -> String {
    if option["takes_value"] == false {
        return "true".to_owned();
    }
    let given = |list: &Value| Some(list.get(0)?.as_str()?.to_owned());
    given(&option["default"])
        .or_else(|| given(&option["allowed"]))
        .unwrap_or_else(|| match option["value_name"].as_str().unwrap() {
            "ALG[,ALG...]" | "ALG" => "sha256".to_owned(),
            "SIZE" => "1G".to_owned(),
            "PART" | "P%" => "5%".to_owned(),
            "FILE" => format!("{}.file", long(option)),
            _ => "1".to_owned(),
        })
}

/// A run of each subcommand that ends with 0.
fn line(applet: &str, command: &str) -> String {
    let rest = match (applet, command) {
        ("copy", _) => "--on-conflict=skip d to",
        ("hash", "check") => "sums",
        ("hash", "diff") => "sums sums",
        ("dup", "unique") => "e --reference=d",
        ("dup", "prune") => "--action=hardlink --dry-run d",
        ("dup", "undo") => "--dry-run steps",
        ("integrity", "verify" | "update" | "restore" | "protect") => "d m.jsonl",
        ("integrity", "accept") => "d m.jsonl a",
        ("integrity", "diff") => "m.jsonl m.jsonl",
        ("integrity", "export") => "--format=gnu m.jsonl",
        ("integrity", "import") => "sums",
        ("integrity", "merge") => "--check m.jsonl",
        _ => "d",
    };
    format!("{applet} {command} {rest}")
}

#[test]
fn every_option_in_every_layer() {
    let t = TestTree::new();
    t.write("d/a", "abc").write("d/b", "abc");
    t.write("e/a", "abc");
    t.bc_line("hash --output=sums d").go().code(0);
    t.bc_line("dup prune --action=hardlink --journal=steps d")
        .go()
        .code(0);
    t.bc_line("integrity manifest --output=m.jsonl d")
        .go()
        .code(0);
    let all = every_option();
    for (applet, command, option) in &all {
        let long = long(option);
        let line = line(applet, command);
        let somewhere = all.iter().any(|(other, _, same)| {
            other == applet && same["long"] == option["long"] && same["configurable"] == true
        });
        let value = value(option);
        t.write("conf", format!("\n[{applet}]\n{long} = '{value}'\n"));
        let variable = format!("BC_{}", long.replace('-', "_").to_uppercase());
        let by_file = t.bc_line(&line).arg("--config=conf").go();
        let by_variable = t.bc_line(&line).env(&variable, &value).go();
        let case = format!("{line} --{long}={value}");
        if somewhere {
            for out in [by_file, by_variable] {
                let text = out.error_text();
                assert_eq!(out.status.code(), Some(0), "{case}: {text}");
            }
            continue;
        }
        let refusal = "can only be given on the command line";
        by_file
            .code(2)
            .stdout_is("")
            .stderr_has("conf:3: ")
            .stderr_has(refusal);
        if long != "config" {
            by_variable
                .code(2)
                .stdout_is("")
                .stderr_has(&variable)
                .stderr_has(refusal);
        }
    }
}

#[test]
fn type_and_format_do_not_reach_check_and_diff() {
    let t = TestTree::new();
    t.write("a", "abc").write("b", "other");
    t.bc_line("hash --output=one a b").go().code(0);
    t.bc_line("hash --output=two a").go().code(0);
    let check = t.bc_line("hash check one").go().code(0).text();
    let diff = t.bc_line("hash diff one two").go().code(1).text();
    for kind in ["'blake3'", "['sha256', 'md5']", "'md5,sha1'"] {
        t.write("conf", format!("[hash]\ntype = {kind}\nformat = 'jsonl'\n"));
        t.bc_line("hash check one --config=conf")
            .go()
            .code(0)
            .stdout_is(&check);
        t.bc_line("hash diff one two --config=conf")
            .go()
            .code(1)
            .stdout_is(&diff);
        t.bc_line("hash a --config=conf")
            .go()
            .code(0)
            .stdout_has("\"type\":\"file\"");
    }
    for (name, value) in [
        ("BC_TYPE", "blake3"),
        ("BC_TYPE", "md5,sha1"),
        ("BC_FORMAT", "csv"),
    ] {
        t.bc_line("hash check one")
            .env(name, value)
            .go()
            .code(0)
            .stdout_is(&check);
        t.bc_line("hash diff one two")
            .env(name, value)
            .go()
            .code(1)
            .stdout_is(&diff);
    }
    t.write("conf", "format = 'csv'\n");
    t.bc_line("integrity manifest --output=m d").go();
    t.bc_line("hash diff one two --config=conf")
        .go()
        .code(1)
        .stdout_is(&diff);
}

#[test]
fn bad_values_are_blamed_on_where_they_stand() {
    let t = TestTree::new();
    t.write("a", "abc");
    for (key, value) in [
        ("threads", "many"),
        ("io", "fast"),
        ("type", "sha257"),
        ("type", "sha256,"),
        ("min-size", "5x"),
        ("max-depth", "-1"),
        ("quiet", "maybe"),
        ("verbose", "99"),
        ("color", ""),
        ("format", "xml"),
        ("memory-budget", "plenty"),
    ] {
        t.write(
            "conf",
            format!("# nothing\n\n[hash]\n\n{key} = \"{value}\"\n"),
        );
        let by_file = t.bc_line("hash a --config=conf").go();
        by_file
            .code(2)
            .stdout_is("")
            .stderr_has("bc hash: conf:5: ");
        let variable = format!("BC_{}", key.replace('-', "_").to_uppercase());
        let by_variable = t.bc_line("hash a").env(&variable, value).go();
        by_variable
            .code(2)
            .stdout_is("")
            .stderr_has(format!("variable {variable}: "));
        for out in [by_file, by_variable] {
            assert_eq!(
                out.error_text().matches("--help").count(),
                0,
                "{}",
                out.error_text()
            );
        }
    }
    // Twice what may be given once.
    t.write("conf", "threads = [1, 2]\n");
    t.bc_line("hash a --config=conf")
        .go()
        .code(2)
        .stderr_has("conf:1: ");
    // What the user wrote himself is his, and needs no setting.
    t.write("conf", "threads = 'many'\n");
    t.bc_line("hash a --config=conf --threads=1").go().code(0);
    t.bc_line("hash a --threads=few")
        .go()
        .code(2)
        .stderr_has("error: invalid value 'few'");
    // As a JSON object where that is asked for.
    let out = t
        .bc_line("hash a --log-format=json")
        .env("BC_THREADS", "many")
        .go();
    let object: Value = serde_json::from_slice(&out.code(2).stderr).unwrap();
    assert_eq!(object["level"], "error");
}

#[test]
fn off_is_off_and_the_calculators_variables_are_its_own() {
    let t = TestTree::new();
    t.write("a", "abc").write(".h", "abc");
    t.write("../conf", "no-hidden = true\n");
    let one = format!("{ABC}  ./a\n");
    t.bc_line("hash . --config=../conf")
        .go()
        .code(0)
        .stdout_is(&one);
    let both = t
        .bc_line("hash . --config=../conf")
        .env("BC_NO_HIDDEN", "false")
        .go();
    assert_eq!(both.code(0).lines().len(), 2);
    t.bc_line("hash a")
        .env("BC_LINE_LENGTH", "0")
        .env("BC_ENV_ARGS", "-l")
        .go()
        .code(0)
        .stdout_is(format!("{ABC}  a\n"))
        .stderr_is("");
}

#[test]
fn a_file_that_never_ends_is_no_configuration() {
    let t = TestTree::new();
    t.write("a", "abc");
    t.bc_line("hash a --config=/dev/zero")
        .go()
        .code(2)
        .stderr_has("larger than 1 MiB");
    t.bc_line("hash a")
        .env("BC_CONFIG", "/dev/zero")
        .go()
        .code(2)
        .stderr_has("/dev/zero: read");
}

/// The writer of a pipe is waited for where there is one, and nowhere else.
#[test]
fn a_pipe_is_a_configuration_if_a_process_writes_to_it() {
    let t = TestTree::new();
    t.write("d/a", "abc").write("d/.hidden", "abc");
    t.fifo("home/bc/config.toml").fifo("pipe");
    for (variable, path) in [("XDG_CONFIG_HOME", "home"), ("BC_CONFIG", "pipe")] {
        let path = t.join(path);
        let run = t.bc_line("hash d").env(variable, path.to_str().unwrap());
        let why = "a pipe that no process writes to";
        run.go().code(2).stderr_has(why);
    }
    let script = "BC_CONFIG=<(echo 'no-hidden = true') \"$BC\" hash d";
    let run = t.run("bash").args(["-c", script]).env("BC", BC).go();
    run.code(0).stdout_is(format!("{ABC}  d/a\n"));
}
