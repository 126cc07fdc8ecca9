//! Every option of every command does something that can be seen: the options are read from
//! `bc --describe`, and one without a case here fails the test.

mod common_options;
mod copy;
mod dup;
mod ground;
mod hash;
mod install;
mod integrity;
mod r#move;
mod walk_options;

use std::collections::BTreeSet;

use bc_testkit::TestTree;
use serde_json::Value;

use crate::common::Bc;
use ground::Ground;

/// A command, one of its own options, and a small run that shows what the option does.
type Case = (&'static str, &'static str, fn(&Ground));

fn own_options() -> impl Iterator<Item = &'static Case> {
    [
        hash::CASES,
        dup::CASES,
        integrity::CASES,
        copy::CASES,
        r#move::CASES,
        install::CASES,
    ]
    .into_iter()
    .flatten()
}

/// Commands of the tree that do something, with their options.
fn described() -> BTreeSet<(String, String)> {
    let t = TestTree::new();
    let out = t.bc_line("--describe").go();
    let tree: Value = serde_json::from_slice(&out.code(0).stdout).unwrap();
    let mut found = BTreeSet::new();
    collect(&tree, &mut Vec::new(), &mut found);
    found
}

fn collect(command: &Value, above: &mut Vec<String>, found: &mut BTreeSet<(String, String)>) {
    for below in command["subcommands"].as_array().unwrap() {
        above.push(below["name"].as_str().unwrap().to_owned());
        for argument in below["arguments"].as_array().unwrap() {
            if let Some(long) = argument["long"].as_str() {
                found.insert((above.join(" "), long.to_owned()));
            }
        }
        collect(below, above, found);
        above.pop();
    }
}

#[test]
fn every_option_of_every_command_has_a_case() {
    let described = described();
    assert!(described.len() > 200, "{}", described.len());
    let mut cases = BTreeSet::new();
    for (command, option, _) in own_options() {
        let new = cases.insert(((*command).to_owned(), (*option).to_owned()));
        assert!(new, "{command} --{option}: two cases");
    }
    for command in common_options::COMMANDS {
        let names = common_options::CASES.iter().map(|(name, _)| name);
        cases.extend(names.map(|name| (command.name.to_owned(), (*name).to_owned())));
    }
    for walker in walk_options::WALKERS {
        let names = walk_options::CASES.iter().map(|case| case.option);
        cases.extend(
            names
                .filter(|name| walk_options::has(walker, name))
                .map(|name| (walker.name.to_owned(), (*name).to_owned())),
        );
    }
    let untested: Vec<_> = described.difference(&cases).collect();
    assert!(untested.is_empty(), "options without a case: {untested:?}");
    let gone: Vec<_> = cases.difference(&described).collect();
    assert!(gone.is_empty(), "cases without an option: {gone:?}");
}

#[test]
fn options_of_one_command() {
    let mut failures = Failures::default();
    for (command, option, check) in own_options() {
        let ground = Ground::new();
        failures.note(command, option, || check(&ground));
    }
    failures.end();
}

#[test]
fn options_of_all_commands() {
    let ground = Ground::new();
    let mut failures = Failures::default();
    for command in common_options::COMMANDS {
        for (option, check) in common_options::CASES {
            failures.note(command.name, option, || check(&ground, command));
        }
    }
    failures.end();
}

#[test]
fn options_that_choose_files() {
    let ground = Ground::new();
    let mut failures = Failures::default();
    for walker in walk_options::WALKERS {
        for case in walk_options::CASES {
            if walk_options::has(walker, case.option) {
                failures.note(walker.name, case.option, || {
                    walk_options::check(&ground, walker, case);
                });
            }
        }
    }
    failures.end();
}

/// The cases that failed: all are told, with what they are about.
#[derive(Default)]
struct Failures(Vec<String>);

impl Failures {
    fn note(&mut self, command: &str, option: &str, check: impl FnOnce()) {
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)).is_err() {
            self.0.push(format!("bc {command} --{option}"));
        }
    }

    fn end(self) {
        assert!(self.0.is_empty(), "failed, see above: {:#?}", self.0);
    }
}
