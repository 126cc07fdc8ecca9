//! A copy's manifest is accepted at once, and again once the file system has dropped the attributes
//! that it cached when names were given.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::super::place::Place;
use super::super::sheet::Verdict;

/// FUSE keeps attributes for a second as a rule.
const FORGOTTEN: Duration = Duration::from_millis(1200);

pub(super) fn check(place: &Place<'_>) -> Result<Verdict> {
    if place.read_only() {
        return Ok(Verdict::Skip("nothing can be changed".to_owned()));
    }
    let (source, to) = (place.beside("to-copy"), place.tree().join("copied"));
    lay(&source).with_context(|| source.display().to_string())?;
    let word = |path: &Path| OsString::from(path);
    // A directory that is there: in a new one nothing has to be proven to be free.
    std::fs::create_dir(&to).with_context(|| to.display().to_string())?;
    let copied = verified(place, &source, &to, &word);
    let removed = std::fs::remove_dir_all(&to).and_then(|()| std::fs::remove_dir_all(&source));
    removed.with_context(|| to.display().to_string())?;
    copied?;
    Ok(Verdict::Ok(String::new()))
}

fn verified(
    place: &Place<'_>,
    source: &Path,
    to: &Path,
    word: &dyn Fn(&Path) -> OsString,
) -> Result<()> {
    let copy = ["copy".into(), "-T".into(), word(source), word(to)];
    place.lab.bc(&copy)?.expect(0, "copy")?;
    let manifest = to.join(".bc-copy-manifest.jsonl");
    let verify: [OsString; 4] = [
        "integrity".into(),
        "verify".into(),
        word(to),
        word(&manifest),
    ];
    for when in ["at once", "later"] {
        let reported = place.lab.bc(&verify)?;
        ensure!(
            reported.code == 0 && reported.out.is_empty(),
            "verify {when}: exit code {}: {} {}",
            reported.code,
            String::from_utf8_lossy(&reported.out)
                .lines()
                .next()
                .unwrap_or(""),
            reported.said()
        );
        std::thread::sleep(FORGOTTEN);
    }
    Ok(())
}

/// Lays small and large files, and one that has two names.
fn lay(source: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(source.join("d"))?;
    for n in 0..20 {
        std::fs::write(source.join(format!("d/{n}")), vec![b'x'; n * 700])?;
    }
    std::fs::write(source.join("large"), vec![b'y'; 1 << 20])?;
    std::fs::hard_link(source.join("d/7"), source.join("another-name"))
}
