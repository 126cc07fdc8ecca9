//! The little that has to be known of an ELF file.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// An ELF program of 64 bits.
pub(super) struct Program {
    /// Machine that it is for, as Rust names it; empty for one that no release is for.
    pub(super) arch: &'static str,
    /// True without the segment that names the dynamic linker.
    pub(super) is_static: bool,
}

impl Program {
    pub(super) fn read(path: &Path) -> Result<Program> {
        const PT_INTERP: u32 = 3;
        let shown = path.display();
        let mut bytes = Vec::new();
        std::fs::File::open(path)
            .with_context(|| shown.to_string())?
            .take(1 << 16)
            .read_to_end(&mut bytes)?;
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| half(at) as u32 | (half(at + 2) as u32) << 16;
        if bytes.len() < 64 || bytes[..5] != *b"\x7fELF\x02" {
            bail!("{shown}: not an ELF file of 64 bits");
        }
        let (table, size, count) = (word(32) as usize, half(54) as usize, half(56) as usize);
        if table + size * count > bytes.len() {
            bail!("{shown}: its program headers lie far in");
        }
        let arch = match half(18) {
            62 => "x86_64",
            183 => "aarch64",
            _ => "",
        };
        let is_static = (0..count).all(|n| word(table + n * size) != PT_INTERP);
        Ok(Program { arch, is_static })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Program;

    #[test]
    fn this_test_is_a_program_for_this_machine() {
        let own = Program::read(&std::env::current_exe().unwrap()).unwrap();
        assert_eq!(own.arch, std::env::consts::ARCH);
        assert_eq!(own.is_static, cfg!(target_feature = "crt-static"));
        assert!(Program::read(Path::new("/dev/null")).is_err());
    }
}
