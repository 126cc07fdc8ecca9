//! A binary that needs no library of the system: glibc linked in, with the toolchain that is here.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::sh;

/// What `sha256sum` says of `abc`.
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// Builds it, and checks that it is static and hashes.
pub(super) fn build() -> Result<PathBuf> {
    let host = host()?;
    eprintln!("xtask: building bc (release, static, {host})");
    let mut build = sh::cargo();
    // Named even though it is the host: build scripts and macros are not to be static.
    build.args(["build", "--release", "--quiet", "--package", "bit-crafts"]);
    build.args(["--bin", "bc", "--target", &host]);
    build.env("RUSTFLAGS", "-C target-feature=+crt-static");
    sh::run(&mut build)?;
    let bc = sh::target().join(&host).join("release/bc");
    if needs_interpreter(&bc)? {
        bail!("{}: is linked dynamically", bc.display());
    }
    let file = sh::scratch("static")?.join("abc");
    std::fs::write(&file, "abc")?;
    let said = sh::stdout(Command::new(&bc).arg("hash").arg(&file))?;
    if !String::from_utf8_lossy(&said).starts_with(ABC) {
        bail!("{}: hashes wrongly", bc.display());
    }
    Ok(bc)
}

/// The target of this toolchain.
fn host() -> Result<String> {
    let text = sh::stdout(Command::new("rustc").arg("-vV"))?;
    let text = String::from_utf8(text)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc -vV names no host")
}

/// Whether an ELF file of 64 bits has the segment that names the dynamic linker.
fn needs_interpreter(path: &Path) -> Result<bool> {
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
