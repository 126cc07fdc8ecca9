//! Changes as lines of text or JSON. Nothing in them depends on the time of
//! the run or its threads: the same differences give the same bytes.

mod json;
mod text;

use std::io::{self, Write};

use crate::change::Change;
use crate::compare::summary::ComparisonSummary;
use crate::fields::CompareRules;
use crate::update::Updated;
use crate::update::limit::MassChange;

/// Format of changes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum ChangeFormat {
    /// A line per change, for people.
    #[default]
    Text,
    /// A header, a line per change and a summary, each a JSON object.
    Json,
}

impl ChangeFormat {
    /// All of them.
    pub const ALL: [ChangeFormat; 2] = [ChangeFormat::Text, ChangeFormat::Json];

    /// Returns its name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            ChangeFormat::Text => "text",
            ChangeFormat::Json => "json",
        }
    }
}

/// First line of a JSON report.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ReportHeader<'a> {
    /// `verify`, `diff` or `update`.
    pub command: &'a str,
    /// The manifest, or the older one.
    pub old: &'a [u8],
    /// The tree's root, or the newer manifest.
    pub new: &'a [u8],
    /// Rules of the comparison.
    pub rules: CompareRules,
    /// Name of the digest algorithm.
    pub algorithm: &'a str,
}

impl<'a> ReportHeader<'a> {
    /// Makes the header of a comparison by the default rules.
    pub fn new(
        command: &'a str,
        old: &'a [u8],
        new: &'a [u8],
        algorithm: &'a str,
    ) -> ReportHeader<'a> {
        ReportHeader {
            command,
            old,
            new,
            rules: CompareRules::default(),
            algorithm,
        }
    }
}

bc_fs::setters! {
    ReportHeader<'a>:
    rules: CompareRules,
}

/// Writes a report to `out`: [`begin`](Self::begin), [`change`](Self::change)
/// for each, [`end`](Self::end).
#[derive(Debug)]
pub struct ChangeReport<W> {
    out: W,
    format: ChangeFormat,
    line: Vec<u8>,
}

impl<W: Write> ChangeReport<W> {
    /// Makes a report that has written nothing yet. `out` should be buffered.
    pub fn new(out: W, format: ChangeFormat) -> ChangeReport<W> {
        ChangeReport {
            out,
            format,
            line: Vec::new(),
        }
    }

    /// Writes the header; text has none.
    ///
    /// # Errors
    /// Fails if writing fails.
    pub fn begin(&mut self, header: &ReportHeader<'_>) -> io::Result<()> {
        self.write(|line, format| {
            if format == ChangeFormat::Json {
                json::header(line, header);
            }
        })
    }

    /// Writes a change.
    ///
    /// # Errors
    /// Fails if writing fails.
    pub fn change(&mut self, change: &Change) -> io::Result<()> {
        self.write(|line, format| match format {
            ChangeFormat::Text => text::change(line, change),
            ChangeFormat::Json => json::change(line, change),
        })
    }

    /// Flushes the writer.
    ///
    /// # Errors
    /// Fails if writing fails.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Writes the summary, which text has not, and returns the writer unflushed.
    ///
    /// # Errors
    /// Fails if writing fails.
    pub fn end(self, summary: &ComparisonSummary) -> io::Result<W> {
        self.end_with(summary, None)
    }

    /// Writes the summary of an update, which says if that was refused, and returns the writer
    /// unflushed.
    ///
    /// # Errors
    /// Fails if writing fails.
    pub fn end_update(self, updated: &Updated) -> io::Result<W> {
        self.end_with(&updated.summary, updated.refused.as_ref())
    }

    fn end_with(
        mut self,
        summary: &ComparisonSummary,
        refused: Option<&MassChange>,
    ) -> io::Result<W> {
        self.write(|line, format| {
            if format == ChangeFormat::Json {
                json::summary(line, summary, refused);
            }
        })?;
        Ok(self.out)
    }

