//! The part outside the name spaces: a scratch directory, the run in name spaces of its own, and
//! the way out, which is the same after an end, a failure and a signal.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::INSIDE;
use crate::sh;

/// Tools that every kind needs.
const TOOLS: &[&str] = &[
    "unshare",
    "mount",
    "umount",
    "losetup",
    "sh",
    "timeout",
    "sha256sum",
];

/// Returns the reason why nothing can be mounted at all.
pub(super) fn hindrance() -> Option<String> {
    if !sh::is_root() {
        return Some("mounting needs root".to_owned());
    }
    let absent: Vec<&str> = TOOLS.iter().copied().filter(|t| !sh::has(t)).collect();
    if !absent.is_empty() {
        return Some(format!("not installed: {}", absent.join(", ")));
    }
    let tried = sh::capture(Command::new("unshare").args(NAMESPACES).arg("true"));
    match tried {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(format!(
            "no name spaces: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        Err(error) => Some(format!("{error:#}")),
    }
}

/// Mounts of its own, and processes of its own: the first of those takes all others with it.
const NAMESPACES: &[&str] = &[
    "--mount",
    "--propagation=private",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
];

/// Runs the matrix in name spaces of its own and removes everything afterwards.
pub(super) fn run(parent: Option<PathBuf>, bc: &Path, words: &[String]) -> Result<ExitCode> {
    let parent = parent.unwrap_or_else(std::env::temp_dir);
    let parent = parent
        .canonicalize()
        .with_context(|| parent.display().to_string())?;
    let scratch = parent.join(format!("bc-filesystems.{}", std::process::id()));
    std::fs::create_dir(&scratch).with_context(|| scratch.display().to_string())?;
    let ended = within(&scratch, bc, words);
    let cleared = clear(&scratch);
    let code = ended?;
    cleared?;
    Ok(code)
}

fn within(scratch: &Path, bc: &Path, words: &[String]) -> Result<ExitCode> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    let mut child = Command::new("unshare")
        .args(NAMESPACES)
        .arg(std::env::current_exe()?)
        .args(["filesystems", INSIDE, "--scratch"])
        .arg(scratch)
        .arg("--bc")
        .arg(bc)
        .args(words)
        .spawn()
        .context("unshare")?;
    loop {
        if let Some(status) = child.try_wait()? {
            let code = match status.code() {
                Some(code) => u8::try_from(code).unwrap_or(2),
                None => 130,
            };
            return Ok(ExitCode::from(code));
        }
        if interrupted.load(Ordering::Relaxed) {
            child.kill()?;
            child.wait()?;
            eprintln!("xtask: interrupted; removing what was laid");
            return Ok(ExitCode::from(130));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Removes the scratch directory. The mounts went with the name space; only loop devices that a
/// FUSE server was given stay and are taken back by the image's path.
fn clear(scratch: &Path) -> Result<()> {
    let listed = sh::stdout(Command::new("losetup").args(["-l", "-n", "-O", "NAME,BACK-FILE"]))?;
    for line in String::from_utf8_lossy(&listed).lines() {
        let Some((device, file)) = line.split_once(' ') else {
            continue;
        };
        if Path::new(file.trim()).starts_with(scratch) {
            sh::run(Command::new("losetup").args(["-d", device]))?;
        }
    }
    bc_testkit::remove_tree(scratch).with_context(|| scratch.display().to_string())
}
