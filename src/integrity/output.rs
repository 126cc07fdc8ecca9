//! Output of the commands: manifests, and reports in the format that was asked for with the totals,
//! metrics and exit code at their end.

use std::io::{self, Write};
use std::path::Path;

use bc_fs::PathError;
use bc_integrity::change::{Change, Class};
use bc_integrity::report::{ChangeFormat, ChangeReport, ReportHeader};
use bc_integrity::{ComparisonSummary, Conclusion, ManifestFile};
use bc_manifest::compress::Compressor;
use bc_walk::OwnFile;
use clap::ValueEnum;

use super::html::Differences;
use super::job::WorkError;
use crate::files::output::Output;
use crate::report::Exit;
use crate::report::style::Meaning;
use crate::session::Session;

/// Format of the differences that verify and diff find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DifferencesFormat {
    /// A line per difference.
    Text,
    /// JSON lines: header, changes, summary.
    Json,
    /// A page to read in a browser: verdict, totals, table.
    Html,
}

impl DifferencesFormat {
    /// Returns the output, set to escape as this format needs.
    pub fn of(self, output: Output) -> Output {
        match self {
            DifferencesFormat::Json => output.json(),
            DifferencesFormat::Text | DifferencesFormat::Html => output,
        }
    }
}

/// Takes changes as they are found. Lines are written at once, a page at the end: its figures come
/// first.
pub enum Changes<'a, 'o> {
    /// Text and JSON.
    Lines(ChangeReport<Marked<'o>>),
    /// HTML.
    Page(Box<Differences<'a>>, &'o mut Output),
}

/// Takes lines of a text report and gives each the colour of its mark.
pub struct Marked<'o>(pub &'o mut Output);

impl Write for Marked<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, end) = match line.strip_suffix(b"\n") {
                Some(text) => (text, &b"\n"[..]),
                None => (line, &b""[..]),
            };
            self.0.paint(meaning(text), text)?;
            self.0.write_all(end)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Returns the meaning of the mark at the beginning of a line.
fn meaning(line: &[u8]) -> Meaning {
    match line.get(..2) {
        Some(b"!!") => Meaning::Bad,
        Some(b"??" | b"~c" | b"~m" | b"~t") => Meaning::Changed,
        Some(b"+ ") => Meaning::Added,
        _ => Meaning::Plain,
    }
}

impl<'a, 'o> Changes<'a, 'o> {
    /// Returns a report that has written nothing yet.
    pub fn new(out: &'o mut Output, format: DifferencesFormat) -> Changes<'a, 'o> {
        let lines = |out, format| Changes::Lines(ChangeReport::new(Marked(out), format));
        match format {
            DifferencesFormat::Text => lines(out, ChangeFormat::Text),
            DifferencesFormat::Json => lines(out, ChangeFormat::Json),
            DifferencesFormat::Html => Changes::Page(Box::default(), out),
        }
    }

    /// Begins a report of this comparison.
    pub fn begin(&mut self, header: &ReportHeader<'a>) -> io::Result<()> {
        match self {
            Changes::Lines(report) => report.begin(header),
            Changes::Page(page, _) => {
                page.header = Some(*header);
                Ok(())
            }
        }
    }

    /// Takes the headers of the manifests, whose origin only a page shows; a manifest that cannot
    /// be read is refused by the comparison itself.
    pub fn manifests(&mut self, manifests: &[&ManifestFile]) {
        if let Changes::Page(page, _) = self {
            let headers = manifests.iter().map(|manifest| manifest.header());
            page.manifests = headers.collect::<Result<_, _>>().unwrap_or_default();
        }
    }

    /// Takes one difference.
    pub fn change(&mut self, change: &Change) -> io::Result<()> {
        match self {
            Changes::Lines(report) => report.change(change),
            Changes::Page(page, _) => {
                page.add(change);
                Ok(())
            }
        }
    }

    /// Ends the report with the totals, and the problems that were passed over in a damaged
    /// manifest.
    pub fn end(self, summary: &ComparisonSummary, problems: &[PathError]) -> io::Result<()> {
        match self {
            Changes::Lines(report) => report.end(summary).map(drop),
            Changes::Page(page, out) => page.page(summary, problems).write(out),
        }
    }
}

/// Writes a manifest to the output, compressed if the name of the file asks for it.
pub fn write_manifest<T>(
    output: &mut Output,
    file: Option<&Path>,
    write: impl FnOnce(&mut dyn Write) -> Result<T, WorkError>,
) -> Result<T, WorkError> {
    let compressed = file.is_some_and(|file| file.extension().is_some_and(|end| end == "zst"));
    if !compressed {
        return write(output);
    }
    let mut to = Compressor::new(output)?;
    let written = write(&mut to)?;
    to.finish()?;
    Ok(written)
}

/// Returns the file that is written and the one that it will replace, for a walk to leave out.
pub fn own_files(file: Option<&Path>, output: &Output) -> Vec<OwnFile> {
    let replaced = crate::files::output::replaced(file);
    replaced.into_iter().chain(output.own_file()).collect()
}

/// Puts the report in place, says the totals and gives the exit code.
pub fn conclude(session: &mut Session, mut output: Output, summary: &ComparisonSummary) -> Exit {
    // The lines before their totals; an error comes again in `finish`.
    let written = output.flush();
    let mut words = Vec::new();
    for class in Class::ALL {
        let count = summary.count(class);
        let name = format!("entries_{}", class.name());
        let help = "Entries of this class.";
        session.metrics.count(name, help, count);
        if count > 0 {
            words.push(format!("{count} {}", class.name()));
        }
    }
    if summary.any() {
        session.report.summary(words.join(", "));
    } else {
        session.report.note(words.join(", "));
    }
    let exit = match summary.conclusion() {
        Conclusion::Same => Exit::Done,
        Conclusion::Different => Exit::Differs,
        Conclusion::Damaged => Exit::Damage,
    };
    match session.finish(output, written) {
        Ok(()) => exit,
        Err(fatal) => exit.worst(fatal),
    }
}
