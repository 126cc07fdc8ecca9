//! Findings of Debian's own checker about the package.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::sh;

/// Fails on errors and warnings. Findings to ignore are in the package's overrides, with reasons.
pub(super) fn check(package: &Path) -> Result<()> {
    if !sh::has("lintian") {
        println!("not checked: the package by lintian, which is not installed");
        return Ok(());
    }
    let mut lintian = Command::new("lintian");
    lintian.args(["--fail-on", "error,warning", "--tag-display-limit", "0"]);
    if sh::is_root() {
        lintian.arg("--allow-root");
    }
    let output = sh::capture(lintian.arg(package))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let said = said.trim();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("lintian: {}\n{said}\n{}", output.status, errors.trim());
    }
    println!("lintian: neither errors nor warnings");
    Ok(())
}
