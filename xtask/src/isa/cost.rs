//! Numbers of instructions that kernels for aarch64 take a byte: what they cost can be judged in
//! emulation by nothing else.
//!
//! The emulator logs each block of instructions that it translates and each that it enters. Two runs
//! over different numbers of bytes differ by the kernel's own instructions: only blocks of functions
//! with names are counted, which the C library has not. Its start differs from run to run.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::sh;

/// Bytes of a lane in the two runs: whole blocks of all functions.
const BYTES: [u64; 2] = [4 << 10, 20 << 10];

/// Most instructions a byte.
const MOST: &[(&str, f64)] = &[("xxh128/neon", 0.5), ("crc32b/neon sha2 crc", 0.5)];

/// Kernels for many messages, those for one message that they are compared with, and the least
/// factor between their numbers of instructions.
const FEWER: &[(&str, &str, f64)] = &[
    ("sha256/neon x4", "sha256/sha2 crate", 2.5),
    ("sha1/neon x4", "sha1/sha1 crate", 2.5),
    ("md5/neon x8", "md5/scalar", 2.5),
];

/// Instructions that a program must not run where they are hidden from it.
const HIDDEN: &[&str] = &["sha1", "sha256", "sha512", "crc32", "aes", "pmull"];

/// Counts the kernels on the CPU with all instruction sets and on that with NEON alone, of which
/// each is a command with options of the emulator; fails where one takes too many.
pub(super) fn judge(
    all: impl Fn(&[&str]) -> Command,
    neon: impl Fn(&[&str]) -> Command,
) -> Result<()> {
    let mut costs = HashMap::new();
    // On the second one, `sha2` and `sha1` compute in plain code.
    measure(&neon, true, &mut costs)?;
    measure(&all, false, &mut costs)?;
    let cost = |name: &str| -> Result<f64> {
        let cost = costs.get(name).copied();
        cost.with_context(|| format!("there is no kernel {name}"))
    };
    for (name, most) in MOST {
        let found = cost(name)?;
        ensure!(
            found < *most,
            "{name}: {found:.2} instructions a byte, not fewer than {most}"
        );
    }
    for (lanes, stream, factor) in FEWER {
        let found = cost(stream)? / cost(lanes)?;
        println!("isa: {lanes}: {found:.2} times fewer instructions than {stream}");
        ensure!(
            found >= *factor,
            "{lanes}: not {factor} times fewer than {stream}"
        );
    }
    Ok(())
}

/// Counts every kernel that the program lists there and that has no number yet.
fn measure(
    run: &impl Fn(&[&str]) -> Command,
    hides: bool,
    costs: &mut HashMap<String, f64>,
) -> Result<()> {
    let list = String::from_utf8(sh::stdout(&mut run(&[]))?)?;
    for line in list.lines() {
        let (lanes, name) = line.split_once(' ').context("a line of one word")?;
        let lanes: u64 = lanes.parse()?;
        if costs.contains_key(name) {
            continue;
        }
        let [few, many] = BYTES.map(|bytes| instructions(run, name, bytes, hides));
        let bytes = (BYTES[1] - BYTES[0]) * lanes;
        let cost = (many? - few?) as f64 / bytes as f64;
        println!("isa: {name}: {cost:.2} instructions a byte");
        costs.insert(name.to_owned(), cost);
    }
    Ok(())
}

/// Returns the number of instructions of a whole run.
fn instructions(
    run: &impl Fn(&[&str]) -> Command,
    kernel: &str,
    bytes: u64,
    hides: bool,
) -> Result<u64> {
    let log = sh::scratch("isa-cost")?.join("log");
    let words = ["-d", "in_asm,exec,nochain", "-D", &log.to_string_lossy()];
    sh::stdout(run(&words).arg(kernel).arg(bytes.to_string()))?;
    count(&log, hides).with_context(|| format!("counting {kernel}"))
}

/// Reads a log: `0xADDRESS: … INSTRUCTION …` for each one that is translated, after a line `IN:`,
/// and `Trace N: HOST [BASE/ADDRESS/FLAGS/…] FUNCTION` for each block that is entered.
fn count(log: &Path, hides: bool) -> Result<u64> {
    let mut lengths: HashMap<u64, u64> = HashMap::new();
    let (mut total, mut block) = (0, None);
    for line in BufReader::new(File::open(log)?).lines() {
        let line = line?;
        if line.starts_with("IN:") {
            block = None;
        } else if let Some(rest) = line.strip_prefix("0x") {
            let (address, text) = rest
                .split_once(':')
                .context("an instruction without address")?;
            let address = u64::from_str_radix(address, 16)?;
            // Where a block is translated again, its length may be another.
            let start = *block.get_or_insert_with(|| {
                lengths.insert(address, 0);
                address
            });
            *lengths.entry(start).or_default() += 1;
            let is_hidden = hides
                && text
                    .split_whitespace()
                    .any(|word| HIDDEN.iter().any(|h| word.starts_with(h)));
            ensure!(!is_hidden, "an instruction that was hidden:{text}");
        } else if let Some(rest) = line.strip_prefix("Trace ")
            && let Some((place, function)) = rest.rsplit_once(']')
            && !function.trim().is_empty()
        {
            let address = place.split('/').nth(1);
            let address = u64::from_str_radix(address.context("a block without address")?, 16)?;
            total += lengths
                .get(&address)
                .context("a block that was not translated")?;
        }
    }
    ensure!(total > 0, "the log has no instructions");
    Ok(total)
}
