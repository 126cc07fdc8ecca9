//! The peers: their installed names, their versions, and their names in rows.

use std::path::PathBuf;

use super::Bench;
use crate::sh;

/// Programs of this workspace.
const OURS: &[&str] = &["bc", "xtask", "hash_tree"];

impl Bench {
    /// Finds a peer under the name that the commands use: a link is made where it is called
    /// otherwise.
    pub(crate) fn find(&mut self, names: &[&str]) -> bool {
        let Some(first) = names.first() else {
            return true;
        };
        if self.program(first).is_none() {
            let Some(found) = sh::find_tool(names) else {
                return false;
            };
            let bin = self.scratch.join("bin");
            let linked = std::fs::create_dir_all(&bin)
                .and_then(|()| std::os::unix::fs::symlink(&found, bin.join(first)));
            if linked.is_err() {
                return false;
            }
        }
        self.note_version(first);
        true
    }

    /// Returns the path of a program of a command.
    pub(crate) fn program(&self, name: &str) -> Option<PathBuf> {
        let places = match name {
            "hash_tree" => self.release.join(name),
            _ if OURS.contains(&name) => self.release.join(name),
            _ => self.scratch.join("bin").join(name),
        };
        if places.exists() {
            Some(places)
        } else if OURS.contains(&name) {
            None
        } else {
            sh::find_tool(&[name])
        }
    }

    fn note_version(&mut self, name: &str) {
        if OURS.contains(&name) || self.record.tools.iter().any(|(n, _)| n == name) {
            return;
        }
        let Some(path) = self.program(name) else {
            return;
        };
        let version = match name {
            "hashdeep" => sh::version(&path, &["-V"]),
            "openssl" | "dupd" => sh::version(&path, &["version"]),
            // It has no option for it.
            "mtree" => "of the system".to_owned(),
            _ => sh::version(&path, &["--version"]),
        };
        self.record.tools.push((name.to_owned(), version));
    }
}

/// Returns a label for what a command measures, in a word or two.
pub(crate) fn label(command: &str) -> String {
    let parts = command
        .split(" && ")
        .filter(|part| !part.starts_with("cd "));
    let both: Vec<String> = parts.map(one).collect();
    both.join(" + ")
}

fn one(command: &str) -> String {
    if command.starts_with("for ") {
        return "a loop of the shell".to_owned();
    }
    let last = command.rsplit("| ").next().unwrap_or(command);
    let mut words = last.split(' ').skip_while(|w| w.contains('='));
    let Some(program) = words.next() else {
        return String::new();
    };
    match program {
        "xargs" => {
            let tool = words.find(|w| !w.starts_with('-') && !w.starts_with('$'));
            format!("xargs {}", tool.unwrap_or(""))
        }
        "xtask" => words.take(2).collect::<Vec<_>>().join(" "),
        // With and without a check of its output.
        "bcmr" => match words.find(|w| *w == "-V") {
            Some(check) => format!("bcmr {check}"),
            None => "bcmr".to_owned(),
        },
        "hash_tree" => format!("hash_tree {}", words.next().unwrap_or("")),
        "bc" => match words.find(|w| w.starts_with("--io=") || w.starts_with("--threads=")) {
            Some(option) => format!("bc {option}"),
            None => "bc".to_owned(),
        },
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn commands_have_short_names() {
        for (command, name) in [
            (
                "find \"$TREE\" -type f -print0 | xargs -0 -P$N b3sum",
                "xargs b3sum",
            ),
            ("find . | A=b xargs -0 -P$N openssl dgst", "xargs openssl"),
            (
                "xtask floor statx $TREE $N && xtask floor read $TREE",
                "floor statx + floor read",
            ),
            ("jdupes -r -q $TREE", "jdupes"),
            ("A=b openssl dgst $BIG", "openssl"),
            (
                "cd $TREE && find . | xargs -0 -P64 cp -t $SCRATCH",
                "xargs cp",
            ),
            ("hash_tree stream sha256 $TREE", "hash_tree stream"),
            ("bc hash --type=sha256 --io=sync $TREE", "bc --io=sync"),
            ("bc hash $TREE", "bc"),
            (
                "for f in \"$TEN\"/*; do sha256sum \"$f\"; done",
                "a loop of the shell",
            ),
        ] {
            assert_eq!(label(command), name);
        }
    }
}
