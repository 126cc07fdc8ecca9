//! The trash of a mount: where it is, its directories, and names that are reserved in it.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::rc::Rc;

use bc_edit::{content, entry};
use bc_fs::call::FailedCall;
use bc_fs::dirfd::{self, Access, deepest_existing, visit_ancestors};
use bc_fs::known::now_ns;
use bc_fs::meta::{self, FullStat};
use bc_fs::path::{below, join, split};
use bc_manifest::time::format_rfc3339;
use bc_walk::{FileKind, FileStat, Identity};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::act::moving::relocate::settle_renamed;
use crate::act::temp::withdraw;
use crate::check::compare::mounts_differ;
use crate::check::dir::RealPlaces;
use crate::check::open_file::{OpenFile, identity_at};
use crate::skip::Skip;
use crate::step::{OWN_TRASH, SHARED_TRASH};

const FILES: &[u8] = b"files";
const INFO: &[u8] = b"info";

/// End of the names in `info`.
const INFO_END: &str = ".trashinfo";

/// Bytes of the longest name in `files`: the one in `info` is longer.
const LONGEST: usize = 255 - INFO_END.len();

/// Bytes of the longest end of a name that stays behind a number.
const LONGEST_END: usize = 16;

/// Bytes of the longest file in `info` that is read.
const LONGEST_INFO: u64 = 64 << 10;

/// Bit of a mode, as in inode(7).
const STICKY: u32 = 0o1000;

/// The mount that a directory is in: no file is renamed to another one.
#[derive(Clone, Copy)]
struct MountNumber {
    dev: u64,
    mount: Option<u64>,
}

impl MountNumber {
    fn of(found: &FullStat) -> MountNumber {
        MountNumber {
            dev: found.stat.id.dev,
            mount: found.mount,
        }
    }

    fn has(self, found: &FullStat) -> bool {
        found.stat.id.dev == self.dev && !mounts_differ(found.mount, self.mount)
    }

    /// Proves that a directory of a trash is in this mount, and the caller's own.
    fn check_own(self, dir: &OwnedFd) -> Result<(), Skip> {
        let found = meta::stat_all(dir)?;
        if found.stat.kind() != FileKind::Dir || found.stat.uid != geteuid().as_raw() {
            return Err(Skip::NoTrash("it belongs to another user"));
        }
        match self.has(&found) {
            true => Ok(()),
            false => Err(Skip::NoTrash("it lies on another file system")),
        }
    }
}

/// The trash of a mount, which is there or would be made.
pub(crate) struct Trash {
    /// Its path, as journals have it.
    pub(super) path: Vec<u8>,
    /// The directory that the paths in `info` are relative to; `None` for the home trash, which has
    /// whole ones.
    top: Option<Vec<u8>>,
    number: MountNumber,
    /// As much of the way to it as there is.
    above: OwnedFd,
    /// Names on the way that are missing.
    missing: Vec<Vec<u8>>,
    dirs: OnceCell<Rc<TrashDirs>>,
    /// Numbers that come next, for names of which the trash had one already.
    next: RefCell<HashMap<Vec<u8>, u64>>,
}

/// The directories of a trash.
struct TrashDirs {
    files: OwnedFd,
    info: OwnedFd,
}

impl Trash {
    /// Finds the trash for names in this directory: that of the user's home, if it is in the same
    /// mount, or the one at the top of the mount. Changes nothing.
    pub(super) fn find(dir: &OwnedFd, home: Option<&[u8]>) -> Result<Trash, Skip> {
        let number = MountNumber::of(&meta::stat_all(dir)?);
        let in_home = home.map(|home| Trash::in_home(home, number));
        match in_home.transpose()?.flatten() {
            Some(trash) => Ok(trash),
            None => Trash::at_top(dir, number),
        }
    }

    fn new(number: MountNumber, path: Vec<u8>, above: OwnedFd, missing: Vec<Vec<u8>>) -> Trash {
        Trash {
            path,
            top: None,
            number,
            above,
            missing,
            dirs: OnceCell::new(),
            next: RefCell::default(),
        }
    }

