//! Places of all sources at the destination: the rule by which the destination is interpreted, and
//! destinations that are refused. Of several, none may be another one, or lie in it, however they
//! are spelt.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bc_digest::{Algorithm, hash};
use bc_fs::Escaped;
use bc_fs::call::FailedCall;
use bc_fs::dirfd;
use bc_fs::volume::{uuid_at, volume_at};
use bc_walk::job::Error;
use bc_walk::{FileKind, FileStat, FileSystems, Identity};
use rustix::fs::CWD;
use rustix::io::Errno;

use crate::error::{system_error, usage_at};
use crate::event::{Event, Observer};
use crate::meta::{stat, stat_at};
use crate::options::{CopyOptions, ManifestPlace, Target};

/// The directory that everything is put below, and the names in it.
#[derive(Debug)]
pub(crate) struct Top {
    pub(crate) fd: OwnedFd,
    pub(crate) id: Identity,
    /// Path as it is shown and as it was opened; empty for the current directory.
    pub(crate) path: Vec<u8>,
    /// True if the sources go into the destination, not in its place.
    pub(crate) into: bool,
    /// Name of each source in it; empty for one whose content goes into the top itself.
    pub(crate) names: Vec<Vec<u8>>,
}

/// A source as it was given.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Which of those that were named.
    pub(crate) number: usize,
    pub(crate) path: OsString,
    pub(crate) stat: FileStat,
}

/// Looks at a source; a link is a link.
pub(crate) fn look(number: usize, path: &OsStr) -> Result<Source, bc_walk::Error> {
    match stat_at(CWD, path) {
        Ok(stat) => Ok(Source {
            number,
            path: path.to_owned(),
            stat,
        }),
        Err(errno) => Err(bc_walk::Error::new(path.as_bytes(), "stat", errno)),
    }
}

/// Splits a path into directory and last name; no name where the path can only mean a directory.
pub(crate) fn dir_and_name(path: &[u8]) -> (&[u8], Option<&[u8]>) {
    let end = path.iter().rposition(|byte| *byte != b'/');
    let Some(end) = end else {
        // Slashes alone, or nothing.
        return (path, None);
    };
    let path = &path[..=end];
    let (dir, name) = match path.iter().rposition(|byte| *byte == b'/') {
        Some(0) => (&path[..1], &path[1..]),
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (&b""[..], path),
    };
    match name {
        b"." | b".." => (path, None),
        name => (dir, Some(name)),
    }
}

/// Names of a copy's journal.
pub(crate) struct JobNames {
    pub(crate) own: String,
    /// The name that earlier versions gave it, on any volume.
    pub(crate) without_volume: Option<String>,
}

impl JobNames {
    pub(crate) fn of(options: &CopyOptions) -> JobNames {
        match volume(options) {
            None => JobNames {
                own: job_name(options, None),
                without_volume: None,
            },
            Some(volume) => JobNames {
                own: job_name(options, Some(&volume)),
                without_volume: Some(job_name(options, None)),
            },
        }
    }
}

/// Returns the volume of a destination: of the directory that it is, or is to be made in, which is
/// the same volume afterwards.
fn volume(options: &CopyOptions) -> Option<String> {
    let path = Path::new(&options.destination);
    if path.is_dir() {
        return volume_at(path);
    }
    let dir = dir_and_name(options.destination.as_bytes()).0;
    volume_at(OsStr::from_bytes(if dir.is_empty() { b"." } else { dir }))
}

/// Returns the name of the journal, a digest of sources and destination, independent of the working
/// directory and of the parts of the destination that exist meanwhile. Disks used in turn are
/// different destinations. The selection of files below the sources does not count: a run that asks
/// for others the next time resumes the rest of the first, and clears it away.
fn job_name(options: &CopyOptions, volume: Option<&str>) -> String {
    let mut text = Vec::new();
    add(&mut text, &place_of(&options.destination));
    for source in &options.sources {
        add(&mut text, &place_of(source));
    }
    text.push(u8::from(options.target == Target::Exactly));
    if options.moves {
        add(&mut text, b"move");
    }
    if let Some(volume) = volume {
        add(&mut text, volume.as_bytes());
    }
    let mut name = hash(Algorithm::Blake3, &text).to_string();
    name.truncate(32);
    name
}

