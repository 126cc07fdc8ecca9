//! Output of `bc dup dirs`: directories as text, and on stderr those that were not compared.

use std::ffi::OsString;
use std::io::{self, Write};

use bc_find::dirs::{
    Contained, DirNames, Directories, DirsOptions, DirsReport, OfflineDir, Similar,
};
use bc_walk::DirId;

use crate::dup::search::SearchResult;
use crate::dup::terminal::{self, GroupWriter};
use crate::files::output::Output;
use crate::session::Session;
use crate::session::progress::{counted, thousands};

/// Directories that are named as not compared; `-v` names all.
const NAMED: usize = 5;

/// Reports the directories that were not compared, and those where searches ended early.
pub fn tell(session: &Session, found: &SearchResult, answer: &Directories, options: &DirsOptions) {
    let report = &session.report;
    // Of failures the files are named already.
    let unforeseen = answer.obstacles.iter().filter(|(_, why)| !why.is_failure());
    for (nth, (dir, why)) in unforeseen.enumerate() {
        let path = found.listing.dir_path(*dir);
        let text = format!("{}: not compared: {}", bc_fs::escape(&path), why.text());
        match nth {
            0..NAMED => report.warning(text),
            _ => report.note(text),
        }
    }
    if answer.not_comparable > 0 {
        let dirs = counted(answer.not_comparable, "directory was", "directories were");
        report.warning(format_args!(
            "{dirs} not compared: the contents, or those below, are unknown"
        ));
    }
    let limits = options.limits;
    if answer.too_common > 0 {
        let dirs = counted(answer.too_common, "directory", "directories");
        report.warning(format_args!(
            "{dirs} not sought in others, or not for all: the contents are in over {} places",
            thousands(limits.places as u64)
        ));
    }
    if answer.ended > 0 {
        let dirs = counted(answer.ended, "directory", "directories");
        report.warning(format_args!(
            "{dirs} compared with {} others, and not with more that may contain them or be similar",
            thousands(limits.candidates as u64)
        ));
    }
    report.note(format_args!(
        "directories: {} groups, {} contained, {} similar, {:.3} s in all",
        answer.groups.len(),
        answer.contained.len(),
        answer.similar.len(),
        session.elapsed()
    ));
}

/// Writes the groups with a blank line between two: directories, which end in a slash, then files.
pub fn text(report: &DirsReport<'_>, output: &mut Output) -> io::Result<()> {
    let found = report.found;
    let mut groups = GroupWriter::new(output);
    for group in &found.groups {
        let files = format!(", {} in each", counted(group.files, "file", "files"));
        groups.begin_copies(group.bytes, group.dirs.len(), &files)?;
        for dir in &group.dirs {
            let line = [&path(report, *dir), &b"\n"[..]].concat();
            groups.output.write_all(&line)?;
        }
    }
    if !found.contained.is_empty() {
        groups.begin()?;
    }
    for one in &found.contained {
        contained(report, one, groups.output)?;
    }
    if !found.similar.is_empty() {
        groups.begin()?;
    }
    for one in &found.similar {
        similar(report, one, groups.output)?;
    }
    if !report.offline.is_empty() {
        groups.begin()?;
    }
    for one in report.offline {
        offline(report, one, groups.output)?;
    }
    for (group, names) in report.files() {
        groups.begin_copies(group.size, names.len(), "")?;
        for name in names {
            groups.output.name_line(&report.scan.listing.path(name))?;
        }
    }
    Ok(())
}

/// Returns a directory's path with a slash at its end.
fn path(report: &DirsReport<'_>, dir: DirId) -> Vec<u8> {
    let mut path = report.scan.listing.dir_path(dir);
    if path.last() != Some(&b'/') {
        path.push(b'/');
    }
    bc_fs::escape(&path).into_owned().into_bytes()
}

fn contained(report: &DirsReport<'_>, one: &Contained, output: &mut Output) -> io::Result<()> {
    output.write_all(&path(report, one.dir))?;
    let (between, after): (&[u8], &[u8]) = match (one.is_mutual, report.options.names) {
        (true, DirNames::Compare) => (b" and ", b": same contents, other names"),
        (true, DirNames::Ignore) => (b" and ", b": same contents, not as often"),
        (false, _) => (b" is contained in ", b""),
    };
    output.write_all(between)?;
    output.write_all(&path(report, one.within))?;
    output.write_all(after)?;
    output.write_all(b"\n")
}

fn offline(report: &DirsReport<'_>, one: &OfflineDir, output: &mut Output) -> io::Result<()> {
    output.write_all(&path(report, one.dir))?;
    let files = match one.files {
        1 => "its file is".to_owned(),
        files => format!("all {} files are", thousands(files)),
    };
    write!(output, ": {files} in ")?;
    for (nth, number) in one.manifests.iter().enumerate() {
        output.write_all(if nth == 0 { b"" } else { b" and " })?;
        output.write_all(bc_fs::escape(report.manifests[*number]).as_bytes())?;
    }
    if one.filtered > 0 {
        let entries = counted(one.filtered, "entry", "entries");
        write!(output, "; filters left out {entries}")?;
    }
    output.write_all(b"\n")
}

fn similar(report: &DirsReport<'_>, one: &Similar, output: &mut Output) -> io::Result<()> {
    output.write_all(&path(report, one.dirs[0]))?;
    output.write_all(b" and ")?;
    output.write_all(&path(report, one.dirs[1]))?;
    // Never more than there is: 99.99 % is not all.
    writeln!(output, ": {} % in common", one.percent().floor())
}

/// Returns the closing lines for a terminal: the space to gain, and the command for it.
pub fn closing(found: &SearchResult, answer: &Directories, paths: &[OsString]) -> Vec<String> {
    let dirs = match answer.groups.len() as u64 {
        0 => "no equal directories; ".to_owned(),
        groups => counted(groups, "group", "groups") + " of equal directories; ",
    };
    terminal::closing(found, paths, &dirs)
}
