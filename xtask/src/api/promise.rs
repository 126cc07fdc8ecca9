//! The promised items of the libraries, and what must not be among them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::surface::{self, Item, Name, Shown};
use crate::sh;

/// Text that tells readers of an item, a crate's page or a package that it is not for them.
const INTERNAL: &str = "nternal to bit-crafts";

/// Library with its public items.
pub(super) struct Library {
    pub(super) package: &'static str,
    /// Name in paths: `bc_fs`.
    name: String,
    pub(super) shown: Shown,
    /// True if the whole crate is internal.
    pub(super) is_internal: bool,
    /// Files and lines with a mistake in saying what is internal.
    unsaid: Vec<String>,
}

impl Library {
    pub(super) fn read(package: &'static str) -> Result<Library> {
        let root = surface::root_of(package);
        let source = std::fs::read_to_string(&root).with_context(|| root.display().to_string())?;
        let folder = root.parent().context("no folder")?;
        let package_file = folder.with_file_name("Cargo.toml");
        let described = std::fs::read_to_string(&package_file)
            .with_context(|| package_file.display().to_string())?;
        let described = described.lines().find(|l| l.starts_with("description"));
        let is_internal = described.is_some_and(|line| line.contains(INTERNAL));
        let page: String = source
            .lines()
            .take_while(|l| l.starts_with("//!") && *l != "//!")
            .collect();
        let mut unsaid = Vec::new();
        if page.contains(INTERNAL) != is_internal {
            unsaid.push(format!(
                "{package}: its page and its description differ in \"{INTERNAL}\""
            ));
        }
        if !is_internal {
            for file in sources(folder)? {
                let text = std::fs::read_to_string(&file)?;
                let lines = unsaid_hidden(&text).into_iter();
                unsaid.extend(lines.map(|line| {
                    format!("{}:{line}: hidden without \"{INTERNAL}\"", file.display())
                }));
            }
        }
        Ok(Library {
            package,
            name: package.replace('-', "_"),
            shown: surface::of(&root)?,
            is_internal,
            unsaid,
        })
    }

    /// Returns the lines of all its items that are not hidden.
    pub(super) fn lines(&self) -> impl Iterator<Item = &str> {
        let shown = self.shown.items.iter().filter(|item| !item.is_internal);
        shown.map(|item| item.line.as_str())
    }
}

/// Decision on what is promised.
pub(super) struct Promise<'l> {
    libraries: &'l [Library],
    /// Items of internal crates that promised ones re-export.
    adopted: BTreeSet<&'l Name>,
    /// Types that are not promised.
    internal: BTreeSet<(&'l str, &'l str)>,
}

impl<'l> Promise<'l> {
    pub(super) fn of(libraries: &'l [Library]) -> Promise<'l> {
        let promised = libraries.iter().filter(|l| !l.is_internal);
        let mut promise = Promise {
            libraries,
            adopted: promised.flat_map(|l| &l.shown.adopted).collect(),
            internal: BTreeSet::new(),
        };
        for library in libraries {
            let types = library.shown.items.iter().filter(|item| item.is_type);
            let types = types.filter(|item| !promise.holds(library, item));
            let names = types.map(|item| (library.name.as_str(), item.of.as_str()));
            let names: Vec<_> = names.collect();
            promise.internal.extend(names);
        }
        promise
    }

    /// True if the item is promised.
    pub(super) fn holds(&self, library: &Library, item: &Item) -> bool {
        let is_shown = || {
            let of = (library.name.clone(), item.of.clone());
            self.adopted.contains(&of)
        };
        !item.is_internal && (!library.is_internal || is_shown())
    }

    fn items(&self) -> impl Iterator<Item = (&'l Library, &'l Item)> {
        let all = self.libraries.iter();
        let all = all.flat_map(|l| l.shown.items.iter().map(move |item| (l, item)));
        all.filter(|(library, item)| self.holds(library, item))
    }

    /// Returns a line for each promised item that names an internal type or is in no example, and
    /// each that is hidden without a word.
    pub(super) fn faults(&self, examples: &str) -> Vec<String> {
        let unsaid = self.libraries.iter().flat_map(|l| l.unsaid.iter().cloned());
        let mut faults: Vec<String> = unsaid.collect();
        for (library, item) in self.items() {
            for (of, name) in &item.mentions {
                let of = if of == "crate" { &library.name } else { of };
                if self.internal.contains(&(of, name)) {
                    let Item { line, .. } = item;
                    faults.push(format!(
                        "{}: {of}::{name} is internal: {line}",
                        library.package
                    ));
                }
            }
        }
        for (library, item) in self.unreached(examples) {
            let Item { line, .. } = item;
            faults.push(format!("{}: in no example: {line}", library.package));
        }
        faults
    }

    /// Returns the promised types, functions and constants that no example names, and none of those
    /// that an example names has in its signature or in one of its methods.
    fn unreached(&self, examples: &str) -> Vec<(&'l Library, &'l Item)> {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let mut reached: BTreeSet<&str> = examples.split(|c| !is_word(c)).collect();
        // What a macro makes belongs to the types that it is called for.
        let is_one = |item: &Item| !item.of.is_empty() && !item.of.ends_with('!');
        let mut open: Vec<_> = self.items().filter(|(_, item)| is_one(item)).collect();
        loop {
            let before = open.len();
            open.retain(|(_, item)| {
                let is_reached = reached.contains(item.of.as_str());
                if is_reached {
                    reached.extend(item.line.split(|c| !is_word(c)));
                    reached.extend(item.mentions.iter().map(|(_, name)| name.as_str()));
                }
                !is_reached
            });
            if open.len() == before {
                return open;
            }
        }
    }
}

/// Returns the numbers of the lines that hide an item without saying why in its comment.
fn unsaid_hidden(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let hidden = lines.iter().enumerate();
    let hidden = hidden.filter(|(_, line)| line.starts_with("#[doc(hidden)]"));
    let is_said = |at: usize| {
        let above = lines[..at].iter().rev();
        let mut above = above.take_while(|l| l.starts_with("//") || l.starts_with("#["));
        above.any(|line| line.contains(INTERNAL))
    };
    hidden
        .filter(|(at, _)| !is_said(*at))
        .map(|(at, _)| at + 1)
        .collect()
}

/// Returns the text of all examples of the libraries: programs, and the code in comments.
pub(super) fn examples() -> Result<String> {
    let root = sh::root();
    let mut text = String::new();
    for folder in ["src", "crates"] {
        for file in sources(&root.join(folder))? {
            let source = std::fs::read_to_string(&file)?;
            let is_program = file.parent().is_some_and(|f| f.ends_with("examples"));
            text += &if is_program {
                source
            } else {
                commented(&source)
            };
        }
    }
    for entry in std::fs::read_dir(root.join("crates"))? {
        if let Ok(page) = std::fs::read_to_string(entry?.path().join("README.md")) {
            text += &fenced(page.lines());
        }
    }
    text += &std::fs::read_to_string(root.join("tests/it/outside/main.rs"))?;
    Ok(text)
}

/// Returns the code in a source's comments.
fn commented(source: &str) -> String {
    let lines = source.lines().map(str::trim_start);
    fenced(lines.filter_map(|line| line.strip_prefix("//!").or(line.strip_prefix("///"))))
}

/// Returns the lines between fences.
fn fenced<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let (mut text, mut is_code) = (String::new(), false);
    for line in lines {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if is_code {
            text += line;
            text.push('\n');
        }
    }
    text
}

