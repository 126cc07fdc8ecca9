//! `bc install DIR`: links by which the applets are called directly.

use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::{FromArgMatches, Parser};

use crate::applet::APPLETS;
use crate::exit::Exit;
use crate::names::Names;
use crate::report;

/// Make links named bchash, bcdup ... to this binary
#[derive(Parser)]
#[command(
    name = "install",
    bin_name = "bc install",
    max_term_width = 100,
    after_help = "Examples:\n  bc install ~/.local/bin\n  bc install --hard /usr/local/bin"
)]
struct Args {
    /// Symbolic links (the default)
    #[arg(long, conflicts_with = "hard")]
    symbolic: bool,
    /// Hard links
    #[arg(long)]
    hard: bool,
    /// Replace files of that name that are not links to this binary
    #[arg(long)]
    force: bool,
    /// Directory to put the links into; made if it is missing
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// The command tree of `install`.
pub fn command() -> clap::Command {
    <Args as clap::CommandFactory>::command()
}

/// Runs it; `argv[0]` is `install`, and help calls the program by these names.
pub fn run(argv: &[OsString], names: &Names) -> Exit {
    let called = format!("{} install", names.program());
    let parsed = crate::help::renamed(command().bin_name(called), names)
        .try_get_matches_from(argv)
        .and_then(|matches| Args::from_arg_matches(&matches));
    let args = match parsed {
        Ok(args) => args,
        Err(error) => return report::usage(error),
    };
    let binary = match std::env::current_exe() {
        Ok(path) => path,
        Err(error) => return report::fatal("bc install", &format!("own path: {error}")),
    };
    if let Err(error) = std::fs::create_dir_all(&args.dir) {
        let shown = crate::input::shown(&args.dir);
        return report::fatal("bc install", &format!("{shown}: mkdir: {error}"));
    }
    let mut exit = Exit::Done;
    let names = ["bitcrafts"]
        .into_iter()
        .chain(APPLETS.iter().flat_map(|a| a.called.iter().copied()));
    for name in names {
        let link = args.dir.join(name);
        if let Err(text) = link_one(&binary, &link, &args) {
            exit = report::fatal(
                "bc install",
                &format!("{}: {text}", crate::input::shown(&link)),
            );
        }
    }
    exit
}

/// Links under a temporary name and renames, so that an existing link is never missing.
fn link_one(binary: &Path, link: &Path, args: &Args) -> Result<(), String> {
    match std::fs::symlink_metadata(link) {
        // A name of the binary itself needs no link. Replaced by a symbolic one it would lead
        // to itself, and the program would be gone.
        Ok(there) if is_same(&there, binary) => return Ok(()),
        Ok(_) if is_ours(binary, link) => {}
        Ok(_) if args.force => {}
        Ok(_) => return Err("exists and is not ours; --force replaces it".to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(format!("stat: {error}")),
    }
    let mut temporary = link.as_os_str().to_owned();
    temporary.push(format!(".{}.bc-tmp", std::process::id()));
    let made = if args.hard {
        std::fs::hard_link(binary, &temporary)
    } else {
        std::os::unix::fs::symlink(binary, &temporary)
    };
    made.map_err(|error| format!("link: {error}"))?;
    let renamed = std::fs::rename(&temporary, link).map_err(|error| format!("rename: {error}"));
    // A rename between two links to one inode succeeds and leaves both names.
    let _ = std::fs::remove_file(&temporary);
    renamed
}

/// Does the name already lead to this binary?
fn is_ours(binary: &Path, link: &Path) -> bool {
    std::fs::metadata(link).is_ok_and(|there| is_same(&there, binary))
}

/// Is what these metadata are of the binary?
fn is_same(there: &Metadata, binary: &Path) -> bool {
    let here = std::fs::metadata(binary);
    here.is_ok_and(|here| (here.dev(), here.ino()) == (there.dev(), there.ino()))
}
