//! Records a directory in memory, waits for a line on standard input, and reports the changes
//! since: `what_changed DIR`.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::Write;

use bc_digest::Algorithm;
use bc_integrity::report::{ChangeFormat, ChangeReport};
use bc_integrity::{CreateOptions, ManifestFile, Reading, VerifyOptions, Work, create, verify};

fn main() -> Result<(), Box<dyn Error>> {
    let root = std::env::args_os()
        .nth(1)
        .ok_or("usage: what_changed DIR")?;
    let workers = bc_pool::available_cpus();
    let (cancel, progress) = (bc_pool::Cancel::new(), bc_hash::HashProgress::default());
    let reading = |_| Ok(Reading::new(workers));
    let work = Work::new(workers.into(), &reading, &cancel, &progress);
    let what = CreateOptions::new(&root, Algorithm::Blake3).created_at(0);
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
    let what = VerifyOptions::new(&root, &manifest);
    let mut report = ChangeReport::new(std::io::stdout(), ChangeFormat::Text);
    let done = verify(&what, &work, &mut |change| report.change(change))?;
    report.end(&done.summary)?;
    Ok(())
}
