//! Lines of `cksum` and `sum`: a decimal number, the file's length, its name. They cannot be
//! distinguished from other text, so nothing reads them.

use bc_digest::Plain;

/// Appends `number length`, as the tool prints it of standard input; the caller adds the name and
/// ends the line. `digest` has at most four bytes, the highest first, and `size` is in bytes.
///
/// ```
/// use bc_digest::Plain;
/// let mut out = Vec::new();
/// bc_manifest::sum::write(&mut out, Plain::Blocks1024, &[0, 97], 1025);
/// assert_eq!(out, b"00097     2");
/// ```
pub fn write(out: &mut Vec<u8>, plain: Plain, digest: &[u8], size: u64) {
    let number = digest
        .iter()
        .fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let text = match plain {
        Plain::Blocks1024 => format!("{number:05} {:5}", size.div_ceil(1024)),
        Plain::Blocks512 => format!("{number} {}", size.div_ceil(512)),
        _ => format!("{number} {size}"),
    };
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_cksum_and_sum_print_them() {
        for (plain, digest, size, expected) in [
            (
                Plain::Bytes,
                &[0xff, 0xff, 0xff, 0xff][..],
                0,
                "4294967295 0",
            ),
            (Plain::Bytes, &[0, 0, 0, 0], 12, "0 12"),
            (Plain::Blocks1024, &[0, 0], 0, "00000     0"),
            (Plain::Blocks1024, &[255, 255], 1 << 40, "65535 1073741824"),
            (Plain::Blocks512, &[0, 97], 1, "97 1"),
            (Plain::Blocks512, &[0, 0], 1024, "0 2"),
        ] {
            let mut out = Vec::new();
            write(&mut out, plain, digest, size);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