    /// Returns that of the user's home; `None` if it is in another mount, another user's, or in a
    /// place where none can be.
    fn in_home(home: &[u8], number: MountNumber) -> Result<Option<Trash>, Skip> {
        let (above, count) = match deepest_existing(home) {
            Err(failed) if matches!(failed.errno, Errno::ACCESS | Errno::NOTDIR | Errno::LOOP) => {
                return Ok(None);
            }
            found => found?,
        };
        match number.check_own(&above) {
            Err(Skip::NoTrash(_)) => return Ok(None),
            checked => checked?,
        }
        let parts = home.split(|byte| *byte == b'/');
        let mut parts: Vec<&[u8]> = parts.filter(|part| !matches!(*part, b"" | b".")).collect();
        let missing = parts.split_off(parts.len().saturating_sub(count));
        let Some(path) = dirfd::real_path(&above).filter(|_| !missing.contains(&&b".."[..])) else {
            return Ok(None);
        };
        let path = join(&path, &missing.join(&b'/'));
        let missing = missing.into_iter().map(<[u8]>::to_vec).collect();
        Ok(Some(Trash::new(number, path, above, missing)))
    }

    fn at_top(dir: &OwnedFd, number: MountNumber) -> Result<Trash, Skip> {
        let mut top = None;
        let mut failed = None;
        visit_ancestors(dir, |_, at| {
            match meta::stat_all(at) {
                Ok(found) if number.has(&found) => match dirfd::open_dir_at(at, b".") {
                    Ok(held) => top = Some(held),
                    Err(why) => failed = Some(why),
                },
                Ok(_) => return true,
                Err(why) => failed = Some(why),
            }
            failed.is_some()
        })?;
        let unnamed = FailedCall {
            op: "readlink",
            errno: Errno::NOENT,
        };
        let top = match failed {
            Some(failed) => return Err(failed.into()),
            None => top.ok_or(unnamed)?,
        };
        let path = dirfd::real_path(&top).ok_or(unnamed)?;
        let user = geteuid().as_raw();
        let shared = || {
            let dir = dirfd::open_below(&top, SHARED_TRASH).ok()?;
            let found = meta::stat_all(&dir).ok()?;
            // Its owner may rename what others have in it.
            let is_trusted = [0, user].contains(&found.stat.uid);
            let is_sound = found.stat.mode & STICKY != 0 && is_trusted && number.has(&found);
            let name = user.to_string().into_bytes();
            let (above, missing) = is_sound
                .then(|| own_below(dir, name.clone(), number))?
                .ok()?;
            Some(([SHARED_TRASH, b"/", &name].concat(), above, missing))
        };
        let found = match shared() {
            Some(found) => found,
            None => {
                let name = format!("{OWN_TRASH}{user}").into_bytes();
                let own = own_below(top, name.clone(), number);
                let (above, missing) = own.map_err(|why| why.of(&join(&path, &name)))?;
                (name, above, missing)
            }
        };
        let (name, above, missing) = found;
        Ok(Trash {
            top: Some(path.clone()),
            ..Trash::new(number, join(&path, &name), above, missing)
        })
    }

    /// Returns as much of the way to it as there is.
    pub(crate) fn above(&self) -> &OwnedFd {
        &self.above
    }

    /// Proves, as far as it can be seen, that names can be made in it.
    pub(super) fn foresee(&self) -> Result<(), Skip> {
        if !self.missing.is_empty() {
            return Ok(dirfd::may_change(&self.above)?);
        }
        for name in [FILES, INFO] {
            match dirfd::open_below(&self.above, name) {
                Err(failed) if failed.errno == Errno::NOENT => dirfd::may_change(&self.above)?,
                opened => {
                    let dir = opened?;
                    self.number.check_own(&dir)?;
                    dirfd::may_change(&dir)?;
                }
            }
        }
        Ok(())
    }

    /// Returns its directories, which are made for the user alone if they are missing.
    fn dirs(&self) -> Result<Rc<TrashDirs>, Skip> {
        if let Some(dirs) = self.dirs.get() {
            return Ok(Rc::clone(dirs));
        }
        let made = self.make().map_err(|why| why.of(&self.path))?;
        Ok(Rc::clone(self.dirs.get_or_init(|| Rc::new(made))))
    }

