//! Questions about many manifests: what the SQL of `bc integrity sql` gives in the engine itself.

use bc_digest::{Algorithm, Hasher};
use bc_testkit::{Fleet, KnownAnswer, Outcome, TestTree, duckdb};

use crate::common::Bc;

fn sha256(bytes: &[u8]) -> String {
    let mut hasher = Hasher::new(Algorithm::Sha256);
    hasher.update(bytes);
    hasher.finalize().to_string()
}

fn sql(t: &TestTree, args: &[&str]) -> String {
    let out = t.bc_line("integrity sql").args(args).go();
    out.code(0).stderr_is("");
    out.text()
}

/// What the last question of a text gives, as its rows and the sum of the sizes.
fn summed(sql: &str) -> String {
    let answer = KnownAnswer {
        query: "",
        params: Vec::new(),
        rows: None,
        column: "size",
        sum: 0,
    };
    answer.summing(sql)
}

/// The rows of all answers.
fn ask(t: &TestTree, sql: &str) -> Option<Vec<String>> {
    let out = duckdb(t, sql)?;
    assert!(out.code(0).error_text().is_empty(), "{}", out.error_text());
    Some(out.text().lines().map(str::to_owned).collect())
}

#[test]
fn each_question_gives_the_known_answer() {
    let t = TestTree::new();
    t.dir("fleet");
    let fleet = Fleet::small();
    fleet.write(&t.join("fleet"), &sha256).unwrap();
    // They are manifests, as far as bc is concerned.
    let names: Vec<_> = std::fs::read_dir(t.join("fleet"))
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    t.bc_line("integrity merge --check")
        .args(names)
        .go()
        .code(0)
        .stderr_is("");
    std::thread::scope(|scope| {
        for answer in fleet.answers("fleet") {
            let t = &t;
            scope.spawn(move || gives(t, &answer));
        }
    });
    // One host has a name that is SQL.
    assert!(!t.exists("owned.csv"));
}

fn gives(t: &TestTree, answer: &KnownAnswer) {
    let query = format!("--query={}", answer.query);
    let params = answer.params.iter().map(|param| format!("--param={param}"));
    let params: Vec<String> = params.collect();
    let mut args = vec!["fleet/*.jsonl", &query];
    args.extend(params.iter().map(|param| &**param));
    let Some(lines) = ask(t, &answer.summing(&sql(t, &args))) else {
        return;
    };
    assert!(answer.is(&lines), "{answer:?}: {lines:?}");
}

/// A tree with manifests of before and after, by the program itself.
fn recorded() -> TestTree {
    let t = TestTree::new();
    t.write("d/kept", "kept")
        .write("d/gone", "gone")
        .write("d/rot", "one")
        .mtime("d/rot", 1_000_000_000, 0);
    t.write("d/o'clock\n", "odd")
        .write_bytes(b"d/\xff", "no text");
    t.dir("m");
    t.bc_line("integrity manifest -o m/1.jsonl d").go().code(0);
    t.write("d/rot", "two")
        .mtime("d/rot", 1_000_000_000, 0)
        .remove("d/gone");
    std::fs::rename(t.join("d/kept"), t.join("d/moved")).unwrap();
    t.bc_line("integrity manifest -o m/2.jsonl.zst d")
        .go()
        .code(0);
    t
}

#[test]
fn what_bc_records_is_what_is_asked() {
    let t = recorded();
    let ask = |query: &str| {
        let text = sql(
            &t,
            &[&format!("--query={query}"), "m/*.jsonl", "m/2.jsonl.zst"],
        );
        ask(&t, &summed(&text))
    };
    for (query, expected) in [
        ("lost", "2,7"),
        ("decayed", "1,3"),
        ("moved", "1,4"),
        ("unprotected", "4,17"),
    ] {
        let Some(lines) = ask(query) else {
            return;
        };
        assert_eq!(lines, [expected], "{query}");
    }
}

/// Checksum lists of other tools: their sizes are those that another list has, or unknown.
#[test]
fn lists_without_sizes_are_in_the_answers() {
    let t = TestTree::new();
    t.write("d/both", "both").write("d/alone", "alone").dir("m");
    t.bc_line("integrity manifest -o m/1.jsonl d").go().code(0);
    let list = ["both", "elsewhere"].map(|of| format!("{}  {of}\n", sha256(of.as_bytes())));
    t.write("list", list.concat());
    t.bc_line("integrity import -o m/2.jsonl list").go().code(0);
    for (query, expected) in [("duplicates", "1,4"), ("unprotected", "2,5")] {
        let text = sql(&t, &[&format!("--query={query}"), "m/*.jsonl"]);
        let Some(lines) = ask(&t, &summed(&text)) else {
            return;
        };
        assert_eq!(lines.last().unwrap(), expected, "{query}: {lines:#?}");
    }
    // An old list of what is there is not lost, whatever its sizes.
    let lost = sql(&t, &["--query=lost", "m/*.jsonl"]);
    assert_eq!(ask(&t, &summed(&lost)).unwrap().last().unwrap(), "0,0");
}

