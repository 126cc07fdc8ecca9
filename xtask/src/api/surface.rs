//! Public items of a library, read from its source: each with its signature, without bodies,
//! comments and tests. Needs no tool and no build.
//!
//! The compiler's lint `unreachable_pub` ensures that an item which says `pub` can be reached from
//! outside. Methods that a macro makes are listed with the macro, and its uses.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::signature::{Before, angle_end, before, body, fields, head, signatures, skip_words};
use super::signature::{text, without_attributes};
use crate::circles::tokens::{Token, item_end, split};

/// Public items of a library.
pub(super) struct Shown {
    /// One line for each public item, sorted.
    pub(super) lines: Vec<String>,
    /// Lines with a type of a crate that is neither ours nor the standard library's, and that
    /// crate.
    pub(super) foreign: Vec<(String, String)>,
}

/// Returns the public items of the library with this root file.
pub(super) fn of(root: &Path) -> Result<Shown> {
    let mut found = Surface::default();
    let mut open = vec![(String::new(), root.to_owned(), root.with_file_name(""))];
    while let Some((name, file, folder)) = open.pop() {
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        for (child, path) in found.module(&split(&text), &name) {
            let flat = folder.join(format!("{child}.rs"));
            let nested = folder.join(&child).join("mod.rs");
            let file = if flat.exists() { flat } else { nested };
            open.push((path, file, folder.join(child)));
        }
    }
    Ok(found.shown())
}

/// Crates that our libraries depend on: a next major version of any of these would be ours too, if
/// its types were in our signatures.
const THEIRS: &[&str] = &[
    "blake3",
    "crc32c",
    "crossbeam_queue",
    "io_uring",
    "libc",
    "md5",
    "memchr",
    "redb",
    "rustix",
    "serde",
    "serde_json",
    "sha1",
    "sha2",
    "sha3",
    "sm3",
    "xxhash_rust",
    "zstd",
];

/// Items found so far.
#[derive(Default)]
struct Surface {
    lines: BTreeSet<String>,
    /// Names of public types: implementations by others are left out.
    types: BTreeSet<String>,
    /// Lines that count if the type of this name is public.
    of_types: Vec<(String, String)>,
    /// Imports of the present module from crates of others: names, and the crates.
    imported: BTreeMap<String, String>,
    /// Lines that contain one of their types.
    foreign: BTreeMap<String, String>,
}

impl Surface {
    fn shown(self) -> Shown {
        let mut lines = self.lines;
        let public = self.of_types.into_iter();
        let public = public.filter(|(name, _)| self.types.contains(name));
        lines.extend(public.map(|(_, line)| line));
        let foreign = self.foreign.into_iter();
        Shown {
            foreign: foreign.filter(|(line, _)| lines.contains(line)).collect(),
            lines: lines.into_iter().collect(),
        }
    }

    fn put(&mut self, line: String) {
        self.look_for_foreign(&line);
        self.lines.insert(line);
    }

    fn put_of(&mut self, name: String, line: String) {
        self.look_for_foreign(&line);
        self.of_types.push((name, line));
    }

    fn look_for_foreign(&mut self, line: &str) {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let mut words = line.split(|c| !is_word(c));
        let found = words.find_map(|word| self.imported.get(word).cloned());
        let paths = line.split(|c| !is_word(c) && c != ':');
        let mut firsts = paths.filter_map(|path| Some(path.split_once("::")?.0));
        let is_theirs = |first: &&str| THEIRS.contains(first);
        let found = found.or_else(|| firsts.find(is_theirs).map(str::to_owned));
        if let Some(of) = found {
            self.foreign.insert(line.to_owned(), of);
        }
    }

