//! A binary that needs no library of the system: glibc linked in, with the toolchain that is here.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::elf::needs_interpreter;
use crate::sh;

/// SHA-256 of `abc`, as `sha256sum` prints it.
pub(super) const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

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

/// Returns the target of this toolchain.
fn host() -> Result<String> {
    let text = sh::stdout(Command::new("rustc").arg("-vV"))?;
    let text = String::from_utf8(text)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc -vV names no host")
}