    fn make(&self) -> Result<TrashDirs, Skip> {
        let mut at = dirfd::open_dir_at(&self.above, b".")?;
        for name in &self.missing {
            at = open_or_make(&at, name)?;
        }
        let dirs = TrashDirs {
            files: open_or_make(&at, FILES)?,
            info: open_or_make(&at, INFO)?,
        };
        for dir in [&at, &dirs.files, &dirs.info] {
            self.number.check_own(dir)?;
        }
        Ok(dirs)
    }

    /// Reserves a name for the target, whose date of deletion is now, by a clock that is so many
    /// seconds ahead of UTC.
    pub(crate) fn reserve(
        self: &Rc<Self>,
        target: &OpenFile,
        utc_offset: i32,
    ) -> Result<ReservedName, Skip> {
        let dirs = self.dirs()?;
        let text = self.info_of(target, utc_offset)?;
        let base = target.name.as_bytes();
        let first = self.next.borrow().get(base).copied().unwrap_or(1);
        let place = |why: Skip| why.of(&self.path);
        for number in first.. {
            let name = numbered(base, number);
            let info = [&name, INFO_END.as_bytes()].concat();
            let [name, info] = [dirfd::name(&name)?, dirfd::name(&info)?];
            let make = || content::create(&dirs.info, &*info, 0o600);
            let file = match make() {
                Err(failed) if failed.errno == Errno::EXIST => {
                    match removes_orphan(&dirs, &name, &info, &text).then(make) {
                        Some(Ok(file)) => file,
                        _ => continue,
                    }
                }
                made => made.map_err(|failed| place(failed.into()))?,
            };
            let reserved = ReservedName {
                path: join(&self.path, &[FILES, b"/", name.as_bytes()].concat()),
                dirs: Rc::clone(&dirs),
                name,
                info,
                made: meta::stat(&file)?.id,
            };
            let written = identity_at(&dirs.files, &reserved.name).and_then(|found| {
                // A file that another program put there without a word.
                if found.is_none() {
                    content::write_all_at(&file, &text, 0)?;
                    content::flush(&file)?;
                }
                Ok(found.is_none())
            });
            if number > 1 {
                self.next.borrow_mut().insert(base.to_vec(), number + 1);
            }
            match written {
                Ok(true) => return Ok(reserved),
                Ok(false) => reserved.withdraw(),
                Err(why) => {
                    reserved.withdraw();
                    return Err(place(why));
                }
            }
        }
        Err(Skip::DestinationExists(None))
    }

    /// Returns the text of the file in `info`.
    fn info_of(&self, target: &OpenFile, utc_offset: i32) -> Result<Vec<u8>, Skip> {
        const SECOND: i64 = 1_000_000_000;
        let dir = dirfd::real_path(&**target.dir).ok_or(Skip::Changed)?;
        let whole = join(&dir, target.name.as_bytes());
        let path = match &self.top {
            Some(top) => below(&whole, top).ok_or(Skip::Changed)?,
            None => &whole,
        };
        let seconds = now_ns().div_euclid(SECOND) + i64::from(utc_offset);
        let date = format_rfc3339(seconds.saturating_mul(SECOND));
        let (path, date) = (encoded(path), date.trim_end_matches('Z'));
        Ok(format!("[Trash Info]\nPath={path}\nDeletionDate={date}\n").into_bytes())
    }
}

/// Opens a user's own directory, or returns the one above and its name if it would be made.
fn own_below(
    dir: OwnedFd,
    name: Vec<u8>,
    number: MountNumber,
) -> Result<(OwnedFd, Vec<Vec<u8>>), Skip> {
    match dirfd::open_below(&dir, &name) {
        Err(failed) if failed.errno == Errno::NOENT => {
            dirfd::may_change(&dir)?;
            Ok((dir, vec![name]))
        }
        opened => {
            let own = opened?;
            number.check_own(&own)?;
            Ok((own, Vec::new()))
        }
    }
}

