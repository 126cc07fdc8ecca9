//! Public items of a library, read from its source: each with its signature, without bodies,
//! comments and tests. Needs no tool and no build.
//!
//! The compiler's lint `unreachable_pub` ensures that an item which says `pub` can be reached from
//! outside. Methods that a macro makes are listed with the macro, and its uses. An item is internal
//! if it, its module or each of its re-exports is `#[doc(hidden)]`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::signature::{Before, angle_end, before, body, fields, head, signatures, skip_words};
use super::signature::{Signature, associated, payloads, text};
use super::signature::{without_attributes, without_hidden};
use crate::circles::tokens::{Token, item_end, split};

/// Public items of a library.
#[derive(Default)]
pub(super) struct Shown {
    /// Items, sorted by their lines.
    pub(super) items: Vec<Item>,
    /// Items of other crates of ours that are re-exported.
    pub(super) adopted: BTreeSet<Name>,
    /// Lines with a type of a crate that is neither ours nor the standard library's, and that
    /// crate.
    pub(super) foreign: Vec<(String, String)>,
}

/// Public item of a library.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item {
    /// Its signature.
    pub(super) line: String,
    /// Name of the type, function or constant that it is or belongs to; empty for a re-export.
    pub(super) of: String,
    pub(super) is_type: bool,
    /// True if only our own crates and the program may use it.
    pub(super) is_internal: bool,
    /// Types in its signature that are ours.
    pub(super) mentions: BTreeSet<Name>,
}

/// Name in a library: `bc_fs`, or `crate` for the library itself, and the name.
pub(super) type Name = (String, String);

/// Reach of a module's items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    /// Named by anybody.
    Public,
    /// As its re-exports; promised if there are none.
    Private,
    /// As its re-exports; internal if there are none.
    Hidden,
    Internal,
}

/// Returns the public items of the library with this root file.
pub(super) fn of(root: &Path) -> Result<Shown> {
    let mut found = Surface::default();
    let mut open = vec![(Module::default(), root.to_owned(), root.with_file_name(""))];
    while let Some((module, file, folder)) = open.pop() {
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        for (child, module) in found.module(&split(&text), &module) {
            let flat = folder.join(format!("{child}.rs"));
            let nested = folder.join(&child).join("mod.rs");
            let file = if flat.exists() { flat } else { nested };
            open.push((module, file, folder.join(child)));
        }
    }
    Ok(found.shown())
}

/// Returns the public items of a library of one file.
#[cfg(test)]
pub(super) fn of_source(source: &str) -> Shown {
    let mut found = Surface::default();
    let children = found.module(&split(source), &Module::default());
    assert!(children.is_empty(), "{children:?}");
    found.shown()
}

/// Module as the items in it see it.
#[derive(Clone, Debug)]
struct Module {
    /// Path that callers write before the names in it.
    path: String,
    reach: Reach,
}

impl Default for Module {
    /// The root of a library.
    fn default() -> Module {
        Module {
            path: String::new(),
            reach: Reach::Public,
        }
    }
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
    found: Vec<Found>,
    /// Names re-exported for anybody, and for our own crates.
    shown: BTreeSet<String>,
    hidden: BTreeSet<String>,
    adopted: BTreeSet<Name>,
    /// Names that the present module imports, and the first parts of their paths.
    imported: BTreeMap<String, String>,
}

