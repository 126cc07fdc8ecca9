//! Which files patterns leave out, over random trees: lines of ignore files as git has it, and
//! `--exclude` and `--include` as a slow matcher has it that is nothing but the rules.
//! `BC_TEST_CASES=5000` makes as many.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use bc_testkit::{Rng, TestTree, left_out, tool};

use crate::common::Bc;

/// So many trees in the everyday run.
const EVERYDAY: usize = 30;

fn trees() -> u64 {
    bc_testkit::cases(EVERYDAY) as u64
}

/// Names, of which patterns are made as well.
const NAMES: [&[u8]; 16] = [
    b"a", b"b", b"ab", b"ba", b"a.o", b"b.o", b".o", b"A", b"a b", b"a ", b"[a]", b"{a,b}", b"a,b",
    b"!a", b"#a", b"\xff",
];

fn one_of<'a, T: ?Sized>(rng: &mut Rng, all: &[&'a T]) -> &'a T {
    all[rng.below(all.len() as u64) as usize]
}

/// Files in directories, some levels deep.
fn tree(rng: &mut Rng) -> (TestTree, BTreeSet<Vec<u8>>) {
    let t = TestTree::new();
    let mut dirs = vec![Vec::new()];
    for _ in 0..8 {
        let parent = dirs[rng.below(dirs.len() as u64) as usize].clone();
        dirs.push([&parent[..], one_of(rng, &NAMES), b"/"].concat());
    }
    let mut files = BTreeSet::new();
    for _ in 0..40 {
        let dir = &dirs[rng.below(dirs.len() as u64) as usize];
        let path = [&dir[..], one_of(rng, &NAMES)].concat();
        let is_dir = dirs
            .iter()
            .any(|dir| dir[..].starts_with(&path) && dir[path.len()] == b'/');
        if !is_dir {
            t.write_bytes(&path, &path);
            files.insert(path);
        }
    }
    (t, files)
}

/// A pattern of the pieces that mean something, and of names.
fn pattern(rng: &mut Rng, pieces: &[&[u8]]) -> Vec<u8> {
    let mut pattern = Vec::new();
    for _ in 0..=rng.below(5) {
        let piece = match rng.below(3) {
            0 => one_of(rng, &NAMES),
            _ => one_of(rng, pieces),
        };
        pattern.extend_from_slice(piece);
    }
    pattern
}

/// What `bc hash` lists, without the repository.
fn listed(t: &TestTree, options: &[Vec<u8>]) -> BTreeSet<Vec<u8>> {
    let options = options.iter().map(|option| OsStr::from_bytes(option));
    let ran = t
        .bc()
        .args(["hash", "--type=crc32c", "--zero", "--exclude=/.git"])
        .args(options)
        .arg(".")
        .go();
    assert!(ran.status.code() < Some(2), "{ran}");
    let lines = ran.stdout.split(|byte| *byte == 0);
    let lines = lines.filter(|line| !line.is_empty());
    // A digest and two blanks.
    let path = |line: &[u8]| {
        line[10..]
            .strip_prefix(b"./")
            .unwrap_or(&line[10..])
            .to_vec()
    };
    lines.map(path).collect()
}

/// What only one of them has.
fn difference(one: &BTreeSet<Vec<u8>>, other: &BTreeSet<Vec<u8>>) -> String {
    let paths = one.symmetric_difference(other);
    let shown = paths.map(|path| path.escape_ascii().to_string());
    shown.collect::<Vec<_>>().join(", ")
}

