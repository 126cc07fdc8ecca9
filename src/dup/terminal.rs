//! What a person sees of a search who sits at a terminal: a heading for each group, and in the end
//! what it comes to. Pipes and files get neither.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};

use crate::habits::quoted;
use crate::output::Output;
use crate::progress::{size, thousands};
use crate::style::Meaning;

use super::search::Found;

/// So many paths are repeated in the command that goes on from here.
const SHORT: usize = 3;

/// The groups, each below its size and its number of names.
pub fn groups(found: &Found, output: &mut Output) -> io::Result<()> {
    let report = found.report();
    for (nth, group) in found.scan.groups().enumerate() {
        let names = report.names(group);
        let head = format!("{} × {}", size(group.size), thousands(names.len() as u64));
        if nth > 0 {
            output.write_all(b"\n")?;
        }
        output.paint(Meaning::Dim, head.as_bytes())?;
        output.write_all(b"\n")?;
        for id in names {
            let path = found.listing.path(id);
            output.path(bc_fs::escape(&path).as_bytes())?;
            output.write_all(b"\n")?;
        }
    }
    Ok(())
}

/// One line for a terminal: what there is to gain, and how.
pub fn closing(found: &Found, paths: &[OsString]) -> Option<String> {
    let told = io::stderr().is_terminal() && found.drawer.is_none();
    told.then(|| text(found, paths))
}

fn text(found: &Found, paths: &[OsString]) -> String {
    let scan = &found.scan;
    let count = |number: u64, one: &str, many: &str| {
        let noun = if number == 1 { one } else { many };
        format!("{} {noun}", thousands(number))
    };
    let groups = scan.groups().len() as u64;
    if groups == 0 {
        let files = count(scan.stats.files, "file", "files");
        return format!("no duplicates among {files}");
    }
    let roots: Vec<_> = paths.iter().map(|path| quoted(path)).collect();
    let roots = match roots.len() {
        1..=SHORT => roots.join(" "),
        _ => "…".to_owned(),
    };
    format!(
        "{}, {}, {} could be freed; 'bc dup prune --action=hardlink --dry-run {roots}' shows how",
        count(groups, "group", "groups"),
        count(scan.duplicates(), "duplicate", "duplicates"),
        size(scan.wasted()),
    )
}
