//! Facilities of a machine for tests: the reference tools that they compare with, and signals.

use std::env;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::{Outcome, TestTree};

/// Returns the executable `name` in `PATH`, or `None` where it is not installed.
pub fn tool(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|dir| dir.join(name))
        .find(|path| {
            path.metadata()
                .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        })
}

/// Returns DuckDB's answer to `sql`, the statements' rows one a line with commas between the
/// values; `None`, with a notice, where neither the program nor its Python module is installed.
pub fn duckdb(t: &TestTree, sql: &str) -> Option<Outcome> {
    const EACH: &str = "\
import duckdb, sys
session = duckdb.connect()
session.execute('SET enable_progress_bar = false')
for statement in duckdb.extract_statements(sys.stdin.read()):
    answer = session.execute(statement)
    if statement.type == duckdb.StatementType.SELECT:
        for row in answer.fetchall():
            print(*row, sep=',')
";
    let works = |program: &str, args: &[&str]| {
        let output = t.run(program).args(args).command().output();
        output.is_ok_and(|output| output.status.success())
    };
    // Both answers in one, warnings and all: lines with a dot are for the shell alone.
    let statements: Vec<&str> = sql.lines().filter(|line| !line.starts_with('.')).collect();
    let sql = &statements.join("\n")[..];
    if works("duckdb", &["-version"]) {
        let run = t.run("duckdb").args(["-csv", "-noheader", "-bail"]);
        return Some(run.stdin(sql).go());
    }
    if works("python3", &["-c", "import duckdb"]) {
        return Some(t.run("python3").args(["-c", EACH]).stdin(sql).go());
    }
    crate::left_out("DuckDB is not installed (pip install duckdb)");
    None
}

/// True if this signal ends the programs that a test starts: not if the test itself was started
/// with it ignored, as shells do in the background with SIGINT. Prints a notice then.
pub fn is_heeded(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    let heeded = mask & (1 << (signal - 1)) == 0;
    if !heeded {
        crate::left_out(&format!(
            "signal {signal} was ignored when the test started"
        ));
    }
    heeded
}

#[cfg(test)]
mod tests {
    #[test]
    fn finds_what_is_there() {
        assert!(super::tool("sh").is_some());
        assert_eq!(super::tool("no-such-tool-anywhere"), None);
    }
}
