//! `cargo xtask dist`: the release binary with its manual pages and shell completions, all made
//! from what `bc --describe` says.

mod completions;
mod man;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::args::Args;
use crate::sh;

/// A command of the tree, with the words that lead to it: `["bc", "hash", "check"]`.
struct Node<'a> {
    words: Vec<&'a str>,
    about: &'a str,
    options: Vec<Opt<'a>>,
    positionals: Vec<&'a Value>,
    subcommands: Vec<(&'a str, &'a str)>,
}

/// An option of a command.
struct Opt<'a> {
    long: &'a str,
    short: Option<&'a str>,
    value: Option<&'a str>,
    allowed: Vec<&'a str>,
    default: Vec<&'a str>,
    help: &'a str,
}

pub(crate) fn run(mut args: Args) -> Result<ExitCode> {
    let dir = args
        .option("--dir")?
        .map_or_else(|| sh::target().join("dist"), PathBuf::from);
    args.done()?;
    let bc = sh::release_binary("bit-crafts", "bc")?;
    let tree: Value = serde_json::from_slice(&sh::stdout(Command::new(&bc).arg("--describe"))?)
        .context("bc --describe")?;
    let mut nodes = Vec::new();
    collect(&tree, &mut Vec::new(), &mut nodes);

    let write = |path: PathBuf, text: &str| -> Result<()> {
        std::fs::create_dir_all(path.parent().expect("has a folder"))?;
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
        println!("{}", path.display());
        Ok(())
    };
    std::fs::create_dir_all(&dir)?;
    std::fs::copy(&bc, dir.join("bc"))?;
    println!("{}", dir.join("bc").display());
    for node in &nodes {
        write(
            dir.join("man").join(format!("{}.1", node.words.join("-"))),
            &man::page(node),
        )?;
    }
    write(dir.join("completions/bc.bash"), &completions::bash(&nodes))?;
    write(dir.join("completions/_bc"), &completions::zsh(&nodes))?;
    write(dir.join("completions/bc.fish"), &completions::fish(&nodes))?;
    Ok(ExitCode::SUCCESS)
}

fn strings(value: &Value) -> Vec<&str> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn collect<'a>(command: &'a Value, above: &mut Vec<&'a str>, nodes: &mut Vec<Node<'a>>) {
    above.push(command["name"].as_str().unwrap_or(""));
    let (mut options, mut positionals) = (Vec::new(), Vec::new());
    for argument in command["arguments"].as_array().into_iter().flatten() {
        if let Some(long) = argument["long"].as_str() {
            let takes = argument["takes_value"] == true;
            let name = argument["value_name"].as_str().or(Some("VALUE"));
            options.push(Opt {
                long,
                short: argument["short"].as_str(),
                value: name.filter(|_| takes),
                allowed: strings(&argument["allowed"]),
                default: strings(&argument["default"]),
                help: argument["help"].as_str().unwrap_or(""),
            });
        } else if argument["positional"] == true {
            positionals.push(argument);
        }
    }
    let below = command["subcommands"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    nodes.push(Node {
        words: above.clone(),
        about: command["about"].as_str().unwrap_or(""),
        options,
        positionals,
        subcommands: below
            .iter()
            .map(|c| {
                (
                    c["name"].as_str().unwrap_or(""),
                    c["about"].as_str().unwrap_or(""),
                )
            })
            .collect(),
    });
    for subcommand in below {
        collect(subcommand, above, nodes);
    }
    above.pop();
}
