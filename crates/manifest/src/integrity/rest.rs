//! Unread rest of a line, taken off piece by piece where it is written in the one way that the
//! writer has.

use bc_digest::Digest;

use super::entry::COPY_STAMP_LEN;
use super::path::check_path;
use super::swar;

/// Unread rest of the line and the text behind it. Pieces that are taken from it contain no
/// newline, so that nothing is taken from beyond the line.
pub(super) struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    /// Returns the text behind the beginning of an entry's line: its path and the rest.
    pub(super) fn of_entry(text: &'a [u8]) -> Option<Rest<'a>> {
        text.strip_prefix(b"{\"type\":\"entry\",\"path\":")
            .map(Rest)
    }

    pub(super) fn text(&self) -> &'a [u8] {
        self.0
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn begins(&self, text: &[u8]) -> bool {
        self.0.starts_with(text)
    }

    #[inline]
    pub(super) fn literal(&mut self, text: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    /// Takes the text between quotation marks, whatever it is.
    fn quoted(&mut self) -> Option<&'a [u8]> {
        let body = self.0.strip_prefix(b"\"")?;
        let end = memchr::memchr(b'"', body)?;
        self.0 = &body[end + 1..];
        Some(&body[..end])
    }

    /// Takes a string without escapes.
    pub(super) fn string(&mut self) -> Option<&'a str> {
        let text = self.quoted()?;
        // Without an early exit, which makes it a few vector instructions.
        let special = |&byte: &u8| (byte < 0x20) | (byte == b'\\');
        if text.iter().fold(false, |any, byte| any | special(byte)) {
            return None;
        }
        std::str::from_utf8(text).ok()
    }

    /// Takes a string without escapes that may be the path of an entry.
    pub(super) fn path(&mut self) -> Option<&'a [u8]> {
        let before = self.0;
        let path = self.quoted()?;
        if swar::is_plain_path(path) {
            return Some(path);
        }
        self.0 = before;
        let path = self.string()?.as_bytes();
        check_path(path).ok()?;
        Some(path)
    }

    /// Takes the text in the place of a digest's digits, as many as it needs if that is known.
    pub(super) fn digits_of_digest(&mut self, len: Option<usize>) -> Option<&'a [u8]> {
        let body = self.0.strip_prefix(b"\"")?;
        let count = match len {
            Some(len) => len * 2,
            None => memchr::memchr(b'"', &body[..body.len().min(2 * Digest::MAX_LEN + 1)])?,
        };
        let digits = body.get(..count)?;
        self.0 = body[count..].strip_prefix(b"\"")?;
        Some(digits)
    }

    /// Takes the digits of a [copy stamp](super::Entry::copy_stamp), and returns its bytes.
    pub(super) fn copy_stamp(&mut self) -> Option<[u8; COPY_STAMP_LEN]> {
        let digits = self.digits_of_digest(Some(COPY_STAMP_LEN))?;
        Digest::from_lower_hex(digits)?.as_bytes().try_into().ok()
    }

    /// Takes fields written like this, with others behind them: the last digit may be followed by
    /// more.
    pub(super) fn fields(&mut self, text: &[u8]) -> Option<()> {
        let rest = self.0.strip_prefix(text)?;
        if rest.first() != Some(&b',') {
            return None;
        }
        self.0 = rest;
        Some(())
    }

    /// Takes a number as in JSON: no sign, no leading zeros.
    pub(super) fn number(&mut self, key: &[u8]) -> Option<u64> {
        self.literal(key)?;
        self.digits()
    }

    /// Takes `key` and the number behind it, if it is `value`; more digits may follow.
    #[inline]
    pub(super) fn number_is(&mut self, key: &[u8], value: u64) -> Option<()> {
        let rest = self.0.strip_prefix(key)?;
        self.0 = &rest[swar::is_number(rest, value)?..];
        Some(())
    }

    #[inline]
    pub(super) fn time_is(&mut self, key: &[u8], value: i64) -> Option<()> {
        match u64::try_from(value) {
            Ok(value) => self.number_is(key, value),
            Err(_) => (self.signed(key)? == value).then_some(()),
        }
    }

    pub(super) fn small(&mut self, key: &[u8]) -> Option<u32> {
        self.number(key)?.try_into().ok()
    }

    pub(super) fn signed(&mut self, key: &[u8]) -> Option<i64> {
        self.literal(key)?;
        if self.literal(b"-").is_some() {
            // `-0` is a float to the general parser.
            let value = self.digits().filter(|&value| value > 0)?;
            return 0_i64.checked_sub_unsigned(value);
        }
        self.digits()?.try_into().ok()
    }

    fn digits(&mut self) -> Option<u64> {
        let (value, count) = swar::number(self.0)?;
        if count > 1 && self.0[0] == b'0' {
            return None;
        }
        self.0 = &self.0[count..];
        Some(value)
    }
}
