//! The configuration file: TOML, with keys at the top for every applet and a
//! table for each applet's own.

use std::io;
use std::path::{Path, PathBuf};

use clap::Command;
use toml::de::{DeTable, DeValue};

use super::{Origin, Setting, is_settable};
use crate::parse::applet::APPLETS;
use crate::parse::environment::Environment;

/// Text of a configuration file.
pub struct ConfigFile {
    /// Its name, as messages show it.
    shown: String,
    text: String,
}

/// Loads the file that is `named`, which must be there, or the usual one. Beside it is the warning
/// about one that was left out.
///
/// # Errors
/// A file that is there and cannot be read.
pub fn load(
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
    pub fn settings(&self, applet: &str, command: &Command) -> Result<Vec<Setting>, String> {
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
            ("[move]\n", "1: unknown table 'move'"),
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
