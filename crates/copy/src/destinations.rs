//! Several destinations of one copy: none may be another one, or lie in it, however they are spelt.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

use bc_fs::Escaped;
use bc_walk::{FileKind, FileStat, Identity};
use rustix::fs::AtFlags;

use crate::error::Error;
use crate::event::{Event, Observer};
use crate::options::{CopyOptions, ManifestPlace};
use crate::target::{Top, ancestors, place_of};

/// The options for each destination.
pub(crate) fn each(options: &CopyOptions, others: &[OsString]) -> Result<Vec<CopyOptions>, Error> {
    if !others.is_empty() && matches!(options.manifest, ManifestPlace::File(_)) {
        return Err(Error::usage(
            "one manifest cannot be that of several destinations: each has its own",
        ));
    }
    let mut each = vec![options.clone()];
    let mut seen = HashMap::from([(place_of(&options.destination), &options.destination)]);
    for destination in others {
        if let Some(first) = seen.insert(place_of(destination), destination) {
            return Err(same(first.as_bytes(), destination.as_bytes()));
        }
        let mut own = options.clone();
        own.destination.clone_from(destination);
        each.push(own);
    }
    Ok(each)
}

fn same(one: &[u8], other: &[u8]) -> Error {
    Error::usage_at(
        other,
        format!("is the same destination as {}", Escaped(one)),
    )
}

/// Returns an observer for each destination: where there are several, notes and warnings that do
/// not begin with their destination are prefixed with it.
pub(crate) fn observers<'a>(
    each: &'a [CopyOptions],
    observer: &'a Observer<'a>,
) -> Vec<Box<Observer<'a>>> {
    let of = |options: &'a CopyOptions| -> Box<Observer<'a>> {
        if each.len() == 1 {
            return Box::new(observer);
        }
        Box::new(move |event: Event<'_>| {
            let destination = Escaped(options.destination.as_bytes()).to_string();
            let named = |text: &str| match text.starts_with(&destination) {
                true => text.to_owned(),
                false => format!("{destination}: {text}"),
            };
            match event {
                Event::Note(text) => observer(Event::Note(&named(text))),
                Event::Warning(text) => observer(Event::Warning(&named(text))),
                event => observer(event),
            }
        })
    };
    each.iter().map(of).collect()
}

/// Location of a destination: its directory, if there is one, and all directories above it.
struct DestinationSite {
    own: Option<Identity>,
    above: Vec<Identity>,
    /// Parent directory and name, if the destination does not exist yet.
    name: (Identity, Vec<u8>),
}

impl DestinationSite {
    fn of(top: &Top) -> Result<DestinationSite, Error> {
        let above = ancestors(top.fd.as_fd());
        let mut above = above.map_err(|errno| Error::system(&top.path, "stat", errno))?;
        let name = match &top.names[..] {
            [name] if !top.into && !name.is_empty() => name.clone(),
            _ => Vec::new(),
        };
        let own = match name.is_empty() {
            true => Some(top.id),
            false => {
                let there = rustix::fs::statat(&top.fd, &name[..], AtFlags::SYMLINK_NOFOLLOW);
                let there = there.ok().map(|there| FileStat::from(&there));
                let dir = there.filter(|there| there.kind() == FileKind::Dir);
                dir.map(|dir| dir.id)
            }
        };
        above.extend(own);
        let name = (top.id, name);
        Ok(DestinationSite { own, above, name })
    }

    fn holds(&self, other: &DestinationSite) -> bool {
        self.own.is_some_and(|own| other.above.contains(&own))
    }
}

/// Refuses destinations that are the same, or that lie in one another.
pub(crate) fn refuse_nested(tops: &[(&CopyOptions, &Top)]) -> Result<(), Error> {
    if tops.len() < 2 {
        return Ok(());
    }
    let mut sites: Vec<(&[u8], DestinationSite)> = Vec::with_capacity(tops.len());
    for (options, top) in tops {
        let (path, site) = (options.destination.as_bytes(), DestinationSite::of(top)?);
        for (known, earlier) in &sites {
            let is_same =
                site.name == earlier.name || site.own.is_some() && site.own == earlier.own;
            if is_same {
                return Err(same(known, path));
            }
            let (inner, outer) = match (earlier.holds(&site), site.holds(earlier)) {
                (true, _) => (path, *known),
                (_, true) => (*known, path),
                _ => continue,
            };
            return Err(Error::usage_at(
                inner,
                format!("lies in {}, which is a destination too", Escaped(outer)),
            ));
        }
        sites.push((path, site));
    }
    Ok(())
}
