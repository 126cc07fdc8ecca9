//! Digests are those of sha256sum, by any reader and on any number of threads.

use std::process::Command;

use anyhow::{Result, ensure};

use super::super::place::Place;
use super::super::sheet::Verdict;
use super::Faults;

pub(super) fn check(place: &Place<'_>) -> Result<Verdict> {
    let tree = place.tree();
    let ours = place
        .lab
        .bc(&["hash".as_ref(), "--type=sha256".as_ref(), tree.as_os_str()])?;
    let ours = ours.expect(0, "bc hash")?;
    let mut command = Command::new("sh");
    command
        .args([
            "-c",
            "find \"$1\" -type f -print0 | xargs -0 sha256sum",
            "sh",
        ])
        .arg(&tree);
    let theirs = place.lab.run(&mut command)?.expect(0, "sha256sum")?;
    let (mut a, mut b) = (ours.lines(), theirs.lines());
    a.sort_unstable();
    b.sort_unstable();
    let other = a.iter().zip(&b).find(|(a, b)| a != b);
    ensure!(
        a == b,
        "{} lines, sha256sum writes {}; {}",
        a.len(),
        b.len(),
        other.map_or_else(String::new, |(a, b)| format!(
            "{} against {}",
            a.escape_ascii(),
            b.escape_ascii()
        ))
    );
    let mut faults = Faults::default();
    let mut refused = "";
    for io in ["sync", "uring", "auto"] {
        for threads in ["1", "2"] {
            let words = [
                "hash".into(),
                "--type=sha256".into(),
                format!("--io={io}").into(),
                format!("--threads={threads}").into(),
                tree.clone().into_os_string(),
            ];
            let outcome = place.lab.bc(&words)?;
            if io == "uring" && outcome.code == 2 {
                refused = ", io_uring refused";
                continue;
            }
            faults.unless(outcome.code == 0 && outcome.out == ours.out, || {
                format!(
                    "--io={io} --threads={threads}: other output, exit code {}: {}",
                    outcome.code,
                    outcome.said()
                )
            });
        }
    }
    faults.result()?;
    let without = match place.left_out.is_empty() {
        true => String::new(),
        false => format!(", without {}", place.left_out.join(", ")),
    };
    Ok(Verdict::Ok(format!("{} files{refused}{without}", a.len())))
}
