//! `cargo xtask gnu`: coreutils' own tests of its checksum programs with our binary under their names.
//! They are run where they lie in coreutils' source, and nothing of them is kept.

use std::fs::File;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::args::Args;
use crate::sh;

/// The release that is the measure.
const VERSION: &str = "9.11";

/// Servers that have it.
const MIRRORS: &[&str] = &[
    "https://ftp.gnu.org/gnu/coreutils",
    "https://ftpmirror.gnu.org/coreutils",
    "https://mirrors.kernel.org/gnu/coreutils",
];

/// The names that the binary is tested under.
const NAMES: &[&str] = &[
    "b2sum",
    "cksum",
    "md5sum",
    "sha1sum",
    "sha224sum",
    "sha256sum",
    "sha384sum",
    "sha512sum",
];

/// Programs of coreutils that the tests use beside them, as they are installed.
const OTHERS: &[&str] = &["cat", "date", "od", "printf", "seq", "shuf", "stat"];

/// Tests that need not pass, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    (
        "sum.pl",
        "of the program sum, which is none of ours; cksum -a bsd and -a sysv compute the same",
    ),
    (
        "sum-sysv.sh",
        "of the program sum, which is none of ours; cksum -a sysv computes the same",
    ),
];

/// Limits of C's types that coreutils' build provides for its tests, as far as these tests ask.
const GETLIMITS: &str = "#!/bin/sh\n\
    echo INT_MAX=2147483647\n\
    echo INTMAX_MAX=9223372036854775807\n\
    echo INTMAX_OFLOW=9223372036854775808\n\
    echo UINTMAX_MAX=18446744073709551615\n\
    echo UINTMAX_OFLOW=18446744073709551616\n";

pub(crate) fn run(mut args: Args) -> Result<ExitCode> {
    let bc = args.option("--bc")?.map(PathBuf::from);
    let source = args.option("--source")?.map(PathBuf::from);
    let only = args.option("--only")?;
    let verbose = args.flag("--verbose");
    args.done()?;
    let source = match source {
        Some(dir) => dir
            .canonicalize()
            .with_context(|| dir.display().to_string())?,
        None => match fetched() {
            Ok(dir) => dir,
            Err(error) => {
                println!(
                    "gnu: not run: coreutils {VERSION} cannot be had: {error:#}; --source names it"
                );
                return Ok(ExitCode::SUCCESS);
            }
        },
    };
    let bc = match bc {
        Some(bc) => bc
            .canonicalize()
            .with_context(|| bc.display().to_string())?,
        None => sh::release_binary("bit-crafts", "bc")?,
    };
    let build = build(&bc, &source)?;
    let mut failed = 0;
    for test in tests(&source)? {
        let name = test
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if only
            .as_ref()
            .is_some_and(|only| !name.contains(only.as_str()))
        {
            continue;
        }
        let exception = EXCEPTIONS.iter().find(|(test, _)| *test == name);
        if let Some((_, why)) = exception {
            println!("gnu: {name}: not run: {why}");
            continue;
        }
        let log = build.join(format!("{name}.log"));
        let code = one(&test, &source, &build, &log)?;
        match code {
            Some(0) => println!("gnu: {name}: passed"),
            Some(77) => println!("gnu: {name}: not run: {}", last_line(&log)),
            _ => {
                failed += 1;
                println!(
                    "gnu: {name}: FAILED: {}: {}",
                    log.display(),
                    last_line(&log)
                );
                if verbose {
                    println!("{}", std::fs::read_to_string(&log).unwrap_or_default());
                }
            }
        }
    }
    match failed {
        0 => Ok(ExitCode::SUCCESS),
        _ => bail!("{failed} of coreutils' tests fail"),
    }
}

