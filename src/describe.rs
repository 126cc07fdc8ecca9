//! `--describe`: the command tree as JSON, the source for completions and
//! front ends.

use std::any::TypeId;

use bc_digest::Algorithm;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::report;

/// Prints the tree of `command`.
pub fn print(command: &clap::Command) -> Exit {
    let mut command = command.clone();
    command.build();
    let mut document = tree(&command);
    document["schema"] = json!(1);
    document["version"] = json!(env!("CARGO_PKG_VERSION"));
    report::print(&format!("{document:#}\n"))
}

fn tree(command: &clap::Command) -> Value {
    let text = |s: Option<&clap::builder::StyledStr>| s.map(|s| s.to_string());
    let args: Vec<Value> = command
        .get_arguments()
        .filter(|a| !a.is_hide_set() && !matches!(a.get_id().as_str(), "help" | "version"))
        .map(argument)
        .collect();
    let default = crate::applet::APPLETS
        .iter()
        .find(|applet| command.get_name().ends_with(applet.name))
        .and_then(|applet| applet.default)
        .filter(|default| command.get_subcommands().any(|c| c.get_name() == *default));
    let subcommands: Vec<Value> = command
        .get_subcommands()
        .filter(|c| c.get_name() != "help")
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
    let mut allowed: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|v| takes_value && !v.is_hide_set())
        .map(|v| v.get_name().to_owned())
        .collect();
    if allowed.is_empty() && arg.get_value_parser().type_id() == TypeId::of::<Algorithm>() {
        allowed = Algorithm::ALL.iter().map(|a| a.name().to_owned()).collect();
    }
    json!({
        "name": arg.get_id().as_str(),
        "long": arg.get_long(),
        "short": arg.get_short(),
        "positional": arg.is_positional(),
        "takes_value": takes_value,
        "value_name": arg.get_value_names().filter(|_| takes_value || arg.is_positional()).and_then(|n| n.first()).map(|n| n.to_string()),
        "repeatable": matches!(arg.get_action(), clap::ArgAction::Append | clap::ArgAction::Count),
        "required": arg.is_required_set(),
        "configurable": crate::args::is_configurable(arg),
        "default": if takes_value { defaults } else { Vec::new() },
        "allowed": allowed,
        "help": arg.get_help().map(|h| h.to_string()),
    })
}