#[test]
fn ignore_files_are_those_of_git() {
    const PIECES: [&[u8]; 23] = [
        b"*",
        b"**",
        b"?",
        b"/",
        b"/",
        b"/**",
        b"**/",
        b"/**/",
        b"[ab]",
        b"[!a]",
        b"[^ab]",
        b"[a-c]",
        b"[[:alpha:]]",
        b"[",
        b"\\",
        b"\\*",
        b"\\[",
        b"[]a]",
        b"{a,b}",
        b" ",
        b"\\ ",
        b"!",
        b"#",
    ];
    let Some(git) = tool("git") else {
        return left_out("git is not installed");
    };
    for seed in 0..trees() {
        let mut rng = Rng::new(seed);
        let (t, mut files) = tree(&mut rng);
        let mut ignores = Vec::new();
        for _ in 0..=rng.below(3) {
            let of: Vec<&Vec<u8>> = files.iter().collect();
            let path = of[rng.below(of.len() as u64) as usize];
            let dir = path.iter().rposition(|byte| *byte == b'/');
            let dir = &path[..dir.map_or(0, |slash| slash + 1)];
            let mut content = Vec::new();
            for _ in 0..=rng.below(5) {
                let ends: [&[u8]; 4] = [b"\n", b"\r\n", b"/\n", b"  \n"];
                content.extend_from_slice(one_of(&mut rng, &[&b""[..], b"", b"!", b"/", b"\\!"]));
                content.extend_from_slice(&line(&mut rng, &PIECES));
                content.extend_from_slice(one_of(&mut rng, &ends));
            }
            ignores.push(([dir, b".gitignore"].concat(), content));
        }
        for (path, content) in &ignores {
            t.write_bytes(path, content);
            files.insert(path.clone());
        }
        let run = |args: &[&str]| {
            let run = t.run(&git).args(["-c", "core.ignoreCase=false"]);
            let run = run.args(["-c", "core.excludesFile=/dev/null"]).args(args);
            let run = run.env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", t.path());
            run.go()
        };
        run(&["init", "-q"]).code(0);
        let reported = run(&["ls-files", "-z", "-o", "--exclude-per-directory=.gitignore"]);
        reported.code(0);
        let names = reported.stdout.split(|byte| *byte == 0);
        let expected: BTreeSet<Vec<u8>> = names
            .filter(|name| !name.is_empty())
            .map(<[u8]>::to_vec)
            .collect();
        let found = listed(&t, &[b"--ignore-files".to_vec()]);
        let shown = ignores.iter().map(|(path, content)| {
            format!("\n{}: {}", path.escape_ascii(), content.escape_ascii())
        });
        assert!(
            found == expected,
            "seed {seed}: {}{}",
            difference(&found, &expected),
            shown.collect::<String>()
        );
    }
}

/// A line of which git's answer is that of its documentation: some releases take `**/` behind a
/// literal beginning for one behind a slash.
fn line(rng: &mut Rng, pieces: &[&[u8]]) -> Vec<u8> {
    loop {
        let line = pattern(rng, pieces);
        let special = line.iter().position(|byte| b"*?[\\".contains(byte));
        let begins = special
            .is_some_and(|at| at > 0 && line[at - 1] != b'/' && line[at..].starts_with(b"**"));
        if !begins {
            return line;
        }
    }
}

/// Whether a pattern without braces fits, by its rules alone; `begins`: after a slash, or at the
/// beginning.
fn fits(pattern: &[u8], text: &[u8], begins: bool) -> bool {
    let Some((&byte, rest)) = pattern.split_first() else {
        return text.is_empty();
    };
    let one = |is_it: &dyn Fn(u8) -> bool, rest| {
        text.split_first()
            .is_some_and(|(&byte, after)| is_it(byte) && fits(rest, after, byte == b'/'))
    };
    match byte {
        b'*' => {
            let stars = pattern.iter().take_while(|byte| **byte == b'*').count();
            let rest = &pattern[stars..];
            if begins && stars > 1 && rest.is_empty() {
                return true;
            }
            if begins && stars > 1 && rest[0] == b'/' {
                let mut slashes = (0..text.len()).filter(|at| text[*at] == b'/');
                return fits(&rest[1..], text, true)
                    || slashes.any(|at| fits(&rest[1..], &text[at + 1..], true));
            }
            let name = text.split(|byte| *byte == b'/').next().unwrap_or(b"").len();
            (0..=name).any(|at| fits(rest, &text[at..], false))
        }
        b'?' => one(&|byte| byte != b'/', rest),
        b'[' => {
            let end = rest.iter().skip(1).position(|byte| *byte == b']').unwrap() + 1;
            let (class, rest) = (&rest[..end], &rest[end + 1..]);
            let (class, wanted) = match class.strip_prefix(b"!") {
                Some(class) => (class, false),
                None => (class, true),
            };
            let is_in = |byte: u8| match class {
                [from, b'-', to] => (*from..=*to).contains(&byte),
                _ => class.contains(&byte),
            };
            one(&|byte| byte != b'/' && is_in(byte) == wanted, rest)
        }
        b'\\' => one(&|byte| byte == rest[0], &rest[1..]),
        own => one(&|byte| byte == own, rest),
    }
}

/// The patterns that braces stand for, the innermost ones first.
fn expanded(pattern: &[u8]) -> Vec<Vec<u8>> {
    let Some(close) = pattern.iter().position(|byte| *byte == b'}') else {
        return vec![pattern.to_vec()];
    };
    let open = pattern[..close]
        .iter()
        .rposition(|byte| *byte == b'{')
        .unwrap();
    let each = pattern[open + 1..close].split(|byte| *byte == b',');
    let each = each.map(|one| [&pattern[..open], one, &pattern[close + 1..]].concat());
    each.flat_map(|one| expanded(&one)).collect()
}

