//! `--symbols`: the tables of lines in a file of their own, for debuggers and profilers. The
//! program keeps the names of its functions, which the backtrace of a panic shows.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::machine::Machine;
use crate::sh;

/// Splits `whole` into the program and its tables; the program contains the name of their file.
pub(super) fn split(machine: &Machine, whole: &Path, program: &Path, tables: &Path) -> Result<()> {
    let tool = machine.objcopy();
    if !sh::has(&tool) {
        bail!("{tool} is not installed (of binutils)");
    }
    let objcopy = |arguments: &[&str], from: &Path, to: &Path| {
        let mut command = Command::new(&tool);
        sh::run(command.args(arguments).arg(from).arg(to))
    };
    let keep = ["--only-keep-debug", "--compress-debug-sections"];
    objcopy(&keep, whole, tables)?;
    let named = tables.parent().context("has no folder")?;
    let link = format!("--add-gnu-debuglink={}", tables.display());
    let mut strip = Command::new(&tool);
    strip.current_dir(named).args(["--strip-debug", &link]);
    sh::run(strip.arg(whole).arg(program))?;
    for path in [program, tables] {
        println!("{}", path.display());
    }
    Ok(())
}

/// Packs the tables as a file of the release.
pub(super) fn pack(dir: &Path, stem: &str) -> Result<()> {
    let to = dir.join(format!("{stem}.debug"));
    std::fs::copy(dir.join("bc.debug"), &to).with_context(|| to.display().to_string())?;
    println!("{}", to.display());
    Ok(())
}
