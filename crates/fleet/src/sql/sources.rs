//! Views of all lines and of all files, for the manifests that are read; and texts with places to be
//! filled in.

use std::collections::{BTreeMap, BTreeSet};

use super::dialect::Literal;
use super::params::Values;
use super::{Engine, Request, SqlError};

/// SQL fragments that are put together for the manifests.
#[derive(Default)]
struct Sources {
    /// Statements that come before.
    views: String,
    /// Expressions that give the lines, and those that give the names of the files.
    lines: Vec<String>,
    files: Vec<String>,
}

/// Returns the SQL of the sources. A name that is given twice is read once.
pub(super) fn sources(request: &Request<'_>, values: &Values<'_>) -> Result<String, SqlError> {
    let engine = request.engine;
    let mut sources = Sources::default();
    for (is_backup, names) in [(false, request.manifests), (true, &values.backups[..])] {
        let mut known = BTreeSet::new();
        let names = names.iter().filter(|name| known.insert(**name));
        let names = names.map(|name| Literal::of_name(engine, name));
        let names: Vec<String> = names.collect::<Result<_, _>>()?;
        if !names.is_empty() {
            match engine {
                Engine::DuckDb => sources.read_by_duckdb(is_backup, &names.join(", ")),
                Engine::Spark => sources.read_by_spark(is_backup, names),
            }
        }
    }
    let text = match engine {
        Engine::DuckDb => include_str!("../../sql/duckdb.sql"),
        Engine::Spark => include_str!("../../sql/spark.sql"),
    };
    let values = BTreeMap::from([
        ("views", sources.views),
        ("lines", sources.lines.join(UNION)),
        ("files", sources.files.join(UNION)),
    ]);
    Ok(fill(text, &values))
}

const UNION: &str = "\nUNION ALL\n";

impl Sources {
    fn read_by_duckdb(&mut self, is_backup: bool, names: &str) {
        let values = [
            ("is_backup", is_backup.to_string()),
            ("files", names.to_owned()),
        ];
        let text = include_str!("../../sql/duckdb_source.sql");
        self.lines
            .push(fill(text.trim_end(), &BTreeMap::from(values)));
        self.files.push(format!(
            "SELECT file, {is_backup} AS is_backup FROM glob([{names}])"
        ));
    }

    fn read_by_spark(&mut self, is_backup: bool, names: Vec<String>) {
        for file in names {
            let nth = self.lines.len();
            let values = [("nth", nth.to_string()), ("file", file)];
            let text = include_str!("../../sql/spark_source.sql");
            self.views.push_str(&fill(text, &BTreeMap::from(values)));
            self.lines.push(format!(
                "SELECT input_file_name() AS manifest, {is_backup} AS is_backup, * \
                 FROM manifest_source_{nth}"
            ));
            self.files.push(format!(
                "SELECT path AS file, {is_backup} AS is_backup FROM manifest_file_{nth}"
            ));
        }
    }
}

/// Replaces every `{{name}}` by its value. Values are not expanded again. A place without a value
/// stays as it is, and no engine accepts it.
pub(super) fn fill(text: &str, values: &BTreeMap<&str, String>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.split_once("{{") {
        filled.push_str(before);
        match from.split_once("}}") {
            Some((name, after)) if values.contains_key(name) => {
                filled.push_str(&values[name]);
                rest = after;
            }
            _ => {
                filled.push_str("{{");
                rest = from;
            }
        }
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_not_looked_at_again() {
        let values = BTreeMap::from([("a", "{{b}}".to_owned()), ("b", "x".to_owned())]);
        assert_eq!(fill("{{a}}-{{b}}{{c}} {{", &values), "{{b}}-x{{c}} {{");
    }
}
