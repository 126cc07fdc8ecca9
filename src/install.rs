//! `bc install DIR`: links by which the applets are called directly, or other checksum programs
//! replaced, and their removal.

use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::{FromArgMatches, Parser};

use crate::applet::APPLETS;
use crate::exit::Exit;
use crate::names::Names;
use crate::report;
use crate::usage;

/// Make links named bchash, bcdup ... to this binary
#[derive(Parser)]
#[command(
    name = "install",
    bin_name = "bc install",
    max_term_width = 100,
    after_help = "Examples:\n  \
                  bc install ~/.local/bin           bchash, bcdup and the others\n  \
                  bc install --gnu ~/.local/bin     sha256sum, cksum, b3sum and so on\n  \
                  bc install --remove ~/.local/bin  none of them any more"
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
    /// Links named as other checksum programs instead: sha256sum, md5sum, b2sum, cksum, b3sum, xxhsum ...
    ///
    /// Under these names bit-crafts has their options and output, and hashes many files at once. What is
    /// there under such a name and no link to this binary is never replaced.
    #[arg(long, conflicts_with = "force")]
    gnu: bool,
    /// Remove the links to this binary from DIR, all or, with --gnu, those of other programs' names
    ///
    /// The names that were removed are printed. Files that are not links to this binary stay, and so does the
    /// binary itself.
    #[arg(long, conflicts_with_all = ["force", "hard", "symbolic"])]
    remove: bool,
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
        Err(error) => return usage::print(error),
    };
    let binary = match std::env::current_exe() {
        Ok(path) => path,
        Err(error) => return report::fatal("bc install", &format!("own path: {error}")),
    };
    if args.remove {
        return remove(&binary, &args);
    }
    if let Err(error) = std::fs::create_dir_all(&args.dir) {
        let shown = crate::input::shown(&args.dir);
        return report::fatal("bc install", &format!("{shown}: mkdir: {error}"));
    }
    let mut exit = Exit::Done;
    let mut made = String::new();
    let names: Vec<&str> = match args.gnu {
        true => gnu().collect(),
        false => own().collect(),
    };
    for name in names {
        let link = args.dir.join(name);
        match link_one(&binary, &link, &args) {
            Ok(()) => made += &format!("made {}\n", crate::input::shown(&link)),
            Err(text) => {
                let shown = crate::input::shown(&link);
                exit = report::fatal("bc install", &format!("{shown}: {text}"));
            }
        }
    }
    exit.worst(list(&made))
}

/// Names of ours.
fn own() -> impl Iterator<Item = &'static str> {
    let called = APPLETS.iter().flat_map(|a| a.called.iter().copied());
    ["bitcrafts"].into_iter().chain(called)
}

/// Names of other programs.
fn gnu() -> impl Iterator<Item = &'static str> {
    crate::gnu::PROGRAMS.iter().map(|program| program.name)
}

/// Says which links there are now, or no more. Without a standard output nobody asked.
fn list(names: &str) -> Exit {
    match bc_fs::streams::was_closed(bc_fs::streams::Stream::Output) {
        true => Exit::Done,
        false => report::print(names),
    }
}

/// Removes what leads to this binary, never the binary itself.
fn remove(binary: &Path, args: &Args) -> Exit {
    let own = own().filter(|_| !args.gnu);
    let folder = args.dir.canonicalize();
    let mut exit = Exit::Done;
    let mut removed = String::new();
    for name in own.chain(gnu()) {
        let link = args.dir.join(name);
        let Ok(there) = std::fs::symlink_metadata(&link) else {
            continue;
        };
        let is_link = match is_same(&there, binary) {
            // Another name of the file itself, which has to keep one.
            true => {
                let itself = folder.as_ref().is_ok_and(|dir| dir.join(name) == binary);
                there.nlink() > 1 && !itself
            }
            false => there.is_symlink() && is_ours(binary, &link),
        };
        if !is_link {
            continue;
        }
        let shown = crate::input::shown(&link);
        match std::fs::remove_file(&link) {
            Ok(()) => removed += &format!("removed {shown}\n"),
            Err(error) => exit = report::fatal("bc install", &format!("{shown}: unlink: {error}")),
        }
    }
    exit.worst(list(&removed))
}

/// Links under a temporary name and renames, so that an existing link is never missing.
fn link_one(binary: &Path, link: &Path, args: &Args) -> Result<(), String> {
    match std::fs::symlink_metadata(link) {
        // A name of the binary itself needs no link. Replaced by a symbolic one it would lead
        // to itself, and the program would be gone.
        Ok(there) if is_same(&there, binary) => return Ok(()),
        Ok(_) if is_ours(binary, link) => {}
        Ok(_) if args.force => {}
        Ok(_) if args.gnu => return Err("exists and is not ours; it stays".to_owned()),
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
