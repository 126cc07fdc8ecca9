//! Paths as they are shown to people: control characters and bytes that are
//! not UTF-8 escaped, so that no name can steer a terminal.

use std::fmt;

/// Shows a path. What it prints does not have to lead back to the file; the
/// machine-readable formats have encodings of their own for that.
pub struct Shown<'a>(pub &'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for character in chunk.valid().chars() {
                if character.is_control() || character == '\\' {
                    write!(f, "{}", character.escape_default())?;
                } else {
                    write!(f, "{character}")?;
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Shown;

    #[test]
    fn hostile_names_are_escaped() {
        let shown = Shown(b"a\x1b[2J\n\xff\\\xc3\xa9").to_string();
        assert_eq!(shown, "a\\u{1b}[2J\\n\\xff\\\\é");
    }
}
