//! The report of verify and diff, in the format that was asked for.

use std::io::{self, Write};

use bc_integrity::ComparisonSummary;
use bc_integrity::change::Change;
use bc_integrity::report::{ChangeFormat, ChangeReport, ReportHeader};

use super::args::Format;
use super::html::Differences;

/// Takes changes as they are found. Lines are written at once, a page at the
/// end: its figures stand first.
pub enum Changes<'a, W> {
    /// Text and JSON.
    Lines(ChangeReport<W>),
    /// HTML.
    Page(Box<Differences<'a>>, W),
}

impl<'a, W: Write> Changes<'a, W> {
    /// A report that has written nothing yet.
    pub fn new(out: W, format: Format) -> Changes<'a, W> {
        match format {
            Format::Text => Changes::Lines(ChangeReport::new(out, ChangeFormat::Text)),
            Format::Json => Changes::Lines(ChangeReport::new(out, ChangeFormat::Json)),
            Format::Html => Changes::Page(Box::default(), out),
        }
    }

    /// What is compared.
    pub fn begin(&mut self, header: &ReportHeader<'a>) -> io::Result<()> {
        match self {
            Changes::Lines(report) => report.begin(header),
            Changes::Page(page, _) => {
                page.header = Some(*header);
                Ok(())
            }
        }
    }

    /// One difference.
    pub fn change(&mut self, change: &Change) -> io::Result<()> {
        match self {
            Changes::Lines(report) => report.change(change),
            Changes::Page(page, _) => {
                page.add(change);
                Ok(())
            }
        }
    }

    /// The totals, and what was passed over in a damaged manifest.
    pub fn end(self, summary: &ComparisonSummary, problems: &[String]) -> io::Result<()> {
        match self {
            Changes::Lines(report) => report.end(summary).map(drop),
            Changes::Page(page, mut out) => page.page(summary, problems).write(&mut out),
        }
    }
}
