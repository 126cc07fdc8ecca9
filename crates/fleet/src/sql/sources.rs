//! The views of all lines and of all files: where they come from.

use std::collections::{BTreeMap, BTreeSet};

use super::literal::Literal;
use super::params::Values;
use super::template::fill;
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
