//! Trees of very many tiny files: names and directories as in source trees, everything in one
//! directory, or a chain of directories. The same on every machine.

use std::fmt;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use bc_testkit::Rng;
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};

/// Layout of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// About twenty in a directory, three levels of directories.
    Tree,
    /// All in one directory.
    Flat,
    /// One in each directory of a chain, as deep as there are files.
    Deep,
}

impl FromStr for Layout {
    type Err = anyhow::Error;

    fn from_str(word: &str) -> Result<Layout> {
        Ok(match word {
            "" | "tree" => Layout::Tree,
            "flat" => Layout::Flat,
            "deep" => Layout::Deep,
            _ => bail!("--layout is tree, flat or deep, not {word:?}"),
        })
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Layout::Tree => "as in source trees",
            Layout::Flat => "in one directory",
            Layout::Deep => "each a directory deeper",
        })
    }
}

/// Files in a directory of a [`Layout::Tree`], as in the source of Linux 6.12 (15), and
/// directories in one of the upper levels.
const FILES: u64 = 20;
const DIRECTORIES: u64 = 80;

/// Parts of names: with a number and an ending they come to 16 bytes, the mean of that source.
const WORDS: &[&str] = &[
    "core", "driver", "test", "util", "main", "config", "net", "page", "sched", "dma", "stream",
    "module", "bus", "clock", "image", "reset",
];
const ENDINGS: &[&str] = &["c", "h", "rs", "txt", "yaml", "json"];

/// One file in so many is empty; one in so many has the content of another.
const EMPTY: u64 = 20;
const EQUAL: u64 = 50;

/// A tree of `count` files.
pub(super) struct Forest {
    root: PathBuf,
    layout: Layout,
    count: u64,
}

impl Forest {
    pub(super) fn new(root: PathBuf, layout: Layout, count: u64) -> Forest {
        Forest {
            root,
            layout,
            count,
        }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Makes the tree.
    pub(super) fn build(&self) -> Result<()> {
        fs::create_dir_all(&self.root)?;
        let system = rustix::fs::statvfs(&self.root)?;
        // Without a limit there is no count either.
        if system.f_files > 0 && system.f_favail < self.count + self.count / 8 {
            let free = system.f_favail;
            bail!(
                "{free} inodes are free: mount a tmpfs with nr_inodes=0, or an image of ext4 made with -N, and name it with --dir"
            );
        }
        if self.layout == Layout::Deep {
            return self.chain();
        }
        let mut made = PathBuf::new();
        for nth in 0..self.count {
            let path = self.path(nth);
            let folder = path.parent().context("below the root")?;
            if folder != made {
                fs::create_dir_all(folder)?;
                made = folder.to_owned();
            }
            fs::write(&path, content(nth))?;
        }
        Ok(())
    }

    /// Makes a chain descriptor by descriptor: its paths soon exceed the length that a call takes.
    fn chain(&self) -> Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut folder: OwnedFd = openat(CWD, &self.root, flags, Mode::empty())?;
        for nth in 0..self.count {
            let create = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
            let file = openat(&folder, name(nth), create, Mode::from(0o644))?;
            rustix::io::write(&file, content(nth).as_bytes())?;
            mkdirat(&folder, "d", Mode::from(0o755))?;
            folder = openat(&folder, "d", flags, Mode::empty())?;
        }
        Ok(())
    }

    fn path(&self, nth: u64) -> PathBuf {
        match self.layout {
            Layout::Tree => {
                let leaf = nth / FILES;
                let upper = leaf / DIRECTORIES;
                let level = |number: u64| format!("{}-{number}", word(number));
                let mut path = self.root.join(level(upper / DIRECTORIES));
                path.push(level(upper % DIRECTORIES));
                path.push(level(leaf % DIRECTORIES));
                path.push(name(nth));
                path
            }
            Layout::Flat | Layout::Deep => self.root.join(name(nth)),
        }
    }

    /// Writes to one file in 1,000.
    pub(super) fn edit(&self) -> Result<()> {
        for nth in (0..self.count).step_by(1000) {
            fs::write(self.path(nth), "edited")?;
        }
        Ok(())
    }

    /// Puts everything one level deeper, so that every path differs.
    pub(super) fn bury(&self) -> Result<()> {
        let aside = self.root.with_extension("aside");
        fs::rename(&self.root, &aside)?;
        fs::create_dir(&self.root)?;
        fs::rename(aside, self.root.join("below"))?;
        Ok(())
    }
}

fn word(number: u64) -> &'static str {
    WORDS[number as usize % WORDS.len()]
}

fn name(nth: u64) -> String {
    let ending = ENDINGS[nth as usize % ENDINGS.len()];
    format!("{}_{nth:x}.{ending}", word(nth.wrapping_mul(7) / 3))
}

/// Returns a content of at most 48 bytes, which ext4 keeps in the inode (`-O inline_data`).
fn content(nth: u64) -> String {
    if nth.is_multiple_of(EMPTY) {
        return String::new();
    }
    let same_as = if nth % EQUAL == 2 { nth - 1 } else { nth };
    let digits = format!("{:016x}", Rng::new(same_as).next_u64());
    digits.repeat(1 + same_as as usize % 3)
}

#[cfg(test)]
mod tests {
    use super::{Forest, Layout};

    #[test]
    fn every_layout_holds_its_files() {
        let scratch = bc_testkit::TestTree::new();
        for (layout, deepest) in [(Layout::Tree, 4), (Layout::Flat, 1), (Layout::Deep, 60)] {
            let root = scratch.path().join(format!("{layout:?}"));
            Forest::new(root.clone(), layout, 60).build().unwrap();
            let files = bc_testkit::reference::files(&root).unwrap();
            assert_eq!(files.len(), 60);
            let slashes = |path: &Vec<u8>| path.iter().filter(|&&b| b == b'/').count() + 1;
            assert_eq!(files.iter().map(slashes).max(), Some(deepest));
        }
    }
}
