//! `cargo xtask isa`: bc-digest's tests and `bc hash` on CPUs that this machine is not. Under
//! qemu-x86_64: one with everything the emulator knows (SHA-NI among it), one with AVX2 and no
//! SHA-NI, one without AVX, and the least an x86-64 may be. Under qemu-aarch64: see [`arm`].

mod arm;
mod cost;
mod messages;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Result, bail, ensure};
use bc_digest::Algorithm;

use crate::args::Args;
use crate::sh;

/// The first version that emulates SHA-NI; AVX2 came with 7.2.
const OLDEST: (u32, u32) = (8, 2);

const CPUS: &[(&str, &str)] = &[
    ("max", "SHA-NI and AVX2"),
    ("Haswell", "AVX2 without SHA-NI"),
    ("Nehalem", "no AVX"),
    ("qemu64", "the least an x86-64 may be"),
];

/// The CPU models on which the unit tests run as well; the others only hash.
const TESTED: &[&str] = &["max", "Nehalem"];

pub(crate) fn run(mut args: Args) -> Result<ExitCode> {
    let bc = args.option("--bc")?.map(PathBuf::from);
    let quick = args.flag("--quick");
    let only = args.word();
    args.done()?;
    let is_asked = |arch: &str| only.as_ref().is_none_or(|only| only == arch);
    if !is_asked("x86_64") && !is_asked("aarch64") {
        bail!("isa knows x86_64 and aarch64");
    }
    if is_asked("x86_64") {
        x86_64(bc)?;
    }
    if is_asked("aarch64") {
        arm::run(quick)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn x86_64(bc: Option<PathBuf>) -> Result<()> {
    let Some(qemu) = sh::find_tool(&["qemu-x86_64", "qemu-x86_64-static"]) else {
        println!("isa: not run: qemu-x86_64 is not installed");
        return Ok(());
    };
    let found = version(&qemu);
    if found < OLDEST {
        println!(
            "isa: not run: qemu-x86_64 is {}.{}, SHA-NI needs {}.{}",
            found.0, found.1, OLDEST.0, OLDEST.1
        );
        return Ok(());
    }
    for (cpu, what) in CPUS.iter().filter(|(cpu, _)| TESTED.contains(cpu)) {
        println!("isa: bc-digest's tests on {cpu} ({what})");
        let mut test = sh::cargo();
        // Doc tests run on the host with any runner, so they are left to cargo test.
        test.args([
            "test",
            "--quiet",
            "--package",
            "bc-digest",
            "--lib",
            "--tests",
        ]);
        let runner = format!("{} -cpu {cpu}", qemu.display());
        sh::run(test.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", runner))?;
    }
    let bc = match bc {
        Some(bc) => bc,
        None => sh::release_binary("bit-crafts", "bc")?,
    };
    hashes(&qemu, &bc)
}

fn version(qemu: &Path) -> (u32, u32) {
    let text = sh::version(qemu, &["--version"]);
    let number = text
        .split_whitespace()
        .find(|w| w.starts_with(|c: char| c.is_ascii_digit()));
    let mut parts = number
        .unwrap_or("")
        .split('.')
        .map(|p| p.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

/// Checks that the release binary prints the same digests on every CPU, and dies on none.
fn hashes(qemu: &Path, bc: &Path) -> Result<()> {
    let tree = sh::scratch("isa")?;
    let synth = bc_testkit::Synth {
        files: 100,
        bytes: 2 << 20,
        ..bc_testkit::Synth::default()
    };
    synth.build(&tree.join("tree"))?;
    let mut differ = 0;
    for algorithm in Algorithm::ALL {
        let words = [
            "hash".to_owned(),
            format!("--type={algorithm}"),
            "--threads=mono".to_owned(),
        ];
        let run = |command: &mut Command| {
            let cache = tree.join("cache");
            sh::stdout(
                command
                    .env("XDG_CACHE_HOME", cache)
                    .args(&words)
                    .arg(tree.join("tree")),
            )
        };
        let native = run(&mut Command::new(bc))?;
        let lines = native.iter().filter(|&&b| b == b'\n').count();
        ensure!(
            lines == synth.files,
            "{algorithm}: {lines} lines for {} files",
            synth.files
        );
        for (cpu, what) in CPUS {
            match run(Command::new(qemu).args(["-cpu", cpu]).arg(bc)) {
                Ok(emulated) if emulated == native => {}
                Ok(_) => {
                    println!("isa: FAILED: {algorithm} differs on {cpu} ({what})");
                    differ += 1;
                }
                Err(error) => {
                    println!("isa: FAILED: {algorithm} on {cpu} ({what}): {error:#}");
                    differ += 1;
                }
            }
        }
    }
    if differ > 0 {
        bail!("{differ} runs differ");
    }
    println!(
        "isa: {} algorithms the same on {} CPUs",
        Algorithm::ALL.len(),
        CPUS.len()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use crate::sh;

    /// Checks that both crates that all others lean on refuse targets that nobody has tested.
    #[test]
    fn other_targets_are_refused_with_a_reason() {
        let refused = [
            ("target_endian=\"big\"", "needs a little-endian target"),
            ("target_pointer_width=\"32\"", "needs a target of 64 bits"),
        ];
        let packages = ["fs", "digest"];
        for (package, (cfg, reason)) in packages.iter().flat_map(|p| refused.map(|r| (p, r))) {
            let mut rustc = Command::new("rustc");
            rustc.args(["--edition=2024", "--crate-type=lib", "--emit=metadata"]);
            // As if it were such a target, without its standard library.
            rustc.args(["-A", "explicit_builtin_cfgs_in_flags", "--cfg", cfg]);
            rustc.arg("--out-dir").arg(sh::scratch("refused").unwrap());
            rustc.arg(sh::root().join(format!("crates/{package}/src/lib.rs")));
            let said = sh::capture(&mut rustc).unwrap();
            let said = String::from_utf8_lossy(&said.stderr);
            assert!(said.contains(&format!("bc-{package} {reason}")), "{said}");
        }
    }
}
