//! Every algorithm over 1 to 40 messages of random lengths, beside Python's own modules.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use bc_digest::Algorithm;
use serde_json::Value;

use crate::sh;

const REFERENCE: &str = "xtask/src/isa/reference.py";

/// Compares all digests that `bc hash` prints, run by such a command.
pub(super) fn compare(cpu: &str, bc: impl Fn() -> Command) -> Result<()> {
    if !sh::has("python3") {
        println!("isa: digests beside Python's not run: python3 is not installed");
        return Ok(());
    }
    let folder = sh::scratch("isa-messages")?;
    let mut python = Command::new("python3");
    python.arg(sh::root().join(REFERENCE)).arg(&folder);
    python.args(Algorithm::ALL.iter().map(|algorithm| algorithm.name()));
    let text = String::from_utf8(sh::stdout(&mut python)?)?;
    // The digests of each algorithm, by folder and file.
    let mut expected: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for line in text.lines() {
        let (algorithm, rest) = line.split_once(' ').context("a line of one word")?;
        match rest.strip_prefix("not run: ") {
            Some(reason) => println!("isa: {algorithm} not run: {reason}"),
            None => {
                let (name, digest) = rest.split_once(' ').context("a line of two words")?;
                expected.entry(algorithm).or_default().insert(name, digest);
            }
        }
    }
    for (algorithm, digests) in &expected {
        let kind = format!("--type={algorithm}");
        let mut folders: Vec<&str> = digests.keys().filter_map(|n| n.split('/').next()).collect();
        folders.dedup();
        for name in folders {
            let mut command = bc();
            command.current_dir(&folder);
            command.args(["hash", "--format=jsonl", &kind, name]);
            let text = sh::stdout(&mut command)?;
            let theirs = digests
                .iter()
                .filter(|(file, _)| file.split('/').next() == Some(name));
            let theirs: BTreeMap<&str, &str> = theirs.map(|(file, hex)| (*file, *hex)).collect();
            let mut ours = 0;
            for line in String::from_utf8(text)?.lines() {
                let entry: Value = serde_json::from_str(line)?;
                if entry["type"] != "file" {
                    continue;
                }
                let path = entry["path"].as_str().context("a file without a path")?;
                let digest = entry["digests"][algorithm].as_str();
                if digest != theirs.get(path).copied() {
                    bail!("{algorithm} of {path} on {cpu}: {digest:?}, Python's {theirs:?}");
                }
                ours += 1;
            }
            ensure!(
                ours == theirs.len(),
                "{algorithm} on {cpu}: {ours} files of {name}"
            );
        }
    }
    println!("isa: {} algorithms equal Python's on {cpu}", expected.len());
    Ok(())
}