/// Line of a source, with what its module knows of it.
struct Found {
    line: String,
    of: String,
    kind: FoundKind,
    reach: Reach,
    mentions: BTreeSet<Name>,
    /// Crate of others that a type in it is of.
    foreign: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FoundKind {
    Type,
    Function,
    /// Counts if there is a public type of its name.
    Member,
    Import,
}

impl Surface {
    fn shown(self) -> Shown {
        let reach = |found: &Found| match found.reach {
            Reach::Private | Reach::Hidden if self.shown.contains(&found.of) => Reach::Public,
            Reach::Private if !self.hidden.contains(&found.of) => Reach::Public,
            Reach::Private | Reach::Hidden => Reach::Internal,
            reach => reach,
        };
        let mut types: BTreeMap<&str, Reach> = BTreeMap::new();
        for found in self.found.iter().filter(|f| f.kind == FoundKind::Type) {
            let known = types.entry(&found.of).or_insert(Reach::Internal);
            *known = reach(found).min(*known);
        }
        let (mut items, mut foreign) = (BTreeSet::new(), BTreeMap::new());
        for found in &self.found {
            let reach = match (found.kind, types.get(found.of.as_str())) {
                (FoundKind::Member, None) => continue,
                (FoundKind::Member, Some(of)) => found.reach.max(*of),
                _ => reach(found),
            };
            if let Some(of) = found.foreign.as_ref().filter(|_| reach != Reach::Internal) {
                foreign.insert(found.line.clone(), of.clone());
            }
            items.insert(Item {
                line: found.line.clone(),
                of: found.of.clone(),
                is_type: found.kind == FoundKind::Type,
                is_internal: reach == Reach::Internal,
                mentions: found.mentions.clone(),
            });
        }
        // The same signature in two modules is one line: a promised one counts.
        let mut items: Vec<Item> = items.into_iter().collect();
        items.sort_by(|a, b| (&a.line, a.is_internal).cmp(&(&b.line, b.is_internal)));
        items.dedup_by(|b, a| a.line == b.line);
        Shown {
            items,
            adopted: self.adopted,
            foreign: foreign.into_iter().collect(),
        }
    }

    fn put(&mut self, kind: FoundKind, reach: Reach, of: &str, line: String) {
        let seen = line.clone();
        self.put_with(kind, reach, of, line, &seen);
    }

    /// Puts a line; `seen` has the types that it shows.
    fn put_with(&mut self, kind: FoundKind, reach: Reach, of: &str, line: String, seen: &str) {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let mut mentions = BTreeSet::new();
        let mut foreign = None;
        for path in seen.split(|c| !is_word(c) && c != ':') {
            let Some(name) = path.rsplit("::").next() else {
                continue;
            };
            // `name: Type` without a space, as macros have it.
            let name = name.rsplit(':').next().unwrap_or(name);
            let first = match path.split_once("::") {
                Some((first, _)) => first.rsplit(':').next().unwrap_or(first),
                None => self.imported.get(name).map_or("crate", String::as_str),
            };
            if THEIRS.contains(&first) {
                foreign = foreign.or(Some(first.to_owned()));
            }
            if name.starts_with(|c: char| c.is_uppercase()) {
                let is_elsewhere = ["std", "core", "alloc"].contains(&first)
                    || first.starts_with("bc_")
                    || first.starts_with(|c: char| c.is_uppercase());
                let of = if is_elsewhere { first } else { "crate" };
                mentions.insert((of.to_owned(), name.to_owned()));
            }
        }
        self.found.push(Found {
            line,
            of: of.to_owned(),
            kind,
            reach,
            mentions,
            foreign,
        });
    }

    /// Notes a module's imports.
    fn note_imports(&mut self, tokens: &[Token]) {
        self.imported.clear();
        for (at, _) in tokens.iter().enumerate().filter(|(_, t)| t.is("use")) {
            let Some(first) = tokens.get(at + 1) else {
                continue;
            };
            let names = tokens[at + 2..].iter().take_while(|t| !t.is(";"));
            let names = names.filter(|t| t.text.starts_with(|c: char| c.is_ascii_uppercase()));
            let of = |name: &Token| (name.text.clone(), first.text.clone());
            self.imported.extend(names.map(of));
        }
    }

