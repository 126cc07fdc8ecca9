//! CSV: a record per file, RFC 4180.

use std::fmt::Display;
use std::io::{self, Write};

use bc_manifest::csv::write_record;

use super::{Names, ScanReport};

/// `group,size,digest,reference,path,path_b64`; a path that is not UTF-8 is
/// lossy in `path` and complete, as base64, in `path_b64`.
pub(super) fn csv(report: &ScanReport<'_>, names: Names, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"group,size,digest,reference,path,path_b64\r\n")?;
    let mut record = Vec::new();
    for (number, group) in report.scan.groups().enumerate() {
        for id in report.names(group) {
            record.clear();
            let reference = u8::from(report.is_reference(id));
            let fields: [&dyn Display; 4] = [&(number + 1), &group.size, &group.digest, &reference];
            write_record(&mut record, &fields, &report.path(id, names));
            out.write_all(&record)?;
        }
    }
    Ok(())
}
