//! Dependencies between the files of a target, and the circles among them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::modules::{Module, ModuleName};

/// The modules of a target by name.
pub(super) type Modules = BTreeMap<ModuleName, Module>;

/// Files that a file depends on, each with the first line that says so.
pub(super) type Edges = BTreeMap<PathBuf, BTreeMap<PathBuf, usize>>;

/// Dependencies that count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    /// All.
    All,
    /// All but those of a part on the module that it is part of, which it sees by nesting: such a
    /// file and its folder are one thing.
    BetweenParts,
}

/// Target of a path.
enum Found {
    Module(ModuleName),
    /// An item that this module declares.
    Item(ModuleName),
}

/// Returns the files that use items of others. Re-exporting a name (`pub use`) is no use of it, and
/// a file that imports it from there depends on the file that declares it.
pub(super) fn edges(modules: &Modules, count: Count) -> Edges {
    let mut edges = Edges::new();
    for (name, module) in modules {
        let mut lean = |found: Option<Found>, line: usize| {
            if let Some(Found::Item(target)) = found {
                let nested = count == Count::BetweenParts && name.starts_with(&target);
                let target = &modules[&target].file;
                if *target != module.file && !nested {
                    let from = edges.entry(module.file.clone()).or_default();
                    let first = from.entry(target.clone()).or_insert(line);
                    *first = line.min(*first);
                }
            }
        };
        for mention in &module.mentions {
            lean(resolve(modules, name, &mention.path, 0), mention.line);
        }
        for import in &module.imports {
            let found = resolve(modules, name, &import.path, 0);
            if import.alias == "*" {
                let Some(Found::Module(target)) = found else {
                    continue;
                };
                for (word, line) in &module.words {
                    let declared = module.items.contains(word);
                    if !declared && !import.exported {
                        lean(look_up(modules, &target, word, 0), *line);
                    }
                }
            } else if !import.exported {
                lean(found, import.line);
            } else if let Some(line) = module.words.get(&import.alias) {
                lean(found, *line);
            }
        }
    }
    edges
}

/// Longer chains of re-exports do not occur; a longer one is one that goes round.
const MOST_HOPS: usize = 12;

/// Returns the target of a path in this module; `None` if it is outside the crate.
fn resolve(modules: &Modules, from: &ModuleName, path: &[String], hops: usize) -> Option<Found> {
    if hops > MOST_HOPS {
        return None;
    }
    let (first, mut rest) = path.split_first()?;
    let mut at = match first.as_str() {
        "crate" => ModuleName::new(),
        "self" => from.clone(),
        "super" => from[..from.len().checked_sub(1)?].to_vec(),
        name => match look_up(modules, from, name, hops + 1)? {
            Found::Module(module) => module,
            item => return Some(item),
        },
    };
    while let Some((next, after)) = rest.split_first() {
        rest = after;
        if next == "super" {
            at.pop()?;
            continue;
        }
        match look_up(modules, &at, next, hops + 1) {
            Some(Found::Module(module)) => at = module,
            Some(item) => return Some(item),
            // Made by a macro, perhaps: it is that module's.
            None => return Some(Found::Item(at)),
        }
    }
    Some(Found::Module(at))
}

/// Returns the meaning of a name in a module.
fn look_up(modules: &Modules, at: &ModuleName, name: &str, hops: usize) -> Option<Found> {
    if hops > MOST_HOPS {
        return None;
    }
    let mut child = at.clone();
    child.push(name.to_owned());
    if modules.contains_key(&child) {
        return Some(Found::Module(child));
    }
    let module = modules.get(at)?;
    if module.items.contains(name) {
        return Some(Found::Item(at.clone()));
    }
    if let Some(import) = module.imports.iter().find(|i| i.alias == name) {
        // `use name;` and the names of other crates lead nowhere within this one.
        let alone = import.path.len() == 1 && import.path[0] == name;
        return (!alone).then(|| resolve(modules, at, &import.path, hops + 1))?;
    }
    let globs = module.imports.iter().filter(|i| i.alias == "*");
    globs
        .filter_map(|glob| match resolve(modules, at, &glob.path, hops + 1)? {
            Found::Module(target) => look_up(modules, &target, name, hops + 1),
            Found::Item(_) => None,
        })
        .next()
}

