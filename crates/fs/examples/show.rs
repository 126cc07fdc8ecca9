//! Copies standard input to standard output with every terminal control sequence made visible:
//! `show < untrusted`. A stream that is closed is an error.
#![forbid(unsafe_code)]

use std::io::{self, Write};

use bc_fs::safe::{SafeWriter, Style};
use bc_fs::streams::{self, Stream};

fn main() -> io::Result<()> {
    let mut from = streams::open(Stream::Input)?;
    let mut to = SafeWriter::new(streams::open(Stream::Output)?, Style::Text);
    io::copy(&mut from, &mut to)?;
    to.flush()
}
