//! CSV: a record per file, RFC 4180.

use std::io::{self, Write};

use super::{Names, ScanReport};

/// `group,size,digest,reference,path,path_b64`; a path that is not UTF-8 is
/// lossy in `path` and complete, as base64, in `path_b64`.
pub(super) fn csv(report: &ScanReport<'_>, names: Names, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"group,size,digest,reference,path,path_b64\r\n")?;
    let mut record = Vec::new();
    for (number, group) in report.scan.groups().enumerate() {
        for id in report.names(group) {
            let path = report.path(id, names);
            record.clear();
            let reference = u8::from(report.is_reference(id));
            write!(
                record,
                "{},{},{},{reference},",
                number + 1,
                group.size,
                group.digest
            )?;
            bc_manifest::csv::write_path(&mut record, &path);
            record.extend_from_slice(b"\r\n");
            out.write_all(&record)?;
        }
    }
    Ok(())
}
