//! The end of a comparison: totals, metrics, exit code.

use std::io::Write;

use bc_integrity::change::Class;
use bc_integrity::{ComparisonSummary, Conclusion};

use crate::exit::Exit;
use crate::output::{Output, Written};
use crate::run::Session;

/// Puts the output in place, says the totals and gives the exit code.
pub fn conclude(mut session: Session, output: Output, summary: &ComparisonSummary) -> Exit {
    let exit = conclude_with(&mut session, output, summary);
    session.end(exit)
}

pub fn conclude_with(
    session: &mut Session,
    mut output: Output,
    summary: &ComparisonSummary,
) -> Exit {
    // The lines before their totals; an error comes again in `finish`.
    let written = output.flush();
    let mut words = Vec::new();
    for class in Class::ALL {
        let count = summary.count(class);
        session
            .metrics
            .set(metric(class), "Entries of this class.", count as f64);
        if count > 0 {
            words.push(format!("{count} {}", class.name()));
        }
    }
    if summary.any() {
        session.report.summary(&words.join(", "));
    } else {
        session.report.note(1, &words.join(", "));
    }
    let exit = match summary.conclusion() {
        Conclusion::Same => Exit::Done,
        Conclusion::Different => Exit::Differs,
        Conclusion::Damaged => Exit::Damage,
    };
    match output.finish(written) {
        Ok(Written::Whole | Written::ReaderLeft) => exit,
        Err(text) => exit.worst(session.fatal(&text)),
    }
}

pub fn metric(class: Class) -> &'static str {
    match class {
        Class::Ok => "entries_ok",
        Class::Added => "entries_added",
        Class::Removed => "entries_removed",
        Class::Moved => "entries_moved",
        Class::Meta => "entries_meta",
        Class::Modified => "entries_modified",
        Class::Damaged => "entries_damaged",
        Class::Unreadable => "entries_unreadable",
        Class::Replaced => "entries_replaced",
    }
}
