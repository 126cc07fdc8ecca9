//! The modules of one target: the file of each, its items and its imports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::tokens::{Token, tokens};

/// A module's path below the crate's root: `["lanes", "kernels"]`.
pub(super) type ModuleName = Vec<String>;

/// `use path as alias`, one for each leaf of the tree; an alias `*` imports everything.
#[derive(Debug)]
pub(super) struct Import {
    pub(super) path: ModuleName,
    pub(super) alias: String,
    /// True if it only re-exports the name, for other modules.
    pub(super) exported: bool,
    pub(super) line: usize,
}

/// A path in code, such as `crate::size::parse`.
#[derive(Debug)]
pub(super) struct Mention {
    pub(super) path: ModuleName,
    pub(super) line: usize,
}

/// A module and the contents of its own text, without that of its inline modules.
#[derive(Debug, Default)]
pub(super) struct Module {
    pub(super) file: PathBuf,
    pub(super) imports: Vec<Import>,
    pub(super) mentions: Vec<Mention>,
    /// Names of functions, types, constants, macros and so on that it declares.
    pub(super) items: BTreeSet<String>,
    /// Every word of its code, and the first line that contains it.
    pub(super) words: BTreeMap<String, usize>,
}

/// Reads the modules that hang together below the root file of a target.
pub(super) fn read(root: &Path) -> Result<BTreeMap<ModuleName, Module>> {
    let mut modules = BTreeMap::new();
    // The root file's children lie beside it, those of any other file in its folder.
    let mut open = vec![(Vec::new(), root.to_owned(), root.with_file_name(""))];
    while let Some((name, file, folder)) = open.pop() {
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        for (child, inline) in scan(&tokens(&text), &name, &file, &mut modules) {
            let mut below = folder.clone();
            below.extend(&inline[name.len()..]);
            let flat = below.join(format!("{child}.rs"));
            let nested = below.join(&child).join("mod.rs");
            let found = if flat.exists() { flat } else { nested };
            let mut full = inline;
            full.push(child.clone());
            open.push((full, found, below.join(child)));
        }
    }
    Ok(modules)
}

const DECLARING: &[&str] = &[
    "fn",
    "struct",
    "enum",
    "union",
    "trait",
    "type",
    "const",
    "static",
    "macro_rules",
];

/// Sorts the tokens of a file under its modules; returns the modules that lie in files of their
/// own, each with the module that declares it.
fn scan(
    tokens: &[Token],
    name: &ModuleName,
    file: &Path,
    modules: &mut BTreeMap<ModuleName, Module>,
) -> Vec<(String, ModuleName)> {
    let mut children = Vec::new();
    let mut here = name.clone();
    // The depth of brackets at which each inline module ends.
    let mut inline = Vec::new();
    let (mut depth, mut at) = (0, 0);
    while at < tokens.len() {
        let module = modules.entry(here.clone()).or_default();
        module.file = file.to_owned();
        let token = &tokens[at];
        let next = |offset: usize| tokens.get(at + offset).map_or("", |t| t.text.as_str());
        match token.text.as_str() {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                if inline.last() == Some(&depth) {
                    inline.pop();
                    here.pop();
                }
            }
            "mod" if next(2) == ";" => {
                children.push((next(1).to_owned(), here.clone()));
                at += 3;
                continue;
            }
            "mod" if next(2) == "{" => {
                here.push(next(1).to_owned());
                inline.push(depth);
                depth += 1;
                at += 3;
                continue;
            }
            "use" if next(1) != "<" => {
                let exported = at > 0 && (tokens[at - 1].is("pub") || tokens[at - 1].is(")"));
                let mut tree = UseTree { tokens, at: at + 1 };
                tree.leaves(&mut Vec::new(), exported, &mut module.imports);
                at = tree.at;
                continue;
            }
            _ if token.is_word() => {
                if DECLARING.contains(&token.text.as_str()) {
                    let named = tokens[at + 1..]
                        .iter()
                        .find(|t| t.is_word() && !t.is("mut"));
                    module.items.extend(named.map(|t| t.text.clone()));
                }
                let path = path_at(tokens, at);
                let inside = at > 0 && tokens[at - 1].is("::");
                if path.len() > 1 && !inside {
                    let line = token.line;
                    module.mentions.push(Mention { path, line });
                }
                if !inside {
                    module.words.entry(token.text.clone()).or_insert(token.line);
                }
            }
            _ => {}
        }
        at += 1;
    }
    children
}

