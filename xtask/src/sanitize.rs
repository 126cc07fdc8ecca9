//! `cargo xtask sanitize`: the tests of the crates with unsafe code under AddressSanitizer, and of
//! those that work on several threads under ThreadSanitizer. Both need a nightly toolchain, and its
//! source of the standard library, which has to be watched like our own code.

use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use crate::args::Args;
use crate::sh;

struct Sanitizer {
    /// As in `-Zsanitizer=`.
    name: &'static str,
    packages: &'static [&'static str],
    /// For the process that is watched: the name of the variable and its options.
    options: (&'static str, &'static str),
    /// What the tests' harness gets: names of tests that are left out, with the reason beside them.
    left_out: &'static [(&'static str, &'static str)],
}

const SANITIZERS: &[Sanitizer] = &[
    Sanitizer {
        name: "address",
        packages: &["bc-digest", "bc-fs", "bc-pool", "bc-read", "bc-walk"],
        options: ("ASAN_OPTIONS", "detect_stack_use_after_return=1"),
        left_out: &[],
    },
    Sanitizer {
        name: "thread",
        packages: &["bc-pool", "bc-walk", "bc-read", "bc-hash"],
        options: ("TSAN_OPTIONS", "halt_on_error=1"),
        left_out: &[],
    },
];

const TARGET: &str = "x86_64-unknown-linux-gnu";

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let wanted = args.rest()?;
    let known = |name: &String| SANITIZERS.iter().any(|s| s.name == name);
    if let Some(unknown) = wanted.iter().find(|name| !known(name)) {
        bail!("sanitize: address or thread, not {unknown:?}");
    }
    let source = sh::sysroot(Some("nightly")).map(|root| root.join("lib/rustlib/src/rust"));
    if !source.is_some_and(|source| source.exists()) {
        println!(
            "sanitize: not run: `rustup toolchain install nightly --profile minimal --component \
             rust-src` brings what it needs"
        );
        return Ok(ExitCode::FAILURE);
    }
    let mut code = ExitCode::SUCCESS;
    for sanitizer in SANITIZERS {
        if !wanted.is_empty() && !wanted.iter().any(|name| name == sanitizer.name) {
            continue;
        }
        match watch(sanitizer) {
            Ok(()) => println!("sanitize: {}: nothing found", sanitizer.name),
            Err(error) => {
                println!("sanitize: {}: FAILED: {error:#}", sanitizer.name);
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

fn watch(sanitizer: &Sanitizer) -> Result<()> {
    println!(
        "sanitize: {} on {}",
        sanitizer.name,
        sanitizer.packages.join(" ")
    );
    let mut test = Command::new("rustup");
    test.current_dir(sh::root());
    test.args(["run", "nightly", "cargo", "test", "-Zbuild-std", "--quiet"]);
    test.args(["--no-fail-fast", "--lib", "--tests", "--target", TARGET]);
    for package in sanitizer.packages {
        test.args(["--package", package]);
    }
    test.arg("--");
    for (name, reason) in sanitizer.left_out {
        println!("sanitize: left out: {name}: {reason}");
        test.args(["--skip", name]);
    }
    let folder = sh::target().join("xtask/sanitize").join(sanitizer.name);
    test.env("CARGO_TARGET_DIR", folder);
    // The cargo that runs us says which toolchain its children are.
    test.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    test.env(
        "RUSTFLAGS",
        format!(
            "-Zsanitizer={} -Cdebuginfo=line-tables-only",
            sanitizer.name
        ),
    );
    test.env(sanitizer.options.0, sanitizer.options.1);
    sh::run(&mut test)
}