/// Whether a pattern names this path.
fn names(pattern: &[u8], path: &[u8], is_dir: bool) -> bool {
    let (pattern, for_all) = match pattern.strip_suffix(b"/") {
        Some(pattern) => (pattern, false),
        None => (pattern, true),
    };
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap();
    let text = if pattern.contains(&b'/') { path } else { name };
    let anchored = pattern.strip_prefix(b"/").or(pattern.strip_prefix(b"./"));
    let pattern = anchored.unwrap_or(pattern);
    (for_all || is_dir) && expanded(pattern).iter().any(|one| fits(one, text, true))
}

#[test]
fn exclude_and_include_are_their_rules() {
    const PIECES: [&[u8]; 18] = [
        b"*",
        b"**",
        b"?",
        b"/",
        b"/",
        b"/**",
        b"**/",
        b"/**/",
        b"[ab]",
        b"[!a]",
        b"[a-c]",
        b"\\*",
        b"{a,b}",
        b"{a,{b,},*/}",
        b"{**/a,b}",
        b"a",
        b".o",
        b"./",
    ];
    for seed in 0..trees() {
        let mut rng = Rng::new(seed + 1_000_000);
        let (t, files) = tree(&mut rng);
        for _ in 0..5 {
            let mut make = |most: u64| -> Vec<Vec<u8>> {
                let mut made = Vec::new();
                for _ in 0..rng.below(most + 1) {
                    let mut one = pattern(&mut rng, &PIECES);
                    if rng.below(4) == 0 {
                        one.push(b'/');
                    }
                    // Others are no patterns.
                    let text = one.strip_suffix(b"/").unwrap_or(&one);
                    let text = text
                        .strip_prefix(b"/")
                        .or(text.strip_prefix(b"./"))
                        .unwrap_or(text);
                    let is_one = !matches!(text, b"" | b"." | b"..");
                    made.extend(Some(one).filter(|one| is_one && std::str::from_utf8(one).is_ok()));
                }
                made
            };
            let (exclude, include) = (make(3), make(1));
            let option = |name: &str, patterns: &[Vec<u8>]| -> Vec<Vec<u8>> {
                let all = patterns.iter();
                all.map(|one| [name.as_bytes(), b"=", one].concat())
                    .collect()
            };
            let options = [option("--exclude", &exclude), option("--include", &include)].concat();
            let is_listed = |path: &&Vec<u8>| {
                let slashes = (0..path.len()).filter(|at| path[*at] == b'/');
                let above: Vec<&[u8]> = slashes.map(|at| &path[..at]).collect();
                let names_above =
                    |pattern: &Vec<u8>| above.iter().any(|dir| names(pattern, dir, true));
                !exclude.iter().any(names_above)
                    && !exclude.iter().any(|one| names(one, path, false))
                    && (include.is_empty() || include.iter().any(|one| names(one, path, false)))
            };
            let expected: BTreeSet<Vec<u8>> = files.iter().filter(is_listed).cloned().collect();
            let found = listed(&t, &options);
            let shown = options
                .iter()
                .map(|option| option.escape_ascii().to_string());
            assert!(
                found == expected,
                "seed {seed}, {}: {}",
                shown.collect::<Vec<_>>().join(" "),
                difference(&found, &expected)
            );
        }
    }
}

/// Braces in braces, a long line, one that is not closed: each is named, and the others count.
#[test]
fn lines_that_mean_nothing_are_named() {
    let t = TestTree::new();
    let nested = "{".repeat(12_000) + &"}".repeat(12_000);
    t.write("d/.gitignore", format!("*.o\n{nested}\n[\n/x\n"))
        .write("d/a.o", "a")
        .write("d/a.c", "b")
        .write("d/x", "c")
        .write("d/e/.ignore", "\\\n");
    for line in [
        "hash --ignore-files d",
        "dup --ignore-files d",
        "integrity manifest --ignore-files d",
        "copy --ignore-files d copy",
    ] {
        let ran = t.bc_line(line).go();
        ran.code(1).stderr_has(
            "d/.gitignore: read: line 2 is left out: longer than 4096 bytes; so is another line\n",
        );
        ran.stderr_has("d/e/.ignore: read: line 1 is left out: ends with a backslash\n");
    }
    let listed = t.bc_line("hash --ignore-files --type=crc32c d").go();
    let names = listed.text();
    let names: Vec<&str> = names.lines().map(|line| &line[10..]).collect();
    assert_eq!(names, ["d/.gitignore", "d/a.c", "d/e/.ignore"]);
    assert!(t.exists("copy/a.c") && !t.exists("copy/a.o") && !t.exists("copy/x"));
    for option in ["exclude", "include"] {
        let ran = t.bc_line(&format!("hash --{option}={nested} d")).go();
        ran.code(2)
            .stderr_has("braces in braces, more than 32 deep");
    }
}