/// Returns the words from `at` on that `::` joins.
fn path_at(tokens: &[Token], at: usize) -> ModuleName {
    let mut path = vec![tokens[at].text.clone()];
    let mut at = at;
    while tokens.get(at + 1).is_some_and(|t| t.is("::"))
        && let Some(token) = tokens.get(at + 2).filter(|t| t.is_word())
    {
        path.push(token.text.clone());
        at += 2;
    }
    path
}

/// The tree of a `use`, taken apart from `at` on.
struct UseTree<'a> {
    tokens: &'a [Token],
    at: usize,
}

impl UseTree<'_> {
    fn text(&self) -> &str {
        self.tokens.get(self.at).map_or(";", |t| t.text.as_str())
    }

    fn leaves(&mut self, prefix: &mut ModuleName, exported: bool, imports: &mut Vec<Import>) {
        let depth = prefix.len();
        let line = self.tokens.get(self.at).map_or(0, |t| t.line);
        loop {
            match self.text() {
                "{" => {
                    self.at += 1;
                    while !matches!(self.text(), "}" | ";") {
                        self.leaves(prefix, exported, imports);
                        if self.text() == "," {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    break;
                }
                "::" | "#" => self.at += 1,
                "," | "}" | ";" => {
                    let alias = match prefix.last().map(String::as_str) {
                        Some("self") => {
                            prefix.pop();
                            prefix.last().cloned()
                        }
                        last => last.map(str::to_owned),
                    };
                    push(prefix, alias, exported, line, imports);
                    break;
                }
                "as" => {
                    self.at += 1;
                    let alias = self.text().to_owned();
                    self.at += 1;
                    push(prefix, Some(alias), exported, line, imports);
                    break;
                }
                word => {
                    let word = word.to_owned();
                    prefix.push(word);
                    self.at += 1;
                }
            }
        }
        prefix.truncate(depth);
    }
}

fn push(path: &[String], alias: Option<String>, exported: bool, line: usize, to: &mut Vec<Import>) {
    let star = path.last().is_some_and(|l| l == "*");
    let path = path[..path.len() - usize::from(star)].to_vec();
    to.extend(alias.map(|alias| Import {
        path,
        alias,
        exported,
        line,
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_module_by_module() {
        let source = "\
//! Words in comments do not count: crate::no.
mod child;
pub(crate) use child::{Handed, deep::{self, *}};
use crate::a::B as C;
pub fn declared() { super::x::y(); mod inner { fn also() {} use super::z; mod grandchild; } w::v }
";
        let mut modules = BTreeMap::new();
        let here = vec!["m".to_owned()];
        let children = scan(&tokens(source), &here, Path::new("m.rs"), &mut modules);
        let inner = vec!["m".to_owned(), "inner".to_owned()];
        let expected = [
            ("child".to_owned(), here.clone()),
            ("grandchild".to_owned(), inner.clone()),
        ];
        assert_eq!(children, expected);
        let shown = |m: &Module| -> Vec<String> {
            let imports = m.imports.iter();
            imports
                .map(|i| format!("{} {} {}", i.path.join("/"), i.alias, i.exported))
                .collect()
        };
        let expected = [
            "child/Handed Handed true",
            "child/deep deep true",
            "child/deep * true",
            "crate/a/B C false",
        ];
        assert_eq!(shown(&modules[&here]), expected);
        assert_eq!(shown(&modules[&inner]), ["super/z z false"]);
        let mentions = modules[&here].mentions.iter().map(|m| m.path.join("/"));
        assert_eq!(mentions.collect::<Vec<_>>(), ["super/x/y", "w/v"]);
        assert!(modules[&here].items.contains("declared"));
        assert!(modules[&inner].items.contains("also"));
    }
}
