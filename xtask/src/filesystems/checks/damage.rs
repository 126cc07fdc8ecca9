//! Changes behind the program's back are found: a file rewritten with its time put back, and one
//! that changed in the image below.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use super::super::place::Place;
use super::super::sheet::Verdict;
use super::super::tools::ToolOutcome;
use super::super::tree::{MARKED, MARKER, REWRITTEN, both};
use super::{Faults, manifest};

/// Checks that a rewritten file is found by verify everywhere, and by update where a change time
/// betrays it.
pub(super) fn rewrite(place: &mut Place<'_>) -> Result<Verdict> {
    if place.read_only() {
        return Ok(Verdict::Skip("read-only".to_owned()));
    }
    let record = manifest::record(place)?;
    place.remount()?;
    let path = place.tree().join(REWRITTEN);
    let before = path.metadata()?;
    let old = std::fs::read(&path)?;
    overwrite(&path, &vec![b'x'; old.len()], &before)?;
    place.remount()?;
    let now = path.metadata()?;
    ensure!(
        (now.mtime(), now.mtime_nsec(), now.len())
            == (before.mtime(), before.mtime_nsec(), before.len()),
        "the time could not be put back: {}.{:09} now, {}.{:09} before",
        now.mtime(),
        now.mtime_nsec(),
        before.mtime(),
        before.mtime_nsec()
    );
    let betrayed = (now.ctime(), now.ctime_nsec()) != (before.ctime(), before.ctime_nsec());
    let mut faults = Faults::default();
    found(
        &mut faults,
        "verify",
        &integrity(place, "verify", &[], &record)?,
        REWRITTEN,
    );
    let updated = integrity(place, "update", &[], &record)?;
    let remark = if betrayed {
        found(&mut faults, "update", &updated, REWRITTEN);
        ""
    } else {
        let reread = integrity(place, "update", &["--reread=100%"], &record)?;
        found(&mut faults, "update --reread=100%", &reread, REWRITTEN);
        "its ctime repeats its mtime: found by verify and --reread"
    };
    overwrite(&path, &old, &before)?;
    faults.result()?;
    Ok(Verdict::Ok(remark.to_owned()))
}

/// Checks that a byte changed in the image below is found.
pub(super) fn damage(place: &mut Place<'_>) -> Result<Verdict> {
    if !place.kind.lasting {
        return Ok(Verdict::Skip("there is no image below".to_owned()));
    }
    let record = manifest::record(place)?;
    place.unmount()?;
    let hit = place
        .images()
        .iter()
        .try_fold(false, |hit, image| -> Result<bool> {
            Ok(flip(image)? || hit)
        })?;
    place.mount()?;
    if !hit {
        return Ok(Verdict::Skip(
            "content is not plain in the image".to_owned(),
        ));
    }
    let mut faults = Faults::default();
    found(
        &mut faults,
        "verify",
        &integrity(place, "verify", &[], &record)?,
        MARKED,
    );
    let updated = integrity(place, "update", &["--reread=100%"], &record)?;
    found(&mut faults, "update --reread=100%", &updated, MARKED);
    faults.result()?;
    Ok(Verdict::Ok(String::new()))
}

fn integrity(
    place: &Place<'_>,
    command: &str,
    words: &[&str],
    record: &Path,
) -> Result<ToolOutcome> {
    let mut all: Vec<OsString> = vec!["integrity".into(), command.into()];
    all.extend(words.iter().map(OsString::from));
    all.extend([place.tree().into(), record.into()]);
    place.lab.bc(&all)
}

/// Checks that it is reported as damage, or as unreadable where the file system keeps checksums of
/// its own; nothing else is reported.
fn found(faults: &mut Faults, who: &str, outcome: &ToolOutcome, path: &str) {
    let out = String::from_utf8_lossy(&outcome.out).into_owned();
    let damage = outcome.code == 3 && out.lines().any(|l| l.starts_with("!!") && l.contains(path));
    let refused = outcome
        .err
        .lines()
        .chain(out.lines())
        .any(|l| l.contains(path) && l.contains("Input/output error"));
    faults.unless(damage || (refused && outcome.code == 1), || {
        format!(
            "{who}: exit code {}, {path} not found: {} {}",
            outcome.code,
            out.lines().next().unwrap_or(""),
            outcome.said()
        )
    });
    // Copying a file up may give its directories other times; that is the file system's doing.
    let others = out
        .lines()
        .filter(|l| !l.is_empty() && !l.contains(path))
        .filter(|l| !(l.starts_with("~m ") && l.contains(" mtime: ")))
        .count();
    faults.unless(others == 0, || {
        format!(
            "{who}: {others} lines about other files: {}",
            out.lines().next().unwrap_or("")
        )
    });
}

fn overwrite(path: &Path, content: &[u8], times: &std::fs::Metadata) -> Result<()> {
    let file = File::options().write(true).open(path)?;
    file.write_all_at(content, 0)?;
    file.set_times(both(times.modified()?))?;
    Ok(())
}

/// Changes one byte of the marked file's content in an image that holds it plainly.
fn flip(image: &Path) -> Result<bool> {
    let Some(at) = position(image).with_context(|| image.display().to_string())? else {
        return Ok(false);
    };
    let file = File::options().read(true).write(true).open(image)?;
    let mut byte = [0];
    file.read_exact_at(&mut byte, at)?;
    file.write_all_at(&[byte[0] ^ 1], at)?;
    file.sync_all()?;
    Ok(true)
}

/// Returns the offset of the marker in a file.
fn position(image: &Path) -> Result<Option<u64>> {
    const PIECE: usize = 4 << 20;
    let needle = MARKER.as_bytes();
    let mut file = File::open(image)?;
    let (mut held, mut start) = (Vec::new(), 0);
    let mut piece = vec![0; PIECE];
    loop {
        let got = file.read(&mut piece)?;
        if got == 0 {
            return Ok(None);
        }
        // A sparse image is mostly holes.
        if piece[..got].iter().all(|&b| b == 0) {
            start += (held.len() + got) as u64;
            held.clear();
            continue;
        }
        held.extend_from_slice(&piece[..got]);
        if let Some(at) = held.windows(needle.len()).position(|w| w == needle) {
            return Ok(Some(start + at as u64));
        }
        let kept = held.len().saturating_sub(needle.len());
        start += kept as u64;
        held.drain(..kept);
        if start > 1 << 40 {
            bail!("too large to be searched");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marker_is_found_across_pieces_and_changed() {
        let tree = bc_testkit::TestTree::new();
        let path = tree.join("image");
        for at in [0_u64, 77, (4 << 20) - 10, (12 << 20) - 1] {
            let file = File::create(&path).unwrap();
            file.set_len(20 << 20).unwrap();
            file.write_all_at(MARKER.as_bytes(), at).unwrap();
            assert_eq!(position(&path).unwrap(), Some(at));
        }
        assert!(flip(&path).unwrap());
        assert!(!flip(&path).unwrap());
    }
}