/// Appends bytes so that those of two texts are never taken for one another's.
fn add(text: &mut Vec<u8>, bytes: &[u8]) {
    text.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    text.extend_from_slice(bytes);
}

/// Resolves a path, its last name taken as it is.
pub(crate) fn place_of(path: &OsStr) -> Vec<u8> {
    let (dir, name) = dir_and_name(path.as_bytes());
    let dir = if dir.is_empty() { b"." } else { dir };
    let real = std::fs::canonicalize(OsStr::from_bytes(dir));
    let mut real = real.unwrap_or_else(|_| PathBuf::from(OsStr::from_bytes(dir)));
    if let Some(name) = name {
        real.push(OsStr::from_bytes(name));
    }
    real.into_os_string().into_encoded_bytes()
}

/// True if sources go into the destination, not in its place, by the rule.
pub(crate) fn goes_into(options: &CopyOptions) -> bool {
    options.target == Target::Cp && Path::new(&options.destination).is_dir()
}

/// Finds the top: as an unfinished run had it (`into`), else by the rule.
pub(crate) fn find(
    options: &CopyOptions,
    sources: &[Source],
    into: Option<bool>,
) -> Result<Top, Error> {
    let path = options.destination.as_bytes();
    if path.is_empty() {
        return Err(Error::usage("the destination is an empty path"));
    }
    let (dir, name) = dir_and_name(path);
    if into.unwrap_or_else(|| goes_into(options)) {
        let fd = dirfd::open_root(path).map_err(|failed| system_error(path, "open", failed))?;
        let names = names_in(sources, options.sources.len())?;
        return top(fd, path, true, names);
    }
    // One that cannot be looked at is a source all the same.
    let ([source], 1) = (sources, options.sources.len()) else {
        return Err(usage_at(
            path,
            "is no directory, so only one source can be copied to it",
        ));
    };
    let is_dir = source.stat.kind() == FileKind::Dir;
    let Some(name) = name else {
        // A dot, say: its content.
        let fd = dirfd::open_root(path).map_err(|failed| system_error(path, "open", failed))?;
        if !is_dir {
            return Err(usage_at(
                path,
                "is a directory, so no file can be made of it",
            ));
        }
        return top(fd, path, false, vec![Vec::new()]);
    };
    if path.ends_with(b"/") && !is_dir {
        return Err(usage_at(path, "there is no such directory"));
    }
    let fd = dirfd::open_root(dir)
        .map_err(Errno::from)
        .map_err(|errno| {
            let shown = if dir.is_empty() { b"." } else { dir };
            system_error(shown, "open directory", errno)
        })?;
    top(fd, dir, false, vec![name.to_vec()])
}

fn top(fd: OwnedFd, path: &[u8], into: bool, names: Vec<Vec<u8>>) -> Result<Top, Error> {
    let stat = stat(&fd).map_err(|errno| system_error(path, "stat", errno))?;
    Ok(Top {
        fd,
        id: stat.id,
        path: path.to_vec(),
        into,
        names,
    })
}

/// Warns if a destination has no room for so many bytes.
pub(crate) fn warn_of_space(top: &Top, bytes: u64, observer: &Observer<'_>) {
    let Ok(found) = rustix::fs::fstatvfs(&top.fd) else {
        return;
    };
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    // Some file systems do not say how large they are.
    if found.f_blocks > 0 && free < bytes {
        let text = format!(
            "{}: {bytes} bytes are to be copied, {free} are free",
            Escaped(if top.path.is_empty() { b"." } else { &top.path })
        );
        observer(Event::Warning(&text));
    }
}

/// Returns the UUID of the file system that a top is on; empty where it cannot be found out.
pub(crate) fn file_system(top: &[u8], dev: u64) -> String {
    let path = match top.is_empty() {
        true => Path::new("."),
        false => Path::new(OsStr::from_bytes(top)),
    };
    uuid_at(path, Some(dev), None).unwrap_or_default()
}

