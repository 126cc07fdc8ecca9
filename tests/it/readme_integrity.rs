//! The guide's examples of nightly runs and of manifests as data, run as they are written there; only
//! their paths are made ones of a temporary tree.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use bc_testkit::{TestTree, left_out, tool};

use crate::common::{BC, Bc};

/// The fenced blocks of this language from the nightly runs on.
fn blocks(language: &str) -> Vec<&'static str> {
    let guide = include_str!("../../src/guide/recipes.md");
    let (_, sections) = guide.split_once("\n## Every night\n").unwrap();
    let fenced = sections.split("```").skip(1).step_by(2);
    let blocks: Vec<&str> = fenced
        .filter_map(|block| block.split_once('\n'))
        .filter(|(name, _)| *name == language)
        .map(|(_, block)| block)
        .collect();
    assert!(!blocks.is_empty(), "the guide has no {language} here");
    blocks
}

/// What stands for the machine of the examples.
struct Machine {
    srv: TestTree,
    var: TestTree,
    metrics: PathBuf,
}

impl Machine {
    fn new() -> Machine {
        let srv = TestTree::new();
        srv.write("notes", "as they were")
            .write("photo", "as it should be")
            .write("copies/photo", "as it should be");
        let var = TestTree::new();
        let metrics = var.join("bc.prom");
        let manifest = var.join("srv.jsonl.zst").display().to_string();
        srv.bc_line(&format!("integrity manifest --output={manifest} ."))
            .go()
            .code(0);
        Machine { srv, var, metrics }
    }

    fn here(&self, text: &str) -> String {
        let path = |path: &Path| path.display().to_string();
        text.replace("/usr/local/bin/bc ", &format!("{BC} "))
            .replace("/var/lib/node_exporter", &path(self.var.path()))
            .replace("/var/lib/bc", &path(self.var.path()))
            .replace(" /srv ", &format!(" {} ", path(self.srv.path())))
    }

    /// Runs a command line as cron does, which finds `bc` in its PATH.
    fn sh(&self, line: &str) -> Output {
        let found = Path::new(BC).parent().unwrap().display().to_string();
        let path = format!("{found}:{}", std::env::var("PATH").unwrap());
        Command::new("sh")
            .args(["-c", line])
            .env("PATH", path)
            .current_dir(self.var.path())
            .output()
            .unwrap()
    }

    fn metric(&self, name: &str) -> String {
        let text = std::fs::read_to_string(&self.metrics).unwrap();
        let line = text.lines().find(|line| line.starts_with(name));
        line.unwrap().rsplit(' ').next().unwrap().to_owned()
    }
}

/// A byte changed behind an unchanged time.
fn rot(tree: &TestTree, path: &str) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::options().write(true).open(tree.join(path));
    let file = file.unwrap();
    let mtime = file.metadata().unwrap().modified().unwrap();
    file.write_all_at(b"!", 0).unwrap();
    file.set_modified(mtime).unwrap();
}

#[track_caller]
fn scrubs_in_silence_unless_something_is_wrong(command: &str) {
    let machine = Machine::new();
    // Enough of them that one edit is no mass change.
    for file in 0..20 {
        machine.srv.write(format!("many/{file}"), "unchanged");
    }
    let record = machine.here("bc integrity update --quiet /srv /var/lib/bc/srv.jsonl.zst");
    assert!(machine.sh(&record).status.success());
    let command = machine.here(command);
    let said = |output: &Output| {
        let text = [&output.stdout[..], &output.stderr[..]].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    };
    assert_eq!(said(&machine.sh(&command)), (Some(0), String::new()));
    assert_eq!(machine.metric("bc_exit_code{applet=\"integrity\""), "0");
    machine.srv.write("notes", "edited").write("new", "1");
    assert_eq!(said(&machine.sh(&command)), (Some(0), String::new()));
    assert_eq!(machine.metric("bc_entries_modified"), "1");
    rot(&machine.srv, "photo");
    let (code, text) = said(&machine.sh(&command));
    assert_eq!(code, Some(3), "{text}");
    assert_eq!(
        text,
        "!! photo: ctime changed, probably a rewrite with its mtime reset\n"
    );
    assert_eq!(machine.metric("bc_exit_code{applet=\"integrity\""), "3");
    assert!(
        machine
            .metric("bc_finished_timestamp_seconds{applet=\"integrity\"")
            .len()
            > 9
    );
    for file in 0..20 {
        machine.srv.write(format!("many/{file}"), "encrypted");
    }
    for _ in 0..2 {
        let (code, text) = said(&machine.sh(&command));
        assert_eq!(code, Some(3), "{text}");
        assert!(text.contains("20 of 27 entries were edited"), "{text}");
    }
}

