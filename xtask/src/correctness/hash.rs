//! bc hash against coreutils, xxhsum, b3sum, openssl, rhash and hashdeep.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, bail, ensure};

use super::peers::{GNU_CHECK, Lines, PEERS, Peer, PeerNames};
use super::{Checks, Tree, expect_code, listing, same, sorted};
use crate::sh;

/// Lines of a manifest that a tool verifies: all of them twice over would only take long.
const VERIFIED: usize = 3_000;

pub(super) fn check(checks: &mut Checks, tree: &Tree) -> Result<()> {
    let files = listing::files(&tree.path)?;
    let mut ours: BTreeMap<&str, Vec<Vec<u8>>> = BTreeMap::new();
    for peer in PEERS {
        let name = format!(
            "hash {}: {} = {}",
            tree.name,
            peer.algorithm,
            peer.tool.join(" ")
        );
        if !sh::has(peer.tool[0]) {
            checks.not_run(name, &format!("{} is not installed", peer.tool[0]));
            continue;
        }
        if !ours.contains_key(peer.algorithm) {
            let kind = format!("--type={}", peer.algorithm);
            // Lines of cksum's kind have no digest in hexadecimal to be compared.
            let is_hex = bc_digest::Algorithm::from_name(peer.algorithm)
                .is_none_or(|known| known.plain() == bc_digest::Plain::Hex);
            let format = match is_hex || peer.lines == Lines::Same {
                true => "--format=gnu",
                false => "--format=bsd",
            };
            let text = sh::capture(checks.bc(&["hash", &kind, format]).arg(&tree.path))?.stdout;
            ours.insert(peer.algorithm, sorted(&text, b'\n'));
        }
        let lines = &ours[peer.algorithm];
        digests(checks, &name, peer, lines, &files);
        if !peer.check.is_empty() {
            verified(checks, tree, peer, lines)?;
        }
        if peer.names == PeerNames::Any {
            zero(checks, tree, peer, &files);
        }
        if !peer.tag.is_empty() {
            tagged(checks, tree, peer, &files);
        }
    }
    several(checks, tree, &files);
    order(checks, tree, &files);
    from_list(checks, tree, &files);
    openssl_lines(checks, tree, &files);
    matrix(checks, tree)?;
    diff(checks, tree, &ours)?;
    Ok(())
}

/// Returns the paths a peer is given.
fn paths(peer: &Peer, files: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let keep =
        |p: &&Vec<u8>| listing::openable(p) && (peer.names == PeerNames::Any || listing::plain(p));
    files.iter().filter(keep).cloned().collect()
}

/// Returns our lines for the paths that a peer is given.
fn comparable(peer: &Peer, lines: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let keep = |line: &&Vec<u8>| {
        listing::gnu_path(line).is_none_or(|path| {
            listing::openable(&path) && (peer.names == PeerNames::Any || listing::plain(&path))
        })
    };
    lines.iter().filter(keep).cloned().collect()
}

/// Compares our lines with those of the tool over the same files.
fn digests(checks: &mut Checks, name: &str, peer: &Peer, ours: &[Vec<u8>], files: &[Vec<u8>]) {
    checks.check(name, |_| {
        let paths = paths(peer, files);
        let text = listing::over(peer.tool, &paths.iter().collect::<Vec<_>>())?;
        let (mut ours, mut theirs) = (comparable(peer, ours), sorted(&text, b'\n'));
        if peer.lines == Lines::Pairs {
            ours = as_pairs(&ours)?;
            theirs = as_pairs(&theirs)?;
        }
        ensure!(!theirs.is_empty(), "the tool printed nothing");
        same(&ours, &theirs)
    });
}

/// Turns lines `hex  path`, `hex *path`, `TAG (path) = hex` and `TAG(path)= hex` into `hex path`,
/// sorted.
fn as_pairs(lines: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
    let mut pairs = Vec::new();
    for line in lines {
        let Some(pair) = untagged(line).or_else(|| tagged_pair(line)) else {
            bail!("not a sum line: {:?}", String::from_utf8_lossy(line));
        };
        pairs.push(pair);
    }
    pairs.sort_unstable();
    Ok(pairs)
}

