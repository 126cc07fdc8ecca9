//! Groups of paths, as jdupes and fdupes print them.

use std::io::{self, Write};

use super::{Names, ScanReport};

/// Groups with a blank line between two.
pub(super) fn text(report: &ScanReport<'_>, names: Names, out: &mut dyn Write) -> io::Result<()> {
    for (i, group) in report.scan.groups().enumerate() {
        if i > 0 {
            out.write_all(b"\n")?;
        }
        for id in report.names(group) {
            let mut path = report.path(id, names);
            path.push(b'\n');
            out.write_all(&path)?;
        }
    }
    Ok(())
}

/// Groups with a blank line after each, the last one too.
pub(super) fn fdupes(report: &ScanReport<'_>, names: Names, out: &mut dyn Write) -> io::Result<()> {
    text(report, names, out)?;
    if report.scan.groups().len() == 0 {
        Ok(())
    } else {
        out.write_all(b"\n")
    }
}
