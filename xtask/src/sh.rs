//! Paths of the project, the tools installed, and how they are run.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};

/// Returns the root of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the workspace")
}

/// Returns Cargo's target directory.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// Returns the directory of the dataset `name`: below `$XTASK_DATASETS`, else the target directory.
pub(crate) fn dataset(name: &str) -> PathBuf {
    let folder = std::env::var_os("XTASK_DATASETS").filter(|f| !f.is_empty());
    folder
        .map_or_else(|| target().join("datasets"), |f| root().join(f))
        .join(name)
}

/// Returns a folder for one run's files, empty; the next run of the same command clears it.
pub(crate) fn scratch(name: &str) -> Result<PathBuf> {
    let dir = target().join("xtask").join(name);
    if dir.exists() {
        std::fs::remove_dir_all(&dir).with_context(|| dir.display().to_string())?;
    }
    std::fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
    Ok(dir)
}

/// Returns a command of the cargo that runs us.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Returns the directory of a toolchain, the one that runs us if none is named; `None` if it is not
/// installed.
pub(crate) fn sysroot(toolchain: Option<&str>) -> Option<PathBuf> {
    let mut rustc = match toolchain {
        Some(name) => {
            let mut rustup = Command::new("rustup");
            rustup.args(["run", name, "rustc"]);
            rustup
        }
        None => Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())),
    };
    let found = stdout(rustc.args(["--print", "sysroot"])).ok()?;
    Some(PathBuf::from(String::from_utf8(found).ok()?.trim_end()))
}

/// Builds one package's release binary and returns its path.
pub(crate) fn release_binary(package: &str, binary: &str) -> Result<PathBuf> {
    build(package, "--bin", binary)?;
    Ok(target().join("release").join(binary))
}

/// Builds one package's example, optimised, and says where it is.
pub(crate) fn release_example(package: &str, example: &str) -> Result<PathBuf> {
    build(package, "--example", example)?;
    Ok(target().join("release/examples").join(example))
}

fn build(package: &str, kind: &str, name: &str) -> Result<()> {
    eprintln!("xtask: building {name} (release)");
    let mut build = cargo();
    build.args(["build", "--release", "--quiet", "--package", package]);
    run(build.args([kind, name]))
}

/// Returns the first of `names` that is installed.
pub(crate) fn find_tool(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    names.iter().find_map(|name| {
        std::env::split_paths(&path)
            .map(|dir| dir.join(name))
            .find(|full| is_executable(full))
    })
}

/// Returns true if `name` is installed.
pub(crate) fn has(name: &str) -> bool {
    find_tool(&[name]).is_some()
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// Returns true if we are the superuser.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs a command, its output to ours; an exit code other than 0 is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| shown(command))?;
    if !status.success() {
        bail!("{}: {status}", shown(command));
    }
    Ok(())
}

/// Runs a command and returns its output; any exit code will do.
pub(crate) fn capture(command: &mut Command) -> Result<Output> {
    command
        .stdin(Stdio::null())
        .output()
        .with_context(|| shown(command))
}

/// Runs a command and returns its standard output; an exit code other than 0 is an error.
pub(crate) fn stdout(command: &mut Command) -> Result<Vec<u8>> {
    let output = capture(command)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(
            "{}: {}: {}",
            shown(command),
            output.status,
            said.lines().next().unwrap_or("")
        );
    }
    Ok(output.stdout)
}

/// Runs a command with `input` on its stdin; any exit code will do.
pub(crate) fn feed(command: &mut Command, input: &[u8]) -> Result<Output> {
    let name = shown(command);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| name.clone())?;
    let mut stdin = child.stdin.take().expect("stdin was asked for");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // A child that ends early breaks the pipe; its exit code is the error.
            let _ = stdin.write_all(input);
        });
        child.wait_with_output().with_context(|| name)
    })
}

/// Returns the first line a tool prints about its version, or an empty text.
pub(crate) fn version(tool: &Path, arguments: &[&str]) -> String {
    let Ok(output) = capture(Command::new(tool).args(arguments)) else {
        return String::new();
    };
    let text = if output.stdout.is_empty() {
        output.stderr
    } else {
        output.stdout
    };
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines()
        .map(str::trim)
        .find(|l| !l.is_empty())
        .unwrap_or("")
        .to_owned()
}

fn shown(command: &Command) -> String {
    let mut words: Vec<&OsStr> = vec![command.get_program()];
    words.extend(command.get_args().take(4));
    let mut text = words
        .join(&OsString::from(" "))
        .to_string_lossy()
        .into_owned();
    if command.get_args().len() > 4 {
        text.push_str(" …");
    }
    text
}
