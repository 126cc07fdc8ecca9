//! Build script of the binary: links the unwinder statically where that can be done.
//!
//! Rust's standard library asks for `libgcc_s.so`, only to unwind after a panic. Loading it took a
//! tenth of the time that hashing one small file takes, half of that for what its constructor does:
//! asking the CPU for its features, which a virtual machine answers slowly. A linker script of that
//! name, found first, leads to the same code in `libgcc_eh.a`.

#![forbid(unsafe_code)]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=src/build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|v| v == value);
    let features = env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    let is_static = features.split(',').any(|feature| feature == "crt-static");
    // Elsewhere, and when building for another machine, the default stays.
    if is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && env::var("HOST") == env::var("TARGET")
        && !is_static
        && let Some(archive) = archive()
        && let Some(folder) = env::var_os("OUT_DIR").map(PathBuf::from)
    {
        let script = format!("GROUP ( \"{}\" -lgcc )\n", archive.display());
        if fs::write(folder.join("libgcc_s.so"), script).is_ok() {
            println!("cargo::rustc-link-search=native={}", folder.display());
        }
    }
}

/// The unwinder as the C compiler would link it, if it has it.
fn archive() -> Option<PathBuf> {
    let said = Command::new("cc")
        .arg("-print-file-name=libgcc_eh.a")
        .output()
        .ok()?;
    let path = Path::new(std::str::from_utf8(&said.stdout).ok()?.trim()).to_path_buf();
    // A name that is not found comes back as it is.
    (path.is_absolute() && path.exists()).then_some(path)
}
