//! The file systems of the matrix: how each is made, mounted and taken down, as rows of shell text.
//!
//! In the texts `$W` is the kind's own directory, `$M` where it is mounted, `$IMAGE` and `$SECOND`
//! files for images, `$BASE` an ext4 of its own for what needs something to lie on, `$SOURCE` the
//! tree that an image is made from and `$PORT` a free port of 127.0.0.1.

mod fuse;
mod kernel;
mod layers;
mod servers;

use std::process::{Command, Stdio};

use crate::sh;

/// A program and the Debian package that has it.
pub(super) type Tool = (&'static str, &'static str);

/// One file system, in one shape.
pub(super) struct Kind {
    /// Its name on the command line and in the table.
    pub(super) name: &'static str,
    /// What it stands for.
    pub(super) what: &'static str,
    /// Types that the kernel has to know.
    pub(super) kernel: &'static [&'static str],
    /// Programs that it takes.
    pub(super) tools: &'static [Tool],
    /// Whether an ext4 image is mounted at `$BASE` first.
    pub(super) base: bool,
    /// Once, with `$BASE` mounted.
    pub(super) prepare: &'static str,
    /// At every mount.
    pub(super) mount: &'static str,
    /// At every unmount, before `$BASE` goes.
    pub(super) unmount: &'static str,
    /// After the first mount, before the tree is laid.
    pub(super) ready: &'static str,
    /// Where the tree is laid.
    pub(super) fill: Fill,
    /// After the tree was laid, with everything mounted.
    pub(super) filled: &'static str,
    /// The tree's directory below `$M` that is looked at.
    pub(super) tree: &'static str,
    /// Whether its files lie in a lower layer until they are changed. Its tree is laid anew for each
    /// action: what an action and its undo leave lies in the upper one.
    pub(super) layered: bool,
    /// Whether what it holds outlives an unmount.
    pub(super) lasting: bool,
    /// Whether it belongs to the bounded part.
    pub(super) quick: bool,
}

/// Where a kind's tree is laid.
#[derive(Clone, Copy)]
pub(super) enum Fill {
    /// Through the mount.
    Mount,
    /// In a directory below `$BASE`, before the first mount.
    Base(&'static str),
    /// In `$SOURCE`, from which this makes the image; nothing can be changed afterwards.
    Image(&'static str),
}

/// What most rows have.
const KIND: Kind = Kind {
    name: "",
    what: "",
    kernel: &[],
    tools: &[],
    base: false,
    prepare: "",
    mount: "",
    unmount: "umount \"$M\"",
    ready: "",
    fill: Fill::Mount,
    filled: "",
    tree: "tree",
    layered: false,
    lasting: true,
    quick: false,
};

/// Every kind, in the order of the table.
pub(super) fn all() -> impl Iterator<Item = &'static Kind> {
    kernel::KINDS
        .iter()
        .chain(layers::KINDS)
        .chain(fuse::KINDS)
        .chain(servers::KINDS)
}

/// The kind of this name.
pub(super) fn find(name: &str) -> Option<&'static Kind> {
    all().find(|kind| kind.name == name)
}

/// The Debian packages of every kind's tools, each once.
pub(super) fn packages() -> Vec<&'static str> {
    let mut packages: Vec<&str> = all()
        .flat_map(|kind| kind.tools)
        .map(|(_, package)| *package)
        .collect();
    packages.extend(["strace", "coreutils"]);
    packages.sort_unstable();
    packages.dedup();
    packages
}

impl Kind {
    /// What this machine lacks for it.
    pub(super) fn missing(&self) -> Option<String> {
        let absent: Vec<String> = self
            .tools
            .iter()
            .filter(|(tool, _)| !sh::has(tool))
            .map(|(tool, package)| format!("{tool} (package {package})"))
            .collect();
        if !absent.is_empty() {
            return Some(format!("not installed: {}", absent.join(", ")));
        }
        let unknown: Vec<&str> = self
            .kernel
            .iter()
            .copied()
            .filter(|name| !kernel_knows(name))
            .collect();
        (!unknown.is_empty()).then(|| format!("the kernel has no {}", unknown.join(", no ")))
    }
}

/// Whether the kernel knows a type of file system, after asking for its module.
fn kernel_knows(name: &str) -> bool {
    let listed = || {
        let text = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
        text.lines()
            .any(|line| line.split('\t').next_back() == Some(name))
    };
    if listed() {
        return true;
    }
    // Only built-in and loaded ones are listed.
    let mut load = Command::new("modprobe");
    load.args(["-q", name]).stderr(Stdio::null());
    sh::has("modprobe") && load.status().is_ok_and(|s| s.success()) && listed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_every_kind_says_how_it_is_mounted() {
        let mut names: Vec<&str> = all().map(|kind| kind.name).collect();
        assert!(all().all(|kind| !kind.mount.is_empty() && !kind.what.is_empty()));
        assert!(
            names
                .iter()
                .all(|name| find(name).is_some() && !name.contains(','))
        );
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
