//! The Debian package: `bitcrafts` with its other names, pages and completions. It holds no
//! `/usr/bin/bc` and no `bc.1`, which belong to the calculator, and nothing in it says `bc`.
//!
//! It is laid and packed here, with `dpkg-deb`: all that a helper would do for one program and some
//! pages is done in fewer lines than its settings would take.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{NAMES, Release, deb_check, elf, epoch, generate, guide, lintian};
use crate::sh;

const PACKAGE: &str = "bit-crafts";

/// Revision of the package, for its own changes besides those of the program.
const REVISION: u32 = 1;

const DESCRIPTION: &str =
    " bit-crafts hashes trees with all cores and SIMD lanes (bchash), finds duplicate
 files and safely reclaims their space (bcdup), records a tree once to tell
 edits from moves from bitrot later (bcintegrity), and copies trees so that the
 same command goes on after an interruption (bccopy). All four are names of one
 program, bitcrafts.
";

/// Findings that lintian is to ignore, with the reasons.
const OVERRIDES: &str = "\
# Half of what hashing one small file takes is the start of the process, and a third of that would
# be spent on loading and relocating the C library. No names of users or hosts are looked up.
# It is placed at random addresses all the same (a static PIE), by which it looks like a library.
bit-crafts: shared-library-lacks-prerequisites [usr/bin/bitcrafts]
# The backtrace of a panic names functions. Tables of lines are in a file of their own.
bit-crafts: unstripped-binary-or-object [usr/bin/bitcrafts]
# It comes from its own project, to which nobody has filed a bug about packaging it.
bit-crafts: initial-upload-closes-no-bugs [usr/share/doc/bit-crafts/changelog.Debian.gz:1]
";

/// Lays and packs it where `dpkg-deb` is installed, and checks the package.
pub(super) fn build(
    bc: &Path,
    dir: &Path,
    release: &Release,
    copyright: &str,
) -> Result<Option<PathBuf>> {
    if !sh::has("dpkg-deb") {
        println!("not built: the Debian package; dpkg-deb is not installed");
        return Ok(None);
    }
    let root = sh::scratch("deb")?;
    lay(bc, &root)?;
    let package = pack(bc, &root, dir, release, copyright)?;
    println!("{}", package.display());
    deb_check::check(&package)?;
    lintian::check(&package)?;
    Ok(Some(package))
}

/// Lays into `root` the files that the program writes when it is called by the package's name.
pub(super) fn lay(bc: &Path, root: &Path) -> Result<()> {
    let [whole, applets @ ..] = NAMES;
    let share = root.join("usr/share");
    let man = share.join("man/man1");
    std::fs::create_dir_all(&man)?;
    generate(bc, whole, "man", &man)?;
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
        generate(bc, whole, &format!("complete-{shell}"), &folder.join(&name))?;
        // zsh reads the names that a file is for from its first line; bash and fish look for a file
        // of the command's name.
        for applet in applets.iter().filter(|_| shell != "zsh") {
            symlink(&name, folder.join(name.replace(whole, applet)))?;
        }
    }
    let bin = root.join("usr/bin");
    std::fs::create_dir_all(&bin)?;
    for applet in applets {
        symlink(whole, bin.join(applet))?;
    }
    Ok(())
}

/// Adds the program and the files that Debian requires, and packs it all.
pub(super) fn pack(
    program: &Path,
    root: &Path,
    dir: &Path,
    release: &Release,
    copyright: &str,
) -> Result<PathBuf> {
    let version = format!("{}-{REVISION}", release.version);
    let doc = root.join("usr/share/doc").join(PACKAGE);
    put(&doc, "copyright", copyright)?;
    put(&doc, "changelog.Debian", &changelog(&version)?)?;
    put(
        &root.join("usr/share/lintian/overrides"),
        PACKAGE,
        OVERRIDES,
    )?;
    compress(root)?;
    std::fs::copy(program, root.join("usr/bin").join(NAMES[0]))?;
    modes(root)?;
    let mut sums = Command::new("sh");
    sums.args([
        "-c",
        "find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum",
    ]);
    let sums = sh::stdout(sums.current_dir(root))?;
    let control = root.join("DEBIAN");
    let (architecture, depends) = (architecture()?, depends(program, root)?);
    put(&control, "md5sums", &String::from_utf8(sums)?)?;
    let text = format!(
        "Package: {PACKAGE}\nVersion: {version}\nArchitecture: {architecture}\n\
         Maintainer: {}\nInstalled-Size: {}\n{depends}Section: utils\nPriority: optional\n\
         Description: {}\n{DESCRIPTION}",
        maintainer(),
        kibibytes(&root.join("usr"))?,
        release.description
    );
    put(&control, "control", &text)?;
    std::fs::set_permissions(&control, std::fs::Permissions::from_mode(0o755))?;
    std::fs::create_dir_all(dir)?;
    let package = dir.join(format!("{PACKAGE}_{version}_{architecture}.deb"));
    let mut pack = Command::new("dpkg-deb");
    pack.args(["--root-owner-group", "-Zxz", "--build"]);
    pack.arg(root)
        .arg(&package)
        .env("SOURCE_DATE_EPOCH", epoch());
    sh::stdout(&mut pack)?;
    Ok(package)
}