/// Returns the unpacked source, downloaded if it is not there.
fn fetched() -> Result<PathBuf> {
    let folder = sh::target().join("gnu");
    let dir = folder.join(format!("coreutils-{VERSION}"));
    if dir.join("tests/init.sh").exists() {
        return Ok(dir);
    }
    std::fs::create_dir_all(&folder)?;
    let archive = folder.join(format!("coreutils-{VERSION}.tar.xz"));
    if !archive.exists() {
        download(&archive)?;
    }
    sh::run(
        Command::new("tar")
            .arg("-xf")
            .arg(&archive)
            .arg("-C")
            .arg(&folder),
    )?;
    ensure!(
        dir.join("tests/init.sh").exists(),
        "{} holds no tests",
        archive.display()
    );
    Ok(dir)
}

fn download(archive: &Path) -> Result<()> {
    let partial = archive.with_extension("partial");
    for mirror in MIRRORS {
        let url = format!("{mirror}/coreutils-{VERSION}.tar.xz");
        let mut curl = Command::new("curl");
        curl.args(["-fsSL", "--connect-timeout", "10", "-o"])
            .arg(&partial)
            .arg(&url);
        if curl.status().is_ok_and(|status| status.success()) {
            return Ok(std::fs::rename(&partial, archive)?);
        }
    }
    bail!("no mirror gives it")
}

/// Makes a folder as coreutils' build leaves it: the programs in `src`.
fn build(bc: &Path, source: &Path) -> Result<PathBuf> {
    ensure!(
        source.join("tests/init.sh").exists(),
        "{}: no tests/init.sh: the source as it is released has it",
        source.display()
    );
    let build = sh::scratch("gnu")?.canonicalize()?;
    let src = build.join("src");
    std::fs::create_dir(&src)?;
    for name in NAMES {
        symlink(bc, src.join(name))?;
    }
    let getlimits = src.join("getlimits");
    std::fs::write(&getlimits, GETLIMITS)?;
    std::fs::set_permissions(&getlimits, std::fs::Permissions::from_mode(0o755))?;
    std::fs::write(build.join("config.h"), "")?;
    Ok(build)
}

/// Returns the tests, by name.
fn tests(source: &Path) -> Result<Vec<PathBuf>> {
    let folder = source.join("tests/cksum");
    let entries = folder
        .read_dir()
        .with_context(|| folder.display().to_string())?;
    let mut tests: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|end| end == "sh" || end == "pl")
        })
        .collect();
    tests.sort_unstable();
    ensure!(!tests.is_empty(), "{} is empty", folder.display());
    Ok(tests)
}

/// Runs one as coreutils' `make check` does; its exit code.
fn one(test: &Path, source: &Path, build: &Path, log: &Path) -> Result<Option<i32>> {
    let name = test
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    // Descriptor 9 is the terminal's stderr there.
    let command = match name.ends_with(".pl") {
        true => {
            let modules = source.join("tests");
            format!(
                "exec perl -w -I'{}' -MCuSkip -MCoreutils -M'CuTmpdir qw({name})' '{}' 9>&2",
                modules.display(),
                test.display()
            )
        }
        false => format!("exec sh '{}' 9>&2", test.display()),
    };
    let output = File::create(log)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(build.join("src")).chain(std::env::split_paths(&path));
    let status = Command::new("sh")
        .args(["-c", &command])
        .current_dir(build)
        .env("PATH", std::env::join_paths(paths)?)
        .env("srcdir", source)
        .env("top_srcdir", source)
        .env("abs_srcdir", source)
        .env("abs_top_srcdir", source)
        .env("abs_top_builddir", build)
        .env("built_programs", [NAMES, OTHERS].concat().join(" "))
        .env("CONFIG_HEADER", build.join("config.h"))
        .env("VERSION", VERSION)
        .env("PACKAGE_VERSION", VERSION)
        .env("CU_TEST_NAME", format!("coreutils,{name}"))
        .env("PERL", "perl")
        .env("SHELL", "/bin/sh")
        .env("AWK", "awk")
        .env("EGREP", "grep -E")
        .env("EXEEXT", "")
        .env("host_os", "linux-gnu")
        .env("TMPDIR", build)
        .env("LC_ALL", "C")
        .env_remove("LANG")
        .env_remove("POSIXLY_CORRECT")
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .status()
        .context("sh")?;
    Ok(status.code())
}

fn last_line(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines().last().unwrap_or_default().to_owned()
}
