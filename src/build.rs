//! Build script of the binary: links the C library and the unwinder statically where that can be
//! done, into a program that is placed at random addresses all the same (a static PIE).
//!
//! Hashing one small file takes a millisecond, and half of that is the start of the process. Finding,
//! mapping and relocating `libc.so` was 0.15 ms of it, 33 of 158 page faults (AMD EPYC under KVM);
//! loading `libgcc_s.so`, which Rust's standard library asks for only to unwind after a panic, was a
//! tenth, half of that for asking the CPU for its features, which a virtual machine answers slowly.
//! Nothing here needs what only the shared library can do: no names of users or hosts are looked up,
//! no modules loaded.
//!
//! Linker scripts of the libraries' names, found first, lead to the archives of the same code.
//! `BC_LIBC=shared` in the environment of the build leaves the C library shared, as packagers may
//! want it, and those who replace its functions (`LD_PRELOAD`).

#![forbid(unsafe_code)]

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Libraries that Rust's standard library links to on glibc.
const LIBRARIES: &[&str] = &["c", "m", "rt", "pthread", "dl", "util"];

fn main() {
    println!("cargo::rerun-if-changed=src/build.rs");
    println!("cargo::rerun-if-env-changed=BC_LIBC");
    // How a program is linked that only uses the library is not ours to say.
    if env::var_os("CARGO_FEATURE_CLI").is_none() {
        return;
    }
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|v| v == value);
    let features = env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    let is_static = features.split(',').any(|feature| feature == "crt-static");
    // Elsewhere the default stays.
    if is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && !is_static
        && let Some(compiler) = compiler()
        && let Some(unwinder) = file(&compiler, "libgcc_eh.a")
        && let Some(folder) = env::var_os("OUT_DIR").map(PathBuf::from)
    {
        let script = format!("GROUP ( \"{}\" -lgcc )\n", unwinder.display());
        if fs::write(folder.join("libgcc_s.so"), script).is_ok() {
            println!("cargo::rustc-link-search=native={}", folder.display());
            if !is("BC_LIBC", "shared") {
                link_libc(&compiler, &folder.join("libc"), &unwinder);
            }
        }
    }
}

/// Returns the C compiler that links for the target: the linker that Cargo was given, without which
/// another machine's is not known.
fn compiler() -> Option<OsString> {
    let is_native = env::var("HOST") == env::var("TARGET");
    env::var_os("RUSTC_LINKER").or_else(|| is_native.then(|| "cc".into()))
}

/// Links the binary, and nothing else of the package, with the C library's archives; leaves
/// everything as it is where one of them or the start of a static PIE is missing.
fn link_libc(compiler: &OsStr, folder: &Path, unwinder: &Path) {
    let archives: Option<Vec<PathBuf>> = LIBRARIES
        .iter()
        .map(|library| file(compiler, &format!("lib{library}.a")))
        .collect();
    let (Some(archives), Some(_)) = (archives, file(compiler, "rcrt1.o")) else {
        return;
    };
    let write = |(library, archive): (&&str, &PathBuf)| {
        let (archive, unwinder) = (archive.display(), unwinder.display());
        let script = format!("GROUP ( \"{archive}\" \"{unwinder}\" -lgcc )\n");
        fs::write(folder.join(format!("lib{library}.so")), script)
    };
    let written = fs::create_dir_all(folder)
        .and_then(|()| LIBRARIES.iter().zip(&archives).try_for_each(write));
    if written.is_ok() {
        println!("cargo::rustc-link-arg-bins=-static-pie");
        println!("cargo::rustc-link-arg-bins=-L{}", folder.display());
    }
}

/// Returns a file of the C compiler's and the C library's, if it is there.
fn file(compiler: &OsStr, name: &str) -> Option<PathBuf> {
    let said = Command::new(compiler)
        .arg(format!("-print-file-name={name}"))
        .output()
        .ok()?;
    let path = Path::new(std::str::from_utf8(&said.stdout).ok()?.trim()).to_path_buf();
    // A name that is not found comes back as it is.
    (path.is_absolute() && path.exists()).then_some(path)
}
