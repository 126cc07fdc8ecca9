//! The trailer's SHA-256 against the bytes before it, without taking the lines apart.

use std::io::{self, BufRead};

use bc_digest::{Algorithm, Digest, Hasher};
use serde_json::{Map, Value};

use super::header::Trailer;
use crate::error::{Error, ErrorKind};
use crate::reader::MAX_LINE;

/// Reads a manifest to its end as [`check_seal`] does, and returns the keys of its trailer that the
/// format itself does not know.
///
/// # Errors
/// Errors of [`check_seal`].
pub fn read_seal(input: impl BufRead) -> Result<Map<String, Value>, Error> {
    let line = checked_trailer(input)?;
    Ok(Trailer::extra(&line))
}

/// Reads a manifest to its end and compares the SHA-256 in its trailer with the lines before it:
/// this finds cut off and changed lines. The lines themselves are not looked at.
///
/// # Errors
/// If there is no complete trailer at the end, it does not fit, or reading fails.
pub fn check_seal(input: impl BufRead) -> Result<(), Error> {
    checked_trailer(input).map(drop)
}

/// Returns the trailer's line, verified.
fn checked_trailer(mut input: impl BufRead) -> Result<Vec<u8>, Error> {
    let mut hasher = Hasher::new(Algorithm::Sha256);
    // The last line so far: it may be the trailer, which is not hashed.
    let mut held: Vec<u8> = Vec::new();
    loop {
        let chunk = match input.fill_buf() {
            Ok([]) => break,
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Error::io(0, error)),
        };
        let len = chunk.len();
        match chunk[..len - 1].iter().rposition(|&byte| byte == b'\n') {
            Some(newline) => {
                hasher.update(&held);
                hasher.update(&chunk[..=newline]);
                held.clear();
                held.extend_from_slice(&chunk[newline + 1..]);
            }
            None => {
                if held.last() == Some(&b'\n') || held.len() > MAX_LINE {
                    hasher.update(&held);
                    held.clear();
                }
                held.extend_from_slice(chunk);
            }
        }
        input.consume(len);
    }
    let line = held.strip_suffix(b"\n");
    let Some(line) = line.filter(|line| line.starts_with(Trailer::START)) else {
        let why = "truncated: no complete trailer";
        return Err(Error::new(ErrorKind::Truncated, 0, why));
    };
    // Keys of a later version may follow, so it is looked for by name.
    let sha256 = Trailer::parse(line).map(|trailer| Digest::new(&trailer.sha256));
    if sha256 != Some(hasher.finalize()) {
        let why = "altered: the SHA-256 in the trailer does not match";
        return Err(Error::new(ErrorKind::Altered, 0, why));
    }
    held.pop();
    Ok(held)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::integrity::{Header, Writer};

    #[test]
    fn only_a_whole_one_passes_however_it_comes() {
        let writer = Writer::new(Vec::new(), &Header::new("sha256", "0")).unwrap();
        let (sealed, _) = writer.finish().unwrap();
        let check = |bytes: &[u8]| {
            let found = check_seal(bytes).map_err(|error| error.kind());
            for capacity in [1, 7, 64] {
                let input = io::BufReader::with_capacity(capacity, bytes);
                assert_eq!(check_seal(input).map_err(|error| error.kind()), found);
            }
            found
        };
        assert_eq!(check(&sealed), Ok(()));
        for len in 0..sealed.len() {
            assert_eq!(check(&sealed[..len]), Err(ErrorKind::Truncated), "{len}");
        }
        let trailer = sealed[..sealed.len() - 1].iter().rposition(|b| *b == b'\n');
        for at in 0..=trailer.unwrap() {
            let mut altered = sealed.clone();
            altered[at] ^= 1;
            // An altered byte that becomes a newline makes two lines of one.
            assert!(check(&altered).is_err(), "{at}");
        }
        let more = [&sealed[..], b"x\n"].concat();
        assert_eq!(check(&more), Err(ErrorKind::Truncated));
    }
}
