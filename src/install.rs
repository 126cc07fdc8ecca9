//! `bc install DIR`: links by which the applets are called directly, or other checksum programs
//! replaced, and their removal.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bc_edit::entry;
use bc_fs::call::{self, FailedCall};
use bc_fs::dirfd;
use clap::{FromArgMatches, Parser};
use rustix::io::Errno;

use crate::parse::applet::APPLETS;
use crate::parse::names::Names;
use crate::report;
use crate::report::diagnostic::Diagnostic;
use crate::report::{Exit, usage};

/// Make links named bchash, bcdup ... to this binary
///
/// Prints for each name whether its link was made, replaced another file or existed already.
#[derive(Parser)]
#[command(
    name = "install",
    bin_name = "bc install",
    max_term_width = 100,
    after_help = "Examples:\n  \
                  bc install --mkdir ~/.local/bin   bchash, bcdup and the others\n  \
                  bc install --hard /usr/local/bin  hard links to this program\n  \
                  bc install --gnu ~/.local/bin     sha256sum, cksum, b3sum and so on\n  \
                  bc install --remove ~/.local/bin  remove them"
)]
struct InstallArgs {
    /// Symbolic links (the default)
    #[arg(long, conflicts_with = "hard")]
    symbolic: bool,
    /// Hard links
    #[arg(long)]
    hard: bool,
    /// Replace existing files that do not lead to this binary
    #[arg(long)]
    force: bool,
    /// Make links named like other checksum programs instead: sha256sum, md5sum, b2sum, cksum, b3sum, xxhsum ...
    ///
    /// Under these names, bit-crafts has the options and output of those programs, and hashes many files at
    /// once. An existing file of such a name that does not lead to this binary is never replaced.
    #[arg(long, conflicts_with = "force")]
    gnu: bool,
    /// Create DIR and missing directories above it; with --remove, remove DIR if nothing is left in it
    #[arg(long)]
    mkdir: bool,
    /// Remove the links that this command made in DIR: all or, with --gnu, those with other programs' names
    ///
    /// Removed names are printed. Everything else stays: other files, links that lead elsewhere, links to this binary by
    /// a relative path or through another link, and the binary itself.
    #[arg(long, conflicts_with_all = ["force", "hard", "symbolic"])]
    remove: bool,
    /// Directory for the links
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// Returns the command tree of `install`.
pub fn command() -> clap::Command {
    <InstallArgs as clap::CommandFactory>::command()
}

/// Runs it; `argv[0]` is `install`, and help calls the program by these names.
pub fn run(argv: &[OsString], names: &Names) -> Exit {
    let called = format!("{} install", names.program());
    let parsed = crate::parse::help::renamed(command().bin_name(called), names)
        .try_get_matches_from(argv)
        .and_then(|matches| InstallArgs::from_arg_matches(&matches));
    let args = match parsed {
        Ok(args) => args,
        Err(error) => return usage::print(error),
    };
    let binary = match std::env::current_exe() {
        Ok(path) => path,
        Err(error) => return report::fatal("bc install", format!("own path: {error}")),
    };
    if args.remove {
        return remove(&binary, &args);
    }
    match place(&args) {
        Ok(said) => make(&binary, &args, said),
        Err(what) => report::fatal("bc install", what),
    }
}

/// Ensures that the directory exists, making it with `--mkdir`; returns a line for each directory
/// made.
fn place(args: &InstallArgs) -> Result<String, Diagnostic> {
    let refused = |error: &std::io::Error| Diagnostic::failed(&args.dir, "stat", error);
    match std::fs::metadata(&args.dir) {
        Ok(meta) if meta.is_dir() => return Ok(String::new()),
        Ok(_) => return Err(refused(&Errno::NOTDIR.into())),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(refused(&error)),
        Err(error) if !args.mkdir => {
            let what = refused(&error);
            let text = format!("{what}; --mkdir creates it");
            return Err(what.worded(text));
        }
        Err(_) => {}
    }
    let missing = |dir: &&Path| !dir.as_os_str().is_empty() && dir.symlink_metadata().is_err();
    let mut missing: Vec<&Path> = args.dir.ancestors().take_while(missing).collect();
    missing.reverse();
    let failed = |failed: FailedCall| Diagnostic::failed(&args.dir, "mkdir", &failed.into());
    entry::make_dirs(&args.dir, 0o777).map_err(failed)?;
    let made = |dir: &Path| format!("made {}\n", crate::files::input::shown(dir));
    Ok(missing.into_iter().map(made).collect())
}

/// Makes the links; one that cannot be made does not stop the others.
fn make(binary: &Path, args: &InstallArgs, mut said: String) -> Exit {
    let names: Vec<&str> = match args.gnu {
        true => gnu().collect(),
        false => own().collect(),
    };
    let mut exit = Exit::Done;
    for name in names {
        let link = args.dir.join(name);
        match link_one(binary, name, &link, args) {
            Ok(done) => said += &format!("{done} {}\n", crate::files::input::shown(&link)),
            Err(what) => exit = report::fatal("bc install", what),
        }
    }
    exit.worst(list(&said))
}

/// Returns our own names.
fn own() -> impl Iterator<Item = &'static str> {
    let called = APPLETS.iter().flat_map(|a| a.called.iter().copied());
    ["bitcrafts"].into_iter().chain(called)
}

/// Returns the names of other programs.
fn gnu() -> impl Iterator<Item = &'static str> {
    crate::gnu::PROGRAMS.iter().map(|program| program.name)
}

/// Prints the links that exist now, or were removed. Without a standard output there is no one to
/// print for.
fn list(names: &str) -> Exit {
    match bc_fs::streams::was_closed(bc_fs::streams::Stream::Output) {
        true => Exit::Done,
        false => report::print(names),
    }
}

