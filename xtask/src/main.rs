//! `cargo xtask COMMAND`: everything that is done to the project rather than by it.
//! One file per command; `main` only picks it.
#![forbid(unsafe_code)]

mod aarch64;
mod api;
mod args;
mod bench;
mod circles;
mod correctness;
mod datasets;
mod dist;
mod filesystems;
mod fleet;
mod floor;
mod gnu;
mod help;
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

use crate::args::Args;

type Run = fn(Args) -> Result<ExitCode>;

const COMMANDS: &[(&str, Run)] = &[
    ("datasets", datasets::run),
    ("correctness", correctness::run),
    ("bench", bench::run),
    ("filesystems", filesystems::run),
    ("fleet", fleet::run),
    ("tidy", tidy::run),
    ("circles", circles::run),
    ("sanitize", sanitize::run),
    ("gnu", gnu::run),
    ("isa", isa::run),
    ("perf-mode", perf_mode::run),
    ("dist", dist::run),
    ("api", api::run),
    ("package", package::run),
    ("floor", floor::run),
    ("walk", bench::walk),
];

fn main() -> ExitCode {
    let mut args = Args::from_env();
    let word = args.word();
    let word = word.as_deref();
    if let Some("help" | "--help" | "-h") = word {
        print!("{}", help::ALL);
        return ExitCode::SUCCESS;
    }
    let named = COMMANDS.iter().find(|(name, _)| Some(*name) == word);
    let Some((name, run)) = named else {
        let unknown = word.unwrap_or("");
        eprint!("xtask: unknown command {unknown:?}\n\n{}", help::ALL);
        return ExitCode::from(2);
    };
    if help::is_asked(name, args.words()) {
        print!("{}", help::of(name));
        return ExitCode::SUCCESS;
    }
    run(args).unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::from(2)
    })
}
