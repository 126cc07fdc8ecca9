//! Parts of a search's output for a user at a terminal: a heading for each group, and a summary at
//! the end. Pipes and files get neither.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;

use bc_fs::quote::shell_path;

use crate::files::output::Output;
use crate::report::style::Meaning;
use crate::session::progress::{counted, size, thousands};

use super::search::SearchResult;

/// Stands before every message.
const PREFIX: &str = "bc dup: ";
/// Most paths that are repeated in the command to use next.
const SHORT: usize = 3;

/// Groups of names as text, a blank line between two. A person gets a heading above each.
pub struct GroupWriter<'o> {
    /// Output of the names.
    pub output: &'o mut Output,
    is_first: bool,
}

impl GroupWriter<'_> {
    /// Returns a writer that has written no group yet.
    pub fn new(output: &mut Output) -> GroupWriter<'_> {
        GroupWriter {
            output,
            is_first: true,
        }
    }

    /// Begins a group.
    pub fn begin(&mut self) -> io::Result<()> {
        match std::mem::take(&mut self.is_first) {
            true => Ok(()),
            false => self.output.write_all(b"\n"),
        }
    }

    /// Begins a group of `copies` names of `bytes` each; `more` is said of them besides.
    pub fn begin_copies(&mut self, bytes: u64, copies: usize, more: &str) -> io::Result<()> {
        self.begin()?;
        if !self.output.is_terminal() {
            return Ok(());
        }
        let head = format!("{} × {}{more}", size(bytes), thousands(copies as u64));
        self.output.paint(Meaning::Dim, head.as_bytes())?;
        self.output.write_all(b"\n")
    }
}

/// Writes the groups, each below its size and its number of names; a blank line where more follows.
pub fn groups(found: &SearchResult, output: &mut Output, is_more_said: bool) -> io::Result<()> {
    let report = found.report();
    let mut groups = GroupWriter::new(output);
    for group in found.scan.groups() {
        let names = report.names(group);
        groups.begin_copies(group.size, names.len(), "")?;
        for id in names {
            groups.output.name_line(&found.listing.path(id))?;
        }
    }
    if is_more_said && found.scan.groups().len() > 0 {
        output.write_all(b"\n")?;
    }
    Ok(())
}

/// Returns a line for a terminal: the space to gain, and the command for it, after `before`. Two
/// where one is too wide for it.
pub fn closing(found: &SearchResult, paths: &[OsString], before: &str) -> Vec<String> {
    let nothing_was_read = found.scan.stats.files == 0 && !found.listing.errors().is_empty();
    if !io::stderr().is_terminal() || nothing_was_read || found.offline.is_some() {
        return Vec::new();
    }
    let text = format!("{before}{}", text(found));
    let Some(command) = command(found, paths) else {
        return vec![text];
    };
    let line = format!("{text}; {command}");
    let width = PREFIX.len() + line.chars().count();
    match width > crate::session::progress::width() {
        true => vec![text, command],
        false => vec![line],
    }
}

fn text(found: &SearchResult) -> String {
    let scan = &found.scan;
    let groups = scan.groups().len() as u64;
    if groups == 0 {
        let files = counted(scan.stats.files, "file", "files");
        return format!("no duplicates among {files}");
    }
    format!(
        "{}, {}, {} could be freed",
        counted(groups, "group", "groups"),
        counted(scan.duplicates(), "duplicate", "duplicates"),
        size(scan.wasted()),
    )
}

/// Returns the command to use next, if there are groups.
fn command(found: &SearchResult, paths: &[OsString]) -> Option<String> {
    if found.scan.groups().len() == 0 {
        return None;
    }
    let roots: Vec<_> = paths
        .iter()
        .map(|path| shell_path(path.as_bytes()))
        .collect();
    let command = "bc dup prune --action=hardlink --dry-run";
    Some(match roots.len() {
        1..=SHORT if !is_chosen() => format!("'{command} {}' shows how", roots.join(" ")),
        // Without its --reference or --exclude it would be about other files.
        _ => format!("'{command} …' shows how, with the same paths and options"),
    })
}

/// Options that choose no files, as they begin.
const OF_NO_CHOICE: &[&str] = &[
    "--color",
    "--io",
    "--log-format",
    "--memory-budget",
    "--progress",
    "--threads",
    "--verbose",
];

/// Returns true if the command line has an option that may choose among the files.
fn is_chosen() -> bool {
    let is_choice = |word: OsString| {
        let word = word.to_string_lossy();
        let is_known = OF_NO_CHOICE.iter().any(|known| word.starts_with(known));
        // Of short ones -v alone, however often.
        let is_more = |short: &str| short.chars().any(|letter| letter != 'v');
        !is_known && word.strip_prefix('-').is_some_and(is_more)
    };
    std::env::args_os().skip(1).any(is_choice)
}
