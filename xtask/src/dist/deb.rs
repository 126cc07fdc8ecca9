//! The Debian package: `bitcrafts` with its other names, pages and completions. It holds no
//! `/usr/bin/bc` and no `bc.1`, which belong to the calculator.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::{NAMES, Node, completions, guide, man};
use crate::sh;

/// Where Cargo.toml names what the package holds beside the binary.
fn staged() -> PathBuf {
    sh::root().join("target/deb")
}

fn put(folder: &str, name: &str, text: &str) -> Result<()> {
    let folder = staged().join(folder);
    std::fs::create_dir_all(&folder)?;
    Ok(std::fs::write(folder.join(name), text)?)
}

fn link(target: &str, folder: &str, name: &str) -> Result<()> {
    let folder = staged().join(folder);
    std::fs::create_dir_all(&folder)?;
    Ok(std::os::unix::fs::symlink(target, folder.join(name))?)
}

/// Lays the manual pages; whatever was laid before goes.
pub(super) fn pages(nodes: &[Node<'_>]) -> Result<()> {
    if staged().exists() {
        std::fs::remove_dir_all(staged())?;
    }
    for node in nodes {
        let name = node.words.join("-");
        let page = man::page(node).replace("bc\\-guide", "bitcrafts\\-guide");
        if name == "bc" {
            let page = page.replace("SH NAME\nbc ", "SH NAME\nbitcrafts ");
            put("man", "bitcrafts.1", &page)?;
        } else {
            put("man", &format!("{name}.1"), &page)?;
        }
        // `man bchash` finds the page of `bc hash`.
        if let ["bc", applet] = node.words[..]
            && NAMES.contains(&format!("bc{applet}").as_str())
        {
            let other = format!("bc{applet}.1");
            put("man", &other, &format!(".so man1/{name}.1\n"))?;
        }
    }
    put("man7", "bitcrafts-guide.7", &guide::page("bitcrafts"))
}

/// Lays links and completions, and packs it all where cargo-deb is installed.
pub(super) fn build(nodes: &[Node<'_>], dir: &Path) -> Result<()> {
    if !sh::has("cargo-deb") {
        println!("not built: the Debian package; `cargo install cargo-deb` brings what packs it");
        return Ok(());
    }
    let [whole, applets @ ..] = NAMES;
    for name in applets {
        link(whole, "bin", name)?;
        link(whole, "bash", name)?;
        link(&format!("{whole}.fish"), "fish", &format!("{name}.fish"))?;
    }
    put("bash", whole, &completions::bash(nodes, &NAMES))?;
    put(
        "zsh",
        &format!("_{whole}"),
        &completions::zsh(nodes, &NAMES),
    )?;
    let fish = completions::fish(nodes, &NAMES);
    put("fish", &format!("{whole}.fish"), &fish)?;

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