/// Opens a directory, which is made for the user alone if it is missing; no link leads to it.
fn open_or_make(dir: &OwnedFd, name: &[u8]) -> Result<OwnedFd, Skip> {
    match dirfd::open_below(dir, name) {
        Err(failed) if failed.errno == Errno::NOENT => {}
        opened => return Ok(opened?),
    }
    match entry::make_dir(dir, &*dirfd::name(name)?, 0o700) {
        Err(failed) if failed.errno != Errno::EXIST => return Err(failed.into()),
        Ok(()) | Err(_) => {}
    }
    Ok(dirfd::open_below(dir, name)?)
}

/// Returns a name for the trash: the file's own, or with a number before its end, shortened if need
/// be, between two letters.
fn numbered(base: &[u8], number: u64) -> Vec<u8> {
    let dot = base.iter().rposition(|byte| *byte == b'.');
    let dot = dot.filter(|at| *at > 0 && base.len() - at <= LONGEST_END);
    let (stem, end) = base.split_at(dot.unwrap_or(base.len()));
    let middle = match number {
        1 => String::new(),
        number => format!(".{number}"),
    };
    let most = stem.len().min(LONGEST - middle.len() - end.len());
    let is_letter = |at: &usize| stem.get(*at).is_none_or(|byte| byte & 0xC0 != 0x80);
    // No letter is longer than four bytes; what has none there is not UTF-8.
    let length = (most.saturating_sub(3)..=most).rev().find(is_letter);
    let length = length.unwrap_or(most);
    [&stem[..length], middle.as_bytes(), end].concat()
}

