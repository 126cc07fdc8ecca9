//! Parsing of eight bytes at a time in one register, for the numbers and paths in every line of a
//! manifest. In safe Rust, and the same on every processor.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

const fn all(byte: u8) -> u64 {
    ONES * byte as u64
}

/// Returns a number other than zero if any byte of `word` is zero.
const fn any_zero(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGH
}

/// Powers of ten by their exponent.
const TENS: [u64; 9] = [
    1,
    10,
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
];

/// Parses the number at the beginning of `text`; returns it and the number of its digits; `None` if
/// there are none, or for a number beyond 64 bits.
pub(super) fn number(text: &[u8]) -> Option<(u64, usize)> {
    if let Some(eight) = text.first_chunk() {
        // Most are short.
        let (value, count) = up_to_eight_digits(*eight);
        return match count {
            0 => None,
            1..8 => Some((value, count)),
            _ => time(value, text).or_else(|| long_number(text)),
        };
    }
    long_number(text)
}

/// Parses the rest of a number that begins with eight digits, which are `first`, if it has 19 at
/// most, as times have, and so cannot be too large.
fn time(first: u64, text: &[u8]) -> Option<(u64, usize)> {
    let (eight, rest) = text.get(8..)?.split_first_chunk()?;
    let (second, count) = up_to_eight_digits(*eight);
    let value = first * TENS[count] + second;
    if count < 8 {
        return Some((value, 8 + count));
    }
    let (third, count @ ..4) = up_to_eight_digits(*rest.first_chunk()?) else {
        return None;
    };
    Some((value * TENS[count] + third, 16 + count))
}