fn untagged(line: &[u8]) -> Option<Vec<u8>> {
    let line = line.strip_prefix(b"XXH3_").unwrap_or(line);
    let at = line.iter().position(|&b| b == b' ')?;
    let hex = at >= 8 && line[..at].iter().all(u8::is_ascii_hexdigit);
    hex.then(|| [&line[..at], b" ", line.get(at + 2..).unwrap_or(b"")].concat())
}

fn tagged_pair(line: &[u8]) -> Option<Vec<u8>> {
    let open = line.iter().position(|&b| b == b'(')?;
    let close = line.iter().rposition(|&b| b == b')')?;
    let hex = line.iter().rposition(|&b| b == b' ')? + 1;
    (open < close && close < hex).then(|| [&line[hex..], b" ", &line[open + 1..close]].concat())
}

/// Checks that the tool verifies our manifest, we verify the tool's, and both report the same of a
/// damaged one.
fn verified(checks: &mut Checks, tree: &Tree, peer: &Peer, ours: &[Vec<u8>]) -> Result<()> {
    let tool = peer.tool.join(" ");
    let lines = listing::sample(&comparable(peer, ours), VERIFIED);
    let manifest = checks.scratch.join("manifest");
    std::fs::write(&manifest, listing::text(&lines))?;
    let accepts = format!("hash {}: {tool} -c accepts ours", tree.name);
    let first: Vec<Vec<u8>> = lines
        .first()
        .and_then(|l| listing::gnu_path(l))
        .into_iter()
        .collect();
    let theirs = listing::over(peer.tool, &first.iter().collect::<Vec<_>>())?;
    if peer.lines == Lines::Pairs && untagged(&theirs).is_none() {
        // xxhsum before 0.8.3; the tagged form is verified all the same.
        checks.not_run(
            accepts,
            "this version knows the digest in tagged lines only",
        );
    } else {
        checks.check(accepts, |_| {
            let output = tool_check(peer, peer.check, &manifest)?;
            expect_code(&output, 0, &tool)?;
            same(&sorted(&output.stdout, b'\n'), &[])?;
            Ok(format!("{} lines", lines.len()))
        });
    }
    checks.check(
        format!("hash {}: bc hash check accepts {tool}'s", tree.name),
        |checks| {
            let paths: Vec<Vec<u8>> = lines.iter().filter_map(|l| listing::gnu_path(l)).collect();
            let theirs = listing::over(peer.tool, &paths.iter().collect::<Vec<_>>())?;
            std::fs::write(&manifest, theirs)?;
            bc_accepts(checks, peer.algorithm, &manifest)
        },
    );
    if peer.check != GNU_CHECK {
        return Ok(());
    }
    // Names that need escaping are left out: later coreutils quote them in another way.
    let plain = |line: &&Vec<u8>| listing::gnu_path(line).is_some_and(|p| listing::plain(&p));
    let mut damaged: Vec<Vec<u8>> = lines.iter().filter(plain).cloned().collect();
    if damaged.is_empty() {
        return Ok(());
    }
    damaged[0][0] = if damaged[0][0] == b'0' { b'1' } else { b'0' };
    let mut gone = damaged[0].clone();
    gone.extend_from_slice(b".is not there");
    damaged.extend([gone, b"no sum line".to_vec(), b"# a comment".to_vec()]);
    std::fs::write(&manifest, listing::text(&damaged))?;
    for options in [
        &[][..],
        &["--quiet"],
        &["--status"],
        &["--ignore-missing", "-w"],
        &["--strict"],
    ] {
        let shown = [&["-c"], options].concat().join(" ");
        let name = format!("hash {}: {tool} {shown} of a damaged manifest", tree.name);
        checks.check(name, |checks| {
            let theirs = tool_check(peer, &[&["--check"], options].concat(), &manifest)?;
            let kind = format!("--type={}", peer.algorithm);
            let words = [&["hash", "check", &kind][..], options].concat();
            let ours = sh::capture(checks.bc(&words).arg(&manifest).env("LC_ALL", "C"))?;
            same(&unsorted(&ours.stdout), &unsorted(&theirs.stdout))?;
            same(&warnings(&ours.stderr), &warnings(&theirs.stderr))?;
            expect_code(&ours, theirs.status.code().unwrap_or(-1), "bc hash check")?;
            Ok(String::new())
        });
    }
    Ok(())
}

