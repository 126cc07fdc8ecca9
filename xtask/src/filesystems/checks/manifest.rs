//! A recorded tree is the same after a remount, and update reads nothing of it again.

use std::ffi::OsString;
use std::process::Command;

use anyhow::{Result, ensure};

use super::super::place::Place;
use super::super::sheet::Verdict;
use super::super::snapshot::Snapshot;
use super::metric;
use crate::sh;

/// Records the tree in a new file beside the mount.
pub(super) fn record(place: &Place<'_>) -> Result<std::path::PathBuf> {
    let file = place.beside("manifest");
    let mut output = OsString::from("--output=");
    output.push(&file);
    let words = [
        "integrity".into(),
        "manifest".into(),
        output,
        place.tree().into(),
    ];
    place.lab.bc(&words)?.expect(0, "manifest")?;
    Ok(file)
}

pub(super) fn check(place: &mut Place<'_>) -> Result<Verdict> {
    let file = record(place)?;
    let before = Snapshot::of(&place.tree())?;
    place.renumber()?;
    let moved = before.other_times(&Snapshot::of(&place.tree())?);
    let words: [OsString; 4] = [
        "integrity".into(),
        "verify".into(),
        place.tree().into(),
        file.into(),
    ];
    let outcome = place.lab.bc(&words)?;
    if moved > 0 && outcome.code == 1 {
        let reported = outcome.lines().len();
        ensure!(
            outcome.lines().iter().all(|line| line.starts_with(b"~m ")),
            "verify tells more than the {moved} times that the remount changed"
        );
        return Ok(Verdict::Ok(format!(
            "the remount changed the times of {moved} directories, verify tells {reported}"
        )));
    }
    ensure!(
        outcome.code == 0 && outcome.out.is_empty() && outcome.err.is_empty(),
        "verify after a remount: exit code {}: {} {}",
        outcome.code,
        String::from_utf8_lossy(&outcome.out)
            .lines()
            .next()
            .unwrap_or(""),
        outcome.said()
    );
    Ok(Verdict::Ok(
        if place.kind.lasting {
            ""
        } else {
            "never remounted"
        }
        .to_owned(),
    ))
}

/// Checks that nothing is read again, by the program's own figures and by the calls that it makes.
pub(super) fn update(place: &mut Place<'_>) -> Result<Verdict> {
    let file = record(place)?;
    place.renumber()?;
    let metrics = place.beside("update.json");
    let mut option = OsString::from("--metrics=");
    option.push(&metrics);
    let words: Vec<OsString> = vec![
        "integrity".into(),
        "update".into(),
        "--io=sync".into(),
        option,
        place.tree().into(),
        file.into(),
    ];
    if !sh::has("strace") {
        place.lab.bc(&words)?.expect(0, "update")?;
        let read = metric(&metrics, "read_bytes")?;
        ensure!(read == 0, "{read} bytes read again");
        return Ok(Verdict::Ok("by its own figures".to_owned()));
    }
    let trace = place.beside("update.trace");
    let mut traced = Command::new("strace");
    traced
        .args([
            "-f",
            "-y",
            "-e",
            "trace=read,readv,pread64,preadv,preadv2,mmap",
            "-o",
        ])
        .arg(&trace)
        .arg(place.lab.binary())
        .args(&words);
    place.lab.run(&mut traced)?.expect(0, "update")?;
    let read = metric(&metrics, "read_bytes")?;
    let calls = reads(
        &place.tree(),
        &String::from_utf8_lossy(&std::fs::read(&trace)?),
    );
    ensure!(
        read == 0 && calls == 0,
        "{read} bytes read again by its own figures, in {calls} calls"
    );
    Ok(Verdict::Ok(String::new()))
}

/// Calls in a trace that read content below the tree.
fn reads(tree: &std::path::Path, trace: &str) -> usize {
    let below = format!("<{}/", tree.display());
    trace.lines().filter(|line| line.contains(&below)).count()
}