fn long_number(text: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0_u64;
    let mut count = 0;
    while let Some(eight) = text[count..].first_chunk() {
        let (part, digits) = up_to_eight_digits(*eight);
        if digits > 0 {
            value = value.checked_mul(TENS[digits])?.checked_add(part)?;
            count += digits;
        }
        if digits < 8 {
            return (count > 0).then_some((value, count));
        }
    }
    // The end of the text.
    let rest = text[count..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    for byte in rest {
        value = value.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
        count += 1;
    }
    (count > 0).then_some((value, count))
}

/// Returns the length of `value` if `text` begins with its digits, whatever follows them. Their end
/// is known from the value alone, so that a processor need not wait for it.
#[inline]
pub(super) fn is_number(text: &[u8], value: u64) -> Option<usize> {
    let len = value.checked_ilog10().unwrap_or(0) as usize + 1;
    let (first, rest) = text.split_first_chunk()?;
    if len <= 8 {
        return (digits(*first, len)? == value).then_some(len);
    }
    let (second, rest) = rest.split_first_chunk()?;
    let first = digits(*first, 8)?;
    if len <= 16 {
        let found = first * TENS[len - 8] + digits(*second, len - 8)?;
        return (found == value).then_some(len);
    }
    let third = digits(*rest.first_chunk()?, len - 16)?;
    // The first of twenty digits may be any.
    let upper = (first * TENS[8] + digits(*second, 8)?).checked_mul(TENS[len - 16])?;
    (upper.checked_add(third)? == value).then_some(len)
}

/// Returns the number that the first `len` bytes, of which there are 1 to 8, encode, if all of them
/// are digits.
#[inline]
fn digits(text: [u8; 8], len: usize) -> Option<u64> {
    // Zeros go before them.
    let word = (u64::from_le_bytes(text) ^ all(b'0')) << (64 - 8 * len);
    let others = (word.wrapping_add(all(0x76)) | word) & HIGH;
    (others == 0).then(|| joined(word))
}

/// Returns eight digits, each a byte, the first lowest, as a number.
#[inline]
fn joined(word: u64) -> u64 {
    // Neighbours into pairs, pairs into fours, fours into one.
    let word = (word * 10 + (word >> 8)) & 0x00ff_00ff_00ff_00ff;
    let word = (word * 100 + (word >> 16)) & 0x0000_ffff_0000_ffff;
    (word * 10_000 + (word >> 32)) & 0xffff_ffff
}

/// Returns the number that the digits at the beginning encode, and how many of the eight they are.
#[inline]
fn up_to_eight_digits(text: [u8; 8]) -> (u64, usize) {
    let word = u64::from_le_bytes(text) ^ all(b'0');
    // A digit is at most 9 now and has no high bit with 0x76 added. Other bytes may carry into the
    // bytes behind them, which do not count any more.
    let others = (word.wrapping_add(all(0x76)) | word) & HIGH;
    let digits = others.trailing_zeros() as usize / 8;
    if digits == 0 {
        return (0, 0);
    }
    // The first digit is lowest: zeros go before it.
    (joined(word << (64 - 8 * digits)), digits)
}

/// True if this is a path that [`check_path`](super::entry::check_path) takes, of nothing but ASCII
/// without control characters and backslashes. Most are. `false` proves nothing.
pub(super) fn is_plain_path(path: &[u8]) -> bool {
    /// Bytes of a step, and the one behind them.
    const STEP: usize = 9;
    let (Some(&first), Some(&last)) = (path.first(), path.last()) else {
        return false;
    };
    if matches!(first, b'/' | b'.') || matches!(last, b'/' | b'\\' | ..0x20 | 0x80..) {
        return false;
    }
    let mut short = [b'a'; STEP];
    let path = match path.len() {
        len @ ..STEP => {
            // A byte that is odd before `a` is odd at the end.
            short[..len].copy_from_slice(path);
            &short[..]
        }
        _ => path,
    };
    let end = path.len() - STEP;
    let mut odd = oddness(&path[end..]);
    for at in (0..end).step_by(8) {
        odd |= oddness(&path[at..]);
    }
    odd == 0
}

/// True if this is a name of nothing but ASCII that appears in a line without escapes: without
/// control characters, quotation marks, backslashes and slashes, and not `.` or `..`. Most are.
/// `false` proves nothing.
pub(super) fn is_plain_name(name: &[u8]) -> bool {
    if matches!(name, b"" | b"." | b"..") {
        return false;
    }
    let odd = |word: u64| {
        let control = word.wrapping_sub(all(0x20)) & !word & HIGH;
        let others = any_zero(word ^ all(b'"')) | any_zero(word ^ all(b'\\'));
        (word & HIGH) | control | others | any_zero(word ^ all(b'/'))
    };
    let mut eights = name.chunks_exact(8);
    let mut any = 0;
    for eight in &mut eights {
        if let Ok(eight) = eight.try_into() {
            any |= odd(u64::from_le_bytes(eight));
        }
    }
    let mut rest = [b'a'; 8];
    let left = eights.remainder();
    rest[..left.len()].copy_from_slice(left);
    (any | odd(u64::from_le_bytes(rest))) == 0
}

/// Returns a number other than zero if one of the first eight bytes of `text` needs a closer look:
/// no printable ASCII, a backslash, or a slash before a slash or a dot. `text` has nine bytes.
fn oddness(text: &[u8]) -> u64 {
    let word = |at: usize| {
        text[at..]
            .first_chunk()
            .map(|eight| u64::from_le_bytes(*eight))
    };
    let (Some(word), Some(next)) = (word(0), word(1)) else {
        return HIGH;
    };
    let control = word.wrapping_sub(all(0x20)) & !word & HIGH;
    let backslash = any_zero(word ^ all(b'\\'));
    // A slash with its lowest bit or a dot without it.
    let pair = (word ^ all(b'/')) | ((next | ONES) ^ all(b'/'));
    (word & HIGH) | control | backslash | any_zero(pair)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::integrity::check_path;
    use proptest::prelude::*;

    /// Parses by the standard library.
    fn slowly(text: &[u8]) -> Option<(u64, usize)> {
        let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let digits = std::str::from_utf8(&text[..count]).unwrap();
        digits.parse().ok().map(|value| (value, count))
    }

    #[test]
    fn numbers_of_every_length_before_every_byte() {
        for digits in [
            "",
            "0",
            "00000000000000000000000000",
            "12345678901234567890123",
        ] {
            for len in 0..=digits.len() {
                for behind in 0..=255_u8 {
                    for padding in ["", "1", "x12", "x234567", "x2345678"] {
                        let text = [&digits.as_bytes()[..len], &[behind], padding.as_bytes()];
                        let text = text.concat();
                        assert_eq!(number(&text), slowly(&text), "{}", text.escape_ascii());
                    }
                }
                let text = &digits.as_bytes()[..len];
                assert_eq!(number(text), slowly(text));
            }
        }
        for edge in [u64::MAX / 10, u64::MAX - 1, u64::MAX] {
            for text in [
                edge.to_string(),
                format!("{edge},"),
                format!("{}1,\"ino", edge),
            ] {
                assert_eq!(number(text.as_bytes()), slowly(text.as_bytes()), "{text}");
            }
        }
        assert_eq!(number(b"18446744073709551616,"), None);
    }

    #[test]
    fn every_byte_at_every_place() {
        for len in 0..40 {
            assert_eq!(is_plain_path(&vec![b'x'; len]), len > 0);
            for at in 0..len {
                for byte in 0..=255_u8 {
                    let mut path = vec![b'x'; len];
                    path[at] = byte;
                    let usual = (0x20..0x80).contains(&byte) && byte != b'\\';
                    let inner = byte == b'/' && (at == 0 || at == len - 1);
                    let hidden = byte == b'.' && at == 0;
                    let expected = usual && !inner && !hidden;
                    assert_eq!(is_plain_path(&path), expected, "{}", path.escape_ascii());
                }
            }
        }
    }

    #[test]
    fn every_byte_of_a_name_at_every_place() {
        for len in 0..20 {
            assert_eq!(is_plain_name(&vec![b'x'; len]), len > 0);
            for at in 0..len {
                for byte in 0..=255_u8 {
                    let mut name = vec![b'x'; len];
                    name[at] = byte;
                    let usual = (0x20..0x80).contains(&byte) && !b"\"\\/".contains(&byte);
                    let expected = usual && name != b".";
                    assert_eq!(is_plain_name(&name), expected, "{}", name.escape_ascii());
                }
            }
        }
        assert!(!is_plain_name(b"..") && is_plain_name(b"...") && is_plain_name(b".a"));
    }

    #[test]
    fn every_pair_at_every_place() {
        for len in 2..30 {
            for at in 0..len - 1 {
                for pair in [*b"//", *b"/.", *b"./", *b"..", *b"/a", *b".a"] {
                    let mut path = vec![b'x'; len];
                    path[at..at + 2].copy_from_slice(&pair);
                    let begins = at == 0 && matches!(pair[0], b'/' | b'.');
                    let ends = at == len - 2 && pair[1] == b'/';
                    let odd = pair[0] == b'/' && pair[1] != b'a';
                    let expected = !(begins || ends || odd);
                    assert_eq!(is_plain_path(&path), expected, "{}", path.escape_ascii());
                }
            }
        }
    }

    proptest! {
        #[test]
        fn numbers(text in "[0-9]{0,24}[^0-9]{0,3}[0-9,]{0,9}") {
            prop_assert_eq!(number(text.as_bytes()), slowly(text.as_bytes()));
        }

        /// Checks that a number matches only its own digits.
        #[test]
        fn numbers_that_are_known(digits in "[1-9][0-9]{0,19}|0", other: u64, end in "[^0-9]{24}") {
            let text = [digits.as_bytes(), end.as_bytes()].concat();
            if let Ok(value) = digits.parse::<u64>() {
                prop_assert_eq!(is_number(&text, value), Some(digits.len()));
                let others = [value + u64::from(value < u64::MAX), value / 10, other >> 40, other];
                for other in others.into_iter().filter(|other| *other != value) {
                    // The first digits may be another number.
                    let begins = digits.starts_with(&other.to_string());
                    let len = begins.then(|| other.to_string().len());
                    prop_assert_eq!(is_number(&text, other), len);
                }
            }
            for at in 0..digits.len() {
                let mut odd = text.clone();
                odd[at] = b'/';
                prop_assert_eq!(is_number(&odd, digits.parse().unwrap_or(other | 1 << 63)), None);
            }
        }

        /// Checks that it never takes a path that the thorough check refuses.
        #[test]
        fn paths(path in "[a/.\\\\\n\u{7f}é]{0,40}") {
            let plain = path.bytes().all(|byte| (0x20..0x80).contains(&byte) && byte != b'\\');
            if is_plain_path(path.as_bytes()) {
                prop_assert!(plain && check_path(path.as_bytes()).is_ok());
            } else {
                let hidden = path.starts_with('.') || path.contains("/.");
                prop_assert!(!plain || hidden || check_path(path.as_bytes()).is_err());
            }
        }
    }
}
