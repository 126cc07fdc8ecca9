//! A line diff for failed assertions: common head and tail, then a longest common subsequence over
//! the rest (given up when both sides are long).

use std::fmt::Write as _;

/// Number of differing lines on both sides above which the alignment table would get too big.
const ALIGN_MAX: usize = 1000;

/// Returns a readable difference of two texts, escaped line by line: `-` expected, `+` actual.
/// Empty if they are equal.
pub fn lines(expected: &[u8], actual: &[u8]) -> String {
    if expected == actual {
        return String::new();
    }
    let left: Vec<&[u8]> = expected.split_inclusive(|&b| b == b'\n').collect();
    let right: Vec<&[u8]> = actual.split_inclusive(|&b| b == b'\n').collect();
    let head = left.iter().zip(&right).take_while(|(a, b)| a == b).count();
    let (left, right) = (&left[head..], &right[head..]);
    let tail = left
        .iter()
        .rev()
        .zip(right.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let (left, right) = (&left[..left.len() - tail], &right[..right.len() - tail]);

    let mut out = format!(
        "--- expected\n+++ actual (first difference at line {})\n",
        head + 1
    );
    if left.len() > ALIGN_MAX || right.len() > ALIGN_MAX {
        left.iter()
            .take(20)
            .for_each(|line| push(&mut out, '-', line));
        right
            .iter()
            .take(20)
            .for_each(|line| push(&mut out, '+', line));
        let _ = writeln!(out, "… {} lines against {}", left.len(), right.len());
        return out;
    }
    let table = alignment(left, right);
    let (mut i, mut j) = (0, 0);
    while i < left.len() || j < right.len() {
        if i < left.len() && j < right.len() && left[i] == right[j] {
            push(&mut out, ' ', left[i]);
            (i, j) = (i + 1, j + 1);
        } else if j == right.len() || (i < left.len() && table[i + 1][j] >= table[i][j + 1]) {
            push(&mut out, '-', left[i]);
            i += 1;
        } else {
            push(&mut out, '+', right[j]);
            j += 1;
        }
    }
    out
}

/// Returns `table[i][j]`: length of the longest common subsequence of `left[i..]` and `right[j..]`.
fn alignment(left: &[&[u8]], right: &[&[u8]]) -> Vec<Vec<u32>> {
    let mut table = vec![vec![0; right.len() + 1]; left.len() + 1];
    for i in (0..left.len()).rev() {
        for j in (0..right.len()).rev() {
            table[i][j] = if left[i] == right[j] {
                table[i + 1][j + 1] + 1
            } else {
                table[i + 1][j].max(table[i][j + 1])
            };
        }
    }
    table
}

fn push(out: &mut String, mark: char, line: &[u8]) {
    let body = line.strip_suffix(b"\n").unwrap_or(line);
    let end = if body.len() == line.len() {
        " (no newline)"
    } else {
        ""
    };
    let _ = writeln!(out, "{mark}{}{end}", body.escape_ascii());
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn shows_only_what_differs() {
        assert_eq!(lines(b"same\n", b"same\n"), "");
        let diff = lines(b"a\nb\nc\nd\n", b"a\nc\nx\nd\n");
        assert!(
            diff.contains("-b\n") && diff.contains(" c\n") && diff.contains("+x\n"),
            "{diff}"
        );
        assert!(!diff.contains("-a") && !diff.contains("\n d"), "{diff}");
    }

    #[test]
    fn shows_a_missing_last_newline() {
        assert!(lines(b"a\n", b"a").contains("+a (no newline)"));
    }
}