/// Returns a path as `info` has it: bytes escaped as in addresses, but for slashes.
fn encoded(path: &[u8]) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let mut text = String::with_capacity(path.len());
    for byte in path {
        match is_plain(*byte) {
            true => text.push(char::from(*byte)),
            false => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// A name in a trash that is reserved for one file.
pub(crate) struct ReservedName {
    /// The whole path, as journals have it.
    pub(crate) path: Vec<u8>,
    pub(crate) name: CString,
    dirs: Rc<TrashDirs>,
    info: CString,
    /// The file in `info`.
    made: Identity,
}

impl ReservedName {
    /// Returns the directory of the name.
    pub(crate) fn dir(&self) -> &OwnedFd {
        &self.dirs.files
    }

    /// Renames the target to this name while `proof` holds.
    pub(crate) fn take(
        &self,
        target: &OpenFile,
        proof: impl Fn() -> Result<(), Skip>,
    ) -> Result<(), Skip> {
        entry::rename_new(&target.dir, &*target.name, self.dir(), &*self.name)?;
        settle_renamed(target, self.dir(), &self.name, &self.path, proof).map(drop)
    }

    /// Ends the step that it was reserved for: where that did not take effect, the name is free again.
    pub(crate) fn end(&self, acted: &Result<(), Skip>) {
        if acted.as_ref().is_err_and(|why| !why.took_effect()) {
            self.withdraw();
        }
    }

    /// Gives the name up. A file in `info` without one in `files` means nothing, should it stay.
    pub(crate) fn withdraw(&self) {
        let _ = withdraw(&self.dirs.info, &self.info, self.made);
    }
}

/// Removes what `info` says of the file that had this name in `files` and is back at the path
/// `target`, if it is about that.
pub(crate) fn forget(files: &OwnedFd, name: &CStr, target: &[u8]) {
    let info = dirfd::open_parent(files).and_then(|trash| dirfd::open_below(trash, INFO));
    let file = dirfd::name(&[name.to_bytes(), INFO_END.as_bytes()].concat());
    if let (Ok(info), Ok(file), Ok(None)) = (info, file, identity_at(files, name))
        && let Ok(opened) = dirfd::open_file(&info, &file, Access::Read)
        && let Ok(stat) = meta::stat(&opened)
        && stat.kind() == FileKind::File
        && is_about(&opened, stat.stamp.size, target)
    {
        let _ = withdraw(&info, &file, stat.id);
    }
}

/// Removes a file of `info` that a killed run has left: it is about the very file whose `text` is to
/// be there, which has not gone to `files` for so long that none is about to put it there.
fn removes_orphan(dirs: &TrashDirs, name: &CStr, info: &CStr, text: &[u8]) -> bool {
    const ABOUT_TO_NS: i64 = 60_000_000_000;
    let path_in = |text: &[u8]| {
        let mut lines = text.split(|byte| *byte == b'\n');
        lines.find_map(|line| Some(line.strip_prefix(b"Path=")?.to_vec()))
    };
    if !matches!(identity_at(&dirs.files, name), Ok(None)) {
        return false;
    }
    let Ok(opened) = dirfd::open_file(&dirs.info, info, Access::Read) else {
        return false;
    };
    let is_orphan = |stat: &FileStat| {
        let mut there = vec![0; stat.stamp.size.min(LONGEST_INFO) as usize];
        let read = dirfd::read_at(&opened, &mut there, 0).unwrap_or_default();
        let is_about_it = path_in(&there[..read]).is_some_and(|path| path_in(text) == Some(path));
        let is_old = now_ns().saturating_sub(stat.stamp.mtime_ns) > ABOUT_TO_NS;
        stat.kind() == FileKind::File && is_about_it && is_old
    };
    let found = meta::stat(&opened).ok().filter(is_orphan);
    found.is_some_and(|stat| withdraw(&dirs.info, info, stat.id).is_ok())
}

/// Returns true if a file of `info` is about a file of this name.
fn is_about(info: &OwnedFd, size: u64, target: &[u8]) -> bool {
    let mut text = vec![0; size.min(LONGEST_INFO) as usize];
    let read = dirfd::read_at(info, &mut text, 0).unwrap_or_default();
    let mut lines = text[..read].split(|byte| *byte == b'\n');
    let path = lines.find_map(|line| line.strip_prefix(b"Path="));
    // Where it is seen through a bind mount, the rest of its path is another one.
    path.is_some_and(|path| split(path).1 == encoded(split(target).1).as_bytes())
}

/// Trashes by mount: its device and its number, where that is known.
pub(super) type Trashes = HashMap<(u64, Option<u64>), Result<Rc<Trash>, Skip>>;

/// Trashes that a run came to.
#[derive(Default)]
pub(crate) struct KnownTrashes(pub(super) Trashes);

impl Trash {
    /// Names it by its own place, where it is seen through a bind mount: undo finds it there.
    pub(super) fn at_own_place(self, places: &RealPlaces) -> Trash {
        let behind: Vec<&[u8]> = self.missing.iter().map(Vec::as_slice).collect();
        let behind = behind.join(&b'/');
        let above = match behind.is_empty() {
            true => &self.path[..],
            false => self.path.strip_suffix(&behind[..]).unwrap_or(&self.path),
        };
        let above = above
            .strip_suffix(b"/")
            .filter(|path| !path.is_empty())
            .unwrap_or(above);
        match places.to_undo_at(&self.above, above) {
            Some(place) => Trash {
                path: join(&place, &behind),
                ..self
            },
            None => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_number_before_the_end() {
        for (base, number, expected) in [
            ("a.txt", 1, "a.txt"),
            ("a.txt", 2, "a.2.txt"),
            ("a.tar.gz", 3, "a.tar.3.gz"),
            (".profile", 2, ".profile.2"),
            ("a", 12, "a.12"),
        ] {
            let name = numbered(base.as_bytes(), number);
            assert_eq!(String::from_utf8(name).unwrap(), expected);
        }
        // Between two letters.
        let long = "ä".repeat(127) + "z.mp3";
        for number in [1, 2, 1000] {
            let name = String::from_utf8(numbered(long.as_bytes(), number)).unwrap();
            assert!(name.ends_with(".mp3") && (LONGEST - 1..=LONGEST).contains(&name.len()));
            assert_eq!(numbered(&[0x83; 255], number).len(), LONGEST);
        }
    }

    #[test]
    fn paths_are_escaped_as_in_addresses() {
        for (path, expected) in [
            (&b"/a/b-c_d.e~f"[..], "/a/b-c_d.e~f"),
            (b"a b%\n\xff\xc3\xa4=", "a%20b%25%0A%FF%C3%A4%3D"),
        ] {
            assert_eq!(encoded(path), expected);
        }
    }
}
