//! Writes the digests of files, as `cksum` and the programs of one digest do.

use std::io;

use bc_digest::{CpuFeatures, Plain};
use bc_manifest::{base64, gnu};

use super::args::{Args, Writing};
use super::family::{Family, FamilyResult, Sum};
use super::order::{self, FileJob, InOrder, RunStop};
use super::quote;
use super::setup::Setup;
use super::stdio::{Lost, Out};

/// Writes a line for each operand; whether all could be read.
pub fn run(args: &Args, setup: &Setup, out: &mut Out) -> Result<bool, RunStop> {
    let sum = Sum::new(args.family, args.bits);
    let jobs = match args.operands.as_slice() {
        [] => FileJob::each(&["-".into()], sum),
        operands => FileJob::each(operands, sum),
    };
    let mut printer = Printer {
        args,
        jobs: &jobs,
        out,
        text: Vec::new(),
        debug: args.debug.then_some(setup.cpu),
        all_read: true,
    };
    order::run(&jobs, setup, &mut printer)?;
    let all_read = printer.all_read;
    // The end of the process is near, and frees all at once.
    std::mem::forget(jobs);
    Ok(all_read)
}

struct Printer<'a> {
    args: &'a Args,
    jobs: &'a [FileJob],
    out: &'a mut Out,
    /// The line in the making.
    text: Vec<u8>,
    /// Features of the CPU, if the instructions for the digest are still to be reported.
    debug: Option<CpuFeatures>,
    all_read: bool,
}

impl InOrder for Printer<'_> {
    fn result(&mut self, index: usize, result: io::Result<FamilyResult>) -> Result<(), Lost> {
        let path = &self.jobs[index].path;
        match result {
            Ok(hashed) => {
                if let Some(cpu) = self.debug.take() {
                    report(self.args.family, cpu, self.out);
                }
                self.text.clear();
                write(&mut self.text, self.args, &hashed, path);
                self.out.text(&self.text)
            }
            Err(error) => {
                self.all_read = false;
                self.out.say_of(&quote::name(path), &error);
                Ok(())
            }
        }
    }

    fn pause(&mut self) -> Result<(), Lost> {
        self.out.flush()
    }
}

/// Reports the instructions that compute a CRC.
fn report(family: Family, cpu: CpuFeatures, out: &mut Out) {
    if !matches!(family, Family::Crc | Family::Crc32b) {
        return;
    }
    let kernels = cpu.describe();
    let has = |name: &str| kernels.split(' ').any(|kernel| kernel == name);
    if has("vpclmulqdq") {
        return out.say("using avx512 hardware support");
    }
    out.say("avx512 support not detected");
    out.say(match has("pclmulqdq") {
        true => "using pclmul hardware support",
        false => "pclmul support not detected",
    });
}

/// Writes one line, or the raw bytes.
fn write(to: &mut Vec<u8>, args: &Args, hashed: &FamilyResult, path: &[u8]) {
    let digest = hashed.digest.as_bytes();
    if args.writing == Writing::Raw {
        return to.extend_from_slice(digest);
    }
    let end = if args.zero { 0 } else { b'\n' };
    if let Some(plain) = plain(args.family) {
        gnu::write_sum(to, plain, digest, hashed.bytes);
        if !args.operands.is_empty() {
            to.push(b' ');
            to.extend_from_slice(path);
        }
        return to.push(end);
    }
    let escaped = !args.zero && gnu::needs_escape(path);
    if escaped {
        to.push(b'\\');
    }
    let name = |to: &mut Vec<u8>| match escaped {
        true => gnu::escape_path(to, path),
        false => to.extend_from_slice(path),
    };
    if args.tagged {
        tag(to, args);
        to.extend_from_slice(b" (");
        name(to);
        to.extend_from_slice(b") = ");
    }
    match args.writing {
        Writing::Base64 => base64::encode(to, digest),
        _ => hashed.digest.write_hex(to),
    }
    if !args.tagged {
        to.extend_from_slice(if args.star { b" *" } else { b"  " });
        name(to);
    }
    to.push(end);
}

fn plain(family: Family) -> Option<Plain> {
    Some(match family {
        Family::Bsd => Plain::Blocks1024,
        Family::Sysv => Plain::Blocks512,
        Family::Crc | Family::Crc32b => Plain::Bytes,
        _ => return None,
    })
}

fn tag(to: &mut Vec<u8>, args: &Args) {
    let bits = args.bits;
    let text = match args.family {
        Family::Sha2 => format!("SHA{bits}"),
        Family::Sha3 => format!("SHA3-{bits}"),
        Family::Blake2b if bits < Family::Blake2b.bits() => format!("BLAKE2b-{bits}"),
        family => family.tag().to_owned(),
    };
    to.extend_from_slice(text.as_bytes());
}
