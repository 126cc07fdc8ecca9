//! `--symbols`: the tables of lines in a file of their own, for debuggers and profilers. The
//! program keeps the names of its functions, which the backtrace of a panic shows.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::Release;
use crate::sh;

/// Builds the program with all of its tables: the release, and nothing taken from it.
pub(super) fn build() -> Result<PathBuf> {
    eprintln!("xtask: building bc (release with symbols)");
    let mut build = sh::cargo();
    build.args(["build", "--profile=symbols", "--quiet", "--locked"]);
    sh::run(build.args(["--package", "bit-crafts", "--bin", "bc"]))?;
    Ok(sh::target().join("symbols/bc"))
}

/// Splits `whole` into the program and its tables; the program contains the name of their file.
pub(super) fn split(whole: &Path, program: &Path, tables: &Path) -> Result<()> {
    if !sh::has("objcopy") {
        bail!("objcopy is not installed (package binutils)");
    }
    let objcopy = |arguments: &[&str], from: &Path, to: &Path| {
        let mut command = Command::new("objcopy");
        sh::run(command.args(arguments).arg(from).arg(to))
    };
    let keep = ["--only-keep-debug", "--compress-debug-sections"];
    objcopy(&keep, whole, tables)?;
    let named = tables.parent().context("has no folder")?;
    let link = format!("--add-gnu-debuglink={}", tables.display());
    let mut strip = Command::new("objcopy");
    strip.current_dir(named).args(["--strip-debug", &link]);
    sh::run(strip.arg(whole).arg(program))?;
    for path in [program, tables] {
        println!("{}", path.display());
    }
    Ok(())
}

/// Packs the tables as a file of the release.
pub(super) fn pack(dir: &Path, release: &Release) -> Result<()> {
    let to = dir.join(format!("{}.debug", release.stem()));
    std::fs::copy(dir.join("bc.debug"), &to).with_context(|| to.display().to_string())?;
    println!("{}", to.display());
    Ok(())
}
