//! JSON lines with a fixed set of keys. Values are as in the manifest: times in nanoseconds, modes
//! as numbers; raw bytes that are not UTF-8 as base64 in `KEY_b64` beside the lossy text. A failure
//! is the object `error` of a change, with the fields that errors have in the JSON of every applet.

use std::io::Write;

use bc_manifest::{ErrorRecord, base64};

use super::ReportHeader;
use crate::change::{Change, Class, Ctime, Difference, FailedAt, Value};
use crate::summary::ComparisonSummary;

pub(super) fn header(line: &mut Vec<u8>, header: &ReportHeader<'_>) {
    line.extend_from_slice(b"{\"type\":\"header\",\"schema\":1,\"command\":");
    string(line, header.command);
    raw(line, "old", header.old);
    raw(line, "new", header.new);
    key(line, "mode");
    string(line, header.rules.mode.name());
    key(line, "ignore");
    strings(line, header.rules.ignore.iter().map(|field| field.name()));
    key(line, "algorithm");
    string(line, header.algorithm);
    line.extend_from_slice(b"}\n");
}

pub(super) fn change(line: &mut Vec<u8>, change: &Change) {
    line.extend_from_slice(b"{\"type\":\"change\",\"class\":");
    string(line, change.class.name());
    raw(line, "path", &change.path);
    if let Some(to) = &change.to {
        raw(line, "to", to);
    }
    key(line, "kind");
    string(line, change.kind.name());
    if let Some(reason) = &change.reason {
        key(line, "reason");
        string(line, reason);
    }
    if let Some(FailedAt { path, failure }) = &change.failed {
        key(line, "error");
        let record = ErrorRecord {
            applet: "integrity",
            path,
            operation: &failure.op,
            errno: failure.errno,
            reason: &failure.message,
        };
        record.write(line);
    }
    if let Some(ctime) = change.ctime {
        key(line, "ctime");
        string(
            line,
            match ctime {
                Ctime::Same => "same",
                Ctime::Other => "other",
                Ctime::Unknown | Ctime::Mute => "unknown",
            },
        );
    }
    if !change.differences.is_empty() {
        let one_sided = matches!(change.class, Class::Added | Class::Removed);
        if !one_sided {
            key(line, "fields");
            strings(line, change.differences.iter().map(|d| d.field.name()));
        }
        if change.class != Class::Added {
            values(line, "old", &change.differences, |d| &d.old);
        }
        if change.class != Class::Removed {
            values(line, "new", &change.differences, |d| &d.new);
        }
    }
    line.extend_from_slice(b"}\n");
}

pub(super) fn summary(line: &mut Vec<u8>, summary: &ComparisonSummary) {
    line.extend_from_slice(b"{\"type\":\"summary\"");
    let mut number = |name: &str, value: u64| {
        // Writing to a Vec cannot fail.
        let _ = write!(line, ",\"{name}\":{value}");
    };
    for class in Class::ALL {
        number(class.name(), summary.count(class));
    }
    number("old_entries", summary.old);
    number("new_entries", summary.new);
    number("unseen", summary.unseen);
    number("unrecorded", summary.unrecorded);
    number("damaged_added", summary.damaged_added);
    number("undecided", summary.undecided);
    number("files_read", summary.files_read);
    number("bytes_read", summary.bytes_read);
    let _ = write!(line, ",\"complete\":{}", summary.complete);
    key(line, "result");
    string(line, summary.conclusion().name());
    line.extend_from_slice(b"}\n");
}

fn string(line: &mut Vec<u8>, text: &str) {
    let _ = serde_json::to_writer(line, text);
}

fn strings<'a>(line: &mut Vec<u8>, texts: impl Iterator<Item = &'a str>) {
    line.push(b'[');
    for (nth, text) in texts.enumerate() {
        if nth > 0 {
            line.push(b',');
        }
        string(line, text);
    }
    line.push(b']');
}

fn key(line: &mut Vec<u8>, key: &str) {
    let _ = write!(line, ",\"{key}\":");
}

fn quoted_base64(line: &mut Vec<u8>, bytes: &[u8]) {
    line.push(b'"');
    base64::encode(line, bytes);
    line.push(b'"');
}

fn raw(line: &mut Vec<u8>, name: &str, bytes: &[u8]) {
    key(line, name);
    string(line, &String::from_utf8_lossy(bytes));
    if std::str::from_utf8(bytes).is_err() {
        key(line, &format!("{name}_b64"));
        quoted_base64(line, bytes);
    }
}

fn values(
    line: &mut Vec<u8>,
    name: &str,
    differences: &[Difference],
    side: impl Fn(&Difference) -> &Value,
) {
    key(line, name);
    let start = line.len();
    for difference in differences {
        let name = difference.field.key();
        match side(difference) {
            Value::None => continue,
            Value::Bytes(bytes) => {
                raw(line, name, bytes);
                continue;
            }
            _ => key(line, name),
        }
        value(line, side(difference));
    }
    // Every member was written with a comma before it.
    if line.len() == start {
        line.push(b'{');
    } else {
        line[start] = b'{';
    }
    line.push(b'}');
}

fn value(line: &mut Vec<u8>, value: &Value) {
    let _ = match value {
        Value::None | Value::Bytes(_) => Ok(()),
        Value::Number(number) => write!(line, "{number}"),
        Value::Mode(mode) => write!(line, "{mode}"),
        Value::Time(time) => write!(line, "{time}"),
        Value::Kind(kind) => write!(line, "\"{}\"", kind.name()),
        Value::Digest(bytes) => {
            line.push(b'"');
            bytes
                .iter()
                .for_each(|byte| drop(write!(line, "{byte:02x}")));
            line.push(b'"');
            Ok(())
        }
        Value::Xattrs(all) => {
            line.push(b'[');
            for (nth, (name, value)) in all.iter().enumerate() {
                line.extend_from_slice(if nth > 0 {
                    b",{\"name\":"
                } else {
                    b"{\"name\":"
                });
                string(line, &String::from_utf8_lossy(name));
                key(line, "value");
                quoted_base64(line, value);
                line.push(b'}');
            }
            line.push(b']');
            Ok(())
        }
    };
}
