//! The file systems of the matrix: commands to make, mount and take down each, as rows of shell
//! text.
//!
//! In the texts `$W` is the kind's own directory, `$M` its mount point, `$IMAGE` and `$SECOND`
//! files for images, `$BASE` an ext4 of its own for kinds that need a file system below, `$SOURCE`
//! the tree that an image is made from and `$PORT` a free port of 127.0.0.1.

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
    /// Systems that it stands for.
    pub(super) what: &'static str,
    /// Types that the kernel has to know.
    pub(super) kernel: &'static [&'static str],
    /// Programs that it takes.
    pub(super) tools: &'static [Tool],
    /// True if an ext4 image is mounted at `$BASE` first.
    pub(super) base: bool,
    /// Commands run once, with `$BASE` mounted.
    pub(super) prepare: &'static str,
    /// Commands run at every mount.
    pub(super) mount: &'static str,
    /// Commands run at every unmount, before `$BASE` goes.
    pub(super) unmount: &'static str,
    /// Commands run after the first mount, before the tree is laid.
    pub(super) ready: &'static str,
    /// Place in which the tree is laid.
    pub(super) fill: Fill,
    /// Commands run after the tree was laid, with everything mounted.
    pub(super) filled: &'static str,
    /// The tree's directory below `$M` that is looked at.
    pub(super) tree: &'static str,
    /// True if its files lie in a lower layer until they are changed. Its tree is laid again for
    /// each action: the remains of an action and its undo lie in the upper one.
    pub(super) layered: bool,
    /// True if its contents outlive an unmount.
    pub(super) lasting: bool,
    /// True if it belongs to the bounded part.
    pub(super) quick: bool,
}

/// Place in which a kind's tree is laid.
#[derive(Clone, Copy)]
pub(super) enum Fill {
    /// Through the mount.
    Mount,
    /// In a directory below `$BASE`, before the first mount.
    Base(&'static str),
    /// In `$SOURCE`, from which this makes the image; nothing can be changed afterwards.
    Image(&'static str),
}

/// Defaults of most rows.
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

/// Returns every kind, in the order of the table.
pub(super) fn all() -> impl Iterator<Item = &'static Kind> {
    kernel::KINDS
        .iter()
        .chain(layers::KINDS)
        .chain(fuse::KINDS)
        .chain(servers::KINDS)
}

/// Returns the kind of this name.
pub(super) fn find(name: &str) -> Option<&'static Kind> {
    all().find(|kind| kind.name == name)
}

/// Returns the Debian packages of every kind's tools, each once.
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
    /// Returns the tools and kernel support that this machine lacks for it.
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

/// Returns true if the kernel knows a type of file system, after asking for its module.
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
