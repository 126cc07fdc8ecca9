//! Files of the Debian package, but for the program: `bitcrafts` with its other names, pages and
//! completions. There is no `/usr/bin/bc` and no `bc.1`, which belong to the calculator, and nothing
//! says `bc`. `cargo deb` packs them, by the table in Cargo.toml.

use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::machine::Machine;
use super::{NAMES, Release, SCHEMAS, deb_check, generate, guide, lay_schemas};

/// What changed from release to release of the package.
const CHANGELOG: &str = include_str!("../../debian/changelog");

/// Lays the files into `root`, which is emptied first, and checks them.
pub(super) fn build(machine: &Machine, bc: &Path, root: &Path, release: &Release) -> Result<()> {
    let latest = format!("bit-crafts ({}-", release.version);
    if !CHANGELOG.starts_with(&latest) {
        bail!(
            "xtask/debian/changelog does not begin with version {}",
            release.version
        );
    }
    if root.exists() {
        std::fs::remove_dir_all(root).with_context(|| root.display().to_string())?;
    }
    lay(machine, bc, root)?;
    println!("{}", root.display());
    deb_check::check(root)
}

/// Lays into `root` the files that the program writes when it is called by the package's name.
pub(super) fn lay(machine: &Machine, bc: &Path, root: &Path) -> Result<()> {
    let [whole, applets @ ..] = NAMES;
    let share = root.join("usr/share");
    let man = share.join("man/man1");
    std::fs::create_dir_all(&man)?;
    generate(machine, bc, whole, "man", &man)?;
    put(
        &share.join("man/man7"),
        &format!("{whole}-guide.7"),
        &guide::page(whole),
    )?;
    let completions = [
        ("bash", "bash-completion/completions", whole.to_owned()),
        ("zsh", "zsh/vendor-completions", format!("_{whole}")),
        ("fish", "fish/vendor_completions.d", format!("{whole}.fish")),
    ];
    for (shell, folder, name) in completions {
        let folder = share.join(folder);
        std::fs::create_dir_all(&folder)?;
        let what = format!("complete-{shell}");
        generate(machine, bc, whole, &what, &folder.join(&name))?;
        // zsh reads the names that a file is for from its first line; bash and fish look for a file
        // of the command's name.
        for applet in applets.iter().filter(|_| shell != "zsh") {
            symlink(&name, folder.join(name.replace(whole, applet)))?;
        }
    }
    lay_schemas(&root.join("usr").join(SCHEMAS))?;
    let bin = root.join("usr/bin");
    std::fs::create_dir_all(&bin)?;
    for applet in applets {
        symlink(whole, bin.join(applet))?;
    }
    Ok(())
}

fn put(folder: &Path, name: &str, text: &str) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let path = folder.join(name);
    std::fs::write(&path, text).with_context(|| path.display().to_string())
}