/// What the shell is told beside: an error ends it, and warnings are no part of the answer.
#[test]
fn the_shell_prints_one_table() {
    let t = TestTree::new();
    t.write("d/f", "f").write("list", "no manifest\n");
    t.bc_line("integrity manifest -o m.jsonl d").go().code(0);
    let args = ["--query=find", "--param=path=f", "m.jsonl", "list"];
    let text = sql(&t, &args);
    assert!(text.starts_with(".bail on\n"), "{text}");
    let spark = sql(&t, &[&["--engine=spark"][..], &args].concat());
    assert!(!spark.lines().any(|line| line.starts_with('.')), "{spark}");
    if bc_testkit::tool("duckdb").is_none() {
        return bc_testkit::left_out("the program duckdb (pip install duckdb-cli)");
    }
    let out = t.run("duckdb").args(["-csv"]).stdin(text).go();
    let lines: Vec<String> = out.code(0).text().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines[0].starts_with("host,root,path,"), "{lines:#?}");
    out.stderr_has("incomplete: in no answer");
}

#[test]
fn what_is_in_no_answer_is_named() {
    let t = recorded();
    let text = String::from_utf8(t.read("m/1.jsonl")).unwrap();
    // Cut off in a line, and at its end; a line too few, with a trailer; another host's claim.
    t.write("m/cut.jsonl", &text[..text.len() - 150]);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    t.write("m/open.jsonl", lines[..lines.len() - 1].concat());
    t.write("m/less.jsonl", [&lines[..2], &lines[3..]].concat().concat());
    t.write(
        "m/new.jsonl",
        text.replacen("\"schema\":1", "\"schema\":2", 1),
    );
    t.write("m/noise.jsonl", "no JSON at all\n{\"type\":\n");
    t.bc_line("integrity manifest --shard=1/2 -o m/part.jsonl d")
        .go()
        .code(0);
    t.write("e/f", "small");
    t.bc_line("integrity manifest -t md5 -o m/md5.jsonl e")
        .go()
        .code(0);
    t.write("other/again.jsonl", &text);
    let (before, machine) = text.split_once("\"machine\":").unwrap();
    let (_, after) = machine.split_once(',').unwrap();
    let claim = format!("{before}\"machine\":\"f00\",{after}");
    t.write("m/claim.jsonl", claim);
    let text = sql(
        &t,
        &[
            "--query=find",
            "--param=path=gone",
            "m/*.jsonl",
            "m/2.jsonl.zst",
            "other/*",
        ],
    );
    let Some(lines) = ask(&t, &text) else {
        return;
    };
    for expected in [
        "incomplete: in no answer,m/cut.jsonl,",
        "incomplete: in no answer,m/open.jsonl,",
        "incomplete: in no answer,m/less.jsonl,",
        "incomplete: in no answer,m/noise.jsonl,",
        "another schema: in no answer,m/new.jsonl,",
        "a part of a tree: in no answer before bc integrity merge,m/part.jsonl,",
        "other digests (md5): in no answer,m/md5.jsonl,",
        "a copy of another: counts once,other/again.jsonl,",
        "one machine and root in several directories,other/again.jsonl,",
        "several machines have this host name,m/claim.jsonl,",
    ] {
        let is_there = lines
            .iter()
            .any(|line| line.replace('"', "").starts_with(expected));
        assert!(is_there, "{expected}: {lines:#?}");
    }
    let found = lines.iter().filter(|line| line.contains(",gone,gone,"));
    assert_eq!(found.count(), 2, "the old record and the claim: {lines:#?}");
}

/// Names of files, paths and values that would be SQL if they were not quoted.
#[test]
fn nothing_that_is_named_is_obeyed() {
    let t = TestTree::new();
    let hostile = [
        "'); COPY (SELECT 1) TO 'owned.csv'; --",
        "\\'); DROP TABLE x; --",
        "a*b?[c]{d}$e",
        "\"; x",
        "new\nline\\'\x1b",
    ];
    for name in hostile {
        t.write(format!("d/{name}"), name);
    }
    // Each in a directory of its own: DuckDB 2.0 cannot list one with a name that begins with a
    // backslash.
    let manifest = |name: &str| {
        let nth = hostile.iter().position(|other| *other == name).unwrap();
        format!("m{nth}/{name}.jsonl")
    };
    for (nth, name) in hostile.iter().enumerate() {
        t.dir(format!("m{nth}"));
        t.bc_line("integrity manifest d -o")
            .arg(manifest(name))
            .go()
            .code(0);
    }
    for name in hostile {
        let param = format!("path={name}");
        let manifest = manifest(name);
        let text = sql(&t, &["--query=find", "--param", &param, &manifest]);
        let Some(lines) = ask(&t, &summed(&text)) else {
            return;
        };
        assert_eq!(lines, [format!("1,{}", name.len())], "{name}");
        let backups = format!("backups={manifest}");
        let text = sql(&t, &["--query=unprotected", "--param", &backups, &manifest]);
        assert_eq!(ask(&t, &summed(&text)).unwrap(), ["0,0"]);
    }
    assert!(!t.exists("owned.csv"));
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let t = TestTree::new();
    let refused = |line: &str, why: &str| -> Outcome {
        let out = t.bc_line(&format!("integrity sql {line}")).go();
        out.code(2).stdout_is("").stderr_has(why);
        out
    };
    refused(
        "--query=lost --param=colour=red m",
        "--param: colour: no such parameter; lost: ",
    );
    refused("--query=lost --param=limit m", "--param takes KEY=VALUE");
    refused(
        "--query=lost --param=limit=many m",
        "limit: not a whole number",
    );
    refused("--query=growth m", "growth needs from=DATE and to=DATE");
    refused("--query=find m", "find needs digest=HEX or path=PATH");
    // Nothing is found by it.
    refused(
        "--query=find --param=path=/etc/passwd m",
        "path: is absolute: paths in manifests are relative to their root",
    );
    refused("--query=else m", "--query");
    refused("--engine=else m", "--engine");
    refused("", "MANIFEST");
}