    fn write(&mut self, fill: impl FnOnce(&mut Vec<u8>, ChangeFormat)) -> io::Result<()> {
        self.line.clear();
        fill(&mut self.line, self.format);
        self.out.write_all(&self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{Class, Ctime, Difference, Value};
    use crate::fields::Field;
    use bc_manifest::integrity::Kind;
    use std::os::unix::ffi::OsStrExt;

    fn difference(field: Field, old: Value, new: Value) -> Difference {
        Difference { field, old, new }
    }

    fn samples() -> Vec<(Change, &'static str, &'static str)> {
        let change = |class, path: &str| Change::new(class, path.as_bytes(), Kind::File);
        vec![
            (
                change(Class::Ok, "a"),
                "ok a\n",
                r#"{"type":"change","class":"ok","path":"a","kind":"file"}"#,
            ),
            (
                Change {
                    differences: vec![
                        difference(Field::Size, Value::None, Value::Number(7)),
                        difference(Field::Digest, Value::None, Value::Digest(vec![0xab, 1])),
                    ],
                    ..change(Class::Added, "n\n\\")
                },
                "+ n\\n\\\\\n",
                concat!(
                    r#"{"type":"change","class":"added","path":"n\n\\","kind":"file","#,
                    r#""new":{"size":7,"digest":"ab01"}}"#
                ),
            ),
            (
                Change {
                    differences: vec![difference(Field::Size, Value::Number(0), Value::None)],
                    ..Change::new(Class::Removed, b"\xff", Kind::Dir)
                },
                "- \\xff\n",
                concat!(
                    r#"{"type":"change","class":"removed","path":"�","path_b64":"/w==","kind":"dir","#,
                    r#""old":{"size":0}}"#
                ),
            ),
            (
                Change {
                    to: Some(b"x/y".to_vec()),
                    ..change(Class::Moved, "a")
                },
                "> a -> x/y\n",
                r#"{"type":"change","class":"moved","path":"a","to":"x/y","kind":"file"}"#,
            ),
            (
                Change {
                    to: Some(b"x/y".to_vec()),
                    entries: Some(12),
                    differences: vec![difference(
                        Field::Mode,
                        Value::Mode(0o40_755),
                        Value::Mode(0o40_700),
                    )],
                    ..Change::new(Class::Moved, b"d", Kind::Dir)
                },
                "> d/ -> x/y/ (12 entries) mode: 0755 -> 0700\n",
                concat!(
                    r#"{"type":"change","class":"moved","path":"d","to":"x/y","kind":"dir","#,
                    r#""entries":12,"fields":["mode"],"old":{"mode":16877},"new":{"mode":16832}}"#
                ),
            ),
            (
                Change {
                    to: Some(b"b".to_vec()),
                    differences: vec![
                        difference(Field::Mode, Value::Mode(0o100_644), Value::Mode(0o104_777)),
                        difference(Field::Uid, Value::Number(0), Value::Number(65_534)),
                    ],
                    ..change(Class::Moved, "a")
                },
                "> a -> b mode: 0644 -> 4777, uid: 0 -> 65534\n",
                concat!(
                    r#"{"type":"change","class":"moved","path":"a","to":"b","kind":"file","#,
                    r#""fields":["mode","uid"],"old":{"mode":33188,"uid":0},"#,
                    r#""new":{"mode":35327,"uid":65534}}"#
                ),
            ),
            (
                Change {
                    differences: vec![
                        difference(Field::Mode, Value::Mode(0o100_644), Value::Mode(0o104_600)),
                        difference(Field::Mtime, Value::Time(-1), Value::Time(0)),
                        difference(
                            Field::Xattrs,
                            Value::Xattrs([(b"user.a".to_vec(), vec![])].into()),
                            Value::Xattrs([(b"user.b".to_vec(), vec![1])].into()),
                        ),
                    ],
                    ..change(Class::Meta, "a")
                },
                concat!(
                    "~m a mode: 0644 -> 4600, ",
                    "mtime: 1969-12-31T23:59:59.999999999Z -> 1970-01-01T00:00:00Z, ",
                    "xattrs: -user.a +user.b\n"
                ),
                concat!(
                    r#"{"type":"change","class":"meta","path":"a","kind":"file","#,
                    r#""fields":["mode","mtime","xattrs"],"#,
                    r#""old":{"mode":33188,"mtime_ns":-1,"xattrs":[{"name":"user.a","value":""}]},"#,
                    r#""new":{"mode":35200,"mtime_ns":0,"xattrs":[{"name":"user.b","value":"AQ=="}]}}"#
                ),
            ),
            (
                change(Class::Modified, "a"),
                "~c a\n",
                r#"{"type":"change","class":"modified","path":"a","kind":"file"}"#,
            ),
            (
                Change {
                    reason: Some("nothing tells".into()),
                    ..change(Class::Modified, "a")
                },
                "~c a: nothing tells\n",
                r#"{"type":"change","class":"modified","path":"a","kind":"file","reason":"nothing tells"}"#,
            ),
            (
                Change {
                    ctime: Some(Ctime::Same),
                    differences: vec![difference(
                        Field::Digest,
                        Value::Digest(vec![1]),
                        Value::Digest(vec![2]),
                    )],
                    ..change(Class::Damaged, "a")
                },
                "!! a: ctime unchanged, points to bitrot\n",
                concat!(
                    r#"{"type":"change","class":"damaged","path":"a","kind":"file","ctime":"same","#,
                    r#""fields":["digest"],"old":{"digest":"01"},"new":{"digest":"02"}}"#
                ),
            ),
            (
                Change {
                    ctime: Some(Ctime::Other),
                    ..change(Class::Damaged, "a")
                },
                "!! a: ctime changed, probably a rewrite with its mtime reset\n",
                r#"{"type":"change","class":"damaged","path":"a","kind":"file","ctime":"other"}"#,
            ),
            (
                // The name in it is escaped, the reason of a manifest perhaps not.
                Change {
                    reason: Some("in d\\n\\\\: open: no\u{9b}".into()),
                    ..change(Class::Unreadable, "d\n\\/a")
                },
                "?? d\\n\\\\/a: in d\\n\\\\: open: no\\u{9b}\n",
                concat!(
                    r#"{"type":"change","class":"unreadable","path":"d\n\\/a","kind":"file","#,
                    "\"reason\":\"in d\\\\n\\\\\\\\: open: no\u{9b}\"}"
                ),
            ),
            (
                Change {
                    reason: Some("open: no".into()),
                    failed: Some(bc_fs::PathError::with_reason(
                        std::ffi::OsStr::from_bytes(b"\xfe"),
                        "open",
                        Some(13),
                        "no",
                    )),
                    ..change(Class::Unreadable, "a")
                },
                "?? a: open: no\n",
                concat!(
                    r#"{"type":"change","class":"unreadable","path":"a","kind":"file","#,
                    r#""reason":"open: no","error":{"applet":"integrity","path":"�","#,
                    r#""path_b64":"/g==","operation":"open","errno":13,"reason":"no"}}"#
                ),
            ),
            (
                Change {
                    differences: vec![difference(
                        Field::Kind,
                        Value::Kind(Kind::File),
                        Value::Kind(Kind::Symlink),
                    )],
                    ..Change::new(Class::Replaced, b"a", Kind::Symlink)
                },
                "~t a file -> symlink\n",
                concat!(
                    r#"{"type":"change","class":"replaced","path":"a","kind":"symlink","#,
                    r#""fields":["kind"],"old":{"kind":"file"},"new":{"kind":"symlink"}}"#
                ),
            ),
        ]
    }

    #[test]
    fn every_class_in_both_formats() {
        let mut seen = Vec::new();
        for (change, text, json) in samples() {
            let mut report = ChangeReport::new(Vec::new(), ChangeFormat::Text);
            report.change(&change).unwrap();
            assert_eq!(String::from_utf8_lossy(&report.out), text);
            let mut report = ChangeReport::new(Vec::new(), ChangeFormat::Json);
            report.change(&change).unwrap();
            assert_eq!(String::from_utf8_lossy(&report.out), format!("{json}\n"));
            serde_json::from_slice::<serde_json::Value>(&report.out).unwrap();
            seen.push(change.class);
        }
        assert!(Class::ALL.iter().all(|class| seen.contains(class)));
    }

    #[test]
    fn json_has_a_header_and_a_summary() {
        let header = ReportHeader {
            command: "verify",
            old: b"m.jsonl",
            new: b"\xfe",
            rules: CompareRules::default(),
            algorithm: "sha256",
        };
        let mut report = ChangeReport::new(Vec::new(), ChangeFormat::Json);
        report.begin(&header).unwrap();
        let mut summary = ComparisonSummary::default();
        (summary.old, summary.new, summary.complete) = (2, 1, true);
        summary.add(Class::Removed);
        summary.add(Class::Ok);
        assert!(summary.reconciles());
        let out = String::from_utf8(report.end(&summary).unwrap()).unwrap();
        let lines: Vec<serde_json::Value> = out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["schema"], 1);
        assert_eq!(lines[0]["new_b64"], "/g==");
        assert_eq!(lines[0]["ignore"][0], "ctime");
        assert_eq!(lines[1]["removed"], 1);
        assert_eq!(lines[1]["old_entries"], 2);
        assert_eq!(lines[1]["result"], "different");
        let mut report = ChangeReport::new(Vec::new(), ChangeFormat::Text);
        report.begin(&header).unwrap();
        assert!(report.end(&summary).unwrap().is_empty());
    }
}
