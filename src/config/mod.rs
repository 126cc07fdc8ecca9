//! Layers below the command line: built-in < configuration file < `BC_*` environment < command
//! line. A layer can set the options that carry the mark
//! [`Configurable`](crate::args::Configurable): those that say how to work. An option that says
//! *what* to work on, changes the meaning of a check or weakens a guard carries none.
//!
//! An error in a setting is blamed on its line of the file or on its variable, and never on the
//! command line.

mod file;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::args::is_configurable;
use crate::dirs::{config_file, named};
use crate::exit::Exit;
use crate::report;
use crate::usage;

/// Parses `argv` with the lower layers filled in; prints help, version and
/// usage errors itself.
pub fn parse(mut command: Command, applet: &str, argv: Vec<OsString>) -> Result<ArgMatches, Exit> {
    let matches = command
        .try_get_matches_from_mut(&argv)
        .map_err(usage::print)?;
    let Some((name, sub)) = matches.subcommand() else {
        return Ok(matches);
    };
    let explicit = sub.get_one::<PathBuf>("config").cloned();
    let layers = Layers::load(explicit, applet, &command)
        .map_err(|text| report::fatal(&format!("bc {applet}"), &text))?;
    let extra = match command.find_subcommand(name) {
        Some(c) => layers.arguments(c, sub),
        None => Ok(Vec::new()),
    };
    let extra = extra.map_err(|text| report::fatal(&format!("bc {applet}"), &text))?;
    let matches = if extra.is_empty() {
        matches
    } else {
        // Right behind the subcommand's name, so before anything the user wrote.
        let (head, tail) = argv.split_at(2.min(argv.len()));
        let full = head
            .iter()
            .cloned()
            .chain(extra)
            .chain(tail.iter().cloned());
        command
            .try_get_matches_from_mut(full)
            .map_err(usage::print)?
    };
    // Thousands of small strings: freeing them would be a twelfth of the work
    // of hashing one small file.
    std::mem::forget(command);
    Ok(matches)
}

/// Returns the settings of lower layers for the options `names`, as arguments, for programs that
/// have no other options of ours: all other settings are left to the commands that they concern.
///
/// # Errors
/// An error in a setting of any name, blamed on its line or its variable.
pub fn settings_of(names: &[&str]) -> Result<Vec<OsString>, String> {
    let command = crate::hash::command();
    let settings = file::load(named("BC_CONFIG"), "", &command)?;
    let mut layers = Layers { settings };
    layers.put_over(from_environment(&command, |long| names.contains(&long))?);
    let whole = command.find_subcommand("hash").cloned().unwrap_or(command);
    let mut taken = Vec::new();
    for setting in layers.settings {
        let option = whole.get_arguments().find(|arg| {
            names.contains(&setting.long.as_str()) && arg.get_long() == Some(&setting.long)
        });
        if let Some(arg) = option {
            let blame = |text: String| match &setting.origin {
                Origin::Named(origin) => format!("{origin}: {text}"),
                Origin::Line(line) => format!("{line}: {text}"),
            };
            let arguments = setting.arguments(arg).map_err(blame)?;
            accepts(&whole, &arguments).map_err(blame)?;
            taken.extend(arguments);
        }
    }
    Ok(taken)
}

/// Returns true if a lower layer may set something: the configuration file exists, or there is a
/// variable.
pub fn may_apply() -> bool {
    let is_there = |path: PathBuf| {
        path.symlink_metadata()
            .map_or_else(|e| !is_absent(&e), |_| true)
    };
    std::env::vars_os().any(|(name, _)| name.as_encoded_bytes().starts_with(b"BC_"))
        || config_file().is_some_and(is_there)
}

/// Returns true if there is no such file; nor can there be one where HOME is no directory, as for
/// many service accounts.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// One setting of a lower layer and its origin.
struct Setting {
    long: String,
    values: Vec<String>,
    origin: Origin,
}

/// Origin of a setting, to be named in errors.
enum Origin {
    /// A line of a file whose name is not known here.
    Line(usize),
    /// `FILE:LINE`, or a variable.
    Named(String),
}

struct Layers {
    settings: Vec<Setting>,
}

impl Layers {
    fn load(explicit: Option<PathBuf>, applet: &str, command: &Command) -> Result<Layers, String> {
        let named = explicit.or_else(|| named("BC_CONFIG"));
        let settings = file::load(named, applet, command)?;
        let mut layers = Layers { settings };
        layers.put_over(from_environment(command, |_| true)?);
        Ok(layers)
    }

    /// Takes settings that count before those that are there.
    fn put_over(&mut self, settings: Vec<Setting>) {
        for setting in settings {
            self.settings.retain(|s| s.long != setting.long);
            self.settings.push(setting);
        }
    }

