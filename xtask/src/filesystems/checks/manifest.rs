//! A recorded tree is the same after a remount, and update reads nothing of it again.

use std::ffi::OsString;
use std::process::Command;

use anyhow::{Result, ensure};

use super::super::place::Place;
use super::super::sheet::Verdict;
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
    place.renumber()?;
    let words: [OsString; 4] = [
        "integrity".into(),
        "verify".into(),
        place.tree().into(),
        file.into(),
    ];
    let outcome = place.lab.bc(&words)?;
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

/// Nothing is read again, by the program's own figures and by the files that it opens.
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
        .args(["-f", "-y", "-e", "trace=open,openat,openat2", "-o"])
        .arg(&trace)
        .arg(place.lab.binary())
        .args(&words);
    place.lab.run(&mut traced)?.expect(0, "update")?;
    let read = metric(&metrics, "read_bytes")?;
    let opened = opened(
        &place.tree(),
        &String::from_utf8_lossy(&std::fs::read(&trace)?),
    );
    ensure!(
        read == 0 && opened == 0,
        "{read} bytes read again, {opened} files opened"
    );
    Ok(Verdict::Ok("no file opened".to_owned()))
}

/// Regular files of the tree that a trace shows to be opened, those opened only as a path not
/// counted.
fn opened(tree: &std::path::Path, trace: &str) -> usize {
    let prefix = format!("<{}/", tree.display());
    trace
        .lines()
        .filter(|line| !line.contains("O_DIRECTORY") && !line.contains("O_PATH"))
        .filter(|line| {
            line.rsplit(") = ")
                .next()
                .is_some_and(|end| end.contains(&prefix))
        })
        .count()
}
