//! Reads lines of bounded length: what is longer is skipped without being kept.

use std::io::{self, BufRead, ErrorKind, Read};

/// What [`read`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line and its delimiter (which is not in the buffer).
    Complete,
    /// The last line, which lacks its delimiter.
    Unterminated,
    /// A line over the limit; the buffer is empty.
    TooLong,
    /// Nothing more.
    End,
}

/// Reads up to `delimiter` into `line`, replacing what is there. At most `limit` bytes are kept.
pub(crate) fn read(
    input: &mut impl BufRead,
    delimiter: u8,
    limit: usize,
    line: &mut Vec<u8>,
) -> io::Result<Line> {
    line.clear();
    input
        .by_ref()
        .take(limit as u64 + 1)
        .read_until(delimiter, line)?;
    if line.last() == Some(&delimiter) {
        line.pop();
        return Ok(Line::Complete);
    }
    if line.len() <= limit {
        return Ok(if line.is_empty() {
            Line::End
        } else {
            Line::Unterminated
        });
    }
    *line = Vec::new();
    loop {
        let found = match input.fill_buf() {
            Ok([]) => return Ok(Line::TooLong),
            Ok(buffer) => (buffer.iter().position(|&b| b == delimiter), buffer.len()),
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        match found {
            (Some(at), _) => {
                input.consume(at + 1);
                return Ok(Line::TooLong);
            }
            (None, len) => input.consume(len),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_to_the_limit() {
        let mut input = io::BufReader::with_capacity(3, &b"12345\n123456\n\n1234567890\nend"[..]);
        let mut line = Vec::new();
        let mut seen = Vec::new();
        loop {
            let kind = read(&mut input, b'\n', 5, &mut line).unwrap();
            seen.push((kind, String::from_utf8(line.clone()).unwrap()));
            if kind == Line::End {
                break;
            }
        }
        let expected = [
            (Line::Complete, "12345"),
            (Line::TooLong, ""),
            (Line::Complete, ""),
            (Line::TooLong, ""),
            (Line::Unterminated, "end"),
            (Line::End, ""),
        ];
        assert_eq!(seen, expected.map(|(kind, text)| (kind, text.to_owned())));
    }
}
