//! `--metrics=FILE`: figures of a run, as Prometheus text exposition (for node_exporter's textfile
//! collector) or JSON.

use std::borrow::Cow;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;

use crate::report::diagnostic::Diagnostic;

/// One figure of a run.
struct Figure {
    name: Cow<'static, str>,
    help: &'static str,
    value: f64,
}

/// The figures of a run.
pub struct Metrics {
    applet: &'static str,
    command: &'static str,
    figures: Vec<Figure>,
    labels: Vec<(&'static str, String)>,
}

impl Metrics {
    /// Returns the empty figures of `bc APPLET COMMAND`.
    pub fn new(applet: &'static str, command: &'static str) -> Metrics {
        Metrics {
            applet,
            command,
            figures: Vec::new(),
            labels: Vec::new(),
        }
    }

    /// Returns the command as it is typed, with the option that it cannot do without.
    pub fn called(&self) -> String {
        let (applet, command) = (self.applet, self.command);
        match command {
            "hash" | "scan" => format!("bc {applet}"),
            "prune" => format!("bc {applet} {command} --action=ACTION"),
            _ => format!("bc {applet} {command}"),
        }
    }

    /// Adds a figure; `name` is in Prometheus' style with its unit, e.g. `read_bytes`.
    pub fn set(&mut self, name: impl Into<Cow<'static, str>>, help: &'static str, value: f64) {
        let name = name.into();
        self.figures.push(Figure { name, help, value });
    }

    /// Adds a figure that is a count.
    pub fn count(&mut self, name: impl Into<Cow<'static, str>>, help: &'static str, value: u64) {
        self.set(name, help, value as f64);
    }

    /// Adds figures that are counts, each with its name and help.
    pub fn counts<const N: usize>(&mut self, figures: [(&'static str, &'static str, u64); N]) {
        for (name, help, value) in figures {
            self.count(name, help, value);
        }
    }

    /// Adds a text, e.g. the reader used.
    pub fn label(&mut self, name: &'static str, value: impl Into<String>) {
        self.labels.push((name, value.into()));
    }

    /// Writes FILE atomically.
    pub fn write(&self, file: &Path) -> Result<(), Diagnostic> {
        let prometheus = file.extension().is_some_and(|e| e == "prom");
        let text = if prometheus {
            self.prometheus()
        } else {
            format!("{:#}\n", self.json())
        };
        crate::files::output::write_whole(file, text.as_bytes())
    }

    fn json(&self) -> serde_json::Value {
        let mut object = json!({
            "schema": 1, "applet": self.applet, "command": self.command, "finished_at": now(),
        });
        for figure in &self.figures {
            object[&*figure.name] = if figure.value.fract() == 0.0 && figure.value.abs() < 9e15 {
                json!(figure.value as i64)
            } else {
                json!(figure.value)
            };
        }
        for (name, value) in &self.labels {
            object[*name] = json!(value);
        }
        object
    }

    fn prometheus(&self) -> String {
        let mut labels = format!("applet=\"{}\",command=\"{}\"", self.applet, self.command);
        for (name, value) in &self.labels {
            let value = value
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('\n', "\\n");
            labels += &format!(",{name}=\"{value}\"");
        }
        let mut text = String::new();
        for Figure { name, help, value } in &self.figures {
            text += &format!(
                "# HELP bc_{name} {help}\n# TYPE bc_{name} gauge\nbc_{name}{{{labels}}} {value}\n"
            );
        }
        let finished = since_epoch().as_secs_f64();
        text += &format!(
            "# HELP bc_finished_timestamp_seconds When the run ended.\n\
             # TYPE bc_finished_timestamp_seconds gauge\n\
             bc_finished_timestamp_seconds{{{labels}}} {finished:.3}\n"
        );
        text
    }
}

fn since_epoch() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// Returns the present as RFC 3339 UTC.
pub fn now() -> String {
    bc_manifest::time::format_rfc3339(since_epoch().as_nanos() as i64)
}