fn put(folder: &Path, name: &str, text: &str) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let path = folder.join(name);
    std::fs::write(&path, text).with_context(|| path.display().to_string())
}

/// Returns the maintainer of the package, from the variables of Debian's tools: `DEBFULLNAME` and
/// `DEBEMAIL`.
fn maintainer() -> String {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let name = set("DEBFULLNAME").unwrap_or_else(|| "The bit-crafts developers".to_owned());
    let mail = set("DEBEMAIL");
    let mail = mail.unwrap_or_else(|| "bit-crafts@users.noreply.github.com".to_owned());
    format!("{name} <{mail}>")
}

fn changelog(version: &str) -> Result<String> {
    let mut date = Command::new("date");
    date.args(["-u", "--rfc-email", "-d"])
        .arg(format!("@{}", epoch()));
    let date = String::from_utf8(sh::stdout(date.env("LC_ALL", "C"))?)?;
    Ok(format!(
        "{PACKAGE} ({version}) unstable; urgency=medium\n\n  * Release {}, as its own project packs it.\n\n \
         -- {}  {}\n",
        version.split('-').next().unwrap_or(version),
        maintainer(),
        date.trim()
    ))
}

/// Pages and changelogs are compressed, the same bytes each time.
fn compress(root: &Path) -> Result<()> {
    for folder in ["usr/share/man/man1", "usr/share/man/man7"] {
        for page in std::fs::read_dir(root.join(folder))? {
            sh::run(Command::new("gzip").arg("-9n").arg(page?.path()))?;
        }
    }
    let changelog = root
        .join("usr/share/doc")
        .join(PACKAGE)
        .join("changelog.Debian");
    sh::run(Command::new("gzip").arg("-9n").arg(changelog))
}

/// Sets modes regardless of the umask: programs can be started, and everything can be read.
fn modes(root: &Path) -> Result<()> {
    let bin = root.join("usr/bin");
    let mut folders = vec![root.join("usr")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                let mode = if folder == bin { 0o755 } else { 0o644 };
                let mode = std::fs::Permissions::from_mode(mode);
                std::fs::set_permissions(entry.path(), mode)?;
            }
        }
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755))?;
    }
    Ok(std::fs::set_permissions(
        root,
        std::fs::Permissions::from_mode(0o755),
    )?)
}

fn kibibytes(folder: &Path) -> Result<u64> {
    let said = sh::stdout(
        Command::new("du")
            .args(["-sk", "--apparent-size"])
            .arg(folder),
    )?;
    let said = String::from_utf8(said)?;
    let number = said.split_whitespace().next().context("du says nothing")?;
    Ok(number.parse()?)
}

fn architecture() -> Result<String> {
    let said = sh::stdout(Command::new("dpkg").arg("--print-architecture"))?;
    Ok(String::from_utf8(said)?.trim().to_owned())
}

/// Returns the libraries that the program needs, if it needs any.
fn depends(program: &Path, root: &Path) -> Result<String> {
    if !elf::needs_interpreter(program)? {
        return Ok(String::new());
    }
    // It wants to be called where a source package lies.
    let folder = root.with_file_name("shlibdeps");
    put(
        &folder.join("debian"),
        "control",
        "Source: bit-crafts\n\nPackage: bit-crafts\nArchitecture: any\n",
    )?;
    let mut find = Command::new("dpkg-shlibdeps");
    find.current_dir(&folder).arg("-O").arg("-e");
    find.arg(root.join("usr/bin").join(NAMES[0]));
    let said = sh::stdout(&mut find).context("package dpkg-dev names the libraries")?;
    let said = String::from_utf8(said)?;
    let line = said
        .lines()
        .find_map(|line| line.strip_prefix("shlibs:Depends="));
    Ok(format!(
        "Depends: {}\n",
        line.context("dpkg-shlibdeps says nothing")?
    ))
}
