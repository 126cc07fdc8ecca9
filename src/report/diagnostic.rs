//! Text of a message for people and, if it is about one path that failed, the same as fields for
//! programs.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;

use bc_fs::PathError;
use bc_manifest::{ErrorRecord, Failure};
use bc_prune::PruneEvent;
use bc_walk::job::{ErrorKind, Setting};
use serde_json::{Map, Value};

/// A message about something that went wrong.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    text: String,
    failed: Option<PathError>,
}

impl Diagnostic {
    /// Returns the message of a failed operation: `PATH: OPERATION: REASON`, the path escaped.
    pub fn failed(path: impl AsRef<OsStr>, operation: &str, error: &io::Error) -> Diagnostic {
        let errno = error.raw_os_error();
        let path = path.as_ref();
        Diagnostic::from(&PathError::with_reason(
            path,
            operation,
            errno,
            error.to_string(),
        ))
    }

    /// Returns the message of a failure that a manifest records beside a path.
    pub fn recorded(path: &[u8], failure: &Failure) -> Diagnostic {
        let (path, Failure { op, errno, message }) = (OsStr::from_bytes(path), failure);
        Diagnostic::from(&PathError::with_reason(path, op, *errno, message))
    }

    /// Adds the failed path, operation and reason, as fields for programs, to a message of any
    /// text.
    #[must_use]
    pub fn about(
        mut self,
        path: &[u8],
        operation: &str,
        errno: Option<i32>,
        reason: &str,
    ) -> Diagnostic {
        let path = OsStr::from_bytes(path);
        self.failed = Some(PathError::with_reason(path, operation, errno, reason));
        self
    }

    /// Replaces the text; the fields stay.
    #[must_use]
    pub fn worded(mut self, text: String) -> Diagnostic {
        self.text = text;
        self
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the fields, as reported by `applet`.
    pub fn fields(&self, applet: &str) -> Map<String, Value> {
        let Some(failed) = &self.failed else {
            return Map::new();
        };
        let mut object = Vec::new();
        record(applet, failed).write(&mut object);
        // The text just written is an object.
        serde_json::from_slice(&object).unwrap_or_default()
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<String> for Diagnostic {
    fn from(text: String) -> Diagnostic {
        Diagnostic { text, failed: None }
    }
}

impl From<&String> for Diagnostic {
    fn from(text: &String) -> Diagnostic {
        Diagnostic::from(text.clone())
    }
}

impl From<&str> for Diagnostic {
    fn from(text: &str) -> Diagnostic {
        Diagnostic::from(text.to_owned())
    }
}

impl From<fmt::Arguments<'_>> for Diagnostic {
    fn from(text: fmt::Arguments<'_>) -> Diagnostic {
        Diagnostic::from(text.to_string())
    }
}

impl From<&Diagnostic> for Diagnostic {
    fn from(diagnostic: &Diagnostic) -> Diagnostic {
        diagnostic.clone()
    }
}

impl From<Diagnostic> for String {
    fn from(diagnostic: Diagnostic) -> String {
        diagnostic.text
    }
}

impl From<&bc_walk::Error> for Diagnostic {
    fn from(error: &bc_walk::Error) -> Diagnostic {
        Diagnostic::from(&PathError::from(error))
    }
}

impl From<&PathError> for Diagnostic {
    fn from(error: &PathError) -> Diagnostic {
        Diagnostic {
            text: error.to_string(),
            failed: Some(error.clone()),
        }
    }
}

impl From<&PruneEvent> for Diagnostic {
    fn from(event: &PruneEvent) -> Diagnostic {
        Diagnostic {
            text: event.to_string(),
            failed: event.failure(),
        }
    }
}

impl From<&bc_walk::job::Error> for Diagnostic {
    fn from(error: &bc_walk::job::Error) -> Diagnostic {
        let diagnostic = Diagnostic::from(unless(error.to_string(), error.setting()));
        let Some(path) = error.path() else {
            return diagnostic;
        };
        let operation = error.operation().unwrap_or(match error.kind() {
            ErrorKind::Manifest => "read",
            ErrorKind::Busy => "lock",
            _ => "check",
        });
        diagnostic.about(
            path.as_os_str().as_encoded_bytes(),
            operation,
            error.raw_os_error(),
            error.reason(),
        )
    }
}

/// Returns a failure that `applet` reports in the JSON form that all commands use.
pub fn record<'e>(applet: &'e str, failed: &'e PathError) -> ErrorRecord<'e> {
    ErrorRecord {
        applet,
        path: failed.path().as_os_str().as_encoded_bytes(),
        operation: failed.operation(),
        errno: failed.raw_os_error(),
        reason: failed.reason(),
    }
}

/// Adds the option that avoids the error, if there is one. The engines know options only as a
/// [`Setting`].
fn unless(text: String, setting: Option<Setting>) -> String {
    let option = match setting {
        Some(Setting::Force) => "--force to continue",
        Some(Setting::IgnoreDigest) => "--ignore=digest compares the rest",
        Some(Setting::Manifest) => "--manifest=FILE names another place",
        Some(Setting::Exclude) => "--exclude leaves it out",
        Some(Setting::AllowLossy) => "--allow-lossy moves them all the same",
        Some(Setting::Adopt) => "'bc integrity protect --adopt'",
        _ => return text,
    };
    format!("{text} ({option})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_fields_say_the_same() {
        let error = io::Error::from_raw_os_error(13);
        let failed = Diagnostic::failed("a\nb", "open", &error);
        assert_eq!(
            failed.text(),
            "a\\nb: open: Permission denied (os error 13)"
        );
        assert_eq!(
            Value::Object(failed.fields("dup")),
            serde_json::json!({
                "applet": "dup", "path": "a\nb", "operation": "open", "errno": 13,
                "reason": "Permission denied (os error 13)",
            })
        );
        assert!(Diagnostic::from("words").fields("dup").is_empty());
    }
}
