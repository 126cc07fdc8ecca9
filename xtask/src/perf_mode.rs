//! `cargo xtask perf-mode`: makes timings steadier (governor, boost, address randomisation) and
//! puts everything back. Reports the settings that could not be made.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::args::Args;
use crate::sh;

pub(crate) fn run(mut args: Args) -> Result<ExitCode> {
    let what = args.word();
    args.done()?;
    match what.as_deref() {
        Some("apply") => apply(),
        Some("restore") => restore(),
        _ => bail!("perf-mode needs apply or restore"),
    }
}

/// Returns the knobs of this machine with the value for timing.
fn knobs() -> Vec<(PathBuf, &'static str)> {
    let mut knobs = Vec::new();
    let cpus = Path::new("/sys/devices/system/cpu");
    let mut governors: Vec<PathBuf> = cpus
        .read_dir()
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("cpufreq/scaling_governor"))
        .filter(|path| path.exists())
        .collect();
    governors.sort();
    if governors.is_empty() {
        // Said as absent: a virtual machine leaves it to its host.
        governors.push(cpus.join("cpu0/cpufreq/scaling_governor"));
    }
    knobs.extend(governors.into_iter().map(|path| (path, "performance")));
    // The two drivers' ways to say it; a CPU at its base clock gives the same time twice.
    knobs.push((cpus.join("cpufreq/boost"), "0"));
    knobs.push((cpus.join("intel_pstate/no_turbo"), "1"));
    knobs.push((PathBuf::from("/proc/sys/kernel/randomize_va_space"), "0"));
    knobs
}

fn saved() -> PathBuf {
    sh::target().join("xtask").join("perf-mode.saved")
}

fn apply() -> Result<ExitCode> {
    let saved = saved();
    if saved.exists() {
        bail!("already applied; `cargo xtask perf-mode restore` first");
    }
    let (mut before, mut refused) = (String::new(), 0);
    std::fs::create_dir_all(saved.parent().expect("has a folder"))?;
    for (path, value) in knobs() {
        if !path.exists() {
            println!("absent   {}", path.display());
            continue;
        }
        let old = read(&path);
        if old == value {
            println!("already  {} = {value}", path.display());
            continue;
        }
        // Before anything is changed, or an interruption would lose the former value.
        before.push_str(&format!("{} = {old}\n", path.display()));
        std::fs::write(&saved, &before).context("the former values cannot be saved")?;
        match std::fs::write(&path, value) {
            Ok(()) if read(&path) == value => {
                println!("set      {} = {value} (was {old})", path.display());
                continue;
            }
            Ok(()) => println!("ignored  {} = {value}", path.display()),
            Err(error) => println!("refused  {} = {value}: {error}", path.display()),
        }
        refused += 1;
    }
    Ok(if refused == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn read(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.trim().to_owned()
}

fn restore() -> Result<ExitCode> {
    let saved = saved();
    let Ok(before) = std::fs::read_to_string(&saved) else {
        println!("nothing to restore");
        return Ok(ExitCode::SUCCESS);
    };
    let mut refused = String::new();
    for line in before.lines() {
        let Some((path, old)) = line.split_once(" = ") else {
            continue;
        };
        let path = Path::new(path);
        if read(path) == old {
            println!("already  {} = {old}", path.display());
            continue;
        }
        match std::fs::write(path, old) {
            Ok(()) => println!("restored {} = {old}", path.display()),
            Err(error) => {
                println!("refused  {} = {old}: {error}", path.display());
                refused.push_str(&format!("{line}\n"));
            }
        }
    }
    if refused.is_empty() {
        std::fs::remove_file(&saved)?;
        return Ok(ExitCode::SUCCESS);
    }
    std::fs::write(&saved, refused)?;
    Ok(ExitCode::FAILURE)
}
