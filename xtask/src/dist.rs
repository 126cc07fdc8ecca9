//! `cargo xtask dist`: the parts of a release. The program with the manual pages and shell
//! completions that it writes itself, and the guide as one more page; a tarball of
//! them, and the files that cargo-deb makes a Debian package of.
//!
//! The guide is Markdown, and the reader of Markdown is no part of the program: those who build
//! from source have the guide in `src/guide`, packages bring the page.

mod changelog;
mod copyright;
mod deb;
mod deb_check;
mod elf;
mod guide;
mod machine;
mod symbols;
mod tarball;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use self::machine::Machine;
use crate::args::Args;
use crate::sh;

pub(crate) fn run(mut args: Args) -> Result<ExitCode> {
    let dir = args
        .option("--dir")?
        .map_or_else(|| sh::target().join("dist"), PathBuf::from);
    let linked_in = args.flag("--static");
    let apart = args.flag("--symbols");
    let tag = args.option("--tag")?;
    let machine = Machine::of(args.option("--target")?)?;
    args.done()?;
    let release = Release::read()?;
    if let Some(tag) = tag {
        if tag != format!("v{}", release.version) {
            bail!("the tag is {tag}, and the version {}", release.version);
        }
        changelog::check_released(&release.version)?;
    }
    write(&dir.join("notes.md"), &changelog::notes(&release.version)?)?;
    let bc = dir.join("bc");
    match apart {
        true => symbols::split(
            &machine,
            &machine.build("symbols")?,
            &bc,
            &dir.join("bc.debug"),
        )?,
        false => install(&machine.build("release")?, &bc)?,
    }
    // README's figure is that of x86-64.
    if machine.arch() == "x86_64" {
        let readme = std::fs::read_to_string(sh::root().join("README.md"))?;
        size_agrees(&readme, std::fs::metadata(&bc)?.len())?;
    }
    pages(&machine, &bc, &dir)?;
    let target = machine.target();
    write(
        &dir.join("copyright"),
        &copyright::text("bit-crafts", target)?,
    )?;
    let of_wheels = copyright::text("bit-crafts-python", target)?;
    write(&sh::root().join(copyright::FOR_WHEELS), &of_wheels)?;
    // A build is static where the C library's archives are installed.
    let whole = match (elf::Program::read(&bc)?.is_static, linked_in) {
        (true, _) => Some(bc.clone()),
        (false, true) => Some(machine.build_static()?),
        (false, false) => None,
    };
    let stem = format!("bit-crafts-{}-{}-linux", release.version, machine.arch());
    match whole {
        Some(whole) => tarball::build(&machine, &whole, &dir, &stem)?,
        None => println!("not built: the tarball; --static builds the program for it"),
    }
    deb::build(&machine, &bc, &dir.join("deb"), &release)?;
    if apart {
        symbols::pack(&dir, &stem)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails if README's size of the program is out of date by more than a megabyte.
fn size_agrees(readme: &str, size: u64) -> Result<()> {
    let said = readme.split("installs a single ").nth(1);
    let said = said.and_then(|rest| rest.split_once(" MB")?.0.parse::<u64>().ok());
    let said = said.context("README.md: no size of the program")?;
    if (said * 1_000_000).abs_diff(size) > 1_000_000 {
        bail!("README.md: the program has {said} MB, and this one {size} bytes");
    }
    Ok(())
}

/// Pages and completions beside the program.
fn pages(machine: &Machine, bc: &Path, dir: &Path) -> Result<()> {
    let generate = |what: &str, to: &Path| generate(machine, bc, "bc", what, to);
    generate("man", &dir.join("man"))?;
    write(&dir.join("man/bc-guide.7"), &guide::page("bc"))?;
    let completions = dir.join("completions");
    std::fs::create_dir_all(&completions)?;
    generate("complete-bash", &completions.join("bc.bash"))?;
    generate("complete-zsh", &completions.join("_bc"))?;
    generate("complete-fish", &completions.join("bc.fish"))
}

/// Version of the program in Cargo.toml.
struct Release {
    version: String,
}

impl Release {
    fn read() -> Result<Release> {
        let mut metadata = sh::cargo();
        metadata.args(["metadata", "--format-version=1", "--no-deps", "--locked"]);
        let metadata: Value = serde_json::from_slice(&sh::stdout(&mut metadata)?)?;
        let packages = metadata["packages"].as_array().context("no packages")?;
        let ours = packages.iter().find(|p| p["name"] == "bit-crafts");
        let ours = ours.context("no package bit-crafts")?;
        let text = |key: &str| ours[key].as_str().unwrap_or("").to_owned();
        Ok(Release {
            version: text("version"),
        })
    }
}

/// Runs the program, called `name`, to write the texts that it generates from its command tree.
fn generate(machine: &Machine, bc: &Path, name: &str, what: &str, to: &Path) -> Result<()> {
    let mut command = machine.command(bc, name);
    command.arg(format!("--generate={what}"));
    command.arg("--output").arg(to);
    sh::run(command.env("SOURCE_DATE_EPOCH", epoch()))?;
    println!("{}", to.display());
    Ok(())
}

/// Returns the time of the present commit, in seconds; where there is no repository, now.
fn epoch() -> String {
    let mut commit = Command::new("git");
    commit
        .current_dir(sh::root())
        .args(["log", "-1", "--format=%ct"]);
    let time = sh::stdout(&mut commit).or_else(|_| sh::stdout(Command::new("date").arg("+%s")));
    String::from_utf8_lossy(&time.unwrap_or_default())
        .trim()
        .to_owned()
}

/// The names beside `bc`, which some systems give to the calculator.
const NAMES: [&str; 6] = [
    "bitcrafts",
    "bchash",
    "bcdup",
    "bcintegrity",
    "bccopy",
    "bcmove",
];

/// Copies the schemas of all JSON that the program writes into a folder, which need not exist.
fn lay_schemas(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    for place in ["src/schema", "crates/manifest/schema"] {
        for schema in std::fs::read_dir(sh::root().join(place))? {
            let schema = schema?;
            std::fs::copy(schema.path(), folder.join(schema.file_name()))
                .with_context(|| schema.path().display().to_string())?;
        }
    }
    Ok(())
}

/// Folder of the schemas, below `usr` or the root of a tarball.
const SCHEMAS: &str = "share/doc/bit-crafts/schemas";

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::create_dir_all(path.parent().expect("has a folder"))?;
    std::fs::write(path, text).with_context(|| path.display().to_string())?;
    println!("{}", path.display());
    Ok(())
}

fn install(from: &Path, to: &Path) -> Result<()> {
    // A program that runs cannot be written to, but its name can be given away.
    let _ = std::fs::remove_file(to);
    std::fs::copy(from, to).with_context(|| to.display().to_string())?;
    println!("{}", to.display());
    Ok(())
}
