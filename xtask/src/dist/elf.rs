//! The little that has to be known of an ELF file.

use std::io::Read;
use std::path::Path;

use anyhow::{Result, bail};

/// Returns true if an ELF file of 64 bits has the segment that names the dynamic linker.
pub(super) fn needs_interpreter(path: &Path) -> Result<bool> {
    const PT_INTERP: u32 = 3;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?
        .take(1 << 16)
        .read_to_end(&mut bytes)?;
    let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let word = |at: usize| half(at) as u32 | (half(at + 2) as u32) << 16;
    if bytes.len() < 64 || bytes[..5] != *b"\x7fELF\x02" {
        bail!("{}: not an ELF file of 64 bits", path.display());
    }
    let (table, size, count) = (word(32) as usize, half(54) as usize, half(56) as usize);
    if table + size * count > bytes.len() {
        bail!("{}: its program headers lie far in", path.display());
    }
    Ok((0..count).any(|n| word(table + n * size) == PT_INTERP))
}

#[cfg(test)]
mod tests {
    use super::needs_interpreter;

    #[test]
    fn this_test_is_not_static() {
        let own = std::env::current_exe().unwrap();
        let crt_static = cfg!(target_feature = "crt-static");
        assert_eq!(needs_interpreter(&own).unwrap(), !crt_static);
        assert!(needs_interpreter(std::path::Path::new("/dev/null")).is_err());
    }
}
