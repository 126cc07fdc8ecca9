//! Layers below the command line: built-in < configuration file < `BC_*`
//! environment < command line. A layer can set any long option that takes no
//! part in saying *what* to work on.
//!
//! The file is TOML: keys at the top hold for every applet, a table `[hash]`,
//! `[dup]`, `[integrity]` for one. An unknown key is an error that names the
//! key and its line.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

use crate::exit::Exit;
use crate::report;

/// Parses `argv` with the lower layers filled in; prints help, version and
/// usage errors itself.
pub fn parse(mut command: Command, applet: &str, argv: Vec<OsString>) -> Result<ArgMatches, Exit> {
    let matches = command.try_get_matches_from_mut(&argv).map_err(usage)?;
    let Some((name, sub)) = matches.subcommand() else {
        return Ok(matches);
    };
    let explicit = sub.get_one::<PathBuf>("config").cloned();
    let layers = Layers::load(explicit.as_deref(), applet, &command)
        .map_err(|text| report::fatal(&format!("bc {applet}"), &text))?;
    let extra = command
        .find_subcommand(name)
        .map(|c| layers.arguments(c, sub))
        .unwrap_or_default();
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
        command.try_get_matches_from_mut(full).map_err(usage)?
    };
    // Thousands of small strings: freeing them would be a twelfth of the work
    // of hashing one small file.
    std::mem::forget(command);
    Ok(matches)
}

/// Whether a lower layer may have anything to say: a file where one is looked for, or a variable.
pub fn may_apply() -> bool {
    let is_there = |path: PathBuf| {
        path.symlink_metadata()
            .map_or_else(|e| !is_absent(&e), |_| true)
    };
    std::env::vars_os().any(|(name, _)| name.as_encoded_bytes().starts_with(b"BC_"))
        || default_path().is_some_and(is_there)
}

/// No such file; nor can there be one where HOME is no directory, as for many service accounts.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Prints clap's message: help and version to stdout (0), errors to stderr (2).
pub fn usage(error: clap::Error) -> Exit {
    let text = error.render();
    if error.use_stderr() && report::in_json() {
        let text = text.to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
        report::fatal("bc", text)
    } else if error.use_stderr() {
        // Tests and scripts want plain text; clap colours only through its own print.
        let _ = error.print();
        Exit::Fatal
    } else {
        // Between options clap puts lines of blanks.
        let text = text.to_string();
        let lines: String = text
            .lines()
            .map(|line| format!("{}\n", line.trim_end()))
            .collect();
        report::print(&lines)
    }
}

/// One setting of a lower layer and where it came from.
struct Setting {
    long: String,
    values: Vec<String>,
}

struct Layers {
    settings: Vec<Setting>,
}

impl Layers {
    fn load(explicit: Option<&Path>, applet: &str, command: &Command) -> Result<Layers, String> {
        let mut settings = Vec::new();
        let named = explicit
            .map(Path::to_path_buf)
            .or_else(|| env_path("BC_CONFIG"));
        let (path, must_exist) = match named {
            Some(path) => (Some(path), true),
            None => (default_path(), false),
        };
        if let Some(path) = path {
            match std::fs::read_to_string(&path) {
                Ok(text) => settings.extend(
                    from_file(&text, applet, command)
                        .map_err(|e| format!("{}:{e}", path.display()))?,
                ),
                Err(error) if !must_exist && is_absent(&error) => {}
                // Under another user's HOME: nobody asked for that file.
                Err(error) if !must_exist && error.kind() == io::ErrorKind::PermissionDenied => {
                    let text = format!("{}: read: {error}; it is left out", path.display());
                    report::caution(&format!("bc {applet}"), &text);
                }
                Err(error) => return Err(format!("{}: read: {error}", path.display())),
            }
        }
        // Nearly always none is set, and then there is nothing to look up.
        let set: Vec<(OsString, OsString)> = std::env::vars_os()
            .filter(|(name, _)| name.as_encoded_bytes().starts_with(b"BC_"))
            .collect();
        if set.is_empty() {
            return Ok(Layers { settings });
        }
        for arg in command.get_subcommands().flat_map(Command::get_arguments) {
            let Some(long) = arg.get_long().filter(|l| layered(l)) else {
                continue;
            };
            let name = format!("BC_{}", long.replace('-', "_").to_uppercase());
            if let Some((_, value)) = set.iter().find(|(n, _)| *n == *name) {
                let value = value
                    .clone()
                    .into_string()
                    .map_err(|_| format!("environment variable {name} is not UTF-8"))?;
                settings.retain(|s: &Setting| s.long != long);
                settings.push(Setting {
                    long: long.to_owned(),
                    values: vec![value],
                });
            }
        }
        Ok(Layers { settings })
    }

    /// Arguments to insert for options that the user did not give.
    fn arguments(&self, command: &Command, given: &ArgMatches) -> Vec<OsString> {
        let by_user = |arg: &clap::Arg| {
            given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
        };
        // What cannot stand beside something that the user wrote gives way to it.
        let out_of_place: Vec<&clap::Id> = command
            .get_arguments()
            .filter(|arg| by_user(arg))
            .flat_map(|arg| command.get_arg_conflicts_with(arg))
            .map(clap::Arg::get_id)
            .collect();
        let mut extra = Vec::new();
        for setting in &self.settings {
            let Some(arg) = command
                .get_arguments()
                .find(|a| a.get_long() == Some(&setting.long))
            else {
                continue; // an option of another subcommand
            };
            if by_user(arg) || out_of_place.contains(&arg.get_id()) {
                continue;
            }
            for value in &setting.values {
                if arg.get_action().takes_values() {
                    extra.push(format!("--{}={value}", setting.long).into());
                } else if matches!(value.as_str(), "1" | "true" | "yes" | "on") {
                    extra.push(format!("--{}", setting.long).into());
                } else if let Ok(count @ 1..=9) = value.parse::<usize>() {
                    extra.extend(std::iter::repeat_n(
                        format!("--{}", setting.long).into(),
                        count,
                    ));
                }
            }
        }
        extra
    }
}

