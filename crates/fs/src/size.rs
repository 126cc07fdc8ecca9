//! Sizes as people write them.

use std::fmt;
use std::str::FromStr;

/// A number of bytes, written as `4096`, `64K`, `1.5GiB` (binary) or `10MB` (decimal); units in
/// any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// A text that is no [`Size`], or one that no file can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeError {
    text: String,
    too_large: bool,
}

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.text;
        if self.too_large {
            write!(f, "'{text}' is larger than any file can be")
        } else {
            write!(
                f,
                "'{text}' is no size; write bytes or e.g. 64K, 10M, 2G (binary), 10MB (decimal)"
            )
        }
    }
}

impl std::error::Error for SizeError {}

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Size, SizeError> {
        let wrong = |too_large| SizeError {
            text: text.to_owned(),
            too_large,
        };
        let digits = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let factor = unit_bytes(unit.trim_start()).ok_or_else(|| wrong(false))?;
        if let Ok(whole) = number.parse::<u64>() {
            return whole
                .checked_mul(factor)
                .map(Size)
                .ok_or_else(|| wrong(true));
        }
        match number.parse::<f64>() {
            // Half a byte is a slip of the fingers.
            Ok(part) if factor > 1 && part.is_finite() && part * (factor as f64) < 9e18 => {
                Ok(Size((part * factor as f64) as u64))
            }
            Ok(part) if factor > 1 && part.is_finite() => Err(wrong(true)),
            _ => Err(wrong(false)),
        }
    }
}

/// Returns the bytes of a unit, in any case; without a unit, one.
fn unit_bytes(unit: &str) -> Option<u64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::Size;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("64K", 65536),
            ("64KiB", 65536),
            ("10kB", 10_000),
            ("1.5G", 3 << 29),
            ("1.5k", 1536),
            ("20g", 20 << 30),
            ("2T", 2 << 40),
            ("3 MB", 3_000_000),
        ] {
            assert_eq!(text.parse::<Size>(), Ok(Size(bytes)), "{text}");
        }
        for text in [
            "",
            "K",
            "-1",
            "1X",
            "1.5",
            "99999999999T",
            "99999999999.5T",
            "1e3",
            "nan",
            ".",
        ] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }
}
