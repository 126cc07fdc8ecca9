//! `-h`, `--help` and what is said to slips, for every command of the tree.

use bc_testkit::{Pty, TestTree};
use serde_json::Value;

use crate::common::Bc;

/// The words of every command below `bc`, e.g. `["hash", "check"]`.
pub fn commands(t: &TestTree) -> Vec<(Vec<String>, Value)> {
    let out = t.bc_line("--describe").go();
    let tree: Value = serde_json::from_slice(&out.code(0).stdout).unwrap();
    let mut found = Vec::new();
    collect(&tree, &[], &mut found);
    found
}

fn collect(command: &Value, above: &[String], found: &mut Vec<(Vec<String>, Value)>) {
    for below in command["subcommands"].as_array().unwrap() {
        let mut words = above.to_vec();
        words.push(below["name"].as_str().unwrap().to_owned());
        found.push((words.clone(), below.clone()));
        collect(below, &words, found);
    }
}

/// Options that every command understands.
const COMMON: &[&str] = &[
    "threads",
    "io",
    "memory-budget",
    "rate",
    "progress",
    "color",
    "quiet",
    "verbose",
    "log-format",
    "metrics",
    "config",
    "describe",
];

#[test]
fn every_help_fits_names_all_options_and_has_an_example() {
    let t = TestTree::new();
    let commands = commands(&t);
    assert!(commands.len() >= 17, "{}", commands.len());
    for (words, command) in &commands {
        let help = |option: &str| {
            let out = t.bc().args(words).arg(option).go();
            out.code(0).stderr_is("").text()
        };
        let (short, long) = (help("-h"), help("--help"));
        for (nth, text) in [&short, &long].into_iter().enumerate() {
            for line in text.lines() {
                assert!(line.chars().count() <= 100, "{words:?}: {line:?}");
                assert_eq!(line, line.trim_end(), "{words:?}");
            }
            let usage = format!("Usage: bc {}", words.join(" "));
            assert!(text.contains(&usage), "{words:?}: {text}");
            for argument in command["arguments"].as_array().unwrap() {
                if let Some(name) = argument["long"].as_str() {
                    // What all commands share is one line of `-h`.
                    let is_named = nth == 1 || !COMMON.contains(&name);
                    let found = text.contains(&format!("--{name}"));
                    assert_eq!(found, is_named, "{words:?}: {name}");
                }
            }
        }
        if command["arguments"].to_string().contains("memory-budget") {
            let pointer = "\nCommon options (threads, memory, progress, colours, messages, configuration): see --help\n";
            assert!(
                short.contains(pointer) && !long.contains(pointer),
                "{words:?}: {short}"
            );
        }
        assert!(short.len() <= long.len(), "{words:?}");
        assert!(
            long.contains("\nExample:\n") || long.contains("\nExamples:\n"),
            "{words:?}: {long}"
        );
        let example = format!("  bc {}", words[0]);
        assert!(long.contains(&example), "{words:?}: {long}");
    }
    t.bc_line("--help").go().code(0).stdout_has("Usage: bc ");
}

/// A terminal shows help in the lines in which the parser lays it out for that width: none is broken
/// a second time.
#[test]
fn help_is_broken_into_lines_once() {
    let t = TestTree::new();
    for (line, columns) in [
        ("copy --help", 80),
        ("copy -h", 80),
        ("dup prune --help", 72),
        ("integrity verify --help", 120),
    ] {
        let piped = t.bc_line(line).env("COLUMNS", columns.to_string());
        let piped = piped.go().code(0).text();
        let shown = t.bc_line(line).env("NO_COLOR", "1").env("TERM", "xterm");
        let terminal = Pty::new(columns, 50);
        let (status, bytes) = terminal.start_in(shown.command()).end();
        assert!(status.success(), "{line}: {status}");
        let shown = String::from_utf8(bytes).unwrap().replace("\r\n", "\n");
        // What is no option's text has lines of its own, which may be longer than a terminal is wide.
        let options = |text: &str| text.split("\nExample").next().unwrap().to_owned();
        assert_eq!(
            options(&shown),
            options(&piped),
            "{line}, {columns} columns"
        );
    }
}

/// The examples of the help are lines that parse: each command word and option in them exists.
#[test]
fn examples_name_what_exists() {
    let t = TestTree::new();
    let commands = commands(&t);
    let mut seen = 0;
    for (words, _) in &commands {
        let long = t.bc().args(words).arg("--help").go().text();
        let (_, examples) = long.split_once("Example").unwrap();
        let lines = examples.lines().filter(|line| line.starts_with("  "));
        for part in lines.flat_map(|line| line.split(['|', ';', '&'])) {
            // What follows three blanks explains.
            let part = part.trim().split("   ").next().unwrap();
            let Some(call) = part.strip_prefix("bc ") else {
                continue;
            };
            seen += 1;
            known(&commands, call);
        }
    }
    assert!(seen > 30, "{seen}");
}

