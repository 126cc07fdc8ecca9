//! `--describe`: the command tree as JSON, the source for completions and
//! front ends.

use std::any::TypeId;

use bc_digest::Algorithm;
use bc_integrity::fields::Field;
use bc_pool::Threads;
use bc_prune::Action;
use serde_json::{Value, json};

use crate::copy::args::Digesting;
use crate::report;
use crate::report::Exit;

/// Prints the tree of `command`.
pub fn print(command: &clap::Command) -> Exit {
    let mut command = command.clone();
    command.build();
    let mut document = tree(&command);
    document["schema"] = json!(1);
    document["version"] = json!(env!("CARGO_PKG_VERSION"));
    report::print(&format!("{document:#}\n"))
}

/// The values of an option that can be named.
#[derive(Default)]
pub struct Values {
    /// All that it takes; empty where there is no such list.
    pub allowed: Vec<String>,
    /// Words among other values that it takes, such as numbers; one that ends in `:` is to be
    /// completed by the user.
    pub suggested: Vec<String>,
}

impl Values {
    /// Returns the values of this argument.
    pub fn of(arg: &clap::Arg) -> Values {
        let mut values = Values::default();
        if !arg.get_action().takes_values() {
            return values;
        }
        let parser = arg.get_value_parser().type_id();
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let shown = arg.get_possible_values();
        let shown = shown.iter().filter(|value| !value.is_hide_set());
        values.allowed = shown.map(|value| value.get_name().to_owned()).collect();
        if !values.allowed.is_empty() {
            // A parser of an algorithm may take some of them only.
        } else if parser == TypeId::of::<Algorithm>() || parser == TypeId::of::<Digesting>() {
            let none = (parser == TypeId::of::<Digesting>()).then_some("none");
            let all = Algorithm::ALL.iter().map(|algorithm| algorithm.name());
            values.allowed = all.chain(none).map(str::to_owned).collect();
        } else if parser == TypeId::of::<Threads>() {
            values.suggested = words(&["auto", "mono", "compute", "io"]);
        } else if parser == TypeId::of::<Action>() {
            values.suggested = words(&["hardlink", "reflink", "symlink", "delete", "move:"]);
        } else if arg.get_id() == "keep" {
            values.suggested = words(&[
                "first",
                "last",
                "newest",
                "oldest",
                "shortest-path",
                "longest-path",
                "most-links",
                "path:",
                "name:",
            ]);
        } else if arg
            .get_value_names()
            .is_some_and(|names| names == ["FIELD"])
        {
            let fields = Field::ALL.iter().filter(|field| **field != Field::Kind);
            values.allowed = fields.map(|field| field.name().to_owned()).collect();
        }
        values
    }

    /// Returns both lists.
    pub fn all(self) -> Vec<String> {
        self.allowed.into_iter().chain(self.suggested).collect()
    }
}

fn tree(command: &clap::Command) -> Value {
    let text = |s: Option<&clap::builder::StyledStr>| s.map(|s| s.to_string());
    // The one command of an applet is the applet.
    let alone = command.get_subcommands().find(|below| below.is_hide_set());
    let args: Vec<Value> = command
        .get_arguments()
        .chain(alone.into_iter().flat_map(clap::Command::get_arguments))
        .filter(|a| !a.is_hide_set() && !matches!(a.get_id().as_str(), "help" | "version"))
        .map(argument)
        .collect();
    let default = crate::parse::applet::APPLETS
        .iter()
        .find(|applet| command.get_name().ends_with(applet.name))
        .and_then(|applet| applet.default)
        .filter(|default| {
            command
                .get_subcommands()
                .any(|c| c.get_name() == *default && !c.is_hide_set())
        });
    let subcommands: Vec<Value> = command
        .get_subcommands()
        .filter(|c| c.get_name() != "help" && !c.is_hide_set())
        .map(tree)
        .collect();
    json!({
        "name": command.get_name(),
        "about": text(command.get_about()),
        "arguments": args,
        "subcommands": subcommands,
        "default_subcommand": default,
        "notes": text(command.get_after_long_help().or(command.get_after_help())),
    })
}

fn argument(arg: &clap::Arg) -> Value {
    let takes_value = arg.get_action().takes_values();
    let defaults: Vec<String> = arg
        .get_default_values()
        .iter()
        .map(|v| v.to_string_lossy().into_owned())
        .collect();
    let values = Values::of(arg);
    json!({
        "name": arg.get_id().as_str(),
        "long": arg.get_long(),
        "short": arg.get_short(),
        "positional": arg.is_positional(),
        "takes_value": takes_value,
        "value_name": arg.get_value_names().filter(|_| takes_value || arg.is_positional()).and_then(|n| n.first()).map(|n| n.to_string()),
        "repeatable": matches!(arg.get_action(), clap::ArgAction::Append | clap::ArgAction::Count),
        "required": arg.is_required_set(),
        "configurable": crate::parse::args::is_configurable(arg),
        "default": if takes_value { defaults } else { Vec::new() },
        "allowed": values.allowed,
        "suggested": values.suggested,
        "delimiter": arg.get_value_delimiter(),
        "help": arg.get_help().map(|h| h.to_string()),
    })
}