    /// Notes a module's imports from crates of others.
    fn note_imports(&mut self, tokens: &[Token]) {
        self.imported.clear();
        for (at, _) in tokens.iter().enumerate().filter(|(_, t)| t.is("use")) {
            let first = tokens.get(at + 1);
            let Some(first) = first.filter(|t| THEIRS.contains(&t.text.as_str())) else {
                continue;
            };
            let names = tokens[at + 2..].iter().take_while(|t| !t.is(";"));
            let names = names.filter(|t| t.text.starts_with(|c: char| c.is_ascii_uppercase()));
            let of = |name: &Token| (name.text.clone(), first.text.clone());
            self.imported.extend(names.map(of));
        }
    }

    /// Lists a module's items, with `name` as the path that callers write before theirs, and
    /// returns the modules that lie in files of their own.
    fn module(&mut self, tokens: &[Token], name: &str) -> Vec<(String, String)> {
        self.note_imports(tokens);
        let mut children = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            let (before, start) = before(tokens, at);
            let item = skip_words(tokens, start);
            let end = item_end(tokens, item).max(start + 1);
            let word = |offset: usize| tokens.get(item + offset).map_or("", |t| t.text.as_str());
            let inner = || match before.is_public && !word(1).is_empty() {
                true => format!("{name}{}::", word(1)),
                false => name.to_owned(),
            };
            if before.is_hidden {
            } else if word(0) == "mod" && word(2) == ";" {
                children.push((word(1).to_owned(), inner()));
            } else if word(0) == "mod" {
                let body = &tokens[item + 3..end.saturating_sub(1).max(item + 3)];
                children.extend(self.module(body, &inner()));
            } else {
                self.item(
                    &tokens[start..end.min(tokens.len())],
                    item - start,
                    name,
                    &before,
                );
            }
            at = end;
        }
        children
    }

    fn item(&mut self, tokens: &[Token], keyword: usize, name: &str, before: &Before) {
        let word = |offset: usize| tokens.get(keyword + offset).map_or("", |t| t.text.as_str());
        let notes: String = before.notes.iter().map(|note| format!("{note} ")).collect();
        match word(0) {
            "impl" => self.implementation(tokens, keyword),
            "macro_rules" => {
                let made = signatures(&tokens[keyword..], true);
                if !made.is_empty() {
                    self.types.insert(format!("{}!", word(2)));
                }
                for made in made {
                    self.put(format!("{name}macro {}: {made}", word(2)));
                }
            }
            _ if word(1) == "!" => {
                let line = format!("{name}{}", text(tokens));
                self.put_of(format!("{}!", word(0)), line);
            }
            // A macro of another crate of ours, by its path.
            _ if is_called_by_path(&tokens[keyword..]) => {
                self.put(format!("{name}{}", text(tokens)));
            }
            _ if !before.is_public => {}
            "struct" | "union" => {
                self.types.insert(word(1).to_owned());
                self.put(format!("{name}{notes}{}", fields(tokens)));
            }
            "enum" => {
                self.types.insert(word(1).to_owned());
                let body = text(&without_attributes(tokens));
                self.put(format!("{name}{notes}{body}"));
            }
            "trait" => {
                self.types.insert(word(1).to_owned());
                self.put(format!("{name}{}", text(head(tokens))));
                for item in signatures(body(tokens), false) {
                    self.put(format!("{name}{}: {item}", word(1)));
                }
            }
            "use" => {
                self.put(format!("{name}{}", text(tokens)));
            }
            "fn" | "const" | "static" | "type" => {
                self.put(format!("{name}{}", text(head(tokens))));
            }
            _ => {}
        }
    }

    /// Adds the promises of an `impl`: its head if it is of a trait, else each public item.
    fn implementation(&mut self, tokens: &[Token], at: usize) {
        let head = head(tokens);
        let mut at = at + 1;
        if head.get(at).is_some_and(|t| t.is("<")) {
            at = angle_end(head, at);
        }
        let of = head.iter().skip(at).position(|t| t.is("for"));
        let own = of.map_or(at, |of| at + of + 1);
        // The last name of a path: `fmt::Display for crate::Error`.
        let named: Vec<&Token> = head[own.min(head.len())..]
            .iter()
            .take_while(|t| !t.is("<") && !t.is("where") && !t.is("for"))
            .filter(|t| t.is_word())
            .collect();
        let Some(name) = named.last().map(|t| t.text.clone()) else {
            return;
        };
        if of.is_some() {
            self.put_of(name, text(head));
            return;
        }
        for item in signatures(body(tokens), true) {
            self.put_of(name.clone(), format!("{name}: {item}"));
        }
    }
}

