//! `cargo xtask filesystems`: checks the program's promises on every file system that can be
//! mounted here: images of its own, layers, FUSE, a server on 127.0.0.1. Exit 1 on any difference.
//!
//! All of it runs in a mount and process name space of its own, below one scratch directory: when
//! the run ends, in any way, its servers and mounts end with it.

mod checks;
mod kinds;
mod measure;
mod outer;
mod place;
mod sheet;
mod snapshot;
mod tools;
mod tree;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::args::Args;
use crate::sh;
use kinds::Kind;
use measure::Measure;
use sheet::{Row, Sheet};
use tools::Lab;

/// The word that starts the part within the name spaces.
const INSIDE: &str = "inside";

/// File systems to check, and the options of the run.
struct Plan {
    kinds: Vec<&'static Kind>,
    quick: bool,
    json: bool,
    measure: Option<Measure>,
}

pub(crate) fn run(mut args: Args) -> Result<ExitCode> {
    if args.flag("--list") {
        args.done()?;
        list();
        return Ok(ExitCode::SUCCESS);
    }
    match args.word().as_deref() {
        Some(INSIDE) => inside(args),
        Some(other) => bail!("filesystems: unexpected argument {other:?}"),
        None => outside(args),
    }
}

/// Checks the command line, builds the binary and starts the run in name spaces of its own.
fn outside(mut args: Args) -> Result<ExitCode> {
    let scratch = args.option("--scratch")?.map(PathBuf::from);
    let bc = args.option("--bc")?.map(PathBuf::from);
    let mut words = Vec::new();
    for flag in ["--quick", "--json", "--measure"] {
        if args.flag(flag) {
            words.push(flag.to_owned());
        }
    }
    for option in ["--only", "--corpus", "--files", "--runs", "--against"] {
        if let Some(value) = args.option(option)? {
            words.push(format!("{option}={value}"));
        }
    }
    args.done()?;
    plan(&mut Args::from_words(&words))?;
    if let Some(reason) = outer::hindrance() {
        println!("skip: every file system: {reason}");
        println!("0/0 checks pass");
        return Ok(ExitCode::SUCCESS);
    }
    let bc = match bc {
        Some(path) => path
            .canonicalize()
            .with_context(|| path.display().to_string())?,
        None => sh::release_binary("bit-crafts", "bc")?,
    };
    outer::run(scratch, &bc, &words)
}

fn plan(args: &mut Args) -> Result<Plan> {
    let quick = args.flag("--quick");
    let json = args.flag("--json");
    let measure = args.flag("--measure");
    let only = args.option("--only")?;
    let kinds = match only {
        Some(names) => names
            .split(',')
            .map(|name| {
                kinds::find(name).with_context(|| format!("no file system {name:?}; see --list"))
            })
            .collect::<Result<Vec<_>>>()?,
        None => kinds::all().filter(|kind| !quick || kind.quick).collect(),
    };
    let measure = match measure {
        true => Some(Measure::from_args(args)?),
        false => None,
    };
    Ok(Plan {
        kinds,
        quick,
        json,
        measure,
    })
}

/// Does the run itself: within the name spaces, with the scratch directory and the binary named.
fn inside(mut args: Args) -> Result<ExitCode> {
    let scratch = args
        .option("--scratch")?
        .context("inside needs --scratch")?;
    let bc = args.option("--bc")?.context("inside needs --bc")?;
    let plan = plan(&mut args)?;
    args.done()?;
    let lab = Lab::new(PathBuf::from(scratch), PathBuf::from(bc))?;
    if let Some(measure) = &plan.measure {
        return measure.run(&lab, &plan.kinds);
    }
    let mut sheet = Sheet::new(plan.json);
    for kind in plan.kinds {
        let mut row = Row::new(kind.name, &lab.scratch);
        match kind.missing() {
            Some(reason) => row.skip_all(&reason),
            None => checks::all(&lab, kind, plan.quick, &mut row),
        }
        sheet.push(row);
    }
    Ok(sheet.close())
}

fn list() {
    for kind in kinds::all() {
        let state = kind
            .missing()
            .map_or_else(|| "can be mounted".to_owned(), |r| format!("skip: {r}"));
        let quick = if kind.quick { " (--quick)" } else { "" };
        println!("{:<20} {}{quick}: {state}", kind.name, kind.what);
    }
    let wanted = kinds::packages();
    println!("\nDebian packages: {}", wanted.join(" "));
}