fn known(commands: &[(Vec<String>, Value)], call: &str) {
    let mut typed: Vec<&str> = call.split_whitespace().collect();
    let two = commands
        .iter()
        .find(|(words, _)| words.len() == 2 && typed.starts_with(&[&words[0], &words[1]]));
    let default = match typed[0] {
        "hash" => vec!["hash", "hash"],
        "dup" => vec!["dup", "scan"],
        one => vec![one],
    };
    let (_, command) = two
        .or_else(|| commands.iter().find(|(words, _)| *words == default))
        .unwrap_or_else(|| panic!("no such command: {call}"));
    typed.retain(|word| word.starts_with('-') && word.len() > 1);
    for option in typed {
        let arguments = command["arguments"].as_array().unwrap();
        let found = arguments.iter().any(|argument| {
            let is = |key: &str, prefix: &str| {
                argument[key].as_str().is_some_and(|name| {
                    option.split('=').next() == Some(&format!("{prefix}{name}"))
                })
            };
            is("long", "--") || is("short", "-")
        });
        assert!(found, "no such option: {option} in {call}");
    }
}

/// The page that a newcomer reads first has what he wants to do, and the command for it.
#[test]
fn the_overview_has_tasks_and_the_commands_for_them() {
    let t = TestTree::new();
    let commands = commands(&t);
    let long = t.bc_line("--help").go().code(0).text();
    t.bc_line("help").go().code(0).stdout_is(&long);
    for (task, command) in [
        ("the same?", "bc integrity diff DIR1 DIR2"),
        (
            "only on this card?",
            "bc dup unique CARD --reference=ARCHIVE",
        ),
        ("backup good?", "bc integrity verify BACKUP FILE"),
        (
            "disk is full",
            "bc dup prune --action=hardlink --dry-run DIR",
        ),
        ("Copy", "bc copy --verify=media SOURCE... DESTINATION"),
        ("Move", "bc move SOURCE... DESTINATION"),
        ("bitrot", "bc integrity update --reread=5% DIR FILE"),
    ] {
        let (_, below) = long.split_once(task).unwrap();
        let lines = below.lines().skip(1);
        let mut answers = lines.take_while(|line| line.starts_with("      bc "));
        assert!(answers.any(|line| line.contains(command)), "{task}: {long}");
    }
    let mut seen = 0;
    for line in long.lines().filter(|line| line.starts_with("      bc ")) {
        let call = line.trim().split("   ").next().unwrap();
        known(&commands, call.strip_prefix("bc ").unwrap());
        seen += 1;
    }
    assert!(seen > 12, "{seen}");
    for (words, _) in commands.iter().filter(|(words, _)| words.len() == 2) {
        let (_, below) = long.split_once(&format!("\n  {} ", words[0])).unwrap();
        // Names below what the command does, in as many lines as they take.
        let lines = below.lines().skip(1);
        let mut names = lines
            .take_while(|line| line.starts_with("              "))
            .flat_map(str::split_whitespace);
        assert!(names.any(|name| name == words[1]), "{words:?}");
    }
    for word in ["Exit codes:", "man bc-guide", "https://docs.rs/bit-crafts"] {
        assert!(long.contains(word), "{word}: {long}");
    }
    let short = t.bc_line("-h").go().code(0).text();
    assert!(
        short.lines().count() < 25 && !short.contains("Tasks:"),
        "{short}"
    );
    for text in [short, long] {
        assert!(!text.to_lowercase().contains("applet"), "{text}");
    }
}

