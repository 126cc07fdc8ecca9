//! Output of `bc dup dirs`: directories as text, and on stderr those that were not compared.

use std::ffi::OsString;
use std::io::{self, Write};

use bc_find::dirs::{
    Contained, DirNames, Directories, DirsOptions, DirsReport, OfflineDir, Similar,
};
use bc_walk::DirId;

use crate::dup::search::Found;
use crate::dup::terminal;
use crate::output::Output;
use crate::progress::{counted, size, thousands};
use crate::run::Session;
use crate::style::Meaning;

/// Directories that are named as not compared; `-v` names all.
const NAMED: usize = 5;

/// Reports the directories that were not compared, and those where searches ended early.
pub fn tell(session: &Session, found: &Found, answer: &Directories, options: &DirsOptions) {
    let report = &session.report;
    // Of failures the files are named already.
    let unforeseen = answer.obstacles.iter().filter(|(_, why)| !why.is_failure());
    for (nth, (dir, why)) in unforeseen.enumerate() {
        let path = found.listing.dir_path(*dir);
        let text = format!("{}: not compared: {}", bc_fs::escape(&path), why.text());
        match nth {
            0..NAMED => report.warning(&text),
            _ => report.note(1, &text),
        }
    }
    if answer.not_comparable > 0 {
        let dirs = counted(answer.not_comparable, "directory was", "directories were");
        report.warning(&format!(
            "{dirs} not compared: what is in there, or below, is not known"
        ));
    }
    let limits = options.limits;
    if answer.too_common > 0 {
        let dirs = counted(answer.too_common, "directory", "directories");
        report.warning(&format!(
            "{dirs} not sought in others, or not for all: the contents are in over {} places",
            thousands(limits.places as u64)
        ));
    }
    if answer.ended > 0 {
        let dirs = counted(answer.ended, "directory", "directories");
        report.warning(&format!(
            "{dirs} compared with {} others, and not with more that may contain them or be similar",
            thousands(limits.candidates as u64)
        ));
    }
    report.note(
        1,
        &format!(
            "directories: {} groups, {} contained, {} similar, {:.3} s in all",
            answer.groups.len(),
            answer.contained.len(),
            answer.similar.len(),
            session.elapsed()
        ),
    );
}

/// Writes the groups with a blank line between two: directories, which end in a slash, then files.
pub fn text(report: &DirsReport<'_>, output: &mut Output) -> io::Result<()> {
    let found = report.found;
    let mut is_first = true;
    for group in &found.groups {
        begin(&mut is_first, output)?;
        if output.is_terminal() {
            let copies = thousands(group.dirs.len() as u64);
            let files = counted(group.files, "file", "files");
            let head = format!("{} × {copies}, {files} in each\n", size(group.bytes));
            output.paint(Meaning::Dim, head.as_bytes())?;
        }
        for dir in &group.dirs {
            output.write_all(&path(report, *dir, output))?;
            output.write_all(b"\n")?;
        }
    }
    if !found.contained.is_empty() {
        begin(&mut is_first, output)?;
    }
    for one in &found.contained {
        contained(report, one, output)?;
    }
    if !found.similar.is_empty() {
        begin(&mut is_first, output)?;
    }
    for one in &found.similar {
        similar(report, one, output)?;
    }
    if !report.offline.is_empty() {
        begin(&mut is_first, output)?;
    }
    for one in report.offline {
        offline(report, one, output)?;
    }
    for (group, names) in report.files() {
        begin(&mut is_first, output)?;
        if output.is_terminal() {
            let head = format!("{} × {}\n", size(group.size), thousands(names.len() as u64));
            output.paint(Meaning::Dim, head.as_bytes())?;
        }
        for name in names {
            output.name_line(&report.scan.listing.path(name))?;
        }
    }
    Ok(())
}

fn begin(is_first: &mut bool, output: &mut Output) -> io::Result<()> {
    match std::mem::take(is_first) {
        true => Ok(()),
        false => output.write_all(b"\n"),
    }
}

/// Returns a directory's path with a slash at its end.
fn path(report: &DirsReport<'_>, dir: DirId, output: &Output) -> Vec<u8> {
    let mut path = report.scan.listing.dir_path(dir);
    if path.last() != Some(&b'/') {
        path.push(b'/');
    }
    output.shown(&path).into_owned()
}

fn contained(report: &DirsReport<'_>, one: &Contained, output: &mut Output) -> io::Result<()> {
    output.write_all(&path(report, one.dir, output))?;
    let (between, after): (&[u8], &[u8]) = match (one.is_mutual, report.options.names) {
        (true, DirNames::Compare) => (b" and ", b": same contents, other names"),
        (true, DirNames::Ignore) => (b" and ", b": same contents, not as often"),
        (false, _) => (b" is contained in ", b""),
    };
    output.write_all(between)?;
    output.write_all(&path(report, one.within, output))?;
    output.write_all(after)?;
    output.write_all(b"\n")
}

fn offline(report: &DirsReport<'_>, one: &OfflineDir, output: &mut Output) -> io::Result<()> {
    output.write_all(&path(report, one.dir, output))?;
    let files = match one.files {
        1 => "its file is".to_owned(),
        files => format!("all {} files are", thousands(files)),
    };
    write!(output, ": {files} in ")?;
    for (nth, number) in one.manifests.iter().enumerate() {
        output.write_all(if nth == 0 { b"" } else { b" and " })?;
        output.write_all(&output.shown(report.manifests[*number]))?;
    }
    if one.filtered > 0 {
        let entries = counted(one.filtered, "entry", "entries");
        write!(output, "; filters left out {entries}")?;
    }
    output.write_all(b"\n")
}

fn similar(report: &DirsReport<'_>, one: &Similar, output: &mut Output) -> io::Result<()> {
    output.write_all(&path(report, one.dirs[0], output))?;
    output.write_all(b" and ")?;
    output.write_all(&path(report, one.dirs[1], output))?;
    // Never more than there is: 99.99 % is not all.
    writeln!(output, ": {} % in common", one.percent().floor())
}

/// Returns the closing lines for a terminal: the space to gain, and the command for it.
pub fn closing(found: &Found, answer: &Directories, paths: &[OsString]) -> Vec<String> {
    let dirs = match answer.groups.len() as u64 {
        0 => "no equal directories; ".to_owned(),
        groups => counted(groups, "group", "groups") + " of equal directories; ",
    };
    terminal::closing(found, paths, &dirs)
}
