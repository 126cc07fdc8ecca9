//! Programs for aarch64 on another machine: built with Debian's cross compiler, run under
//! qemu-aarch64.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::sh;

pub(crate) const TARGET: &str = "aarch64-unknown-linux-gnu";
pub(crate) const COMPILER: &str = "aarch64-linux-gnu-gcc";

/// Returns a cargo that links for that machine with its compiler.
pub(crate) fn cargo() -> Command {
    let mut cargo = sh::cargo();
    cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", COMPILER);
    cargo
}

/// Returns the emulator. Fails, and names it, if something is missing that building or running
/// needs.
pub(crate) fn emulator() -> Result<PathBuf> {
    let qemu = sh::find_tool(&["qemu-aarch64", "qemu-aarch64-static"]);
    let qemu = qemu.context("qemu-aarch64 is not installed")?;
    ensure!(sh::has(COMPILER), "{COMPILER} is not installed");
    let library = sh::sysroot(None).map(|root| root.join("lib/rustlib").join(TARGET));
    ensure!(
        library.is_some_and(|library| library.is_dir()),
        "Rust's library for {TARGET} is not installed: rustup target add {TARGET}"
    );
    Ok(qemu)
}