    /// Notes a re-export.
    fn note_reexport(&mut self, tokens: &[Token], reach: Reach) {
        let names = match reach {
            Reach::Public => &mut self.shown,
            Reach::Private => return,
            Reach::Hidden | Reach::Internal => &mut self.hidden,
        };
        let Some(at) = tokens.iter().position(|t| t.is("use")) else {
            return;
        };
        let of = &tokens[at + 1].text;
        for (at, token) in tokens.iter().enumerate().skip(at + 1) {
            let leads = tokens.get(at + 1).is_some_and(|t| t.is("::"));
            if !token.is_word() || leads || token.is("as") || tokens[at - 1].is("as") {
                continue;
            }
            names.insert(token.text.clone());
            if reach == Reach::Public && of.starts_with("bc_") {
                self.adopted.insert((of.clone(), token.text.clone()));
            }
        }
    }

    /// Lists a module's items, and returns the modules that lie in files of their own.
    fn module(&mut self, tokens: &[Token], module: &Module) -> Vec<(String, Module)> {
        self.note_imports(tokens);
        let mut children = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            let (before, start) = before(tokens, at);
            let item = skip_words(tokens, start);
            let end = item_end(tokens, item).max(start + 1);
            let word = |offset: usize| tokens.get(item + offset).map_or("", |t| t.text.as_str());
            let reach = match before.is_hidden {
                true => Reach::Internal,
                false => module.reach,
            };
            let inner = || match before.is_public && !word(1).is_empty() {
                true => Module {
                    path: format!("{}{}::", module.path, word(1)),
                    reach: reach.min(Reach::Hidden),
                },
                false => Module {
                    path: module.path.clone(),
                    reach: reach.clamp(Reach::Private, Reach::Hidden),
                },
            };
            if before.is_of_tests {
            } else if word(0) == "mod" && word(2) == ";" {
                children.push((word(1).to_owned(), inner()));
            } else if word(0) == "mod" {
                let body = &tokens[item + 3..end.saturating_sub(1).max(item + 3)];
                let imported = std::mem::take(&mut self.imported);
                children.extend(self.module(body, &inner()));
                self.imported = imported;
            } else {
                let tokens = &tokens[start..end.min(tokens.len())];
                self.item(tokens, item - start, &module.path, &before, reach);
            }
            at = end;
        }
        children
    }

    fn item(
        &mut self,
        tokens: &[Token],
        keyword: usize,
        name: &str,
        before: &Before,
        reach: Reach,
    ) {
        use FoundKind::{Function, Import, Member, Type};
        let word = |offset: usize| tokens.get(keyword + offset).map_or("", |t| t.text.as_str());
        let notes: String = before.notes.iter().map(|note| format!("{note} ")).collect();
        let of = word(1);
        match word(0) {
            "impl" => self.implementation(tokens, keyword, reach),
            "macro_rules" => {
                let of = format!("{}!", word(2));
                for made in signatures(&tokens[keyword..], true) {
                    let line = format!("{name}macro {}: {}", word(2), made.text);
                    let reach = made.reach(reach);
                    self.put(Type, reach, &of, line);
                }
            }
            _ if word(1) == "!" => {
                let line = format!("{name}{}", text(tokens));
                self.put(Member, reach, &format!("{}!", word(0)), line);
            }
            // A macro of another crate of ours, by its path.
            _ if is_called_by_path(&tokens[keyword..]) => {
                let open = tokens.iter().position(|t| t.is("{") || t.is("("));
                let of = open.and_then(|open| tokens.get(open + 1));
                let of = of.map_or("", |of| of.text.as_str());
                let shown = text(&without_hidden(tokens));
                self.put(Member, reach, of, format!("{name}{shown}"));
            }
            _ if !before.is_public => {}
            "struct" | "union" => {
                self.put(Type, reach, of, format!("{name}{notes}{}", fields(tokens)));
            }
            "enum" => {
                let body = text(&without_attributes(tokens));
                let line = format!("{name}{notes}{body}");
                self.put_with(Type, reach, of, line, &payloads(tokens));
            }
            "trait" => {
                self.put(Type, reach, of, format!("{name}{}", text(head(tokens))));
                for item in signatures(body(tokens), false) {
                    let line = format!("{name}{of}: {}", item.text);
                    self.put(Member, item.reach(reach), of, line);
                }
            }
            // What it makes public is of its module's reach.
            "use" if reach == Reach::Private => {}
            "use" => {
                self.note_reexport(tokens, reach);
                self.put(Import, reach, "", format!("{name}{}", text(tokens)));
            }
            "type" => self.put(Type, reach, of, format!("{name}{}", text(head(tokens)))),
            "fn" | "const" | "static" => {
                self.put(Function, reach, of, format!("{name}{}", text(head(tokens))));
            }
            _ => {}
        }
    }

