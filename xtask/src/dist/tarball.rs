//! The tarball: the program, which needs no library of the system, with pages, completions and
//! licences. The same files give the same bytes.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use super::elf;
use super::machine::Machine;
use super::{NAMES, SCHEMAS, epoch, lay_schemas};
use crate::sh;

/// SHA-256 of `abc`, as `sha256sum` prints it.
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// Packs the files already in `dir`, and `program`; `stem` is the folder in it, and its name.
pub(super) fn build(machine: &Machine, program: &Path, dir: &Path, stem: &str) -> Result<()> {
    if !elf::Program::read(program)?.is_static {
        bail!("{}: is linked dynamically", program.display());
    }
    let folder = sh::scratch("tarball")?;
    let root = folder.join(stem);
    lay(program, dir, &root)?;
    let to = dir.join(format!("{stem}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.arg(format!("--mtime=@{}", epoch()));
    tar.args(["--mode=u=rwX,go=rX", "--use-compress-program=gzip -9n"]);
    tar.arg("-cf").arg(&to).arg("-C").arg(&folder);
    sh::run(tar.arg(stem))?;
    check(machine, &to, stem)?;
    println!("{}", to.display());
    Ok(())
}

/// Lays out its contents. The applets' names are links, as `bc install` makes them.
fn lay(program: &Path, dir: &Path, root: &Path) -> Result<()> {
    let copy = |from: &Path, to: &str| -> Result<()> {
        let to = root.join(to);
        std::fs::create_dir_all(to.parent().expect("has a folder"))?;
        std::fs::copy(from, &to)?;
        Ok(())
    };
    copy(program, "bin/bc")?;
    for name in NAMES {
        symlink("bc", root.join("bin").join(name))?;
    }
    for page in std::fs::read_dir(dir.join("man"))? {
        let page = page?.path();
        let name = page.file_name().unwrap_or_default().to_string_lossy();
        let section = name.rsplit('.').next().unwrap_or("1");
        copy(&page, &format!("share/man/man{section}/{name}"))?;
    }
    let completions = dir.join("completions");
    copy(
        &completions.join("bc.bash"),
        "share/bash-completion/completions/bc",
    )?;
    copy(&completions.join("_bc"), "share/zsh/site-functions/_bc")?;
    copy(
        &completions.join("bc.fish"),
        "share/fish/vendor_completions.d/bc.fish",
    )?;
    lay_schemas(&root.join(SCHEMAS))?;
    copy(&dir.join("copyright"), "copyright")?;
    for file in ["README.md", "LICENSE-GPL", "LICENSE-LGPL"] {
        copy(&sh::root().join(file), file)?;
    }
    for page in std::fs::read_dir(sh::root().join("src/guide"))? {
        let page = page?.path();
        let name = page.file_name().unwrap_or_default().to_string_lossy();
        // Where README looks for it.
        copy(&page, &format!("src/guide/{name}"))?;
    }
    Ok(())
}

/// Checks that it hashes and its names work, unpacked elsewhere.
fn check(machine: &Machine, tarball: &Path, stem: &str) -> Result<()> {
    let folder = sh::scratch("tarball-check")?;
    let mut tar = Command::new("tar");
    sh::run(tar.arg("-xzf").arg(tarball).arg("-C").arg(&folder))?;
    let root = folder.join(stem);
    let abc = folder.join("abc");
    std::fs::write(&abc, "abc")?;
    for name in ["bin/bchash", "bin/bitcrafts"] {
        let mut hash = machine.command(&root.join(name), name);
        if name.ends_with("bitcrafts") {
            hash.arg("hash");
        }
        let said = sh::stdout(hash.arg(&abc))?;
        if !String::from_utf8_lossy(&said).starts_with(ABC) {
            bail!("{}: {name} hashes wrongly", tarball.display());
        }
    }
    Ok(())
}
