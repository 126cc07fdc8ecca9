//! `cargo xtask coverage`: which lines the tests run, file by file, as the compiler counts them
//! (`-Cinstrument-coverage`), those of the binary that the integration tests start included.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::args::Args;
use crate::sh;

pub(crate) fn run(mut args: Args) -> Result<ExitCode> {
    let html = args.flag("--html");
    let packages = args.rest()?;
    let Some(tools) = tools() else {
        println!("coverage: not run: `rustup component add llvm-tools` brings what it needs");
        return Ok(ExitCode::FAILURE);
    };
    let counts = sh::scratch("coverage-counts")?;
    let target = sh::target().join("xtask/coverage");
    let objects = build(&packages, &target)?;
    // Each process has a file of its own, merged by the program that wrote it.
    let pattern = counts.join("%m-%p.profraw");
    let mut test = tests(&packages, &target);
    test.arg("--no-fail-fast")
        .env("LLVM_PROFILE_FILE", &pattern);
    let passed = test.stdout(Stdio::null()).status()?.success();
    let merged = counts.join("all.profdata");
    let mut merge = Command::new(tools.join("llvm-profdata"));
    merge.args(["merge", "--sparse", "--failure-mode=all", "--output"]);
    merge.arg(&merged).args(raw(&counts)?);
    sh::run(&mut merge)?;
    let show = |verb: &str| {
        let mut show = Command::new(tools.join("llvm-cov"));
        show.arg(verb).arg("--instr-profile").arg(&merged);
        // Only our own code, and no tests.
        show.arg(
            "--ignore-filename-regex=/(\\.cargo|rustc|tests|examples|target|testkit)/|tests?\\.rs$",
        );
        for object in &objects {
            show.arg("--object").arg(object);
        }
        show
    };
    print!(
        "{}",
        table(&sh::stdout(show("export").arg("--summary-only"))?)?
    );
    if html {
        let folder = target.join("html");
        let mut pages = show("show");
        pages.args(["--format=html", "--output-dir"]).arg(&folder);
        sh::run(&mut pages)?;
        println!("{}", folder.join("index.html").display());
    }
    if !passed {
        println!(
            "coverage: some tests failed; the lines that they would have run count as not run"
        );
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the folder of `llvm-cov` and `llvm-profdata`: of the compiler's own version.
fn tools() -> Option<PathBuf> {
    let host = sh::sysroot(None)?.join("lib/rustlib/x86_64-unknown-linux-gnu/bin");
    host.join("llvm-cov").exists().then_some(host)
}

fn tests(packages: &[String], target: &Path) -> Command {
    let mut test = sh::cargo();
    test.args(["test", "--quiet", "--lib", "--bins", "--tests"]);
    match packages {
        [] => {
            test.args(["--workspace", "--exclude", "xtask"]);
        }
        _ => {
            for package in packages {
                test.args(["--package", package]);
            }
        }
    }
    test.env("CARGO_TARGET_DIR", target);
    test.env("RUSTFLAGS", "-Cinstrument-coverage");
    test
}

/// Builds the tests and returns the programs: they hold the map from counters to lines.
fn build(packages: &[String], target: &Path) -> Result<Vec<PathBuf>> {
    eprintln!("xtask: building the tests with counters");
    let mut build = tests(packages, target);
    build.args(["--no-run", "--message-format=json"]);
    // Build scripts and procedural macros write their counts too, where they are ignored.
    build.env("LLVM_PROFILE_FILE", target.join("build-%m.profraw"));
    let messages = sh::stdout(&mut build)?;
    let mut programs = BTreeSet::new();
    for line in messages.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
        let message: Value = serde_json::from_slice(line)?;
        let of_ours = message["package_id"]
            .as_str()
            .unwrap_or("")
            .starts_with("path+");
        programs.extend(
            message["executable"]
                .as_str()
                .filter(|_| of_ours)
                .map(PathBuf::from),
        );
    }
    if programs.is_empty() {
        bail!("no test programs were built");
    }
    Ok(programs.into_iter().collect())
}

fn raw(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let files = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    let raw = |path: &PathBuf| path.extension().is_some_and(|e| e == "profraw");
    Ok(files.into_iter().filter(raw).collect())
}

/// Returns a line a file, the least covered first, and the sum of all.
fn table(json: &[u8]) -> Result<String> {
    let json: Value = serde_json::from_slice(json)?;
    let data = &json["data"][0];
    let lines = |of: &Value| {
        let lines = &of["summary"]["lines"];
        let number = |key: &str| lines[key].as_u64().unwrap_or(0);
        (number("covered"), number("count"))
    };
    let share = |(covered, count): (u64, u64)| match count {
        0 => 100.0,
        _ => 100.0 * covered as f64 / count as f64,
    };
    let mut files = Vec::new();
    for file in data["files"].as_array().context("no files")? {
        let name = Path::new(file["filename"].as_str().unwrap_or(""));
        let name = name.strip_prefix(sh::root()).unwrap_or(name);
        files.push((share(lines(file)), lines(file), name.to_owned()));
    }
    files.sort_by(|a, b| a.0.total_cmp(&b.0));
    let row = |percent: f64, (covered, count): (u64, u64), name: &str| {
        format!("{percent:6.1} %  {covered:>6} of {count:>6} lines  {name}\n")
    };
    let mut text = String::new();
    for (percent, counts, name) in files {
        text.push_str(&row(percent, counts, &name.display().to_string()));
    }
    let all = &data["totals"]["lines"];
    let number = |key: &str| all[key].as_u64().unwrap_or(0);
    let all = (number("covered"), number("count"));
    text.push_str(&row(share(all), all, "all"));
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn the_least_covered_file_comes_first() {
        let json = br#"{"data":[{"files":[
            {"filename":"/a.rs","summary":{"lines":{"count":4,"covered":4}}},
            {"filename":"/b.rs","summary":{"lines":{"count":8,"covered":2}}}],
            "totals":{"lines":{"count":12,"covered":6}}}]}"#;
        let text = table(json).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "  25.0 %       2 of      8 lines  /b.rs");
        assert_eq!(lines[2], "  50.0 %       6 of     12 lines  all");
    }
}
