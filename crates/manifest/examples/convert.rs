//! Reads a checksum file of any format that `bc hash` knows from standard input and prints it as
//! `sha256sum` would: `convert`. Malformed lines are counted.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::Write;

use bc_manifest::{End, Item, Options, Reader, gnu};

fn main() -> Result<(), Box<dyn Error>> {
    let mut reader = Reader::new(std::io::stdin().lock(), Options::default())?;
    let (mut line, mut improper) = (Vec::new(), 0);
    let mut out = std::io::stdout().lock();
    while let Some(item) = reader.read()? {
        match item {
            Item::Record(record) => {
                for (_, digest) in &record.digests {
                    line.clear();
                    gnu::write_line(&mut line, digest.as_bytes(), &record.path, End::Newline);
                    out.write_all(&line)?;
                }
            }
            _ => improper += 1,
        }
    }
    writeln!(std::io::stderr(), "{improper} improper lines")?;
    Ok(())
}