/// Options that a file or the environment must not set: they say what to do,
/// not how, and a stale one would surprise.
fn layered(long: &str) -> bool {
    !matches!(
        long,
        "config"
            | "describe"
            | "help"
            | "version"
            | "files-from"
            | "null"
            | "output"
            | "yes"
            | "force"
            | "accept-damaged"
            | "from"
            | "dry-run"
            | "action"
    )
}

fn env_path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .filter(|v| !v.is_empty())
        .map(PathBuf::from)
}

/// `$XDG_CONFIG_HOME/bc/config.toml`, else `~/.config/bc/config.toml`.
fn default_path() -> Option<PathBuf> {
    let base = env_path("XDG_CONFIG_HOME")
        .filter(|p| p.is_absolute())
        .or_else(|| Some(env_path("HOME")?.join(".config")))?;
    Some(base.join("bc/config.toml"))
}

/// Reads the settings that concern `applet`; errors are `LINE: text`.
fn from_file(text: &str, applet: &str, command: &Command) -> Result<Vec<Setting>, String> {
    let line_of = |offset: usize| text[..offset.min(text.len())].matches('\n').count() + 1;
    let table = toml::de::DeTable::parse(text).map_err(|error| {
        format!(
            "{}: {}",
            line_of(error.span().map_or(0, |s| s.start)),
            error.message()
        )
    })?;
    let mut settings = Vec::new();
    for (key, value) in table.get_ref() {
        let name = key.get_ref().as_ref();
        let line = line_of(key.span().start);
        if let toml::de::DeValue::Table(inner) = value.get_ref() {
            let known = crate::applet::APPLETS.iter().find(|a| a.name == name);
            let Some(owner) = known else {
                return Err(format!("{line}: unknown table '{name}'"));
            };
            let own = (owner.command)();
            for (key, value) in inner {
                let setting = one(
                    key.get_ref(),
                    value.get_ref(),
                    line_of(key.span().start),
                    &own,
                )?;
                if owner.name == applet {
                    settings.retain(|s: &Setting| s.long != setting.long);
                    settings.push(setting);
                }
            }
        } else {
            let whole = crate::applet::whole();
            let known_somewhere = whole
                .get_subcommands()
                .find(|c| one(name, value.get_ref(), line, c).is_ok());
            let setting = one(
                name,
                value.get_ref(),
                line,
                known_somewhere.unwrap_or(command),
            )?;
            if !settings.iter().any(|s: &Setting| s.long == setting.long) {
                settings.push(setting);
            }
        }
    }
    Ok(settings)
}

fn one(
    key: &str,
    value: &toml::de::DeValue<'_>,
    line: usize,
    command: &Command,
) -> Result<Setting, String> {
    let known = command
        .get_subcommands()
        .flat_map(Command::get_arguments)
        .any(|a| a.get_long() == Some(key));
    if !known || !layered(key) {
        return Err(format!("{line}: unknown key '{key}'"));
    }
    let scalar = |value: &toml::de::DeValue<'_>| match value {
        toml::de::DeValue::String(s) => Ok(s.to_string()),
        toml::de::DeValue::Integer(i) => Ok(i.to_string()),
        toml::de::DeValue::Float(f) => Ok(f.to_string()),
        toml::de::DeValue::Boolean(b) => Ok(b.to_string()),
        _ => Err(format!(
            "{line}: key '{key}' wants a string, number, boolean or a list of them"
        )),
    };
    let values = match value {
        toml::de::DeValue::Array(items) => items
            .iter()
            .map(|item| scalar(item.get_ref()))
            .collect::<Result<_, _>>()?,
        other => vec![scalar(other)?],
    };
    Ok(Setting {
        long: key.to_owned(),
        values,
    })
}

/// The value of an environment variable as a path (used for caches as well).
pub fn cache_dir() -> Option<PathBuf> {
    let base = env_path("XDG_CACHE_HOME")
        .filter(|p| p.is_absolute())
        .or_else(|| Some(env_path("HOME")?.join(".cache")))?;
    Some(base.join("bc"))
}

#[cfg(test)]
fn settings_of(text: &str) -> Result<Vec<(String, Vec<String>)>, String> {
    let command = crate::hash::command();
    Ok(from_file(text, "hash", &command)?
        .into_iter()
        .map(|s| (s.long, s.values))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::settings_of;

    #[test]
    fn applet_table_wins_over_the_top() {
        let got =
            settings_of("threads = 4\nexclude = [\"*.o\", \"b\"]\n[hash]\nthreads = \"mono\"\n")
                .unwrap();
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
        assert_eq!(
            settings_of("io = \"sync\"\n\nthread = 3\n").unwrap_err(),
            "3: unknown key 'thread'"
        );
        assert_eq!(
            settings_of("[hash]\ntpye = 3\n").unwrap_err(),
            "2: unknown key 'tpye'"
        );
        assert_eq!(
            settings_of("[copy]\n").unwrap_err(),
            "1: unknown table 'copy'"
        );
        assert!(settings_of("a = \n").unwrap_err().starts_with("1: "));
        assert_eq!(
            settings_of("yes = true\n").unwrap_err(),
            "1: unknown key 'yes'"
        );
    }
}
