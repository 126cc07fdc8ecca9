//! Contents of the Debian package: all its files, and no name of the calculator's.

use std::path::Path;

use anyhow::{Result, bail};

use super::NAMES;

/// Checks that there are all its files, and nothing of the calculator's, by name or in words.
pub(super) fn check(root: &Path) -> Result<()> {
    // The program itself is not among them yet.
    let names = NAMES[1..].iter().map(|name| format!("usr/bin/{name}"));
    let pages = NAMES.map(|name| format!("usr/share/man/man1/{name}.1"));
    for path in names.chain(pages) {
        if root.join(&path).symlink_metadata().is_err() {
            bail!("{}: holds no {path}", root.display());
        }
    }
    let mut folders = vec![root.to_path_buf()];
    while let Some(here) = folders.pop() {
        for entry in std::fs::read_dir(&here)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name == "bc" || name == "_bc" || name.starts_with("bc.") || name.starts_with("bc-") {
                bail!("{}: holds {name}, the calculator's", root.display());
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
    !path.contains("completions")
}

/// Checks that no word of a text is the calculator's name.
fn says_no_bc(path: &Path) -> Result<()> {
    let text = std::fs::read(path)?;
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
