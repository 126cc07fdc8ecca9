//! The part for aarch64: CPUs with all of its instruction sets, without those for SHA-512, and with
//! NEON alone.
//!
//! Tests and programs are built here with Debian's cross compiler and run under qemu-aarch64.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{cost, messages, version};
use crate::aarch64::{self, COMPILER, TARGET};
use crate::sh;

/// Programs find the C library for that machine by themselves: an emulator that is told of it finds
/// `/` in its folder, too, and what a program makes by steps from there lands in it.
const LIBRARIES: &str = "-Clink-arg=-Wl,-rpath=/usr/aarch64-linux-gnu/lib \
    -Clink-arg=-Wl,--dynamic-linker=/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1";

/// A CPU to run on.
struct Cpu {
    /// The emulator's model.
    model: &'static str,
    /// True if the instruction sets that each of its models has are hidden from programs.
    hides: bool,
    /// Kernels that `bc --version` must report there.
    kernels: &'static str,
}

const CPUS: &[Cpu] = &[
    Cpu {
        model: "max",
        hides: false,
        kernels: "neon sha2 sha512 crc",
    },
    Cpu {
        model: "cortex-a72",
        hides: false,
        kernels: "neon sha2 crc",
    },
    Cpu {
        model: "cortex-a72",
        hides: true,
        kernels: "neon",
    },
];

/// A package whose tests run, and those of them that cannot.
struct Suite {
    package: &'static str,
    left_out: &'static [LeftOut],
}

/// Tests whose names contain this do not run, and why.
struct LeftOut {
    name: &'static str,
    reason: &'static str,
}

const fn left_out(name: &'static str, reason: &'static str) -> LeftOut {
    LeftOut { name, reason }
}

const NO_FILTERS: &str = "the emulator has no seccomp filters";
const NO_SHARING: &str = "the emulator has no FIDEDUPERANGE";
const NO_MOUNTS: &str = "the emulator gives mounts no numbers";
const NO_RESUMING: &str = "a run is resumed only where mounts have numbers";

/// The first is what `--quick` runs.
const SUITES: &[Suite] = &[
    Suite {
        package: "bc-digest",
        left_out: &[],
    },
    Suite {
        package: "bc-manifest",
        left_out: &[],
    },
    Suite {
        package: "bc-walk",
        left_out: &[left_out(
            "what_is_long_takes_no_longer_than_its_length",
            "takes minutes there",
        )],
    },
    Suite {
        package: "bc-read",
        left_out: &[
            left_out("a_refused_ring_is_named", NO_FILTERS),
            left_out("a_ring_that_may_be_made_and_not_used", NO_FILTERS),
            left_out("missing_newer_calls_are_done_without", NO_FILTERS),
            left_out(
                "an_error_in_the_middle_is_an_error",
                "the memory map is the emulator's",
            ),
        ],
    },
    Suite {
        package: "bc-find",
        left_out: &[left_out(
            "scan::tests::extents",
            "the emulator has no FIEMAP",
        )],
    },
    Suite {
        package: "bc-prune",
        left_out: &[
            left_out("a_name_in_another_mount_is_foreseen", NO_MOUNTS),
            left_out("reflink::btrfs", NO_SHARING),
            left_out("reflink::xfs", NO_SHARING),
        ],
    },
    Suite {
        package: "bc-copy",
        left_out: &[],
    },
    Suite {
        package: "bc-fs",
        left_out: &[
            left_out("the_mount_of_a_file_is_found", NO_MOUNTS),
            left_out("mounts_are_told_apart_by_number", NO_MOUNTS),
        ],
    },
    Suite {
        package: "bc-pool",
        left_out: &[left_out(
            "where_it_is_refused_tables_stay_shared",
            NO_FILTERS,
        )],
    },
    Suite {
        package: "bc-edit",
        left_out: &[],
    },
    Suite {
        package: "bc-hash",
        left_out: &[
            left_out(
                "another_boot_or_mount_leaves_what_was_on_the_disk",
                NO_RESUMING,
            ),
            left_out(
                "a_resumed_run_equals_one_that_was_not_interrupted",
                NO_RESUMING,
            ),
            left_out("a_full_disk_keeps_what_was_written", NO_RESUMING),
            left_out("whatever_a_kill_leaves_can_be_gone_on_from", NO_RESUMING),
        ],
    },
    Suite {
        package: "bc-integrity",
        left_out: &[left_out(
            "whatever_changed_meanwhile_it_is_that_of_the_tree_as_it_is",
            NO_RESUMING,
        )],
    },
    Suite {
        package: "bc-parity",
        left_out: &[],
    },
];

/// The emulator, and what programs are run with.
pub(super) struct Machine {
    qemu: PathBuf,
    /// Library that hides instruction sets.
    hider: PathBuf,
}

