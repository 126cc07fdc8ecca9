//! JSON lines with a fixed set of keys. Values are as in the manifest: times in nanoseconds, modes
//! as numbers; raw bytes that are not UTF-8 as base64 in `KEY_b64` beside the lossy text. A failure
//! is the object `error` of a change, with the fields that errors have in the JSON of every applet.

use std::io::Write;

use bc_digest::push_hex;
use bc_manifest::ErrorRecord;
use bc_manifest::json::{push_base64, push_bytes, push_key, push_str};

use super::ReportHeader;
use crate::change::{Change, Class, Ctime, Difference, Value};
use crate::compare::summary::ComparisonSummary;
use crate::update::limit::MassChange;

pub(super) fn header(line: &mut Vec<u8>, header: &ReportHeader<'_>) {
    line.extend_from_slice(b"{\"type\":\"header\",\"schema\":1,\"command\":");
    push_str(line, header.command);
    push_bytes(line, "old", header.old);
    push_bytes(line, "new", header.new);
    push_key(line, "mode");
    push_str(line, header.rules.mode.name());
    push_key(line, "ignore");
    strings(line, header.rules.ignore.iter().map(|field| field.name()));
    push_key(line, "algorithm");
    push_str(line, header.algorithm);
    line.extend_from_slice(b"}\n");
}

pub(super) fn change(line: &mut Vec<u8>, change: &Change) {
    line.extend_from_slice(b"{\"type\":\"change\",\"class\":");
    push_str(line, change.class.name());
    push_bytes(line, "path", &change.path);
    if let Some(to) = &change.to {
        push_bytes(line, "to", to);
    }
    push_key(line, "kind");
    push_str(line, change.kind.name());
    if let Some(entries) = change.entries {
        // Writing to a Vec cannot fail.
        let _ = write!(line, ",\"entries\":{entries}");
    }
    if let Some(reason) = &change.reason {
        push_key(line, "reason");
        push_str(line, reason);
    }
    if let Some(failed) = &change.failed {
        push_key(line, "error");
        let record = ErrorRecord {
            applet: "integrity",
            path: failed.path().as_os_str().as_encoded_bytes(),
            operation: failed.operation(),
            errno: failed.raw_os_error(),
            reason: failed.reason(),
        };
        record.write(line);
    }
    if let Some(ctime) = change.ctime {
        push_key(line, "ctime");
        push_str(
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
            push_key(line, "fields");
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

pub(super) fn summary(
    line: &mut Vec<u8>,
    summary: &ComparisonSummary,
    refused: Option<&MassChange>,
) {
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
    if let Some(of) = summary.sampled_of {
        number("sampled_of_files", of.files);
        number("sampled_of_bytes", of.bytes);
    }
    let _ = write!(line, ",\"complete\":{}", summary.complete);
    push_key(line, "result");
    push_str(line, summary.conclusion().name());
    if let Some(refused) = refused {
        let (changed, recorded) = (refused.changed, refused.recorded);
        let _ = write!(
            line,
            ",\"refused\":{{\"changed\":{changed},\"recorded\":{recorded}"
        );
        push_key(line, "limit");
        push_str(line, &refused.limit.to_string());
        line.push(b'}');
    }
    line.extend_from_slice(b"}\n");
}

fn strings<'a>(line: &mut Vec<u8>, texts: impl Iterator<Item = &'a str>) {
    line.push(b'[');
    for (nth, text) in texts.enumerate() {
        if nth > 0 {
            line.push(b',');
        }
        push_str(line, text);
    }
    line.push(b']');
}

fn values(
    line: &mut Vec<u8>,
    name: &str,
    differences: &[Difference],
    side: impl Fn(&Difference) -> &Value,
) {
    push_key(line, name);
    let start = line.len();
    for difference in differences {
        let name = difference.field.key();
        match side(difference) {
            Value::None => continue,
            Value::Bytes(bytes) => {
                push_bytes(line, name, bytes);
                continue;
            }
            _ => push_key(line, name),
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
            push_hex(line, bytes);
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
                push_str(line, &String::from_utf8_lossy(name));
                push_key(line, "value");
                push_base64(line, value);
                line.push(b'}');
            }
            line.push(b']');
            Ok(())
        }
    };
}