fn tool_check(peer: &Peer, words: &[&str], manifest: &Path) -> Result<std::process::Output> {
    let mut command = std::process::Command::new(peer.tool[0]);
    // -l is the digest's length when writing; a manifest contains it.
    if peer.tool[0] == "xxhsum" {
        command.args(&peer.tool[1..]);
    }
    sh::capture(command.env("LC_ALL", "C").args(words).arg(manifest))
}

fn bc_accepts(checks: &Checks, algorithm: &str, manifest: &Path) -> Result<String> {
    let kind = format!("--type={algorithm}");
    let mut command = checks.bc(&["hash", "check", "--quiet", "--strict", &kind]);
    let output = sh::capture(command.arg(manifest))?;
    expect_code(&output, 0, "bc hash check")?;
    same(&sorted(&output.stdout, b'\n'), &[])?;
    Ok(String::new())
}

fn unsorted(text: &[u8]) -> Vec<Vec<u8>> {
    text.split(|&b| b == b'\n').map(<[u8]>::to_vec).collect()
}

/// Returns the `WARNING: …` summaries, without the name of the program.
fn warnings(text: &[u8]) -> Vec<Vec<u8>> {
    let text = String::from_utf8_lossy(text);
    text.lines()
        .filter_map(|l| l.find("WARNING").map(|at| l.as_bytes()[at..].to_vec()))
        .collect()
}

/// Checks `-z`: the same records as the tool's, in path order; and we verify such a manifest.
fn zero(checks: &mut Checks, tree: &Tree, peer: &Peer, files: &[Vec<u8>]) {
    let name = format!("hash {}: {} -z", tree.name, peer.tool.join(" "));
    checks.check(name, |checks| {
        let files = listing::sample(&paths(peer, files), VERIFIED);
        let paths: Vec<&Vec<u8>> = files.iter().collect();
        let tool = [peer.tool, &["-z"]].concat();
        let theirs = sorted(&listing::over(&tool, &paths)?, 0);
        let kind = format!("--type={}", peer.algorithm);
        let list = checks.scratch.join("list");
        std::fs::write(&list, files.join(&0))?;
        let from = format!("--files-from={}", list.display());
        let ours = sh::capture(&mut checks.bc(&["hash", &kind, "-z", &from, "-0"]))?;
        let said = same(&sorted(&ours.stdout, 0), &theirs)?;
        let manifest = checks.scratch.join("manifest-z");
        std::fs::write(&manifest, &ours.stdout)?;
        bc_accepts(checks, peer.algorithm, &manifest)?;
        Ok(said)
    });
}

/// Checks BSD tags: the same lines as the tool's; each verifies the other's.
fn tagged(checks: &mut Checks, tree: &Tree, peer: &Peer, files: &[Vec<u8>]) {
    let name = format!("hash {}: {} --tag", tree.name, peer.tool.join(" "));
    let help = sh::capture(std::process::Command::new(peer.tool[0]).arg("--help"));
    if !help.is_ok_and(|h| {
        String::from_utf8_lossy(&h.stdout).contains("--tag")
            || String::from_utf8_lossy(&h.stderr).contains("--tag")
    }) {
        checks.not_run(name, "this version cannot write tags");
        return;
    }
    checks.check(name, |checks| {
        let files = listing::sample(&paths(peer, files), VERIFIED);
        let tool = [peer.tool, peer.tag].concat();
        let theirs = listing::over(&tool, &files.iter().collect::<Vec<_>>())?;
        let kind = format!("--type={}", peer.algorithm);
        let list = checks.scratch.join("list");
        std::fs::write(&list, files.join(&0))?;
        let from = format!("--files-from={}", list.display());
        let ours = sh::capture(&mut checks.bc(&["hash", &kind, "--format=bsd", &from, "-0"]))?;
        let said = same(&sorted(&ours.stdout, b'\n'), &sorted(&theirs, b'\n'))?;
        let manifest = checks.scratch.join("manifest-bsd");
        std::fs::write(&manifest, &theirs)?;
        bc_accepts(checks, peer.algorithm, &manifest)?;
        std::fs::write(&manifest, &ours.stdout)?;
        expect_code(&tool_check(peer, peer.check, &manifest)?, 0, peer.tool[0])?;
        Ok(said)
    });
}