#[test]
fn the_line_for_cron() {
    let [block] = blocks("crontab")[..] else {
        panic!("one crontab");
    };
    let line = block.lines().find(|line| !line.starts_with('#')).unwrap();
    let mut fields = line.splitn(6, ' ');
    let times: Vec<&str> = fields.by_ref().take(5).collect();
    assert_eq!(times, ["30", "2", "*", "*", "*"]);
    let command = fields.next().unwrap().trim().strip_prefix("root").unwrap();
    // A bare % would end the command there.
    assert_eq!(command.matches('%').count(), command.matches("\\%").count());
    scrubs_in_silence_unless_something_is_wrong(&command.replace("\\%", "%"));
}

/// The units by the names in their first lines.
fn units() -> Vec<(&'static str, &'static str)> {
    let named = blocks("ini").into_iter().map(|unit| {
        let path = unit.lines().next().unwrap().trim_start_matches("# ");
        (path.rsplit('/').next().unwrap(), unit)
    });
    named.collect()
}

#[test]
fn the_service_does_the_same() {
    let units = units();
    let (_, service) = units
        .iter()
        .find(|(name, _)| name.ends_with(".service"))
        .unwrap();
    let command = service
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="));
    // A single % begins a specifier there.
    let command = command.unwrap().replace("%%", "\0");
    assert!(!command.contains('%'), "{command}");
    scrubs_in_silence_unless_something_is_wrong(&command.replace('\0', "%"));
}

#[test]
fn systemd_understands_the_units() {
    let Some(analyze) = tool("systemd-analyze") else {
        return left_out("systemd-analyze is not installed");
    };
    let machine = Machine::new();
    let mut files = Vec::new();
    for (name, unit) in units() {
        let file = machine.var.join(name);
        // It looks for the program.
        std::fs::write(&file, unit.replace("/usr/local/bin/bc ", &format!("{BC} "))).unwrap();
        files.push(file);
    }
    let output = Command::new(&analyze)
        .arg("verify")
        .args(&files)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    // The machine's own units may have faults as well.
    assert!(!said.contains("bc-integrity"), "{said}");
    if !output.status.success() {
        return left_out(&format!("systemd-analyze cannot verify here: {said}"));
    }
    let schedule = units()
        .iter()
        .find_map(|(_, unit)| {
            unit.lines()
                .find_map(|line| line.strip_prefix("OnCalendar="))
        })
        .unwrap();
    let calendar = Command::new(&analyze)
        .arg("calendar")
        .arg(schedule)
        .output();
    assert!(calendar.unwrap().status.success(), "{schedule}");
}

/// A directory with the manifest `srv.jsonl` of a tree with two duplicates.
fn manifest() -> Machine {
    let machine = Machine::new();
    let path = machine.var.join("srv.jsonl").display().to_string();
    machine
        .srv
        .bc_line(&format!("integrity manifest --output={path} ."))
        .go()
        .code(0);
    machine
}

#[test]
fn manifests_through_jq() {
    if tool("jq").is_none() {
        return left_out("jq is not installed");
    }
    let block = blocks("sh")
        .into_iter()
        .find(|block| block.contains("jq -r"));
    let machine = manifest();
    let mut commands = block.unwrap().lines().filter(|line| !line.starts_with('#'));
    let run = |line: &str| {
        let output = machine.sh(line);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(
        run(commands.next().unwrap()),
        "15\tphoto\n15\tcopies/photo\n12\tnotes\n"
    );
    let unread = commands.next().unwrap();
    assert_eq!(run(unread), "");
    let path = machine.var.join("srv.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let error = r#""error":{"op":"open","errno":13,"message":"denied"}"#;
    let digest = text.find(r#""digest":"#).unwrap();
    let end = digest + text[digest..].find('}').unwrap();
    std::fs::write(&path, format!("{}{error}{}", &text[..digest], &text[end..])).unwrap();
    assert_eq!(run(unread), "copies/photo: denied\n");
    assert_eq!(commands.next(), None);
}

#[test]
fn manifests_through_duckdb() {
    let [query] = blocks("sql")[..] else {
        panic!("one query");
    };
    let machine = manifest();
    let there = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        let output = command.args(arguments).output();
        output.is_ok_and(|output| output.status.success())
    };
    let mut command = if there("duckdb", &["-version"]) {
        let mut command = Command::new("duckdb");
        command.args(["-csv", "-noheader", "-c", query]);
        command
    } else if there("python3", &["-c", "import duckdb"]) {
        let print = "for row in duckdb.sql(sys.argv[1]).fetchall(): print(*row, sep=',')";
        let mut command = Command::new("python3");
        command.args(["-c", &format!("import duckdb, sys\n{print}"), query]);
        command
    } else {
        return left_out("DuckDB is not installed");
    };
    let output = command.current_dir(machine.var.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let rows = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    let expected = ["copies/photo,2,15\n", "photo,2,15\n"];
    assert!(expected.contains(&rows.as_str()), "{rows}");
}
