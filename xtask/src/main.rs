//! `cargo xtask COMMAND`: everything that is done to the project rather than by it.
//! One file per command; `main` only picks it.
#![forbid(unsafe_code)]

mod api;
mod args;
mod bench;
mod circles;
mod correctness;
mod coverage;
mod datasets;
mod dist;
mod filesystems;
mod floor;
mod gnu;
mod isa;
mod licences;
mod median;
mod package;
mod perf_mode;
mod sanitize;
mod sh;
mod tidy;

use std::process::ExitCode;

use anyhow::Result;

const HELP: &str = "\
cargo xtask COMMAND

  datasets linux|synth|hostile|copies [--dir D] [--files N] [--seed S] [--copies N]
      lay a dataset under target/datasets (linux: Debian's linux-source-6.12, or kernel.org;
      copies: N copies of the linux dataset, or of --dir D); XTASK_DATASETS names another folder
  correctness [hash|dup|integrity|all] [--bc FILE] [TREE...]
      compare the release binary with the installed reference tools on directories or datasets
      (synth, hostile and, if laid, linux); exit 1 on any difference
  bench [hash|dup|integrity|shapes|all] [--runs N] [--dir D] [--copies D] [--only WORD] [--no-record]
      [--record D] [--resume] [--large] [--scratch D]
      time bc against its peers and against the floor program, in pairs; all writes
      benches/record and README's table. --record: a trial, written to D. --resume: goes on with
      an interrupted run of the same day. --large: the large dataset's memory, too.
      --scratch: where the shapes of work are laid, one at a time (1.4 GB)
  bench draw RECORD.json
      a record's Markdown, charts and README's table again from its figures
  bench scale [--files N,N,...] [--layout tree|flat|deep] [--dir D] [--only WORD] [--bc FILE]
      [--record FILE]
      time and peak memory of every job over trees of very many tiny files, made below --dir
  filesystems [--quick] [--only NAME,...] [--list] [--json] [--scratch D] [--bc FILE]
      as root: every promise on every file system that can be mounted here (images, overlays,
      FUSE, a server on 127.0.0.1), in a mount namespace of its own; exit 1 on any difference
  filesystems --measure [--corpus D] [--files N] [--runs N] [--only NAME,...]
      bc hash and bc dup on each of them, warm and cold, beside the installed peers: Markdown
  tidy
      licences (ours, and whether those of others go with them), layout, dependency direction, circles, file length, unsafe, leftovers
  circles
      the files of a package that lean on each other in a circle, with the lines that close it
  sanitize [address|thread]
      the tests of the crates with unsafe code under AddressSanitizer, of those with threads under
      ThreadSanitizer (nightly toolchain with rust-src)
  coverage [--html] [PACKAGE...]
      the lines that the tests run, the least covered files first (component llvm-tools)
  gnu [--source D] [--bc FILE] [--only WORD] [--verbose]
      coreutils' own tests of its checksum programs, with the release binary under their names; the
      source is downloaded if no folder that holds it is named
  isa
      bc-digest's tests and bc hash under qemu-x86_64 on CPUs this machine is not
  perf-mode apply|restore
      governor, boost and address randomisation for steady timings
  dist [--dir D] [--static] [--symbols] [--tag vN.N.N]
      what a release is made of: the program, manual pages and completions; a tarball, a Debian
      package where dpkg-deb is installed (checked by lintian where that is), and SHA256SUMS.
      --static: build the tarball's program even where a plain build is not static;
      --symbols: tables of lines in a file of their own; --tag: fail if it is not the version's
  api [--baseline REV]
      the libraries' public API without types of other crates (cargo-public-api), and compared
      with that of a commit (cargo-semver-checks)
  package [--no-test] [--allow-dirty]
      packs every crate and builds and tests the packages outside the workspace

programs that bench and correctness start themselves:
  floor read|dup|link ROOT LIST THREADS | floor walk|statx ROOT THREADS
  floor lanes ALGORITHM BYTES THREADS | floor peak FILE COMMAND...
  walk names|stat ROOT THREADS
";

fn main() -> ExitCode {
    let mut args = args::Args::from_env();
    let result = match args.word().as_deref() {
        Some("datasets") => datasets::run(args),
        Some("correctness") => correctness::run(args),
        Some("bench") => bench::run(args),
        Some("filesystems") => filesystems::run(args),
        Some("tidy") => tidy::run(args),
        Some("circles") => circles::run(args),
        Some("sanitize") => sanitize::run(args),
        Some("coverage") => coverage::run(args),
        Some("gnu") => gnu::run(args),
        Some("isa") => isa::run(args),
        Some("perf-mode") => perf_mode::run(args),
        Some("dist") => dist::run(args),
        Some("api") => api::run(args),
        Some("package") => package::run(args),
        Some("floor") => floor::run(args),
        Some("walk") => bench::walk(args),
        Some("help" | "--help" | "-h") => {
            print!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        other => {
            eprint!("xtask: unknown command {:?}\n\n{HELP}", other.unwrap_or(""));
            return ExitCode::from(2);
        }
    };
    finish(result)
}

fn finish(result: Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::from(2)
    })
}
