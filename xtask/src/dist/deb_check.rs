//! Contents of the Debian package: all its files, and no name of the calculator's.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use super::NAMES;
use crate::sh;

/// Checks that it contains all its files, and nothing of the calculator's, by name or in words.
pub(super) fn check(package: &Path) -> Result<()> {
    let folder = package.with_extension("unpacked");
    let checked = contents(package, &folder);
    let _ = std::fs::remove_dir_all(&folder);
    checked
}

fn contents(package: &Path, folder: &Path) -> Result<()> {
    let mut unpack = Command::new("dpkg-deb");
    sh::run(unpack.arg("--raw-extract").arg(package).arg(folder))?;
    let mut sums = Command::new("md5sum");
    sums.current_dir(folder)
        .args(["--check", "--quiet", "--strict"]);
    sh::stdout(sums.arg("DEBIAN/md5sums"))?;
    for name in NAMES {
        for path in [
            format!("usr/bin/{name}"),
            format!("usr/share/man/man1/{name}.1.gz"),
        ] {
            if !folder.join(&path).exists() {
                bail!("{}: holds no {path}", package.display());
            }
        }
    }
    let mut folders = vec![folder.to_path_buf()];
    while let Some(here) = folders.pop() {
        for entry in std::fs::read_dir(&here)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name == "bc" || name == "_bc" || name.starts_with("bc.") || name.starts_with("bc-") {
                bail!("{}: holds {name}, the calculator's", package.display());
            }
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if entry.file_type()?.is_file() && is_read(&path) {
                says_no_bc(&path)?;
            }
        }
    }
    Ok(())
}

/// Returns true if people read the file; names inside completions are shown to no one.
fn is_read(path: &Path) -> bool {
    let path = path.to_string_lossy();
    !path.contains("/usr/bin/") && !path.contains("completions")
}

/// Checks that no word of a text, compressed or not, is the calculator's name.
fn says_no_bc(path: &Path) -> Result<()> {
    let is_compressed = path.extension().is_some_and(|end| end == "gz");
    let text = match is_compressed {
        true => sh::stdout(Command::new("gzip").arg("-dc").arg(path))?,
        false => std::fs::read(path)?,
    };
    let text = String::from_utf8_lossy(&text);
    for (number, line) in text.lines().enumerate() {
        // As pages have them: dashes that are no breaks, and formatting in front of a word.
        let line = ["\\fB", "\\fI", "\\fR"]
            .iter()
            .fold(line.replace("\\-", "-"), |line, format| {
                line.replace(format, " ")
            });
        let mut words = line.split(|c: char| !(c.is_alphanumeric() || "_-/.$+~".contains(c)));
        if words.any(|word| word == "bc") {
            bail!("{}:{}: says bc: {line}", path.display(), number + 1);
        }
    }
    Ok(())
}