/// Returns the files of Rust below a folder, in order.
fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let entries = std::fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(package: &'static str, is_internal: bool, source: &str) -> Library {
        Library {
            package,
            name: package.replace('-', "_"),
            shown: surface::of_source(source),
            is_internal,
            unsaid: Vec::new(),
        }
    }

    /// A promised crate shows what is its own, and what it makes its own.
    #[test]
    fn internal_types_are_in_no_promise() {
        let inner = "pub struct Known; pub struct Stamp; impl Known { pub fn new() -> Known {} }";
        let outer = "use bc_inner::{Known, Stamp}; pub use bc_inner::Known;
#[doc(hidden)] pub mod parts { pub struct Part; }
pub fn fine(known: &Known) {} pub fn leaks(stamp: Stamp) {}
use crate::parts::Part; pub struct Options { pub part: Part, #[doc(hidden)] pub stamp: Stamp }
pub enum Kind { Stamp, Part(u8) }
impl FromStr for Options { type Err = Stamp; }";
        let libraries = [
            library("bc-inner", true, inner),
            library("bc-outer", false, outer),
        ];
        let promise = Promise::of(&libraries);
        let promised: Vec<&str> = promise.items().map(|(_, item)| &*item.line).collect();
        assert!(
            promised.contains(&"Known: fn new() -> Known"),
            "{promised:?}"
        );
        assert!(!promised.contains(&"struct Stamp"), "{promised:?}");
        let example = "Known fine leaks Options Kind";
        assert_eq!(
            promise.faults(example),
            [
                "bc-outer: bc_inner::Stamp is internal: fn leaks(stamp: Stamp)",
                "bc-outer: bc_inner::Stamp is internal: impl FromStr for Options",
                "bc-outer: bc_outer::Part is internal: struct Options { part: Part, .. }",
            ]
        );
    }

    #[test]
    fn an_example_reaches_what_its_items_show() {
        let source = "pub struct Job; impl Job { pub fn run(&self) -> Report {} }
pub struct Report { pub kind: Kind } pub enum Kind { Odd } pub fn alone(of: Job) {}";
        let libraries = [library("bc-outer", false, source)];
        let promise = Promise::of(&libraries);
        let missing = ["bc-outer: in no example: fn alone(of: Job)"];
        assert_eq!(
            promise.faults(&commented("/// ```\n/// Job::new()\n/// ```")),
            missing
        );
        assert_eq!(promise.faults(&commented("/// Job\nJob;")).len(), 5);
    }

    #[test]
    fn what_is_hidden_says_why() {
        let said = "/// Part. Internal to bit-crafts.\n#[cfg(unix)]\n#[doc(hidden)]\npub fn f() {}";
        assert!(unsaid_hidden(said).is_empty());
        assert_eq!(
            unsaid_hidden("/// A part.\n#[doc(hidden)]\npub fn f() {}"),
            [2]
        );
        let above = "// Internal to bit-crafts.\nfn a() {}\n    #[doc(hidden)]\nfn b() {}";
        assert_eq!(unsaid_hidden(above), [3]);
    }
}
