//! The Debian package: `bitcrafts` with its other names, pages and completions. It holds no
//! `/usr/bin/bc` and no `bc.1`, which belong to the calculator.

use std::path::Path;

use anyhow::{Result, bail};

use super::{NAMES, Node, completions, man};
use crate::sh;

/// Lays what the package holds beside the binary, and packs it where cargo-deb is installed.
pub(super) fn build(nodes: &[Node<'_>], dir: &Path) -> Result<()> {
    if !sh::has("cargo-deb") {
        println!("not built: the Debian package; `cargo install cargo-deb` brings what packs it");
        return Ok(());
    }
    // Where Cargo.toml names it.
    let staged = sh::root().join("target/deb");
    if staged.exists() {
        std::fs::remove_dir_all(&staged)?;
    }
    let whole = NAMES[0];
    for name in &NAMES[1..] {
        link(whole, &staged.join("bin").join(name))?;
        link(whole, &staged.join("bash").join(name))?;
        link(
            &format!("{whole}.fish"),
            &staged.join("fish").join(format!("{name}.fish")),
        )?;
    }
    let put = |folder: &str, name: &str, text: &str| -> Result<()> {
        let path = staged.join(folder).join(name);
        std::fs::create_dir_all(staged.join(folder))?;
        Ok(std::fs::write(path, text)?)
    };
    for node in nodes {
        let name = node.words.join("-");
        let page = man::page(node);
        if name == "bc" {
            put(
                "man",
                &format!("{whole}.1"),
                &page.replace("SH NAME\nbc ", "SH NAME\nbitcrafts "),
            )?;
        } else {
            put("man", &format!("{name}.1"), &page)?;
        }
        // `man bchash` finds the page of `bc hash`.
        if let ["bc", applet] = node.words[..]
            && NAMES.contains(&format!("bc{applet}").as_str())
        {
            put(
                "man",
                &format!("bc{applet}.1"),
                &format!(".so man1/{name}.1\n"),
            )?;
        }
    }
    put("bash", whole, &completions::bash(nodes, &NAMES))?;
    put(
        "zsh",
        &format!("_{whole}"),
        &completions::zsh(nodes, &NAMES),
    )?;
    put(
        "fish",
        &format!("{whole}.fish"),
        &completions::fish(nodes, &NAMES),
    )?;

    let mut deb = sh::cargo();
    deb.args(["deb", "--no-build", "--strip", "--quiet", "--output"])
        .arg(dir);
    sh::run(&mut deb)?;
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

fn link(target: &str, path: &Path) -> Result<()> {
    std::fs::create_dir_all(path.parent().expect("has a folder"))?;
    Ok(std::os::unix::fs::symlink(target, path)?)
}
