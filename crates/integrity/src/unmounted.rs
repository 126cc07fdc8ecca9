//! Directories that were mount points when they were recorded and are none now. What is recorded
//! below them is not gone, it is not there to be seen; what lies there instead is not it.

use bc_manifest::integrity::{Entry, ROOT};

use crate::present::Present;
use crate::verify::RootCheck;

/// The mount points missed so far; entries come in path order.
#[derive(Debug)]
pub(crate) struct Unmounted {
    check: RootCheck,
    /// With a closing slash, in order; none is below another.
    below: Vec<Vec<u8>>,
    /// Mount points where another file system is mounted than was, and nothing in it matches.
    foreign: Vec<Vec<u8>>,
}

/// What an entry of the manifest has to do with them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Lost {
    /// Nothing.
    No,
    /// It is one.
    Here,
    /// It is below one.
    Below,
}

impl Unmounted {
    pub(crate) fn new(check: RootCheck) -> Unmounted {
        Unmounted {
            check,
            below: Vec::new(),
            foreign: Vec::new(),
        }
    }

    /// Those of `replaced` count as well.
    pub(crate) fn with(check: RootCheck, replaced: &Replaced) -> Unmounted {
        let foreign = replaced
            .0
            .iter()
            .filter(|one| one.leaves > 0 && one.matches == 0);
        Unmounted {
            foreign: foreign.map(|one| one.path.clone()).collect(),
            ..Unmounted::new(check)
        }
    }

    /// Looks at the next entry of the manifest and at what is at its path now.
    pub(crate) fn see(&mut self, old: &Entry, new: Option<&Present<'_>>) -> Lost {
        if self.covers(&old.path) {
            return Lost::Below;
        }
        // One that cannot be listed is an error of its own, which keeps what is below as well.
        let mounted = new.is_some_and(|new| new.mount.is_some() || new.view.error.is_some())
            && !self.foreign.contains(&old.path);
        let missed = old.mount.is_some() && !mounted && old.path != ROOT;
        if !missed || self.check == RootCheck::Forced {
            return Lost::No;
        }
        let mut below = old.path.clone();
        below.push(b'/');
        let at = self.below.partition_point(|known| *known < below);
        self.below.insert(at, below);
        Lost::Here
    }

    /// Does `path` lie below one of them?
    pub(crate) fn covers(&self, path: &[u8]) -> bool {
        // Of paths that do not hold one another only the last before it can.
        let at = self.below.partition_point(|below| &below[..] <= path);
        at > 0 && path.starts_with(&self.below[at - 1])
    }
}

/// Mount points where another file system is mounted than was, with what a look at names and
/// times found in them.
#[derive(Debug, Default)]
pub(crate) struct Replaced(Vec<Place>);

#[derive(Debug)]
struct Place {
    path: Vec<u8>,
    /// Old entries of files and links, and how many are as recorded.
    leaves: u64,
    matches: u64,
}

impl Replaced {
    /// A path of both sides, in path order.
    pub(crate) fn see(&mut self, old: &Entry, new: &Present<'_>) {
        if let (Some(was), Some(is)) = (old.mount.as_deref(), new.mount)
            && was != is
            && old.path != ROOT
        {
            self.0.push(Place {
                path: old.path.clone(),
                leaves: 0,
                matches: 0,
            });
        }
    }

    /// A file or link of the manifest.
    pub(crate) fn leaf(&mut self, path: &[u8], matches: bool) {
        for place in &mut self.0 {
            let below = path.strip_prefix(&place.path[..]);
            if below.is_some_and(|below| below.starts_with(b"/")) {
                place.leaves += 1;
                place.matches += u64::from(matches);
            }
        }
    }

    /// Is there one of which nothing matches?
    pub(crate) fn any(&self) -> bool {
        self.0.iter().any(|one| one.leaves > 0 && one.matches == 0)
    }
}

/// What is said of one.
pub(crate) fn reason(old: &Entry) -> String {
    let source = match old.mount.as_deref() {
        None | Some("") => String::new(),
        Some(source) => format!(" ({source})"),
    };
    format!(
        "a file system{source} with files was mounted here, now none is, or an empty or another one: not mounted? --force to go on"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use bc_manifest::integrity::Kind;

    #[test]
    fn what_lies_below_is_known() {
        let mut unmounted = Unmounted::new(RootCheck::Careful);
        let entry = |path: &str, mount: Option<&str>| Entry {
            mount: mount.map(str::to_string),
            ..Entry::new(path.into(), Kind::Dir)
        };
        for (path, mount, expected) in [
            (".", Some("/dev/sda"), Lost::No),
            ("a", Some(""), Lost::Here),
            ("a-b", Some("/dev/sdb"), Lost::Here),
            ("a-b/c", Some("/dev/sdb"), Lost::Below),
            ("a-c", None, Lost::No),
            ("a/b", None, Lost::Below),
            ("a/b/c", Some("x"), Lost::Below),
            ("a0", None, Lost::No),
            ("b", Some("x"), Lost::Here),
        ] {
            assert_eq!(unmounted.see(&entry(path, mount), None), expected, "{path}");
        }
        assert!(unmounted.covers(b"b/new") && !unmounted.covers(b"b"));
        let mut forced = Unmounted::new(RootCheck::Forced);
        assert_eq!(forced.see(&entry("a", Some("x")), None), Lost::No);
        assert!(!forced.covers(b"a/b"));
    }
}