/// Removes the links that were made here, never the binary itself.
fn remove(binary: &Path, args: &InstallArgs) -> Exit {
    let own = own().filter(|_| !args.gnu);
    let folder = args.dir.canonicalize();
    let mut exit = Exit::Done;
    let mut removed = String::new();
    for name in own.chain(gnu()) {
        let link = args.dir.join(name);
        let Ok(there) = std::fs::symlink_metadata(&link) else {
            continue;
        };
        let is_made = match is_same(&there, binary) {
            // Another name of the file itself, which has to keep one.
            true => {
                let itself = folder.as_ref().is_ok_and(|dir| dir.join(name) == binary);
                there.nlink() > 1 && !itself
            }
            false => is_made(binary, &link),
        };
        if !is_made {
            continue;
        }
        match open(&args.dir).and_then(|dir| entry::unlink(dir, name)) {
            Ok(()) => removed += &format!("removed {}\n", crate::files::input::shown(&link)),
            Err(failed) => {
                let what = Diagnostic::failed(&link, "unlink", &failed.into());
                exit = report::fatal("bc install", what);
            }
        }
    }
    if args.mkdir {
        // One that still holds something stays, which is no failure.
        match remove_dir(&args.dir) {
            Ok(()) => removed += &format!("removed {}\n", crate::files::input::shown(&args.dir)),
            Err(failed) if matches!(failed.errno, Errno::NOTEMPTY | Errno::NOENT) => {}
            Err(failed) => {
                let what = Diagnostic::failed(&args.dir, "rmdir", &failed.into());
                exit = report::fatal("bc install", what);
            }
        }
    }
    exit.worst(list(&removed))
}

/// Makes the name lead to the binary; returns a word for the action taken.
fn link_one(
    binary: &Path,
    name: &str,
    link: &Path,
    args: &InstallArgs,
) -> Result<&'static str, Diagnostic> {
    let failed = |failed: FailedCall| {
        let op = if failed.op == "symlink" {
            "link"
        } else {
            failed.op
        };
        Diagnostic::failed(link, op, &failed.into())
    };
    let there = match std::fs::symlink_metadata(link) {
        Ok(there) => there,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // This replaces nothing, even if the name has been taken meanwhile.
            let made = open(&args.dir).and_then(|dir| new_link(binary, &dir, name, args));
            return made.map(|()| "made").map_err(failed);
        }
        Err(error) => return Err(Diagnostic::failed(link, "stat", &error)),
    };
    let leads_here = std::fs::metadata(link).is_ok_and(|there| is_same(&there, binary));
    // A name of the binary itself needs no link. Replaced by a symbolic one it would lead to
    // itself, and the program would be gone.
    let is_name = is_same(&there, binary);
    let is_other_kind = args.hard && is_made(binary, link);
    match leads_here {
        true if is_name || !is_other_kind => return Ok("kept"),
        true => {}
        false if args.force => {}
        false => {
            let leads = std::fs::read_link(link).map_or_else(
                |_| "exists and is not ours".to_owned(),
                |to| format!("leads to {}, not here", crate::files::input::shown(&to)),
            );
            let advice = match args.gnu {
                true => "it stays",
                false => "--force replaces it",
            };
            let shown = crate::files::input::shown(link);
            let text = format!("{shown}: {leads}; {advice}");
            let path = link.as_os_str().as_encoded_bytes();
            return Err(Diagnostic::from(text).about(path, "link", None, &leads));
        }
    }
    let replaced = replace(binary, name, args).map(|()| "replaced");
    replaced.map_err(failed)
}

/// Opens a directory to change names in it.
fn open(dir: &Path) -> call::Result<OwnedFd> {
    dirfd::open_root(dir.as_os_str().as_bytes())
}

/// Removes an empty directory.
fn remove_dir(dir: &Path) -> call::Result<()> {
    match (dir.parent(), dir.file_name()) {
        (Some(parent), Some(name)) => entry::remove_dir(open(parent)?, name),
        _ => Err(FailedCall {
            op: "rmdir",
            errno: Errno::INVAL,
        }),
    }
}

/// Links under a temporary name and renames, so that an existing link is never missing.
fn replace(binary: &Path, name: &str, args: &InstallArgs) -> call::Result<()> {
    let dir = open(&args.dir)?;
    let temporary = format!("{name}.{}.bc-tmp", std::process::id());
    new_link(binary, &dir, &temporary, args)?;
    let renamed = entry::rename(&dir, &*temporary, name);
    // A rename between two links to one inode succeeds and leaves both names.
    let _ = entry::unlink(&dir, &*temporary);
    renamed
}

fn new_link(binary: &Path, dir: &OwnedFd, name: &str, args: &InstallArgs) -> call::Result<()> {
    match (args.hard, binary.parent(), binary.file_name()) {
        (true, Some(parent), Some(itself)) => entry::link(open(parent)?, itself, dir, name),
        _ => entry::symlink(binary.as_os_str().as_bytes(), dir, name),
    }
}

/// Returns true if the name is a symbolic link as this command makes them: with the whole path of
/// the binary, and not through other links.
fn is_made(binary: &Path, link: &Path) -> bool {
    std::fs::read_link(link).is_ok_and(|to| {
        let there = std::fs::symlink_metadata(&to);
        to.is_absolute() && there.is_ok_and(|there| is_same(&there, binary))
    })
}

/// Returns true if these metadata are the binary's.
fn is_same(there: &Metadata, binary: &Path) -> bool {
    let here = std::fs::metadata(binary);
    here.is_ok_and(|here| (here.dev(), here.ino()) == (there.dev(), there.ino()))
}
