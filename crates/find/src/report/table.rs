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
            push_csv_path(&mut record, &path);
            record.extend_from_slice(b"\r\n");
            out.write_all(&record)?;
        }
    }
    Ok(())
}

/// Appends the fields `path` and `path_b64`, with the comma between them.
pub fn push_csv_path(record: &mut Vec<u8>, path: &[u8]) {
    let text = String::from_utf8_lossy(path);
    if text.contains([',', '"', '\r', '\n']) {
        record.push(b'"');
        record.extend_from_slice(text.replace('"', "\"\"").as_bytes());
        record.push(b'"');
    } else {
        record.extend_from_slice(text.as_bytes());
    }
    record.push(b',');
    if std::str::from_utf8(path).is_err() {
        bc_manifest::base64::encode(record, path);
    }
}
