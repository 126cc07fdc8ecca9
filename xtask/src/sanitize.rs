//! `cargo xtask sanitize`: the tests of the crates with unsafe code under AddressSanitizer, and of
//! those that work on several threads under ThreadSanitizer. Both need a nightly toolchain, and its
//! source of the standard library, which has to be watched like our own code.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::args::Args;
use crate::sh;

struct Sanitizer {
    /// Name as in `-Zsanitizer=`.
    name: &'static str,
    packages: &'static [&'static str],
    /// For the process that is watched: the name of the variable and its options.
    options: (&'static str, &'static str),
    /// The variable of the options that can name a file of suppressions.
    suppressed_by: &'static str,
    /// Lines of that file: findings that are meant, each with the reason beside it.
    suppressed: &'static [(&'static str, &'static str)],
}

const SANITIZERS: &[Sanitizer] = &[
    Sanitizer {
        name: "address",
        packages: &["bc-digest", "bc-edit", "bc-fs", "bc-pool", "bc-read"],
        options: ("ASAN_OPTIONS", "detect_stack_use_after_return=1"),
        suppressed_by: "LSAN_OPTIONS",
        suppressed: &[(
            "leak:bc_read::tests::refused::a_ring_that_fails_later_is_given_up",
            "a ring that broke leaves the buffers of its reads behind: the kernel may write to them yet",
        )],
    },
    Sanitizer {
        name: "thread",
        packages: &["bc-pool", "bc-walk", "bc-read", "bc-hash"],
        options: ("TSAN_OPTIONS", "halt_on_error=1"),
        suppressed_by: "TSAN_OPTIONS",
        suppressed: &[],
    },
];

const TARGET: &str = "x86_64-unknown-linux-gnu";

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let chosen = chosen(&args.rest()?)?;
    let source = sh::sysroot(Some("nightly")).map(|root| root.join("lib/rustlib/src/rust"));
    if !source.is_some_and(|source| source.exists()) {
        println!(
            "sanitize: not run: `rustup toolchain install nightly --profile minimal --component \
             rust-src` brings what it needs"
        );
        return Ok(ExitCode::FAILURE);
    }
    let mut code = ExitCode::SUCCESS;
    for sanitizer in chosen {
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

/// Returns the sanitizers of these names, in their own order; all of them where none is named.
fn chosen(wanted: &[String]) -> Result<Vec<&'static Sanitizer>> {
    let known = |name: &String| SANITIZERS.iter().any(|s| s.name == name);
    if let Some(unknown) = wanted.iter().find(|name| !known(name)) {
        bail!("sanitize: address or thread, not {unknown:?}");
    }
    let is_wanted = |s: &&Sanitizer| wanted.is_empty() || wanted.iter().any(|name| name == s.name);
    Ok(SANITIZERS.iter().filter(is_wanted).collect())
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
    let folder = sh::target().join("xtask/sanitize").join(sanitizer.name);
    test.env("CARGO_TARGET_DIR", &folder);
    // The cargo that runs us says which toolchain its children are.
    test.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    // Lines of our own crates are in the reports, as in any test: those of all others and of the
    // standard library would only take their time.
    test.env("RUSTFLAGS", format!("-Zsanitizer={}", sanitizer.name));
    test.env(sanitizer.options.0, sanitizer.options.1);
    if !sanitizer.suppressed.is_empty() {
        let mut lines = String::new();
        for (line, reason) in sanitizer.suppressed {
            println!("sanitize: suppressed: {line}: {reason}");
            lines.push_str(&format!("{line}\n"));
        }
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let file = folder.join("suppressions");
        std::fs::write(&file, lines).with_context(|| file.display().to_string())?;
        let named = format!("suppressions={}:print_suppressions=0", file.display());
        let options = match sanitizer.options {
            (variable, options) if variable == sanitizer.suppressed_by => {
                format!("{options}:{named}")
            }
            _ => named,
        };
        test.env(sanitizer.suppressed_by, options);
    }
    sh::run(&mut test)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(line: &str) -> Result<Vec<&'static str>> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let rest = Args::from_words(&words).rest()?;
        let chosen = chosen(&rest)?;
        Ok(chosen.into_iter().map(|sanitizer| sanitizer.name).collect())
    }

    #[test]
    fn one_both_or_all_are_chosen_and_nothing_else() {
        assert_eq!(names("").unwrap(), ["address", "thread"]);
        assert_eq!(names("thread").unwrap(), ["thread"]);
        assert_eq!(names("address").unwrap(), ["address"]);
        assert_eq!(
            names("thread address thread").unwrap(),
            ["address", "thread"]
        );
        let unknown = names("address memory").unwrap_err().to_string();
        assert_eq!(unknown, "sanitize: address or thread, not \"memory\"");
        assert!(names("--thread").is_err());
        assert!(names("Address").is_err());
    }
}