    /// Returns the arguments to insert for options that the user did not give.
    fn arguments(&self, command: &Command, given: &ArgMatches) -> Result<Vec<OsString>, String> {
        let by_user =
            |arg: &Arg| given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
        // A setting that conflicts with an option that the user wrote gives way to it.
        let out_of_place: Vec<&clap::Id> = command
            .get_arguments()
            .filter(|arg| by_user(arg))
            .flat_map(|arg| command.get_arg_conflicts_with(arg))
            .map(Arg::get_id)
            .collect();
        let mut extra = Vec::new();
        for setting in &self.settings {
            let option = command
                .get_arguments()
                .find(|a| a.get_long() == Some(&setting.long));
            // It may be of another subcommand, or there alone be set from here.
            let Some(arg) = option.filter(|arg| is_configurable(arg)) else {
                continue;
            };
            if by_user(arg) || out_of_place.contains(&arg.get_id()) {
                continue;
            }
            let blame = |text: String| match &setting.origin {
                Origin::Named(origin) => format!("{origin}: {text}"),
                Origin::Line(line) => format!("{line}: {text}"),
            };
            let arguments = setting.arguments(arg).map_err(blame)?;
            accepts(command, &arguments).map_err(blame)?;
            extra.extend(arguments);
        }
        Ok(extra)
    }
}

impl Setting {
    /// Returns the setting in the form of command-line arguments.
    fn arguments(&self, arg: &Arg) -> Result<Vec<OsString>, String> {
        let long = &self.long;
        if arg.get_action().takes_values() {
            let one = |value| OsString::from(format!("--{long}={value}"));
            return Ok(self.values.iter().map(one).collect());
        }
        let counted = matches!(arg.get_action(), ArgAction::Count);
        let times = match self.values.as_slice() {
            [value] => match value.as_str() {
                "0" | "false" | "no" | "off" | "" => 0,
                "1" | "true" | "yes" | "on" => 1,
                other => match other.parse::<usize>() {
                    Ok(times @ 2..=9) if counted => times,
                    _ => return Err(wanted(long, other)),
                },
            },
            _ => return Err(wanted(long, &self.values.join(","))),
        };
        Ok(vec![OsString::from(format!("--{long}")); times])
    }
}

fn wanted(long: &str, value: &str) -> String {
    let value = bc_fs::escape(value.as_bytes());
    format!("invalid value '{value}' for '--{long}': expected true or false")
}

/// Checks these arguments as the command would parse them, regardless of its required ones.
fn accepts(command: &Command, arguments: &[OsString]) -> Result<(), String> {
    let name = std::iter::once(OsString::from(command.get_name()));
    let groups: Vec<clap::Id> = command.get_groups().map(|g| g.get_id().clone()).collect();
    let alone = command.clone().mut_args(|arg| arg.required(false));
    let alone = groups.into_iter().fold(alone, |alone, group| {
        alone.mut_group(group, |group| group.required(false))
    });
    match alone.try_get_matches_from(name.chain(arguments.iter().cloned())) {
        Ok(_) => Ok(()),
        Err(error) => {
            let text = error.render().to_string();
            // The rest is advice for the command line.
            let text = text.split("\n\n").next().unwrap_or_default();
            Err(text.strip_prefix("error: ").unwrap_or(text).to_owned())
        }
    }
}

/// Returns the settings of variables that name an option of the applet, as far as the option
/// `concerns` the caller.
fn from_environment(
    command: &Command,
    concerns: impl Fn(&str) -> bool,
) -> Result<Vec<Setting>, String> {
    // Nearly always none is set, and then there is nothing to look up.
    let set: Vec<(OsString, OsString)> = std::env::vars_os()
        .filter(|(name, _)| name.as_encoded_bytes().starts_with(b"BC_"))
        .collect();
    let mut settings: Vec<Setting> = Vec::new();
    if set.is_empty() {
        return Ok(settings);
    }
    for long in options(command).filter(|long| concerns(long)) {
        let name = format!("BC_{}", long.replace('-', "_").to_uppercase());
        let value = set.iter().find(|(n, _)| *n == *name);
        // BC_CONFIG names the file itself.
        let done = long == "config" || settings.iter().any(|s| s.long == long);
        let Some((_, value)) = value.filter(|_| !done) else {
            continue;
        };
        if is_settable(long, &[command]) == Some(false) {
            return Err(format!(
                "environment variable {name}: --{long} can only be given on the command line"
            ));
        }
        let value = value
            .clone()
            .into_string()
            .map_err(|_| format!("environment variable {name} is not UTF-8"))?;
        settings.push(Setting {
            long: long.to_owned(),
            values: vec![value],
            origin: Origin::Named(format!("environment variable {name}")),
        });
    }
    Ok(settings)
}

/// Returns the long options of the subcommands, but those of every program.
fn options(command: &Command) -> impl Iterator<Item = &str> {
    command
        .get_subcommands()
        .flat_map(Command::get_arguments)
        .filter_map(Arg::get_long)
        .filter(|long| !matches!(*long, "help" | "version"))
}

/// Returns true if lower layers may set the option in one of these commands' subcommands; `None` if
/// none of them has it.
fn is_settable(long: &str, commands: &[&Command]) -> Option<bool> {
    let mut known = None;
    let subcommands = commands.iter().flat_map(|c| c.get_subcommands());
    for arg in subcommands.flat_map(Command::get_arguments) {
        if arg.get_long() == Some(long) {
            known = Some(known == Some(true) || is_configurable(arg));
        }
    }
    known
}