#[test]
fn slips_are_answered_with_what_was_meant() {
    let t = TestTree::new();
    t.write("a", "abc");
    for (typed, meant) in [
        ("hsah a", "did you mean 'bc hash'?"),
        ("integrty a", "did you mean 'bc integrity'?"),
        ("instal a", "did you mean 'bc install'?"),
        ("hash chekc sums", "did you mean 'bc hash check'?"),
        ("dup prnue d", "did you mean 'bc dup prune'?"),
        ("dup sumary d", "did you mean 'bc dup summary'?"),
        ("integrity verfy d m", "did you mean 'bc integrity verify'?"),
        (
            "integrity manfest d",
            "did you mean 'bc integrity manifest'?",
        ),
        ("hash --tpye=md5 a", "'--type'"),
        ("hash --exlude=b a", "'--exclude'"),
        ("hash check --ignore-mising a", "'--ignore-missing'"),
        ("dup prune --action=hardlnk a", "expected hardlink, reflink"),
        ("dup --algorithm=xxh182 a", "'xxh128'"),
        ("hash --format=jsno a", "'json'"),
        ("integrity verify --mode=contnt d m", "'content'"),
        ("hash --type=sha265 a", "sha256"),
        ("hash a --threads=fast", "fast"),
        ("hash a --min-size=1X", "64K"),
    ] {
        let out = t.bc_line(typed).go();
        out.code(2).stdout_is("").stderr_has(meant);
    }
}

#[test]
fn the_default_command_may_be_left_out_and_help_says_so() {
    let t = TestTree::new();
    for (applet, default) in [("hash", "hash"), ("dup", "scan")] {
        let line = format!("'bc {applet} DIR' means 'bc {applet} {default} DIR'");
        t.bc_line(&format!("{applet} -h"))
            .go()
            .code(0)
            .stdout_has(line);
    }
    // `help COMMAND` is the same text as `COMMAND --help`.
    let long = t.bc_line("hash check --help").go();
    t.bc_line("hash help check")
        .go()
        .code(0)
        .stdout_is(&long.stdout);
}

/// What may be left out is shown where it is left out.
#[test]
fn help_of_an_applet_lists_the_options_of_its_default_command() {
    let t = TestTree::new();
    for (applet, default) in [("hash", "hash"), ("dup", "scan")] {
        let commands = commands(&t);
        let (_, command) = commands
            .iter()
            .find(|(words, _)| *words == [applet, default])
            .unwrap();
        for (option, all) in [("-h", false), ("--help", true), ("help", true)] {
            let out = t.bc_line(&format!("{applet} {option}")).go();
            let text = out.code(0).text();
            assert!(text.contains(&format!("Usage: bc {applet} [OPTIONS] PATH...\n")));
            for argument in command["arguments"].as_array().unwrap() {
                let Some(name) = argument["long"].as_str() else {
                    continue;
                };
                let found = text.contains(&format!("--{name}"));
                let expected = all || !COMMON.contains(&name);
                assert_eq!(found, expected, "{applet} {option}: {name}");
            }
        }
        // Wherever the question stands, and as the program was called.
        let named = t.bc_line(&format!("{applet} --threads 2 -h")).go();
        t.bc_line(&format!("{applet} -h"))
            .go()
            .stdout_is(&named.stdout);
    }
}

#[test]
fn help_calls_the_program_as_the_reader_did() {
    let t = TestTree::new();
    for (called, arguments, usage, example) in [
        (
            "bchash",
            "--help",
            "Usage: bchash [OPTIONS]",
            "  bchash check tree.xxh128\n",
        ),
        (
            "bchash",
            "check --help",
            "Usage: bchash check ",
            "  bchash check SHA256SUMS\n",
        ),
        (
            "bcduplicate",
            "scan --help",
            "Usage: bcduplicate scan ",
            "  bcduplicate scan ~/P",
        ),
        (
            "bitcrafts",
            "dup --help",
            "Usage: bitcrafts dup [",
            "  bitcrafts dup summary DIR ",
        ),
        (
            "renamed",
            "integrity --help",
            "Usage: renamed integrity ",
            "  renamed integrity diff m",
        ),
        (
            "bitcrafts",
            "install --help",
            "Usage: bitcrafts install ",
            "  bitcrafts install --mkdir ~/.local/bin ",
        ),
    ] {
        let out = t.bc_line(arguments).arg0(called).go();
        out.code(0).stdout_has(usage).stdout_has(example);
        assert!(!out.text().contains(" bc "), "{out}");
    }
    let short = t.bc_line("-h").arg0("bchash").go();
    short.stdout_has("'bchash DIR' means 'bchash hash DIR'");
}

#[test]
fn prune_without_an_action_lists_the_actions() {
    let t = TestTree::new();
    t.write("a", "abc").write("b", "abc");
    let out = t.bc_line("dup prune a b").go();
    out.code(2)
        .stderr_has("not provided:\n  --action <ACTION>\n")
        .stderr_has("tip: actions are hardlink, reflink, symlink, delete, trash and move:DIR\n")
        .stderr_has("tip: '--action=hardlink --dry-run' previews the steps and changes nothing\n");
    t.bc_line("dup prune --dirs")
        .go()
        .code(2)
        .stderr_has("previews the steps");
}