/// Checks several algorithms in one pass against hashdeep's.
fn several(checks: &mut Checks, tree: &Tree, files: &[Vec<u8>]) {
    let name = format!("hash {}: md5,sha1,sha256 in one pass = hashdeep", tree.name);
    if !sh::has("hashdeep") {
        checks.not_run(name, "hashdeep is not installed");
        return;
    }
    checks.check(name, |checks| {
        let plain: Vec<&Vec<u8>> = files
            .iter()
            .filter(|p| listing::openable(p) && listing::plain(p))
            .collect();
        let text = listing::over(&["hashdeep", "-l", "-c", "md5,sha1,sha256"], &plain)?;
        let mut theirs: Vec<Vec<u8>> = sorted(&text, b'\n');
        theirs.retain(|l| !l.starts_with(b"%%%%") && !l.starts_with(b"##"));
        let mut command = checks.bc(&["hash", "--type=md5,sha1,sha256", "--format=jsonl"]);
        let mut ours = Vec::new();
        for line in sh::capture(command.arg(&tree.path))?
            .stdout
            .split(|&b| b == b'\n')
        {
            let Ok(entry) = serde_json::from_slice::<serde_json::Value>(line) else {
                continue;
            };
            let (Some(path), Some(size)) = (entry["path"].as_str(), entry["size"].as_u64()) else {
                continue;
            };
            if entry.get("path_b64").is_some() || !listing::plain(path.as_bytes()) {
                continue;
            }
            if !listing::openable(path.as_bytes()) {
                continue;
            }
            let hex = |name: &str| entry["digests"][name].as_str().unwrap_or("-").to_owned();
            let record = format!(
                "{size},{},{},{},{path}",
                hex("md5"),
                hex("sha1"),
                hex("sha256")
            );
            ours.push(record.into_bytes());
        }
        ours.sort_unstable();
        ensure!(!theirs.is_empty(), "hashdeep printed nothing");
        same(&ours, &theirs)
    });
}

/// Checks that every file is listed once, bytewise by path, with any name and depth.
fn order(checks: &mut Checks, tree: &Tree, files: &[Vec<u8>]) {
    checks.check(
        format!("hash {}: every file once, in path order", tree.name),
        |checks| {
            let mut command = checks.bc(&["hash", "--type=xxh3", "-z"]);
            let output = sh::capture(command.arg(&tree.path))?;
            let ours: Vec<Vec<u8>> = output
                .stdout
                .split(|&b| b == 0)
                .filter(|r| !r.is_empty())
                .filter_map(|r| {
                    r.iter()
                        .position(|&b| b == b' ')
                        .map(|at| r[at + 2..].to_vec())
                })
                .collect();
            let mut theirs = files.to_vec();
            theirs.sort_unstable();
            // Files that cannot be read have no line but make the exit code 1.
            if output.status.code() == Some(1) {
                theirs.retain(|path| ours.binary_search(path).is_ok());
                ensure!(
                    theirs.len() < files.len(),
                    "exit 1 though every file has its line"
                );
            } else {
                expect_code(&output, 0, "bc hash")?;
            }
            same(&ours, &theirs)
        },
    );
}

/// Checks that `--files-from` with a list of files gives the same as the walk.
fn from_list(checks: &mut Checks, tree: &Tree, files: &[Vec<u8>]) {
    checks.check(
        format!("hash {}: --files-from=- -0 = the walk", tree.name),
        |checks| {
            let walked = sh::capture(checks.bc(&["hash", "--type=xxh3"]).arg(&tree.path))?;
            let listed = sh::feed(
                &mut checks.bc(&["hash", "--type=xxh3", "--files-from=-", "-0"]),
                &files.join(&0),
            )?;
            same(
                &sorted(&listed.stdout, b'\n'),
                &sorted(&walked.stdout, b'\n'),
            )
        },
    );
}

/// Checks `openssl dgst` without -r: `SHA2-256(path)= hex`.
fn openssl_lines(checks: &mut Checks, tree: &Tree, files: &[Vec<u8>]) {
    let name = format!(
        "hash {}: bc hash check accepts openssl's own lines",
        tree.name
    );
    if !sh::has("openssl") {
        checks.not_run(name, "openssl is not installed");
        return;
    }
    checks.check(name, |checks| {
        let keep = |p: &&Vec<u8>| listing::openable(p) && listing::plain(p);
        let plain: Vec<Vec<u8>> = files.iter().filter(keep).cloned().collect();
        let some = listing::sample(&plain, VERIFIED / 10);
        let text = listing::over(
            &["openssl", "dgst", "-sha256"],
            &some.iter().collect::<Vec<_>>(),
        )?;
        let manifest = checks.scratch.join("manifest-openssl");
        std::fs::write(&manifest, text)?;
        bc_accepts(checks, "sha256", &manifest)
    });
}