/// Returns the path of the root file of a package's library.
pub(super) fn root_of(package: &str) -> PathBuf {
    match package.strip_prefix("bc-") {
        Some(folder) => crate::sh::root().join(format!("crates/{folder}/src/lib.rs")),
        None => crate::sh::root().join("src/lib.rs"),
    }
}

/// True if an item begins with the path of a macro of this project that is called: `bc_fs::made!`.
fn is_called_by_path(item: &[Token]) -> bool {
    let path = item.iter().take_while(|token| !token.is("!")).count();
    let is_part = |token: &Token| {
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        token.text.chars().all(is_word)
    };
    let begins = item
        .first()
        .is_some_and(|token| token.text.starts_with("bc_"));
    begins && path > 1 && path < item.len() && item[..path].iter().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surface(source: &str) -> Vec<String> {
        let mut found = Surface::default();
        let children = found.module(&split(source), "");
        assert!(children.is_empty(), "{children:?}");
        found.shown().lines
    }

    #[test]
    fn what_others_can_use_is_listed_and_nothing_else() {
        let source = "#[derive(Clone, Debug)] #[non_exhaustive] pub struct Shown<'a> { pub a: Vec<(u8, u16)>, b: u8 }
struct Hidden; impl Hidden { pub fn no(&self) {} } impl Drop for Hidden { fn drop(&mut self) {} }
impl<'a> Shown<'a> { pub const fn new(a: &'a str) -> Shown<'a> { let x = 1; } fn own() {} pub(crate) fn ours() {} }
impl Iterator for Shown<'_> { type Item = u8; }
impl Shown<'_> { pub fn last(mut self, mut n: &mut u8) {} }
pub enum Kind { /// A doc.
 #[default] One, Two { x: u8 } }
pub fn f(g: impl Fn(u8) -> u8) -> impl Iterator<Item = u8> { loop {} }
pub trait T: Send { fn must(&self); fn may(&self) -> u8 { 1 } }
#[cfg(test)] mod tests { pub fn not_me() {} } #[doc(hidden)] pub fn nor_me() {}
pub mod room { pub const SIZE: usize = 3; } mod cellar { pub fn reached() {} }
macro_rules! made { ($a:ident) => { impl $a { pub fn by_macro(self) -> Self { self } } } }
made!(Shown); bc_fs::given!(Shown: a);
pub use other::{A, B as C};";
        let found = surface(source);
        for part in [
            "#[derive(Clone, Debug)] #[non_exhaustive] struct Shown<'a> { a: Vec<(u8, u16)>, .. }",
            "Shown: const fn new(a: &'a str) -> Shown<'a>",
            "impl Iterator for Shown<'_>",
            "Shown: fn last(self, n: &mut u8)",
            "enum Kind { One, Two { x: u8 } }",
            "T: fn may(&self) -> u8",
            "room::const SIZE: usize",
            "fn reached()",
            "macro made: fn by_macro(self) -> Self",
            "made!(Shown)",
            "bc_fs::given!(Shown: a)",
            "use other::{ A, B as C }",
        ] {
            let has = found
                .iter()
                .any(|line| line.replace(' ', "").contains(&part.replace(' ', "")));
            assert!(has, "{part} is not in {found:#?}");
        }
        for absent in ["Hidden", "no(", "fn own", "ours", "not_me", "nor_me", "let"] {
            assert!(
                !found.iter().any(|line| line.contains(absent)),
                "{absent}: {found:#?}"
            );
        }
    }
}
