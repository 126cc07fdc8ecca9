//! Every command of the program with arguments that make it work, in a tree that [`tree`] makes:
//! what holds for all of them is tested over this list, which `--describe` keeps complete.

use bc_testkit::TestTree;
use serde_json::Value;

use crate::common::Bc;

/// A command and arguments for it; results go to stdout.
pub struct Sample {
    pub command: &'static str,
    pub arguments: &'static str,
}

const fn sample(command: &'static str, arguments: &'static str) -> Sample {
    Sample { command, arguments }
}

/// At least one for each command. `r` is a tree, `sums` and `other` are checksum manifests,
/// `m` and `n` are integrity manifests of `r` as it was and as it is, `part1` and `part2` those of its
/// two parts, `j` is a prune journal, `linked` a copy of `r`.
pub const SAMPLES: &[Sample] = &[
    sample("hash hash", "r"),
    sample("hash check", "sums"),
    sample("hash check", "--unlisted --base=. sums"),
    sample("hash diff", "sums other"),
    sample("copy", "--dry-run r to"),
    sample("move", "--dry-run r moved"),
    sample("dup scan", "r"),
    sample("dup summary", "r"),
    sample("dup dirs", "r"),
    sample("dup unique", "r"),
    sample("dup prune", "--action=hardlink --dry-run r"),
    sample("dup prune", "--action=delete --yes --dry-run -v r"),
    sample(
        "dup prune",
        "--dirs --action=delete --yes --dry-run r linked",
    ),
    sample("dup undo", "--dry-run j"),
    sample("integrity manifest", "--xattrs r"),
    sample("integrity verify", "-v r m"),
    sample("integrity diff", "-v m n"),
    sample("integrity update", "r copy"),
    sample("integrity accept", "--dry-run r m twin"),
    sample(
        "integrity restore",
        "--format=json --dry-run --only=damaged,removed,modified r m",
    ),
    sample("integrity export", "--format=gnu m"),
    sample("integrity export", "--format=hashdeep m"),
    sample("integrity export", "--format=mtree m"),
    sample("integrity import", "sums"),
    sample("integrity merge", "part1 part2"),
    sample("integrity sql", "m"),
];

/// Commands whose results are not printed.
pub const SILENT: &[&str] = &["install", "integrity protect"];

/// A small tree for the samples. `fill` puts more into `r`, whose files `r/twin` and `r/twin2`
/// are alike; everything is recorded, then `change` is called and the rest recorded.
pub fn tree(fill: impl Fn(&TestTree), change: impl Fn(&TestTree)) -> TestTree {
    let t = TestTree::new();
    t.write("r/twin", "alike").write("r/twin2", "alike");
    fill(&t);
    t.bc_line("hash r -o sums").go();
    t.bc_line("integrity manifest --xattrs r -o m").go();
    change(&t);
    t.bc_line("hash r -o other").go();
    t.bc_line("integrity manifest --xattrs r -o n").go();
    for part in ["1", "2"] {
        t.bc_line(&format!(
            "integrity manifest --shard={part}/2 r -o part{part}"
        ))
        .go();
    }
    t.run("cp").args(["m", "copy"]).go().code(0);
    // A journal of steps that are still to be taken back.
    t.run("cp").args(["-a", "r", "linked"]).go();
    t.bc_line("dup prune --action=hardlink --journal=j linked")
        .go();
    t
}

/// The command tree, and in it every command without subcommands, by its full name.
pub fn described() -> Vec<(String, Value)> {
    fn collect(at: &Value, name: &str, into: &mut Vec<(String, Value)>) {
        let below = at["subcommands"].as_array().unwrap();
        if below.is_empty() {
            into.push((name.to_owned(), at.clone()));
        }
        for command in below {
            let own = command["name"].as_str().unwrap();
            collect(command, format!("{name} {own}").trim(), into);
        }
    }
    let t = TestTree::new();
    let out = t.bc_line("--describe").go();
    let whole: Value = serde_json::from_slice(&out.code(0).stdout).unwrap();
    let mut all = Vec::new();
    collect(&whole, "", &mut all);
    all
}

#[test]
fn no_command_is_forgotten() {
    for (name, _) in described() {
        let known = SAMPLES.iter().any(|sample| sample.command == name);
        assert!(
            known || SILENT.contains(&name.as_str()),
            "tests/it/commands.rs lacks '{name}'"
        );
    }
    let t = tree(
        |_| (),
        |t| {
            t.write("r/new", "new");
        },
    );
    for Sample { command, arguments } in SAMPLES {
        let out = t.bc_line(command).args(arguments.split_whitespace()).go();
        assert_ne!(out.status.code(), Some(2), "{out}");
        assert!(!out.stdout.is_empty(), "{out}");
    }
}
