//! Creates parity for the files that an integrity manifest records, next to the manifest:
//! `protect_tree ROOT MANIFEST`. Files without new parity are listed on standard error.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{Write, stderr, stdout};
use std::time::{SystemTime, UNIX_EPOCH};

use bc_integrity::{ManifestFile, working};
use bc_parity::{ProtectEvent, ProtectOptions, protect};
use bc_walk::job::Means;

fn main() -> Result<(), Box<dyn Error>> {
    let mut operands = std::env::args_os().skip(1);
    let (Some(root), Some(manifest), None) = (operands.next(), operands.next(), operands.next())
    else {
        return Err("usage: protect_tree ROOT MANIFEST".into());
    };
    let manifest = ManifestFile::open(&manifest)?;
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos())?;
    let options = ProtectOptions::new(&root, &manifest, now);
    let done = working(&Means::new(), |work| {
        protect(&options, work, &mut |event| {
            if let ProtectEvent::Unprotected(error) = event {
                // There is nowhere else to report it.
                let _ = writeln!(stderr(), "{error}");
            }
        })
    })?;
    writeln!(
        stdout(),
        "parity for {} bytes, {} volumes in all",
        done.bytes,
        done.volumes
    )?;
    match done.is_complete() {
        true => Ok(()),
        false => Err("some files have no parity".into()),
    }
}
