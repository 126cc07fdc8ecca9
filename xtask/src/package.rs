//! `cargo xtask package`: packs every crate as crates.io would get it, then builds and tests the
//! packages, away from the workspace: no file outside a package may be needed.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::args::Args;
use crate::sh;

pub(crate) fn run(mut args: Args) -> Result<ExitCode> {
    let quick = args.flag("--no-test");
    let dirty = args.flag("--allow-dirty");
    let wanted = args.rest()?;
    let mut pack = sh::cargo();
    // The packages are built and tested below, all of them at once.
    pack.args(["package", "--workspace", "--quiet", "--no-verify"]);
    if dirty {
        pack.arg("--allow-dirty");
    }
    sh::run(&mut pack)?;
    let packages = published()?;
    let known = |name: &&String| packages.iter().any(|(known, _)| known == *name);
    if let Some(unknown) = wanted.iter().find(|name| !known(name)) {
        bail!("package: {unknown} is none of ours that is published");
    }
    let folder = sh::scratch("package")?;
    let mut workspace = String::from("[workspace]\nresolver = \"3\"\nmembers = [");
    let mut patches = String::from("]\n\n[patch.crates-io]\n");
    for (name, version) in &packages {
        let unpacked = unpack(name, version, &folder)?;
        workspace.push_str(&format!("\"{unpacked}\", "));
        patches.push_str(&format!("{name} = {{ path = \"{unpacked}\" }}\n"));
    }
    std::fs::write(folder.join("Cargo.toml"), workspace + &patches)?;
    // The versions that the workspace was tested with.
    std::fs::copy(sh::root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
    let mut cargo = Command::new(sh::cargo().get_program());
    // Not below the folder, which the next run clears.
    cargo.current_dir(&folder);
    cargo.env(
        "CARGO_TARGET_DIR",
        sh::target().join("xtask/package-target"),
    );
    cargo.args(if quick { ["check"] } else { ["test"] });
    cargo.arg("--quiet");
    match wanted.as_slice() {
        [] => {
            cargo.arg("--workspace");
        }
        names => {
            for name in names {
                cargo.args(["--package", name]);
            }
        }
    }
    sh::run(&mut cargo)?;
    let done = if quick { "builds" } else { "passes its tests" };
    let of = match wanted.len() {
        0 => packages.len().to_string(),
        some => format!("{some} of {}", packages.len()),
    };
    println!("{of} packages; each {done} by itself");
    Ok(ExitCode::SUCCESS)
}

/// Returns the name and version of the packages that are for crates.io.
fn published() -> Result<Vec<(String, String)>> {
    let mut metadata = sh::cargo();
    metadata.args(["metadata", "--format-version=1", "--no-deps", "--locked"]);
    let metadata: Value = serde_json::from_slice(&sh::stdout(&mut metadata)?)?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    let ours = packages.iter().filter(|p| p["publish"].is_null());
    ours.map(|package| {
        for field in ["description", "license"] {
            if package[field].as_str().unwrap_or("").is_empty() {
                bail!("{}: crates.io wants a {field}", package["name"]);
            }
        }
        // A link that leads to another project is worse than none.
        if !package["repository"].is_null() {
            bail!(
                "{}: names a repository, and there is none yet",
                package["name"]
            );
        }
        let text = |key: &str| package[key].as_str().unwrap_or("").to_owned();
        Ok((text("name"), text("version")))
    })
    .collect()
}

/// Unpacks a `.crate` and returns the name of its folder.
fn unpack(name: &str, version: &str, folder: &Path) -> Result<String> {
    let unpacked = format!("{name}-{version}");
    let archive: PathBuf = sh::target().join(format!("package/{unpacked}.crate"));
    // With the present time: packed files have one of long ago, by which builds of other content
    // before would pass for theirs.
    let mut tar = Command::new("tar");
    sh::run(tar.arg("-xzmf").arg(&archive).arg("-C").arg(folder))?;
    Ok(unpacked)
}
