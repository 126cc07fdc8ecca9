//! `cargo xtask dist`: the release binary with the manual pages and shell completions that it writes
//! itself, and the guide as one more page; a Debian package of them; a static binary.
//!
//! The guide is Markdown, and what reads Markdown is no part of the program: who builds from source
//! has the guide in `src/guide`, packages bring the page.

mod deb;
mod guide;
mod static_build;
#[cfg(test)]
mod tests;

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::args::Args;
use crate::sh;

pub(crate) fn run(mut args: Args) -> Result<ExitCode> {
    let dir = args
        .option("--dir")?
        .map_or_else(|| sh::target().join("dist"), PathBuf::from);
    let linked_in = args.flag("--static");
    args.done()?;
    let bc = sh::release_binary("bit-crafts", "bc")?;
    std::fs::create_dir_all(&dir)?;
    install(&bc, &dir.join("bc"))?;
    generate(&bc, "bc", "man", &dir.join("man"))?;
    let guide = guide::page("bc");
    write(&dir.join("man/bc-guide.7"), &guide)?;
    let completions = dir.join("completions");
    std::fs::create_dir_all(&completions)?;
    generate(&bc, "bc", "complete-bash", &completions.join("bc.bash"))?;
    generate(&bc, "bc", "complete-zsh", &completions.join("_bc"))?;
    generate(&bc, "bc", "complete-fish", &completions.join("bc.fish"))?;
    if linked_in {
        install(&static_build::build()?, &dir.join("bc-static"))?;
    }
    deb::build(&bc, &dir)?;
    Ok(ExitCode::SUCCESS)
}

/// Has the program, called `name`, write what it can make of its command tree.
fn generate(bc: &Path, name: &str, what: &str, to: &Path) -> Result<()> {
    let mut command = Command::new(bc);
    command
        .arg0(name)
        .arg(format!("--generate={what}"))
        .arg("--output")
        .arg(to);
    sh::run(command.env("SOURCE_DATE_EPOCH", epoch()))?;
    println!("{}", to.display());
    Ok(())
}

/// The time of the present commit, in seconds; where there is no repository, now.
fn epoch() -> String {
    let mut commit = Command::new("git");
    commit
        .current_dir(sh::root())
        .args(["log", "-1", "--format=%ct"]);
    let time = sh::stdout(&mut commit).or_else(|_| sh::stdout(Command::new("date").arg("+%s")));
    String::from_utf8_lossy(&time.unwrap_or_default())
        .trim()
        .to_owned()
}

/// The names beside `bc`, which some systems give to the calculator.
const NAMES: [&str; 4] = ["bitcrafts", "bchash", "bcdup", "bcintegrity"];

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::create_dir_all(path.parent().expect("has a folder"))?;
    std::fs::write(path, text).with_context(|| path.display().to_string())?;
    println!("{}", path.display());
    Ok(())
}

fn install(from: &Path, to: &Path) -> Result<()> {
    // A program that runs cannot be written to, but its name can be given away.
    let _ = std::fs::remove_file(to);
    std::fs::copy(from, to).with_context(|| to.display().to_string())?;
    println!("{}", to.display());
    Ok(())
}
