//! Layers below the command line: built-in < configuration file < `BC_*` environment < command
//! line. A layer can set the options that carry the mark
//! [`Configurable`](crate::parse::args::Configurable): those that say how to work. An option that says
//! *what* to work on, changes the meaning of a check or weakens a guard carries none.
//!
//! The file is TOML, with keys at the top for every applet and a table for each applet's own. An error
//! in a setting is blamed on its line of the file or on its variable, and never on the
//! command line.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use toml::de::{DeTable, DeValue};

use crate::parse::applet::APPLETS;
use crate::parse::args::is_configurable;
use crate::parse::environment::Environment;

/// Returns the settings of lower layers for the options `names`, as arguments, for programs that
/// have no other options of ours: all other settings are left to the commands that they concern.
/// Beside them are warnings about what was left out.
///
/// # Errors
/// An error in a setting of any name, blamed on its line or its variable.
pub fn settings_of(
    names: &[&str],
    env: &Environment<'_>,
) -> Result<(Vec<OsString>, Vec<String>), String> {
    let layers = Layers::of(None, "", crate::hash::command, env, |long| {
        names.contains(&long)
    })?;
    let mut taken = Vec::new();
    if !layers.settings.is_empty() {
        let command = crate::hash::command();
        let whole = command.find_subcommand("hash").cloned().unwrap_or(command);
        for setting in &layers.settings {
            let option = whole.get_arguments().find(|arg| {
                names.contains(&setting.long.as_str()) && arg.get_long() == Some(&setting.long)
            });
            if let Some(arg) = option {
                taken.extend(setting.accepted(&whole, arg)?);
            }
        }
    }
    Ok((taken, layers.cautions))
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

/// Settings of the file and of the environment.
pub struct Layers {
    settings: Vec<Setting>,
    /// Warnings about a file, and about variables, that were left out.
    pub cautions: Vec<String>,
}

impl Layers {
    /// Loads what concerns an applet with this command tree; `explicit` is the file that the
    /// command line names.
    ///
    /// # Errors
    /// An error in a setting, blamed on its line or its variable.
    pub fn load(
        explicit: Option<PathBuf>,
        applet: &str,
        command: fn() -> Command,
        env: &Environment<'_>,
    ) -> Result<Layers, String> {
        Layers::of(explicit, applet, command, env, |_| true)
    }

    /// Loads them; of the environment only what `concerns` the caller.
    fn of(
        explicit: Option<PathBuf>,
        applet: &str,
        command: fn() -> Command,
        env: &Environment<'_>,
        concerns: impl Fn(&str) -> bool,
    ) -> Result<Layers, String> {
        let named = explicit.or_else(|| env.variable("BC_CONFIG").map(PathBuf::from));
        let (file, caution) = load_file(named, env)?;
        let mut layers = Layers {
            settings: Vec::new(),
            cautions: caution.into_iter().collect(),
        };
        // Nearly always there is neither, and then no option need be looked up.
        if file.is_some() || !env.variables.is_empty() {
            let command = command();
            if let Some(file) = file {
                layers.settings = file.settings(applet, &command)?;
            }
            layers.put_over(from_environment(&command, &env.variables, concerns)?);
            let names = env.variables.iter().filter_map(|(name, _)| name.to_str());
            layers
                .cautions
                .extend(names.filter_map(|name| unread(name, &command)));
        }
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
    ///
    /// # Errors
    /// A value that the command does not take, blamed on its line or its variable.
    pub fn arguments(
        &self,
        command: &Command,
        given: &ArgMatches,
    ) -> Result<Vec<OsString>, String> {
        if self.settings.is_empty() {
            return Ok(Vec::new());
        }
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
            extra.extend(setting.accepted(command, arg)?);
        }
        Ok(extra)
    }
}

impl Setting {
    /// Returns the setting as arguments that the command takes.
    fn accepted(&self, command: &Command, arg: &Arg) -> Result<Vec<OsString>, String> {
        let arguments = self.arguments(arg).and_then(|arguments| {
            accepts(command, &arguments)?;
            Ok(arguments)
        });
        arguments.map_err(|text| match &self.origin {
            Origin::Named(origin) => format!("{origin}: {text}"),
            Origin::Line(line) => format!("{line}: {text}"),
        })
    }

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
///
/// # Errors
/// Checks arguments by clap; an error is its reason, without advice for the command line.
pub fn accepts(command: &Command, arguments: &[OsString]) -> Result<(), String> {
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
    set: &[(OsString, OsString)],
    concerns: impl Fn(&str) -> bool,
) -> Result<Vec<Setting>, String> {
    let mut settings: Vec<Setting> = Vec::new();
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

/// Variables of other programs of this name: of GNU bc and of Gavin Howard's.
const OF_CALCULATORS: [&str; 9] = [
    "BC_BANNER",
    "BC_DIGIT_CLAMP",
    "BC_ENV_ARGS",
    "BC_EXPR_EXIT",
    "BC_LINE_LENGTH",
    "BC_PATH",
    "BC_PROMPT",
    "BC_SIGINT_RESET",
    "BC_TTY_MODE",
];

/// Length of the shortest name that is taken for a slip of another one: many short words are one edit
/// apart.
const SHORTEST_SLIP: usize = 4;

/// Returns the warning about a variable that sets nothing, but has the name of a command in front of
/// an option's (`BC_HASH_TYPE`), or is one edit away from one. Others are not ours.
fn unread(name: &str, command: &Command) -> Option<String> {
    if OF_CALCULATORS.contains(&name) {
        return None;
    }
    let word = name.strip_prefix("BC_")?.replace('_', "-").to_lowercase();
    let is_option = |long: &str, command: &Command| options(command).any(|known| known == long);
    if is_option(&word, command) {
        return None;
    }
    let of_applet = APPLETS.iter().find_map(|applet| {
        let long = word.strip_prefix(applet.name)?.strip_prefix('-')?;
        is_option(long, &(applet.command)()).then(|| long.to_owned())
    });
    let is_slip = |long: &str| {
        word.len().min(long.len()) >= SHORTEST_SLIP && crate::parse::edits(&word, long) == 1
    };
    let near = || options(command).find(|long| is_slip(long));
    let meant = of_applet.or_else(|| near().map(str::to_owned))?;
    let is_known = APPLETS
        .iter()
        .any(|applet| is_option(&word, &(applet.command)()));
    let meant = meant.replace('-', "_").to_uppercase();
    (!is_known).then(|| {
        format!(
            "environment variable {name} is not read; did you mean BC_{meant}? (a setting of one command \
             alone is a key of its table in config.toml)"
        )
    })
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

/// Text of a configuration file.
struct ConfigFile {
    /// Its name, as messages show it.
    shown: String,
    text: String,
}

/// Loads the file that is `named`, which must be there, or the usual one. Beside it is the warning
/// about one that was left out.
///
/// # Errors
/// A file that is there and cannot be read.
fn load_file(
    named: Option<PathBuf>,
    env: &Environment<'_>,
) -> Result<(Option<ConfigFile>, Option<String>), String> {
    let must_exist = named.is_some();
    let Some(path) = named.or_else(|| env.config_file.clone()) else {
        return Ok((None, None));
    };
    match (env.read)(&path) {
        Ok(text) => {
            let shown = shown(&path);
            Ok((Some(ConfigFile { shown, text }), None))
        }
        Err(error) if !must_exist && is_absent(&error) => Ok((None, None)),
        // Under another user's HOME: the user did not ask for that file.
        Err(error) if !must_exist && error.kind() == io::ErrorKind::PermissionDenied => {
            let text = format!("{}: read: {error}; it is left out", shown(&path));
            Ok((None, Some(text)))
        }
        Err(error) => Err(format!("{}: read: {error}", shown(&path))),
    }
}

fn shown(path: &Path) -> String {
    bc_fs::escape(path.as_os_str().as_encoded_bytes()).into_owned()
}

/// Returns true if there is no such file; nor can there be one where HOME is no directory, as for
/// many service accounts.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

impl ConfigFile {
    /// Returns the settings that concern `applet`, whose tree is `command`.
    ///
    /// # Errors
    /// The line that is wrong, and why.
    fn settings(&self, applet: &str, command: &Command) -> Result<Vec<Setting>, String> {
        settings(&self.text, applet, command)
            .map(|settings| in_file(settings, &self.shown))
            .map_err(|error| format!("{}:{error}", self.shown))
    }
}

/// Puts the file's name before the lines.
fn in_file(mut settings: Vec<Setting>, file: &str) -> Vec<Setting> {
    for setting in &mut settings {
        if let Origin::Line(line) = setting.origin {
            setting.origin = Origin::Named(format!("{file}:{line}"));
        }
    }
    settings
}

/// Reads the settings that concern `applet`; errors are `LINE: text`.
fn settings(text: &str, applet: &str, command: &Command) -> Result<Vec<Setting>, String> {
    let line_of = |offset: usize| text[..offset.min(text.len())].matches('\n').count() + 1;
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        format!("{}: {}", line_of(at), error.message())
    })?;
    let mut settings: Vec<Setting> = Vec::new();
    for (key, value) in table.get_ref() {
        let name = key.get_ref().as_ref();
        let line = line_of(key.span().start);
        let DeValue::Table(inner) = value.get_ref() else {
            // For whichever applet knows it.
            let all: Vec<Command> = APPLETS.iter().map(|applet| (applet.command)()).collect();
            let everywhere: Vec<&Command> = std::iter::once(command).chain(&all).collect();
            let setting = one(name, value.get_ref(), line, &everywhere)?;
            if !settings.iter().any(|s| s.long == setting.long) {
                settings.push(setting);
            }
            continue;
        };
        let known = APPLETS.iter().find(|a| a.name == name);
        let Some(owner) = known else {
            return Err(format!("{line}: unknown table '{name}'"));
        };
        let own = (owner.command)();
        for (key, value) in inner {
            let line = line_of(key.span().start);
            let setting = one(key.get_ref(), value.get_ref(), line, &[&own])?;
            if owner.name == applet {
                settings.retain(|s| s.long != setting.long);
                settings.push(setting);
            }
        }
    }
    Ok(settings)
}

fn one(
    key: &str,
    value: &DeValue<'_>,
    line: usize,
    commands: &[&Command],
) -> Result<Setting, String> {
    match is_settable(key, commands) {
        None => return Err(format!("{line}: unknown key '{key}'")),
        Some(false) => {
            return Err(format!(
                "{line}: '{key}' can only be given on the command line, as --{key}"
            ));
        }
        Some(true) => {}
    }
    let scalar = |value: &DeValue<'_>| match value {
        DeValue::String(s) => Ok(s.to_string()),
        DeValue::Integer(i) => Ok(i.to_string()),
        DeValue::Float(f) => Ok(f.to_string()),
        DeValue::Boolean(b) => Ok(b.to_string()),
        _ => Err(format!(
            "{line}: key '{key}' wants a string, number, boolean or a list of them"
        )),
    };
    let values = match value {
        DeValue::Array(items) => items
            .iter()
            .map(|item| scalar(item.get_ref()))
            .collect::<Result<_, _>>()?,
        other => vec![scalar(other)?],
    };
    Ok(Setting {
        long: key.to_owned(),
        values,
        origin: Origin::Line(line),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings_of(text: &str) -> Result<Vec<(String, Vec<String>)>, String> {
        let command = crate::hash::command();
        Ok(settings(text, "hash", &command)?
            .into_iter()
            .map(|s| (s.long, s.values))
            .collect())
    }

    #[test]
    fn applet_table_wins_over_the_top() {
        let text = "threads = 4\nexclude = [\"*.o\", \"b\"]\n[hash]\nthreads = \"mono\"\n";
        let got = settings_of(text).unwrap();
        assert!(
            got.contains(&("threads".into(), vec!["mono".into()])),
            "{got:?}"
        );
        assert!(
            got.contains(&("exclude".into(), vec!["*.o".into(), "b".into()])),
            "{got:?}"
        );
    }

    #[test]
    fn errors_name_key_and_line() {
        for (text, error) in [
            ("io = \"sync\"\n\nthread = 3\n", "3: unknown key 'thread'"),
            ("[hash]\ntpye = 3\n", "2: unknown key 'tpye'"),
            ("[moves]\n", "1: unknown table 'moves'"),
            (
                "yes = true\n",
                "1: 'yes' can only be given on the command line, as --yes",
            ),
        ] {
            assert_eq!(settings_of(text).unwrap_err(), error);
        }
        assert!(settings_of("a = \n").unwrap_err().starts_with("1: "));
    }
}
