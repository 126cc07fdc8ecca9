//! One tree read by a Spark cluster of two workers: the manifest equals that of one run of bc, also
//! if an executor is killed in the middle.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use bc_testkit::Synth;

use super::engines::Installed;
use crate::sh;

/// Stands for bc on the executors: the first call for the second part kills the executor that made
/// it, which is the nearest Java above it.
const KILLER: &str = r#"#!/bin/sh
case " $* " in
*" --shard=2/"*)
  if mkdir "$0.done" 2>/dev/null; then
    process=$$
    while [ "$process" -gt 1 ]; do
      process=$(sed 's/.*) //' "/proc/$process/stat" | cut -d' ' -f2)
      if [ "$(cat "/proc/$process/comm")" = java ]; then
        kill -9 "$process"
        exit 1
      fi
    done
    exit 99
  fi
  ;;
esac
exec BC "$@"
"#;

/// Runs the job as it is documented, once in peace and once with an executor killed.
pub(super) fn check(bc: &Path, spark: &Installed, dir: &Path) -> Result<bool> {
    let tree = dir.join("tree");
    if tree.exists() {
        std::fs::remove_dir_all(&tree)?;
    }
    let synth = Synth {
        files: 300,
        bytes: 1 << 20,
        ..Synth::default()
    };
    synth.build(&tree).context("a tree")?;
    let one = dir.join("one.jsonl");
    let mut command = Command::new(bc);
    sh::run(
        command
            .args(["integrity", "manifest", "--output"])
            .args([&one, &tree]),
    )?;
    let expected = entries(&one)?;
    let mut is_right = true;
    for (what, program) in [
        ("", bc.to_owned()),
        (", an executor killed", killer(bc, dir)?),
    ] {
        let into = dir.join("job");
        if into.exists() {
            std::fs::remove_dir_all(&into)?;
        }
        let mut job = spark.spark("spark-submit")?;
        job.args(["--master", "local-cluster[2,1,1024]"])
            .arg(sh::root().join("crates/fleet/job.py"))
            .args(["--parts", "5", "--root"])
            .arg(&tree)
            .arg("--into")
            .arg(&into)
            .arg("--bc")
            .arg(&program)
            .current_dir(dir);
        let said = sh::capture(&mut job)?;
        let errors = String::from_utf8_lossy(&said.stderr);
        ensure!(said.status.success(), "the job failed{what}: {errors}");
        let found = entries(&into.join("tree.jsonl"))?;
        let is_same = found == expected;
        let verdict = if is_same {
            "as one run"
        } else {
            "NOT as one run"
        };
        println!(
            "spark\ttwo workers{what}\t{} entries, {verdict}",
            found.len()
        );
        is_right &= is_same;
    }
    let is_killed = dir.join("bc-killer.done").exists();
    ensure!(is_killed, "no executor was killed");
    Ok(is_right)
}

fn killer(bc: &Path, dir: &Path) -> Result<PathBuf> {
    let path = dir.join("bc-killer");
    let marker = dir.join("bc-killer.done");
    if marker.exists() {
        std::fs::remove_dir(&marker)?;
    }
    let quoted = format!("'{}'", bc.display().to_string().replace('\'', r"'\''"));
    std::fs::write(&path, KILLER.replace("BC", &quoted))?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

/// Returns the entries of a manifest, and its trailer up to the digest; the header, which contains
/// the time, is left out.
fn entries(manifest: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(manifest).with_context(|| manifest.display().to_string())?;
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    ensure!(lines.len() > 2, "{}: empty", manifest.display());
    let trailer = lines[lines.len() - 1].split(",\"sha256\"").next();
    let trailer = trailer.unwrap_or_default().to_owned();
    let mut entries = lines[1..lines.len() - 1].to_vec();
    entries.push(trailer);
    Ok(entries)
}
