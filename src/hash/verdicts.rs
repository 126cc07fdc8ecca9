//! Output of `bc hash check`: a line for each file, and the closing warnings of GNU's tools.

use std::io::{self, Write};

use bc_digest::Algorithm;
use bc_hash::ExpectedDigests;
use bc_hash::check::Verdict;
use rustix::io::Errno;

use super::args::CheckArgs;
use super::loaded::Loaded;
use super::manifest;
use crate::files::output::Output;
use crate::report::Exit;
use crate::report::style::Meaning;
use crate::session::Session;

/// Counts of one manifest's verdicts.
#[derive(Default)]
pub struct Counts {
    matched: u64,
    mismatched: u64,
    unreadable: u64,
}

impl Counts {
    /// Counts a verdict and reports why a file could not be read; returns the word for it, unless
    /// that is not wanted.
    fn add(
        &mut self,
        args: &CheckArgs,
        session: &Session,
        verdict: &Verdict,
    ) -> Option<&'static str> {
        match verdict {
            Verdict::Ok => {
                self.matched += 1;
                (!args.common.quiet).then_some("OK")
            }
            Verdict::Mismatch => {
                self.mismatched += 1;
                Some("FAILED")
            }
            Verdict::Failed(error)
                if args.ignore_missing && error.errno() == Some(Errno::NOENT.raw_os_error()) =>
            {
                None
            }
            Verdict::Failed(error) => {
                self.unreadable += 1;
                session.report.problem(&**error);
                Some("FAILED open or read")
            }
            Verdict::NotDone => None,
        }
    }
}

/// Writes a line for each file. A failure to write ends it.
pub fn write(
    args: &CheckArgs,
    session: &Session,
    output: &mut Output,
    wanted: &ExpectedDigests,
    verdicts: &[Verdict],
    counts: &mut Counts,
) -> io::Result<()> {
    for (number, verdict) in verdicts.iter().enumerate() {
        let word = counts.add(args, session, verdict);
        if let Some(word) = word.filter(|_| !args.status) {
            line(output, wanted.path(number), word)?;
        }
    }
    // The lines before their totals.
    output.flush()
}

/// Writes `path: OK`, escaped as GNU does: a leading backslash says that the name is.
pub fn line(output: &mut Output, path: &[u8], word: &str) -> std::io::Result<()> {
    let mut name = Vec::with_capacity(path.len() + 8);
    manifest::push_name(&mut name, path);
    output.path(&name)?;
    output.write_all(b": ")?;
    let meaning = match word {
        "FAILED" => Meaning::Bad,
        "FAILED open or read" => Meaning::Changed,
        "UNLISTED" => Meaning::Added,
        _ => Meaning::Plain,
    };
    output.paint(meaning, word.as_bytes())?;
    output.write_all(b"\n")
}

/// Prints the closing warnings of GNU's tools, and returns the exit code they imply.
pub fn summary(
    args: &CheckArgs,
    session: &Session,
    shown: &str,
    loaded: &Loaded,
    counts: &Counts,
) -> Exit {
    if !args.status {
        for text in warnings(loaded.improper, counts.unreadable, counts.mismatched) {
            session.report.always(format_args!("WARNING: {text}"));
        }
    }
    if counts.matched == 0 && counts.mismatched > 0 && !args.status {
        suggest_algorithm(session, loaded);
    }
    let nothing = args.ignore_missing && counts.matched == 0 && counts.mismatched == 0;
    if nothing {
        let text = format!("{shown}: no file was verified");
        session.report.problem(&text);
    }
    let improper = args.strict && loaded.improper > 0;
    if nothing || improper || loaded.incomplete || counts.unreadable > 0 || counts.mismatched > 0 {
        Exit::Differs
    } else {
        Exit::Done
    }
}

/// Suggests other algorithms if nothing matched: perhaps the digests are of another kind with the
/// same length.
fn suggest_algorithm(session: &Session, loaded: &Loaded) {
    let mut first = loaded.wanted.digests(0);
    let tried: Option<Algorithm> = first.next().map(|(algorithm, _)| algorithm);
    let others: Vec<String> = tried
        .map(bc_hash::lines::same_length)
        .unwrap_or_default()
        .iter()
        .map(|a| a.to_string())
        .collect();
    if let (Some(tried), false) = (tried, others.is_empty()) {
        session.report.warning(format_args!(
            "nothing matched as {tried}; digests of that length are also made by {}: try --type",
            others.join(", ")
        ));
    }
}

/// Returns the closing warnings of GNU's tools: counts, and what is wrong with so many lines and
/// files.
pub fn warnings(improper: u64, unreadable: u64, mismatched: u64) -> impl Iterator<Item = String> {
    let all = [
        (improper, ["line is", "lines are"], "improperly formatted"),
        (
            unreadable,
            ["listed file", "listed files"],
            "could not be read",
        ),
        (
            mismatched,
            ["computed checksum", "computed checksums"],
            "did NOT match",
        ),
    ];
    let some = all.into_iter().filter(|(count, ..)| *count > 0);
    some.map(|(count, nouns, what)| format!("{count} {} {what}", nouns[usize::from(count > 1)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_count_as_the_tools_do() {
        let all: Vec<String> = warnings(1, 2, 0).collect();
        let expected = [
            "1 line is improperly formatted",
            "2 listed files could not be read",
        ];
        assert_eq!(all, expected);
        let one: Vec<String> = warnings(0, 0, 1).collect();
        assert_eq!(one, ["1 computed checksum did NOT match"]);
    }
}