    /// Adds the promises of an `impl`: its head if it is of a trait, else each public item.
    fn implementation(&mut self, tokens: &[Token], at: usize, reach: Reach) {
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
        // Members are where their type is, whatever module they are written in.
        let reach = match reach {
            Reach::Private | Reach::Hidden => Reach::Public,
            reach => reach,
        };
        if of.is_some() {
            let seen = format!("{} {}", text(head), associated(body(tokens)));
            self.put_with(FoundKind::Member, reach, &name, text(head), &seen);
            return;
        }
        for item in signatures(body(tokens), true) {
            let line = format!("{name}: {}", item.text);
            self.put(FoundKind::Member, item.reach(reach), &name, line);
        }
    }
}

impl Signature {
    /// Returns the reach of a part of something with this reach.
    fn reach(&self, of: Reach) -> Reach {
        match self.is_hidden {
            true => Reach::Internal,
            false => of,
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
        let promised = of_source(source).items.into_iter();
        let promised = promised.filter(|item| !item.is_internal);
        promised.map(|item| item.line).collect()
    }

    #[test]
    fn what_is_hidden_is_internal_by_each_way() {
        let source =
            "mod room { pub struct Both; pub struct Inner; impl Inner { pub fn go(self) {} }
  pub fn shown(kept: Both) {} pub fn left(kept: Inner) {} }
pub use room::{Both, shown}; #[doc(hidden)] pub use room::{Both as Twice, Inner, left};
#[doc(hidden)] pub mod attic { pub const OLD: u8 = 1; pub use bc_fs::Size; pub struct Chest; }
pub use attic::Chest;
impl Both { #[doc(hidden)] pub fn odd(&self) {} pub fn even(&self) -> Size {} }
#[doc(hidden)] impl Both { pub fn never(&self) {} }
pub struct Fields { pub a: u8, #[doc(hidden)] pub b: Inner }
bc_fs::setters!(Fields: a: u8, #[doc(hidden)] b: Inner);
pub use bc_fs::safe::{Style as Look, escape};";
        let found = of_source(source);
        let lines = |is_internal: bool| -> Vec<&str> {
            let items = found.items.iter().filter(|i| i.is_internal == is_internal);
            items.map(|i| i.line.as_str()).collect()
        };
        assert_eq!(
            lines(false),
            [
                "Both: fn even(&self) -> Size",
                "attic::struct Chest",
                "bc_fs::setters!(Fields: a: u8);",
                "fn shown(kept: Both)",
                "struct Both",
                "struct Fields { a: u8, .. }",
                "use attic::Chest;",
                "use bc_fs::safe::{ Style as Look, escape };",
                "use room::{ Both, shown };",
            ]
        );
        assert_eq!(
            lines(true),
            [
                "Both: fn never(&self)",
                "Both: fn odd(&self)",
                "Inner: fn go(self)",
                "attic::const OLD: u8",
                "attic::use bc_fs::Size;",
                "fn left(kept: Inner)",
                "struct Inner",
                "use room::{ Both as Twice, Inner, left };",
            ]
        );
        let of = |name: &str| ("bc_fs".to_owned(), name.to_owned());
        assert_eq!(found.adopted, [of("Style"), of("escape")].into());
        let left = found.items.iter().find(|i| i.of == "left").unwrap();
        assert_eq!(
            left.mentions,
            [("crate".to_owned(), "Inner".to_owned())].into()
        );
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
