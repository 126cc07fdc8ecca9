//! Records a directory in memory, waits for a line on standard input, and tells what has changed
//! since: `what_changed DIR`.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::Write;

use bc_digest::{Algorithm, CpuFeatures};
use bc_integrity::report::{ChangeFormat, ChangeReport};
use bc_integrity::{CreateOptions, ManifestFile, Reading, VerifyOptions, Work, create, verify};

fn main() -> Result<(), Box<dyn Error>> {
    let root = std::env::args_os()
        .nth(1)
        .ok_or("usage: what_changed DIR")?;
    let workers = bc_pool::available_cpus();
    let (cancel, progress) = (bc_pool::Cancel::new(), bc_hash::HashProgress::default());
    let reading = |_| {
        Ok(Reading {
            workers,
            start: Default::default(),
            read: bc_read::ReadOptions::default(),
        })
    };
    let work = Work {
        walk_workers: workers.into(),
        reading: &reading,
        cpu: CpuFeatures::detect(),
        cancel: &cancel,
        shows_bytes: false,
        progress: &progress,
        observer: None,
    };
    let what = CreateOptions {
        root: &root,
        tree: Default::default(),
        algorithm: Algorithm::Blake3,
        created_at: 0,
        origin: Default::default(),
        shard: None,
        leave_out: Vec::new(),
    };
    let (manifest, created) = create(&what, &work, Vec::new(), &mut |path, error| {
        let path = String::from_utf8_lossy(path);
        let _ = writeln!(std::io::stderr(), "{path}: {error:?}");
    })?;
    writeln!(
        std::io::stdout(),
        "{} entries recorded; press Enter",
        created.trailer.entries
    )?;
    std::io::stdin().read_line(&mut String::new())?;

    let manifest = ManifestFile::from_reader(b"memory", &manifest[..])?;
    let what = VerifyOptions {
        root: &root,
        manifest: &manifest,
        rules: Default::default(),
        detail: Default::default(),
        trust: Default::default(),
        root_check: Default::default(),
        leave_out: &[],
    };
    let mut report = ChangeReport::new(std::io::stdout(), ChangeFormat::Text);
    let done = verify(&what, &work, &mut |change| report.change(change))?;
    report.end(&done.summary)?;
    Ok(())
}
