//! `SHA256SUMS` of the files of a release, written by the program that is in them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::sh;

const NAME: &str = "SHA256SUMS";

/// Hashes the files, which are in `dir`, and has the list checked: by the program, and by
/// `sha256sum` where that is installed.
pub(super) fn write(bc: &Path, dir: &Path, files: &[PathBuf]) -> Result<()> {
    let mut names = Vec::new();
    for file in files {
        names.push(file.file_name().context("a file has no name")?);
    }
    if names.is_empty() {
        println!("not written: {NAME}; nothing was packed");
        return Ok(());
    }
    let bc = bc.canonicalize()?;
    let run = |program: &Path| {
        let mut command = Command::new(program);
        command.current_dir(dir);
        command
    };
    let mut hash = run(&bc);
    hash.args(["hash", "--type=sha256", "--output", NAME]);
    sh::run(hash.arg("--").args(&names))?;
    sh::stdout(run(&bc).args(["hash", "check", "--strict", NAME]))?;
    if let Some(other) = sh::find_tool(&["sha256sum"]) {
        sh::stdout(run(&other).args(["--check", "--strict", NAME]))?;
    }
    let lines = std::fs::read_to_string(dir.join(NAME))?.lines().count();
    if lines != names.len() {
        bail!("{NAME}: {lines} lines for {} files", names.len());
    }
    println!("{}", dir.join(NAME).display());
    Ok(())
}