/// Returns the sets of files in which every file can be reached from every other one.
pub(super) fn circles(edges: &Edges) -> Vec<BTreeSet<&Path>> {
    let reach: BTreeMap<&Path, BTreeSet<&Path>> = edges
        .keys()
        .map(|file| (file.as_path(), reachable(edges, file)))
        .collect();
    let mut found: Vec<BTreeSet<&Path>> = Vec::new();
    for (file, others) in &reach {
        if found.iter().any(|circle| circle.contains(file)) || !others.contains(file) {
            continue;
        }
        let back = |other: &&&Path| reach.get(**other).is_some_and(|r| r.contains(file));
        found.push(others.iter().filter(back).copied().collect());
    }
    found
}

fn reachable<'a>(edges: &'a Edges, from: &Path) -> BTreeSet<&'a Path> {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        for target in edges.get(file).into_iter().flat_map(BTreeMap::keys) {
            if seen.insert(target.as_path()) {
                open.push(target);
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::super::modules;
    use super::*;

    /// Lays the files below a new folder and returns their dependencies, and the circles.
    fn drawn(count: Count, files: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let folder = crate::sh::scratch(&format!("circles-{:p}", files)).unwrap();
        for (path, text) in files {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let edges = edges(&modules::read(&folder.join("lib.rs")).unwrap(), count);
        std::fs::remove_dir_all(&folder).unwrap();
        let short = |path: &Path| path.strip_prefix(&folder).unwrap().display().to_string();
        let lines = edges.iter().flat_map(|(from, to)| {
            to.iter()
                .map(move |(to, line)| format!("{}:{line} {}", short(from), short(to)))
        });
        let sets = circles(&edges).into_iter().map(|set| {
            let files: Vec<String> = set.into_iter().map(short).collect();
            files.join(" ")
        });
        (lines.collect(), sets.collect())
    }

    #[test]
    fn names_lead_to_the_file_that_declares_them() {
        let (edges, circles) = drawn(
            Count::All,
            &[
                ("lib.rs", "mod a;\nmod b;\npub use a::A;\nuse std::fmt;"),
                ("a/mod.rs", "pub struct A;\npub mod deep;\npub use deep::D;"),
                ("a/deep.rs", "pub struct D;\nfn f() { crate::b::g() }"),
                (
                    "b.rs",
                    "use crate::A;\nfn g(_: crate::a::D) { std::io::x() }",
                ),
            ],
        );
        let expected = ["a/deep.rs:2 b.rs", "b.rs:2 a/deep.rs", "b.rs:1 a/mod.rs"];
        assert_eq!(edges, expected);
        assert_eq!(circles, ["a/deep.rs b.rs"]);
    }

    #[test]
    fn handing_on_and_tests_are_no_use_but_using_what_is_handed_on_is() {
        let (edges, circles) = drawn(
            Count::All,
            &[
                ("lib.rs", "mod a;\npub use a::A;\npub const C: u8 = 1;"),
                (
                    "a.rs",
                    "pub struct A;\nconst B: u8 = crate::C;\n#[cfg(test)] mod t {\nuse super::*; }",
                ),
            ],
        );
        assert_eq!((edges.len(), circles.len()), (1, 0));
        let own = [
            (
                "lib.rs",
                "mod a;\npub use a::A;\npub const C: u8 = 1;\nfn f(_: A) {}",
            ),
            ("a.rs", "use super::*;\npub struct A([u8; C]);"),
        ];
        assert_eq!(drawn(Count::All, &own).1, ["a.rs lib.rs"]);
        assert_eq!(drawn(Count::BetweenParts, &own).1, [""; 0]);
    }
}
