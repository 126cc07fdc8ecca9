//! Parts of the closing lines of runs that write files.

use crate::progress::{size, thousands};

/// Returns the counts of a run with the `bytes` that it wrote, or with the words for a dry run.
pub fn written(counts: String, bytes: Option<u64>, dry_run: bool) -> String {
    match (dry_run, bytes) {
        (true, _) => format!("dry run: nothing is written: {counts}"),
        (false, Some(bytes)) => format!("{counts}; {} written", size(bytes)),
        (false, None) => counts,
    }
}

/// Returns words for so many properties that files did not get; none for none.
pub fn not_given(count: u64) -> String {
    match count {
        0 => String::new(),
        _ => format!("; {} properties could not be given", thousands(count)),
    }
}

/// Returns the message that a file system is full, or takes no more for another reason.
pub fn takes_no_more(what: &str, why: &str, bytes_left: u64) -> String {
    let missing = size(bytes_left);
    format!("{what} takes no more: {why}; {missing} are missing")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_say_what_was_written_and_what_was_not() {
        let counts = || "2 copied".to_owned();
        let dry = "dry run: nothing is written: 2 copied";
        assert_eq!(written(counts(), Some(9), true), dry);
        assert_eq!(written(counts(), Some(9), false), "2 copied; 9 B written");
        assert_eq!(written(counts(), None, false), "2 copied");
        assert_eq!(not_given(0), "");
        assert_eq!(not_given(1000), "; 1,000 properties could not be given");
        let text = takes_no_more("the tree", "no space", 5);
        assert_eq!(text, "the tree takes no more: no space; 5 B are missing");
    }
}
