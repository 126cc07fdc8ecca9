//! Results: one row a file system, one column a check.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value, json};

/// The columns, in the table's order.
pub(super) const COLUMNS: &[&str] = &[
    "hash",
    "dup",
    "cache",
    "delete",
    "hardlink",
    "symlink",
    "reflink",
    "move",
    "move-away",
    "space",
    "manifest",
    "update",
    "rewrite",
    "damage",
    "calls",
    "copy",
];

/// Result of a check.
pub(super) enum Verdict {
    /// It holds, with a remark or nothing.
    Ok(String),
    /// It could not be tried, and why.
    Skip(String),
}

enum Cell {
    Ok(String),
    Skip(String),
    Fail(String),
}

/// One file system's cells.
pub(super) struct Row {
    name: String,
    /// The path of its mount point, which is removed from messages.
    place: String,
    cells: Vec<(&'static str, Cell)>,
}

impl Row {
    pub(super) fn new(name: &str, scratch: &Path) -> Row {
        Row {
            name: name.to_owned(),
            place: format!("{}/", scratch.join(name).display()),
            cells: Vec::new(),
        }
    }

    /// Records a check's result; an error is a failure.
    pub(super) fn set(&mut self, column: &'static str, result: Result<Verdict>) {
        let cell = match result {
            Ok(Verdict::Ok(remark)) => Cell::Ok(remark),
            Ok(Verdict::Skip(reason)) => Cell::Skip(reason),
            Err(error) => Cell::Fail(format!("{error:#}").replace(&self.place, "")),
        };
        self.cells.push((column, cell));
    }

    /// Records that no check could be made, for one reason.
    pub(super) fn skip_all(&mut self, reason: &str) {
        for column in COLUMNS {
            self.set(column, Ok(Verdict::Skip(reason.to_owned())));
        }
    }

    fn cell(&self, column: &str) -> Option<&Cell> {
        self.cells
            .iter()
            .find(|(c, _)| *c == column)
            .map(|(_, cell)| cell)
    }

    /// Returns the reason that all of its cells were skipped for.
    fn skipped(&self) -> Option<&str> {
        let mut reasons = self.cells.iter().map(|(_, cell)| match cell {
            Cell::Skip(reason) => Some(reason.as_str()),
            _ => None,
        });
        let first = reasons.next()??;
        reasons.all(|r| r == Some(first)).then_some(first)
    }
}

/// The table.
pub(super) struct Sheet {
    json: bool,
    rows: Vec<Row>,
}

impl Sheet {
    pub(super) fn new(json: bool) -> Sheet {
        Sheet {
            json,
            rows: Vec::new(),
        }
    }

    /// Adds a row and, unless the table is to be JSON, prints its lines.
    pub(super) fn push(&mut self, row: Row) {
        if !self.json {
            print_row(&row);
        }
        self.rows.push(row);
    }

    /// Prints the table; a failure makes the exit code 1.
    pub(super) fn close(self) -> ExitCode {
        let count = |wanted: fn(&Cell) -> bool| {
            let cells = self.rows.iter().flat_map(|row| &row.cells);
            cells.filter(|(_, cell)| wanted(cell)).count()
        };
        let failed = count(|cell| matches!(cell, Cell::Fail(_)));
        let passed = count(|cell| matches!(cell, Cell::Ok(_)));
        let skipped = count(|cell| matches!(cell, Cell::Skip(_)));
        if self.json {
            println!("{:#}", self.as_json());
        } else {
            println!("\n{}", self.table());
            println!("{passed} passed, {failed} failed, {skipped} skipped");
        }
        if failed == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }

    fn table(&self) -> String {
        let mut text = format!("| file system | {} |\n", COLUMNS.join(" | "));
        text.push_str(&format!("|---|{}\n", "---|".repeat(COLUMNS.len())));
        for row in &self.rows {
            text.push_str(&format!("| {} |", row.name));
            for column in COLUMNS {
                text.push_str(match row.cell(column) {
                    Some(Cell::Ok(_)) => " ok |",
                    Some(Cell::Skip(_)) => " skip |",
                    Some(Cell::Fail(_)) => " FAIL |",
                    None => " - |",
                });
            }
            text.push('\n');
        }
        text
    }

    fn as_json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let checks: serde_json::Map<String, Value> = row
                .cells
                .iter()
                .map(|(column, cell)| {
                    let (result, detail) = match cell {
                        Cell::Ok(detail) => ("ok", detail),
                        Cell::Skip(detail) => ("skip", detail),
                        Cell::Fail(detail) => ("fail", detail),
                    };
                    let value = json!({ "result": result, "detail": detail });
                    ((*column).to_owned(), value)
                })
                .collect();
            json!({ "name": row.name, "checks": checks })
        });
        json!({ "schema": 1, "columns": COLUMNS, "file_systems": rows.collect::<Vec<_>>() })
    }
}

fn print_row(row: &Row) {
    if let Some(reason) = row.skipped() {
        println!("skip  {}: {reason}", row.name);
        return;
    }
    for (column, cell) in &row.cells {
        let (word, detail) = match cell {
            Cell::Ok(detail) => ("ok", detail),
            Cell::Skip(detail) => ("skip", detail),
            Cell::Fail(detail) => ("FAIL", detail),
        };
        let colon = if detail.is_empty() { "" } else { ": " };
        println!("{word:<5} {} {column}{colon}{detail}", row.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn a_failure_shows_in_the_table_and_in_json() {
        let mut row = Row::new("somefs", Path::new("/tmp"));
        row.set("hash", Ok(Verdict::Ok("12 files".into())));
        row.set("dup", Ok(Verdict::Skip("no such tool".into())));
        row.set("cache", Err(anyhow!("3 groups more")));
        assert_eq!(row.skipped(), None);
        let mut sheet = Sheet::new(true);
        sheet.push(row);
        let mut absent = Row::new("nofs", Path::new("/tmp"));
        absent.skip_all("the kernel has no nofs");
        assert_eq!(absent.skipped(), Some("the kernel has no nofs"));
        sheet.push(absent);
        let table = sheet.table();
        assert!(
            table.contains("| somefs | ok | skip | FAIL | - |"),
            "{table}"
        );
        let json = sheet.as_json();
        let cell = &json["file_systems"][0]["checks"]["cache"];
        assert_eq!(
            (cell["result"].as_str(), cell["detail"].as_str()),
            (Some("fail"), Some("3 groups more"))
        );
        assert_eq!(sheet.close(), ExitCode::FAILURE);
    }
}
