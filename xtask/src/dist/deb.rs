//! The Debian package: `bitcrafts` with its other names, pages and completions. It holds no
//! `/usr/bin/bc` and no `bc.1`, which belong to the calculator.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::{NAMES, generate, guide};
use crate::sh;

/// Where Cargo.toml names what the package holds beside the binary.
fn staged() -> PathBuf {
    sh::root().join("target/deb")
}

fn put(folder: &Path, name: &str, text: &str) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    Ok(std::fs::write(folder.join(name), text)?)
}

fn link(target: &str, folder: &Path, name: &str) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    Ok(std::os::unix::fs::symlink(target, folder.join(name))?)
}

/// Lays into `staged` what the program writes when it is called by the package's name.
pub(super) fn lay(bc: &Path, staged: &Path) -> Result<()> {
    let [whole, applets @ ..] = NAMES;
    generate(bc, whole, "man", &staged.join("man"))?;
    let page = guide::page(whole);
    put(&staged.join("man7"), &format!("{whole}-guide.7"), &page)?;
    for name in applets {
        link(whole, &staged.join("bin"), name)?;
        link(whole, &staged.join("bash"), name)?;
        let (target, fish) = (format!("{whole}.fish"), format!("{name}.fish"));
        link(&target, &staged.join("fish"), &fish)?;
    }
    let completion = |folder: &str, name: String| {
        let to = staged.join(folder);
        std::fs::create_dir_all(&to)?;
        generate(bc, whole, &format!("complete-{folder}"), &to.join(name))
    };
    completion("bash", whole.to_owned())?;
    completion("zsh", format!("_{whole}"))?;
    completion("fish", format!("{whole}.fish"))
}

/// Lays pages, links and completions, and packs it all where cargo-deb is installed.
pub(super) fn build(bc: &Path, dir: &Path) -> Result<()> {
    // Whatever was laid before goes.
    if staged().exists() {
        std::fs::remove_dir_all(staged())?;
    }
    lay(bc, &staged())?;
    if !sh::has("cargo-deb") {
        println!("not built: the Debian package; `cargo install cargo-deb` brings what packs it");
        return Ok(());
    }
    let mut deb = sh::cargo();
    deb.args(["deb", "--no-build", "--strip", "--quiet", "--output"]);
    sh::stdout(deb.arg(dir))?;
    let packages = std::fs::read_dir(dir)?.flatten().map(|entry| entry.path());
    let mut packages: Vec<_> = packages
        .filter(|path| path.extension().is_some_and(|e| e == "deb"))
        .collect();
    packages.sort();
    let Some(package) = packages.pop() else {
        bail!("cargo deb left no package in {}", dir.display());
    };
    println!("{}", package.display());
    check(&package)
}

/// No name of the calculator's.
fn check(package: &Path) -> Result<()> {
    if !sh::has("dpkg-deb") {
        println!("not checked: the package's names; dpkg-deb is not installed");
        return Ok(());
    }
    let mut list = std::process::Command::new("dpkg-deb");
    let list = sh::stdout(list.arg("-c").arg(package))?;
    let list = String::from_utf8_lossy(&list);
    for line in list.lines() {
        let name = line.split_whitespace().nth(5).unwrap_or("");
        if ["./usr/bin/bc", "./usr/share/man/man1/bc.1.gz"].contains(&name) {
            bail!("{}: holds {name}, the calculator's", package.display());
        }
    }
    for name in NAMES {
        if !list.contains(&format!(" ./usr/bin/{name}")) {
            bail!("{}: holds no /usr/bin/{name}", package.display());
        }
    }
    Ok(())
}
