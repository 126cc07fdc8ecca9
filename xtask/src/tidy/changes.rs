//! Changes of files are made by one crate, `bc-edit`: whoever audits what can happen to a file reads
//! that one. And what looks at directories by descriptor is in `bc-fs`, as is what a time proves.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Words that stand for one home, and the folders where they may be.
struct Home {
    words: &'static [&'static str],
    folders: &'static [&'static str],
    what: &'static str,
}

const HOMES: &[Home] = &[
    Home {
        words: &[
            "CREATE",
            "TMPFILE",
            "TRUNC",
            "RenameFlags",
            "File::create",
            "File::create_new",
            "chmodat",
            "chownat",
            "copy_file_range",
            "create_dir",
            "create_dir_all",
            "create_new",
            "fallocate",
            "fchmod",
            "fchown",
            "fremovexattr",
            "fs::chmod",
            "fs::copy",
            "fs::remove_dir",
            "fs::remove_file",
            "fs::rename",
            "fs::symlink",
            "fs::write",
            "fsetxattr",
            "ftruncate",
            "futimens",
            "hard_link",
            "ioctl_ficlone",
            "ioctl_setflags",
            "linkat",
            "lremovexattr",
            "lsetxattr",
            "mkdirat",
            "mknodat",
            "remove_dir_all",
            "removexattr",
            "renameat",
            "renameat_with",
            "set_len",
            "set_permissions",
            "setxattr",
            "symlinkat",
            "unlinkat",
            "utimensat",
        ],
        folders: &["crates/edit/src"],
        what: "changes files; only bc-edit does",
    },
    Home {
        words: &["openat2", "/proc/self/fd/", "/proc/thread-self/fd/"],
        folders: &[
            "crates/fs/src",
            // The pump opens what is cached alone.
            "crates/read/src/open.rs",
        ],
        what: "opens by descriptor; bc_fs::dirfd does",
    },
    Home {
        words: &[
            "% 1_000_000_000",
            "2_000_000_000",
            "RealtimeCoarse",
            "/proc/sys/kernel/random/boot_id",
        ],
        folders: &["crates/fs/src/known.rs"],
        what: "judges what a time or a boot proves; bc_fs::known does",
    },
    Home {
        words: &["\".bc-"],
        folders: &["crates/edit/src/names"],
        what: "is a temporary name; bc_edit::names has them",
    },
    Home {
        words: &[
            "security.capability",
            "security.evm",
            "system.posix_acl_access",
            "system.posix_acl_default",
        ],
        folders: &["crates/edit/src/metadata", "crates/edit/src/metadata.rs"],
        what: "is metadata that is special; bc_edit::metadata knows it",
    },
    Home {
        words: &["/proc/self/mountinfo"],
        folders: &[
            "crates/fs/src/mount",
            // Knows nothing of files, and looks for one line.
            "crates/pool/src/cpus.rs",
        ],
        what: "is the table of mounts; bc_fs::mount reads it",
    },
    Home {
        words: &["_b64\""],
        folders: &["crates/manifest/src"],
        what: "is bytes in JSON; bc_manifest::json writes and reads them",
    },
];

pub(super) fn check(rust: &BTreeMap<&PathBuf, String>, complaints: &mut Vec<String>) {
    for (path, text) in rust {
        if !is_product(path) {
            continue;
        }
        for home in HOMES {
            if home.folders.iter().any(|folder| path.starts_with(folder)) {
                continue;
            }
            for (number, word) in found(text, home.words) {
                let shown = path.display();
                complaints.push(format!("{shown}:{number}: {word} {}", home.what));
            }
        }
    }
}

/// Sources of the product that are no tests: of a library, or of the binary.
fn is_product(path: &Path) -> bool {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    let is_other = |part: &str| matches!(part, "tests" | "tests.rs" | "testkit" | "examples");
    // What cargo runs before it builds the binary is no part of it.
    let is_library = matches!(&parts[..], [top, _, src, ..] if top == "crates" && src == "src");
    let is_binary = parts[0] == "src" && path != Path::new("src/build.rs");
    (is_library || is_binary) && !parts.iter().any(|part| is_other(part))
}

/// Returns the lines of code, up to the tests at the end, that have one of the words in it.
fn found(text: &str, words: &'static [&'static str]) -> Vec<(usize, &'static str)> {
    let mut lines = text.lines().enumerate().peekable();
    let mut found = Vec::new();
    while let Some((number, line)) = lines.next() {
        let next = lines.peek().map_or("", |(_, next)| next);
        if line == "#[cfg(test)]" && next.contains("mod ") && next.ends_with('{') {
            break;
        }
        let code = line.split("//").next().unwrap_or_default();
        let word = words.iter().find(|word| has(code, word));
        found.extend(word.map(|word| (number + 1, *word)));
    }
    found
}

/// True if the code has the word, not as a part of a longer one.
fn has(code: &str, word: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let is_name = word.chars().all(|c| part(Some(c)));
    code.match_indices(word).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + word.len()..]);
        // Names of operations in messages.
        let is_text = is_name && before.ends_with('"') && after.starts_with('"');
        let begins = !part(word.chars().next()) || !part(before.chars().next_back());
        let ends = !part(word.chars().next_back()) || !part(after.chars().next());
        !is_text && begins && ends
    })
}

#[cfg(test)]
mod tests {
    use super::{HOMES, Home, found, is_product};
    use std::path::Path;

    #[test]
    fn calls_are_found_in_code_only() {
        let text = "//! rename\nfn f() {\n    rustix::fs::renameat(a, b); // not mkdirat\n\
                    \x20   let op = \"unlinkat\";\n    my_unlinkat();\n}\n\n#[cfg(test)]\nmod tests {\n\
                    \x20   unlinkat();\n}\n";
        assert_eq!(
            found(text, &["unlinkat", "renameat", "mkdirat"]),
            [(3, "renameat")]
        );
        let path = "let path = format!(\"/proc/self/fd/{}\", 1);";
        assert_eq!(found(path, &["/proc/self/fd/"]).len(), 1);
        let boot = "let id = read(\"/proc/sys/kernel/random/boot_id\");";
        assert_eq!(found(boot, &["/proc/sys/kernel/random/boot_id"]).len(), 1);
        let name = "const NAME: &[u8] = b\".bc-dup.\";\nlet folder = \"x.bc-\";";
        assert_eq!(found(name, &["\".bc-"]), [(1, "\".bc-")]);
        let step = "let step = match stamp.ctime_ns % 1_000_000_000 {\nlet long = 12_000_000_000;";
        assert_eq!(found(step, &["% 1_000_000_000", "2_000_000_000"]).len(), 1);
    }

    #[test]
    fn names_of_lists_are_found_whole() {
        for name in ["system.posix_acl_access", "system.posix_acl_default"] {
            let code = format!("let found = getxattr(own, c\"{name}\", list);");
            let is_found = |home: &Home| !found(&code, home.words).is_empty();
            assert!(HOMES.iter().any(is_found), "{name}");
        }
    }

    #[test]
    fn tests_are_no_product() {
        for (path, is) in [
            ("crates/copy/src/stage.rs", true),
            ("src/install.rs", true),
            ("crates/copy/src/tests/again.rs", false),
            ("crates/testkit/src/tree.rs", false),
            ("src/build.rs", false),
            ("xtask/src/main.rs", false),
        ] {
            assert_eq!(is_product(Path::new(path)), is, "{path}");
        }
    }
}
