//! The machine that a release is for: the one at hand, or one whose programs are built and emulated
//! here.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::elf;
use crate::{aarch64, sh};

pub(super) struct Machine {
    /// Cargo's name of it.
    target: String,
    /// Runs its programs; `None` for the machine at hand.
    emulator: Option<PathBuf>,
}

impl Machine {
    /// Returns the machine of a target, by default the one at hand.
    pub(super) fn of(target: Option<String>) -> Result<Machine> {
        let host = host()?;
        let target = target.unwrap_or_else(|| host.clone());
        let emulator = match target.as_str() {
            target if target == host => None,
            aarch64::TARGET => Some(aarch64::emulator()?),
            _ => bail!("dist knows {host} and {}, not {target}", aarch64::TARGET),
        };
        Ok(Machine { target, emulator })
    }

    /// Returns the first part of the target: `x86_64`.
    pub(super) fn arch(&self) -> &str {
        let (arch, _) = self.target.split_once('-').unwrap_or((&self.target, ""));
        arch
    }

    pub(super) fn target(&self) -> &str {
        &self.target
    }

    /// Returns true for the machine at hand.
    pub(super) fn is_here(&self) -> bool {
        self.emulator.is_none()
    }

    /// Builds the program in a profile and returns its path.
    pub(super) fn build(&self, profile: &str) -> Result<PathBuf> {
        eprintln!("xtask: building bc ({profile}, {})", self.target);
        let mut build = self.cargo();
        build.args(["build", "--profile", profile]);
        let mut folder = sh::target();
        // Where the target is not named, others' builds of the same profile are shared.
        if !self.is_here() {
            build.args(["--target", &self.target]);
            folder.push(&self.target);
        }
        self.built(build, folder.join(profile).join("bc"))
    }

    /// Builds the program with the C library linked in by the compiler itself.
    pub(super) fn build_static(&self) -> Result<PathBuf> {
        eprintln!("xtask: building bc (release, static, {})", self.target);
        let mut build = self.cargo();
        // Named even for the machine at hand: build scripts and macros are not to be static.
        build.args(["build", "--release", "--target", &self.target]);
        build.env("RUSTFLAGS", "-C target-feature=+crt-static");
        let bc = sh::target().join(&self.target).join("release/bc");
        self.built(build, bc)
    }

    fn cargo(&self) -> Command {
        match self.is_here() {
            true => sh::cargo(),
            false => aarch64::cargo(),
        }
    }

    fn built(&self, mut build: Command, bc: PathBuf) -> Result<PathBuf> {
        build.args(["--quiet", "--locked", "--package", "bit-crafts"]);
        sh::run(build.args(["--bin", "bc"]))?;
        let arch = elf::Program::read(&bc)?.arch;
        if arch != self.arch() {
            bail!("{}: is for {arch}, not {}", bc.display(), self.arch());
        }
        Ok(bc)
    }

    /// Returns the command that runs one of its programs, called `name`.
    pub(super) fn command(&self, program: &Path, name: &str) -> Command {
        match &self.emulator {
            None => {
                let mut command = Command::new(program);
                command.arg0(name);
                command
            }
            Some(emulator) => {
                let mut command = Command::new(emulator);
                command.args(["-0", name]).arg(program);
                command
            }
        }
    }

    /// Returns the `objcopy` that knows its programs.
    pub(super) fn objcopy(&self) -> String {
        match self.is_here() {
            true => "objcopy".to_owned(),
            false => aarch64::COMPILER.replace("gcc", "objcopy"),
        }
    }
}

/// Returns the target of this toolchain.
fn host() -> Result<String> {
    let text = sh::stdout(Command::new("rustc").arg("-vV"))?;
    let text = String::from_utf8(text)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc -vV names no host")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_machines_programs_run_in_its_emulator_under_their_names() {
        let other = Machine {
            target: aarch64::TARGET.to_owned(),
            emulator: Some("/usr/bin/qemu-aarch64".into()),
        };
        assert_eq!(other.arch(), "aarch64");
        assert_eq!(other.objcopy(), "aarch64-linux-gnu-objcopy");
        let command = other.command(Path::new("/dist/bc"), "bitcrafts");
        assert_eq!(command.get_program(), "/usr/bin/qemu-aarch64");
        let words: Vec<_> = command.get_args().collect();
        assert_eq!(words, ["-0", "bitcrafts", "/dist/bc"]);
    }

    #[test]
    fn the_machine_at_hand_is_the_default_and_unknown_ones_are_refused() {
        let here = Machine::of(None).unwrap();
        assert_eq!(here.arch(), std::env::consts::ARCH);
        let command = here.command(Path::new("/dist/bc"), "bitcrafts");
        assert_eq!(command.get_program(), "/dist/bc");
        let refused = Machine::of(Some("mips-unknown-linux-gnu".to_owned()));
        let refused = refused.map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains("not mips-unknown-linux-gnu"), "{refused}");
    }
}