/// Checks that threads and readers change nothing.
fn matrix(checks: &mut Checks, tree: &Tree) -> Result<()> {
    for algorithm in ["sha256", "xxh128", "blake3"] {
        let kind = format!("--type={algorithm}");
        let base = sh::capture(checks.bc(&["hash", &kind]).arg(&tree.path))?;
        for io in ["sync", "uring"] {
            for threads in ["mono", "compute", "io", "8"] {
                let (threads, io) = (format!("--threads={threads}"), format!("--io={io}"));
                let name = format!("hash {}: {algorithm} {threads} {io}", tree.name);
                let mut command = checks.bc(&["hash", &kind, &threads, &io]);
                let output = sh::capture(command.arg(&tree.path))?;
                if output.status.code() == Some(2) && io == "--io=uring" {
                    let said = String::from_utf8_lossy(&output.stderr).into_owned();
                    checks.not_run(name, said.lines().next().unwrap_or("refused"));
                    continue;
                }
                checks.check(name, |_| {
                    ensure!(
                        output.status == base.status,
                        "{} not {}",
                        output.status,
                        base.status
                    );
                    ensure!(output.stdout == base.stdout, "prints other bytes");
                    Ok(String::new())
                });
            }
        }
    }
    Ok(())
}

/// Checks diff of a manifest with itself, and with one digest changed and one line gone.
fn diff(checks: &mut Checks, tree: &Tree, ours: &BTreeMap<&str, Vec<Vec<u8>>>) -> Result<()> {
    let Some(lines) = ours.get("sha256").filter(|l| l.len() > 2) else {
        return Ok(());
    };
    let (old, new) = (
        checks.scratch.join("old.sha256"),
        checks.scratch.join("new.sha256"),
    );
    std::fs::write(&old, listing::text(lines))?;
    checks.check(
        format!("hash {}: diff of a manifest with itself", tree.name),
        |checks| {
            let output = sh::capture(checks.bc(&["hash", "diff"]).arg(&old).arg(&old))?;
            expect_code(&output, 0, "bc hash diff")?;
            same(&sorted(&output.stdout, b'\n'), &[])
        },
    );
    let mut changed = lines.clone();
    let at = changed.iter().position(|l| l[0] != b'\\').unwrap_or(0);
    changed[at][0] = if changed[at][0] == b'f' { b'e' } else { b'f' };
    let digest = |line: &[u8]| line.strip_prefix(b"\\").unwrap_or(line)[..64].to_vec();
    let gone = changed.pop().map(|line| digest(&line));
    // A file that exists under another name is not removed.
    let word = match gone.is_some_and(|gone| changed.iter().any(|line| digest(line) == gone)) {
        true => "MOVED",
        false => "REMOVED",
    };
    std::fs::write(&new, listing::text(&changed))?;
    checks.check(
        format!("hash {}: diff with one changed, one gone", tree.name),
        |checks| {
            let output = sh::capture(checks.bc(&["hash", "diff"]).arg(&old).arg(&new))?;
            expect_code(&output, 1, "bc hash diff")?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let count = |word: &str| text.lines().filter(|l| l.starts_with(word)).count();
            ensure!(
                count("MODIFIED") == 1 && count(word) == 1 && text.lines().count() == 2,
                "printed {text:?}"
            );
            Ok(String::new())
        },
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_every_form() {
        let lines = [
            &b"0123456789abcdef  d/SHA256 (a) = 00"[..],
            b"0123456789abcdef *d/SHA256 (a) = 00",
            b"XXH3_0123456789abcdef  d/SHA256 (a) = 00",
            b"XXH3 (d/SHA256 (a) = 00) = 0123456789abcdef",
            b"SHA2-512/256(d/SHA256 (a) = 00)= 0123456789abcdef",
        ];
        for line in lines {
            let pairs = as_pairs(&[line.to_vec()]).unwrap();
            assert_eq!(pairs, [b"0123456789abcdef d/SHA256 (a) = 00"]);
        }
        assert!(as_pairs(&[b"no sum line".to_vec()]).is_err());
    }
}