/// Returns the names of the sources in a directory that they go into. `named`: number of sources
/// that were given.
fn names_in(sources: &[Source], named: usize) -> Result<Vec<Vec<u8>>, Error> {
    let mut names: Vec<Vec<u8>> = Vec::with_capacity(sources.len());
    let mut seen = HashSet::new();
    for source in sources {
        let path = source.path.as_bytes();
        let name = dir_and_name(path).1.unwrap_or_default();
        if name.is_empty() && named > 1 {
            return Err(usage_at(
                path,
                "what it holds would be mixed with the other sources; copy it alone",
            ));
        }
        if !seen.insert(name) {
            return Err(usage_at(
                path,
                format!(
                    "two sources would be called {} in the destination",
                    Escaped(name)
                ),
            ));
        }
        names.push(name.to_vec());
    }
    Ok(names)
}

/// Refuses to copy a directory into itself, however its paths are spelt, and a file to itself, unless
/// a move has `begun` to give it that name, and was to take the other one away.
pub(crate) fn refuse_itself(
    options: &CopyOptions,
    top: &Top,
    sources: &[Source],
    begun: &HashSet<Vec<u8>>,
) -> Result<(), Error> {
    let above = ancestors(&top.fd).map_err(|failed| system_error(&top.path, "stat", failed))?;
    for (source, name) in sources.iter().zip(&top.names) {
        let path = source.path.as_bytes();
        let is_entered =
            options.walk.file_systems == FileSystems::Cross || source.stat.id.dev == top.id.dev;
        let is_dir = source.stat.kind() == FileKind::Dir;
        if is_dir && is_entered && above.contains(&source.stat.id) {
            // An entry that goes into the top itself is the top's own content then.
            let text = match options.moves {
                true => "cannot be moved into itself",
                false => "cannot be copied into itself",
            };
            return Err(usage_at(path, text));
        }
        if name.is_empty() || options.moves && !is_dir && begun.contains(name) {
            continue;
        }
        let there = stat_at(&top.fd, &name[..]);
        if there.is_ok_and(|there| there.id == source.stat.id) {
            let text = match options.moves {
                true => "is what it would be moved to",
                false => "is what it would be copied to",
            };
            return Err(usage_at(path, text));
        }
    }
    Ok(())
}

/// Returns a directory and those above it, as far as they may be looked at.
pub(crate) fn ancestors(dir: &OwnedFd) -> Result<Vec<Identity>, FailedCall> {
    let mut all = Vec::new();
    let visited = dirfd::visit_ancestors(dir, |id, _| {
        all.push(id);
        false
    });
    match visited {
        // A source above it cannot be read either.
        Err(failed) if failed.errno != Errno::ACCESS => Err(failed),
        _ => Ok(all),
    }
}

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
    usage_at(
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
        let above = ancestors(&top.fd);
        let mut above = above.map_err(|failed| system_error(&top.path, "stat", failed))?;
        let name = match &top.names[..] {
            [name] if !top.into && !name.is_empty() => name.clone(),
            _ => Vec::new(),
        };
        let own = match name.is_empty() {
            true => Some(top.id),
            false => {
                let there = stat_at(&top.fd, &name[..]).ok();
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
            return Err(usage_at(
                inner,
                format!("lies in {}, which is a destination too", Escaped(outer)),
            ));
        }
        sites.push((path, site));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_come_apart() {
        for (path, dir, name) in [
            ("a", "", Some("a")),
            ("a/", "", Some("a")),
            ("/a", "/", Some("a")),
            ("a/b//", "a", Some("b")),
            ("/", "/", None),
            (".", ".", None),
            ("a/.", "a/.", None),
            ("a/../", "a/..", None),
            ("", "", None),
        ] {
            let expected = (dir.as_bytes(), name.map(str::as_bytes));
            assert_eq!(dir_and_name(path.as_bytes()), expected, "{path}");
        }
    }
}
