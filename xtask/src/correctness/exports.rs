//! Exports of bc integrity, checked by the tools that they are for; and their files imported.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::{Checks, Tree, expect_code, listing, same, sorted};
use crate::sh;

pub(super) fn check(checks: &mut Checks, tree: &Tree, manifest: &Path) -> Result<()> {
    let mut find = Command::new("find");
    let names = sh::stdout(find.arg(&tree.path).args(["-printf", "%P\\0"]))?;
    let names: Vec<&[u8]> = names.split(|&b| b == 0).collect();
    let plain = names.iter().all(|name| listing::plain(name));
    // mtree takes a name as a pattern even where it is escaped.
    let patterns = names
        .iter()
        .any(|name| name.iter().any(|b| b"*?[".contains(b)));

    gnu(checks, tree, manifest);
    imported(checks, tree, manifest);
    let name = format!("integrity {}: hashdeep -a accepts the export", tree.name);
    match (sh::has("hashdeep"), plain) {
        (false, _) => checks.not_run(name, "hashdeep is not installed"),
        (true, false) => checks.not_run(name, "its format cannot carry this tree's names"),
        (true, true) => checks.check(name, |checks| {
            let file = export(checks, "hashdeep", manifest)?;
            let mut audit = Command::new("hashdeep");
            audit
                .current_dir(&tree.path)
                .args(["-r", "-l", "-o", "f", "-a", "-k"]);
            let output = sh::capture(audit.arg(file).arg("."))?;
            expect_code(&output, 0, "hashdeep -a")?;
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }),
    }
    let name = format!("integrity {}: mtree accepts the export", tree.name);
    match (
        sh::find_tool(&["mtree", "mtree-netbsd", "bmtree"]),
        plain && !patterns,
    ) {
        (None, _) => checks.not_run(name, "mtree is not installed"),
        (_, false) => checks.not_run(name, "it takes some of this tree's names for patterns"),
        (Some(mtree), true) => checks.check(name, |checks| {
            let file = export(checks, "mtree", manifest)?;
            let mut verify = Command::new(&mtree);
            let output = sh::capture(verify.arg("-p").arg(&tree.path).arg("-f").arg(file))?;
            same(&sorted(&output.stdout, b'\n'), &[])?;
            expect_code(&output, 0, "mtree")?;
            Ok(String::new())
        }),
    }
    Ok(())
}

/// Exports the manifest; names that a format cannot carry make the exit code 1.
fn export(checks: &Checks, format: &str, manifest: &Path) -> Result<std::path::PathBuf> {
    let file = checks.scratch.join(format!("export.{format}"));
    let (format, output) = (
        format!("--format={format}"),
        format!("--output={}", file.display()),
    );
    let ran = sh::capture(
        checks
            .bc(&["integrity", "export", &format, &output])
            .arg(manifest),
    )?;
    expect_code(&ran, 0, "bc integrity export")?;
    Ok(file)
}

/// Checks GNU's format. It can carry every name; a path that no tool can open is taken out.
fn gnu(checks: &mut Checks, tree: &Tree, manifest: &Path) {
    checks.check(
        format!("integrity {}: sha256sum -c accepts the export", tree.name),
        |checks| {
            let text = std::fs::read(export(checks, "gnu", manifest)?)?;
            let mut lines = sorted(&text, b'\n');
            lines.retain(|l| listing::gnu_path(l).is_some_and(|path| listing::openable(&path)));
            let mut verify = Command::new("sha256sum");
            verify
                .current_dir(&tree.path)
                .args(["-c", "--quiet", "--strict"]);
            expect_code(
                &sh::feed(&mut verify, &listing::text(&lines))?,
                0,
                "sha256sum",
            )?;
            Ok(format!("{} lines", lines.len()))
        },
    );
}

/// Checks that a file of sums made by sha256sum, imported, says the same of every file's content.
fn imported(checks: &mut Checks, tree: &Tree, manifest: &Path) {
    checks.check(
        format!("integrity {}: sha256sum's lines imported", tree.name),
        |checks| {
            let files = listing::files(&tree.path)?;
            let files: Vec<&Vec<u8>> = files.iter().filter(|p| listing::openable(p)).collect();
            let sums = checks.scratch.join("sums");
            std::fs::write(&sums, listing::over(&["sha256sum"], &files)?)?;
            let file = checks.scratch.join("imported.jsonl");
            let output = format!("--output={}", file.display());
            let mut import = checks.bc(&["integrity", "import", "--algorithm=sha256", &output]);
            import.arg("--strip-prefix").arg(&tree.path).arg(sums);
            expect_code(&sh::capture(&mut import)?, 0, "bc integrity import")?;
            let diff = sh::capture(checks.bc(&["integrity", "diff"]).arg(&file).arg(manifest))?;
            // Only the manifest knows directories and links: they are added. Content must not differ.
            let mut differing = sorted(&diff.stdout, b'\n');
            differing.retain(|l| !l.starts_with(b"+ ") && !l.starts_with(b"~m "));
            same(&differing, &[])?;
            Ok(format!("{} files", files.len()))
        },
    );
}
