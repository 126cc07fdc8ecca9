//! Feeds bytes to every reader of bc-manifest and checks the invariants for any input.
//!
//! - `bc-manifest-fuzz < FILE`: one input, as AFL and its kin start a target.
//! - `bc-manifest-fuzz FILE…`: each file once, to replay findings.
//! - `bc-manifest-fuzz --mutate ROUNDS SEED FILE…`: mutants of the files, made here, so that
//!   fuzzing needs nothing but a stable compiler. A failing input is left in `fuzz-failure`.
#![forbid(unsafe_code)]

use std::io::Read;
use std::process::ExitCode;
use std::{env, fs, io};

use bc_manifest::integrity::{self, Policy, Writer};
use bc_manifest::{End, Item, MAX_LINE, Options, Reader, Separator, bsd, gnu};

fn main() -> ExitCode {
    match run(env::args().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bc-manifest-fuzz: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: Vec<String>) -> io::Result<()> {
    match arguments.split_first() {
        None => {
            let mut bytes = Vec::new();
            io::stdin().read_to_end(&mut bytes)?;
            check(&bytes);
        }
        Some((first, [rounds, seed, files @ ..])) if first == "--mutate" => {
            let number = |text: &str| text.parse().map_err(io::Error::other);
            mutate(number(rounds)?, number(seed)?, files)?;
        }
        Some(_) => {
            for file in &arguments {
                check(&fs::read(file)?);
            }
        }
    }
    Ok(())
}

/// Checks the invariants that hold for any input; panics where one does not.
fn check(bytes: &[u8]) {
    for separator in [Separator::Auto, Separator::Newline, Separator::Nul] {
        let options = Options::default().separator(separator);
        let Ok(reader) = Reader::new(bytes, options) else {
            continue;
        };
        let mut last = 0;
        for item in reader.map_while(Result::ok) {
            let Item::Record(record) = item else { continue };
            assert!(record.line > last && record.path.len() <= MAX_LINE);
            last = record.line;
            let digests = record.digests.first().map(|(_, digest)| digest);
            if let Some(digest) =
                digests.filter(|_| !record.path.is_empty() && !record.path.contains(&0))
            {
                again(digest.as_bytes(), &record.path);
            }
        }
    }
    check_integrity(bytes);
}

/// Checks that a record can be written and read again.
fn again(digest: &[u8], path: &[u8]) {
    let mut text = Vec::new();
    gnu::write_line(&mut text, digest, path, End::Newline);
    if digest.len() == 16 {
        bsd::write_line(&mut text, "MD5", digest, path, End::Newline);
    }
    let options = Options::default().separator(Separator::Newline).lengths(vec![digest.len()]);
    for item in Reader::new(&text[..], options).into_iter().flatten() {
        match item {
            Ok(Item::Record(record)) => {
                assert_eq!(record.path, path);
                assert_eq!(record.digests[0].1.as_bytes(), digest);
            }
            other => panic!("{other:?}"),
        }
    }
}

fn check_integrity(bytes: &[u8]) {
    let Ok(mut reader) = integrity::Reader::new(bytes, Policy::Force) else {
        return;
    };
    let Ok(mut writer) = Writer::new(Vec::new(), reader.header()) else {
        panic!("a header that was read cannot be written");
    };
    while let Ok(Some(entry)) = reader.read() {
        writer
            .write(&entry)
            .expect("what was read keeps the rules of the format");
    }
    let (written, _) = writer.finish().expect("writing to memory");
    integrity::validate(&written[..]).expect("what was written is valid");
    let strict = integrity::validate(bytes);
    assert_eq!(strict.is_ok(), reader.problem_count() == 0, "{strict:?}");
}

fn mutate(rounds: u64, seed: u64, files: &[String]) -> io::Result<()> {
    let seeds = files.iter().map(fs::read).collect::<io::Result<Vec<_>>>()?;
    if seeds.is_empty() {
        return Err(io::Error::other("--mutate needs files to start from"));
    }
    let mut state = seed;
    let mut below = move |end: usize| {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end.max(1) as u64) as usize
    };
    for _ in 0..rounds {
        let mut bytes = seeds[below(seeds.len())].clone();
        for _ in 0..1 + below(4) {
            let at = below(bytes.len() + 1);
            match below(6) {
                0 => drop(bytes.drain(at..(at + below(20)).min(bytes.len()))),
                1 => bytes.insert(at, below(256) as u8),
                2 => bytes.insert(at, b"\n\0\\\r\"{}[]:,() =*#;"[below(18)]),
                3 => {
                    let other = &seeds[below(seeds.len())];
                    let from = below(other.len() + 1);
                    let piece = &other[from..(from + below(60)).min(other.len())];
                    bytes.splice(at..at, piece.iter().copied());
                }
                _ if at < bytes.len() => bytes[at] ^= 1 << below(8),
                _ => {}
            }
        }
        let shown = bytes.clone();
        if let Err(panic) = std::panic::catch_unwind(|| check(&bytes)) {
            fs::write("fuzz-failure", shown)?;
            std::panic::resume_unwind(panic);
        }
    }
    Ok(())
}
