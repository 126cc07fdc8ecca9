//! `cargo xtask dist`: the release binary with its manual pages and shell completions, all made
//! from what `bc --describe` says; a Debian package of them; a static binary.

mod completions;
mod deb;
mod guide;
mod man;
mod static_build;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
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
    /// The subcommand that is meant where none is named.
    default: Option<&'a str>,
    /// Examples and remarks.
    notes: &'a str,
}

/// An option of a command.
#[derive(Clone)]
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
    let linked_in = args.flag("--static");
    args.done()?;
    let bc = sh::release_binary("bit-crafts", "bc")?;
    let tree: Value = serde_json::from_slice(&sh::stdout(Command::new(&bc).arg("--describe"))?)
        .context("bc --describe")?;
    let mut nodes = Vec::new();
    collect(&tree, &mut Vec::new(), &mut nodes);

    std::fs::create_dir_all(&dir)?;
    install(&bc, &dir.join("bc"))?;
    for node in &nodes {
        let name = format!("{}.1", node.words.join("-"));
        write(&dir.join("man").join(name), &man::page(node))?;
    }
    write(&dir.join("man/bc-guide.7"), &guide::page("bc"))?;
    // Pages show each option once, with its own command.
    deb::pages(&nodes)?;
    imply(&mut nodes);
    let completions = dir.join("completions");
    let names: Vec<&str> = ["bc"].into_iter().chain(NAMES).collect();
    write(
        &completions.join("bc.bash"),
        &completions::bash(&nodes, &names),
    )?;
    write(&completions.join("_bc"), &completions::zsh(&nodes, &names))?;
    write(
        &completions.join("bc.fish"),
        &completions::fish(&nodes, &names),
    )?;
    if linked_in {
        install(&static_build::build()?, &dir.join("bc-static"))?;
    }
    deb::build(&nodes, &dir)?;
    Ok(ExitCode::SUCCESS)
}

/// Subcommands that may be left out: their options complete without them, too.
const IMPLIED: &[[&str; 3]] = &[["bc", "hash", "hash"], ["bc", "dup", "scan"]];

fn imply(nodes: &mut [Node<'_>]) {
    for words in IMPLIED {
        let found = nodes.iter().find(|node| node.words == words);
        let options = found.map_or_else(Vec::new, |node| node.options.clone());
        if let Some(node) = nodes.iter_mut().find(|node| node.words == words[..2]) {
            let new = |o: &Opt<'_>| node.options.iter().all(|known| known.long != o.long);
            let options: Vec<_> = options.into_iter().filter(new).collect();
            node.options.extend(options);
        }
    }
}

/// The names beside `bc`, which some systems give to the calculator.
const NAMES: [&str; 4] = ["bitcrafts", "bchash", "bcdup", "bcintegrity"];

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::create_dir_all(path.parent().expect("has a folder"))?;
    std::fs::write(path, text).with_context(|| path.display().to_string())?;
    println!("{}", path.display());
    Ok(())
}

fn install(from: &Path, to: &Path) -> Result<()> {
    // A program that runs cannot be written to, but its name can be given away.
    let _ = std::fs::remove_file(to);
    std::fs::copy(from, to).with_context(|| to.display().to_string())?;
    println!("{}", to.display());
    Ok(())
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
        default: command["default_subcommand"].as_str(),
        notes: command["notes"].as_str().unwrap_or(""),
    });
    for subcommand in below {
        collect(subcommand, above, nodes);
    }
    above.pop();
}
