//! `cargo xtask datasets`: the trees that are measured and compared, under `target/datasets`.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::args::Args;
use crate::sh;

/// The version the recorded figures are for.
const LINUX: &str = "6.12";

/// Number of files of the synth dataset unless asked otherwise.
const SYNTH_FILES: u64 = 5_000;

pub(crate) fn run(mut args: Args) -> Result<ExitCode> {
    let dir = args.option("--dir")?.map(PathBuf::from);
    let files = args.number("--files", SYNTH_FILES)?;
    let seed = args.number("--seed", 1)?;
    let copies = args.number("--copies", 4)?;
    let what = args.word();
    args.done()?;
    let laid = match what.as_deref() {
        Some("linux") => linux(dir)?,
        Some("synth") => synth(&dir.unwrap_or_else(|| sh::dataset("synth")), files, seed)?,
        Some("hostile") => hostile(&dir.unwrap_or_else(|| sh::dataset("hostile")))?,
        Some("copies") => copy(dir.unwrap_or_else(|| sh::dataset("linux")), copies)?,
        _ => bail!("datasets needs one of linux, synth, hostile, copies"),
    };
    println!("{}", laid.display());
    Ok(ExitCode::SUCCESS)
}

/// Returns a dataset's name in a record: never its path.
pub(crate) fn name(dir: &Path) -> String {
    let makefile = std::fs::read_to_string(dir.join("Makefile")).unwrap_or_default();
    let field = |key: &str| {
        makefile.lines().take(10).find_map(|line| {
            line.split_once('=')
                .filter(|(k, _)| k.trim() == key)
                .map(|(_, v)| v.trim().to_owned())
        })
    };
    match (field("VERSION"), field("PATCHLEVEL")) {
        (Some(version), Some(level)) => format!("linux-{version}.{level}"),
        _ => dir
            .file_name()
            .map_or_else(String::new, |n| n.to_string_lossy().into_owned()),
    }
}

/// Returns the kernel's source tree; a directory that is named and exists is taken as it is.
fn linux(dir: Option<PathBuf>) -> Result<PathBuf> {
    let dir = dir.unwrap_or_else(|| sh::dataset("linux"));
    if dir.join("MAINTAINERS").exists() {
        return dir
            .canonicalize()
            .with_context(|| dir.display().to_string());
    }
    if dir.exists() && dir.read_dir()?.next().is_some() {
        bail!("{} exists and holds no kernel source", dir.display());
    }
    let archive = linux_archive()?;
    let partial = dir.with_extension("partial");
    if partial.exists() {
        std::fs::remove_dir_all(&partial)?;
    }
    std::fs::create_dir_all(&partial)?;
    eprintln!("xtask: extracting {}", archive.display());
    let mut tar = Command::new("tar");
    tar.arg("-xf")
        .arg(&archive)
        .arg("-C")
        .arg(&partial)
        .arg("--strip-components=1");
    sh::run(&mut tar)?;
    if dir.exists() {
        std::fs::remove_dir(&dir)?;
    }
    std::fs::rename(&partial, &dir)?;
    Ok(dir)
}

/// Returns Debian's package of the source where there is apt and the right to use it, else
/// kernel.org's.
fn linux_archive() -> Result<PathBuf> {
    let packaged = PathBuf::from(format!("/usr/src/linux-source-{LINUX}.tar.xz"));
    if packaged.exists() {
        return Ok(packaged);
    }
    if sh::has("apt-get") && sh::is_root() {
        let package = format!("linux-source-{LINUX}");
        let install = |words: &[&str]| {
            sh::run(
                Command::new("apt-get")
                    .env("DEBIAN_FRONTEND", "noninteractive")
                    .args(words),
            )
        };
        let asked = install(&["-q", "update"])
            .and_then(|()| install(&["-q", "-y", "--no-install-recommends", "install", &package]));
        match asked {
            Ok(()) if packaged.exists() => return Ok(packaged),
            Ok(()) => eprintln!("xtask: {package} holds no {}", packaged.display()),
            Err(error) => eprintln!("xtask: {error:#}"),
        }
    }
    let folder = sh::target().join("datasets");
    std::fs::create_dir_all(&folder)?;
    let archive = folder.join(format!("linux-{LINUX}.tar.xz"));
    if archive.exists() {
        return Ok(archive);
    }
    let url = format!("https://cdn.kernel.org/pub/linux/kernel/v6.x/linux-{LINUX}.tar.xz");
    let partial = archive.with_extension("xz.partial");
    if sh::has("curl") {
        sh::run(
            Command::new("curl")
                .args(["-fL", "--retry", "2", "-o"])
                .arg(&partial)
                .arg(&url),
        )?;
    } else if sh::has("wget") {
        sh::run(
            Command::new("wget")
                .args(["-q", "-O"])
                .arg(&partial)
                .arg(&url),
        )?;
    } else {
        bail!(
            "no apt-get (or not root), curl or wget: lay the source of linux {LINUX} under \
             target/datasets/linux yourself, or name where it is with --dir"
        );
    }
    std::fs::rename(&partial, &archive)?;
    Ok(archive)
}

/// Mean size of the synth dataset's files in bytes, near that of a source tree's.
const MEAN_SIZE: u64 = 16 << 10;

/// Makes files of many sizes, duplicates among them, the same for the same seed.
pub(crate) fn synth(dir: &Path, files: u64, seed: u64) -> Result<PathBuf> {
    fresh(dir)?;
    let bytes = files * MEAN_SIZE;
    let files = usize::try_from(files)?;
    let synth = bc_testkit::Synth {
        seed,
        files,
        bytes,
        ..bc_testkit::Synth::default()
    };
    synth
        .build(dir)
        .with_context(|| dir.display().to_string())?;
    Ok(dir.to_owned())
}

/// Makes every kind of name and file that has broken a tool.
pub(crate) fn hostile(dir: &Path) -> Result<PathBuf> {
    fresh(dir)?;
    let made = bc_testkit::hostile::build(dir).with_context(|| dir.display().to_string())?;
    for (path, reason) in &made.left_out {
        eprintln!("xtask: left out: {}: {reason}", path.escape_ascii());
    }
    Ok(dir.to_owned())
}

/// Makes `copies` full copies of a tree, side by side.
fn copy(source: PathBuf, copies: u64) -> Result<PathBuf> {
    if !source.is_dir() {
        bail!(
            "{}: not there; `cargo xtask datasets linux` lays it",
            source.display()
        );
    }
    let dir = sh::dataset("copies");
    fresh(&dir)?;
    for number in 1..=copies {
        eprintln!("xtask: copy {number} of {copies}");
        let mut cp = Command::new("cp");
        cp.arg("-a")
            .arg("--reflink=never")
            .arg(&source)
            .arg(dir.join(number.to_string()));
        sh::run(&mut cp)?;
    }
    Ok(dir)
}

/// Makes an empty directory; an existing one is removed.
fn fresh(dir: &Path) -> Result<()> {
    bc_testkit::remove_tree(dir).with_context(|| dir.display().to_string())?;
    std::fs::create_dir_all(dir).with_context(|| dir.display().to_string())
}