impl Machine {
    /// Returns the words that run a program on a CPU.
    fn words(&self, cpu: &Cpu) -> Vec<String> {
        let qemu = self.qemu.to_string_lossy().into_owned();
        let mut words = vec![qemu, "-cpu".to_owned(), cpu.model.to_owned()];
        if cpu.hides {
            let preload = format!("LD_PRELOAD={}", self.hider.display());
            words.extend(["-E".to_owned(), preload]);
        }
        words
    }

    /// Returns the command that runs `program` on a CPU, with other options of the emulator.
    fn command(&self, cpu: &Cpu, options: &[&str], program: &Path) -> Command {
        let words = self.words(cpu);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(options).arg(program);
        command
    }
}

impl Cpu {
    fn name(&self) -> String {
        match self.hides {
            true => format!("{} without SHA and CRC", self.model),
            false => self.model.to_owned(),
        }
    }
}

pub(super) fn run(quick: bool) -> Result<()> {
    let Some(machine) = machine()? else {
        return Ok(());
    };
    let suites = if quick { &SUITES[..1] } else { SUITES };
    for cpu in CPUS {
        tests(&machine, cpu, suites, quick)?;
    }
    if quick {
        return Ok(());
    }
    // As the tests are built, which shares their packages: its kernels are optimised there, too.
    let bc = build(&["--package", "bit-crafts", "--bin", "bc"], "bc")?;
    for cpu in CPUS {
        let said = sh::stdout(machine.command(cpu, &[], &bc).arg("--version"))?;
        let said = String::from_utf8_lossy(&said);
        let line = said.lines().find_map(|line| line.strip_prefix("kernels: "));
        ensure!(line == Some(cpu.kernels), "{}: {said}", cpu.name());
        messages::compare(&cpu.name(), || machine.command(cpu, &[], &bc))?;
    }
    let program = build(
        &["--release", "--package", "bc-digest", "--bench", "cost"],
        "cost",
    )?;
    let run = |cpu: &Cpu, options: &[&str]| machine.command(cpu, options, &program);
    cost::judge(
        |options| run(&CPUS[0], options),
        |options| run(&CPUS[2], options),
    )?;
    Ok(())
}

/// Returns the emulator with its helper; `None`, and says why, if something is not installed.
fn machine() -> Result<Option<Machine>> {
    let qemu = match aarch64::emulator() {
        Ok(qemu) => qemu,
        Err(reason) => {
            println!("isa: aarch64 not run: {reason}");
            return Ok(None);
        }
    };
    let (major, minor) = version(&qemu);
    println!("isa: aarch64 under qemu {major}.{minor}");
    let hider = sh::scratch("isa-aarch64")?.join("hide.so");
    let source = sh::root().join("xtask/src/isa/hide.c");
    let mut compile = Command::new(COMPILER);
    compile.args(["-O2", "-shared", "-fPIC", "-Wall", "-Werror", "-o"]);
    sh::run(compile.arg(&hider).arg(&source))?;
    Ok(Some(Machine { qemu, hider }))
}

/// Returns a cargo that builds for that machine: with a shared C library, into which the library
/// that hides instruction sets is preloaded.
fn cargo() -> Command {
    let mut cargo = aarch64::cargo();
    cargo.env("BC_LIBC", "shared");
    cargo.env(
        "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS",
        LIBRARIES,
    );
    cargo
}

/// Runs the tests of these packages on a CPU: by one cargo, which builds what they share once.
fn tests(machine: &Machine, cpu: &Cpu, suites: &[Suite], quick: bool) -> Result<()> {
    let mut test = cargo();
    if !quick {
        // What takes minutes to build takes an hour less to emulate; assertions stay.
        for profile in ["DEV", "TEST"] {
            test.env(format!("CARGO_PROFILE_{profile}_OPT_LEVEL"), "2");
        }
    }
    test.args(["test", "--quiet", "--no-fail-fast", "--lib", "--tests"]);
    test.args(["--target", TARGET]);
    for Suite { package, .. } in suites {
        println!("isa: {package}'s tests on {}", cpu.name());
        test.args(["--package", package]);
    }
    test.arg("--");
    for Suite { package, left_out } in suites {
        for LeftOut { name, reason } in *left_out {
            println!("isa: left out: {package} {name}: {reason}");
            test.args(["--skip", name]);
        }
    }
    // One call of each name in place of all of them: to start a program takes a third of a second.
    test.env("BC_TEST_POINTS", "1");
    let runner = machine.words(cpu).join(" ");
    sh::run(test.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", runner))
}

/// Builds a program for that machine and returns its path.
fn build(what: &[&str], name: &str) -> Result<PathBuf> {
    eprintln!("xtask: building {name} ({TARGET})");
    let mut build = cargo();
    build.args(["build", "--target", TARGET]);
    build
        .args(["--message-format=json-render-diagnostics"])
        .args(what);
    let said = String::from_utf8(sh::stdout(&mut build)?)?;
    let found = said.lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_it = message["target"]["name"] == name;
        let path = message["executable"].as_str().filter(|_| is_it)?;
        Some(PathBuf::from(path))
    });
    found.with_context(|| format!("cargo built no {name}"))
}
