//! Reads lines of bounded length: longer ones are skipped without being kept.

use std::io::{self, BufRead, ErrorKind, Read};

/// Result of [`read`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line and its delimiter (which is not in the buffer).
    Complete,
    /// The last line, which lacks its delimiter.
    Unterminated,
    /// A line over the limit; the buffer is empty.
    TooLong,
    /// End of the input.
    End,
}

/// Reads the first line, without its newline; `None` if it does not end within `limit` bytes, after
/// which no more is read: such a file has another format than expected.
pub(crate) fn read_first(
    input: &mut impl BufRead,
    limit: usize,
    line: &mut Vec<u8>,
) -> io::Result<Option<()>> {
    line.clear();
    let mut bounded = input.by_ref().take(limit as u64 + 1);
    bounded.read_until(b'\n', line)?;
    Ok(match line.last() {
        Some(b'\n') => {
            line.pop();
            Some(())
        }
        _ => None,
    })
}

/// Reads up to `delimiter` into `line`, replacing its content. At most `limit` bytes are kept.
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
        let mut input = io::BufReader::with_capacity(3, &b"12345\n1234567"[..]);
        assert_eq!(read_first(&mut input, 5, &mut line).unwrap(), Some(()));
        assert_eq!(line, b"12345");
        assert_eq!(read_first(&mut input, 5, &mut line).unwrap(), None);
        assert_eq!(read_first(&mut input, 5, &mut line).unwrap(), None);
        assert_eq!(seen, expected.map(|(kind, text)| (kind, text.to_owned())));
    }
}
