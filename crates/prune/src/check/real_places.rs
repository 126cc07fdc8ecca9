//! Real places of directories that are seen through bind mounts: a path that is recorded in a
//! link's text or a journal has to hold when the mount is gone.

use std::os::fd::{AsFd, OwnedFd};

use bc_fs::dirfd;
use bc_fs::meta;
use bc_fs::mount::BindMounts;

/// Places behind bind mounts, as they were when this was made.
#[derive(Debug)]
pub(crate) struct RealPlaces(BindMounts);

impl RealPlaces {
    pub(crate) fn read() -> RealPlaces {
        RealPlaces(BindMounts::read())
    }

    /// The path and a descriptor of the place where a directory is that is seen at `path`; `None`
    /// where that is its own, and where none of the others leads to it now.
    pub(crate) fn of(&self, dir: impl AsFd, path: &[u8]) -> Option<(Vec<u8>, OwnedFd)> {
        found(dir, self.0.places(path))
    }

    /// The same for undo, which is to find the owners that the run saw, and to change files there.
    pub(crate) fn to_undo_at(&self, dir: impl AsFd, path: &[u8]) -> Option<Vec<u8>> {
        found(dir, self.0.places_to_change(path)).map(|(place, _)| place)
    }

    /// The places for undo of what is mounted at or below directories for which this holds.
    pub(crate) fn mounted(&self, holds: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
        let points = self.0.points().filter(|point| holds(point));
        let place = |point: &[u8]| {
            let seen = dirfd::open_root(b"/").and_then(|top| dirfd::open_below(top, point));
            self.to_undo_at(seen.ok()?, point)
        };
        points.filter_map(place).collect()
    }
}

/// The first of the places that leads to a directory.
fn found(dir: impl AsFd, places: Vec<Vec<u8>>) -> Option<(Vec<u8>, OwnedFd)> {
    if places.is_empty() {
        return None;
    }
    let id = meta::stat(dir).ok()?.id;
    places.into_iter().find_map(|place| {
        let opened = dirfd::open_root(b"/").and_then(|top| dirfd::open_below(top, &place));
        let opened = opened.ok()?;
        (meta::stat(&opened).ok()?.id == id).then_some((place, opened))
    })
}
