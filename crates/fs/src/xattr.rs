//! Extended attributes of a file, read: all that this user may see.

use std::os::fd::AsFd;

use rustix::fs;
use rustix::io::Errno;

use crate::call::{FailedCall, Result, call};

/// The kernel's limit for one value and for the list of names (`linux/limits.h`).
pub const XATTR_MAX: usize = 64 << 10;

/// Names and values, in the order of the file system.
pub type Xattrs = Vec<(Vec<u8>, Vec<u8>)>;

/// File whose attributes are read.
#[derive(Clone, Copy, Debug)]
pub enum Attributed<'a, F> {
    /// An open file; not one that is held as a place alone (`O_PATH`).
    Open(F),
    /// The file at a path, a link itself.
    At(&'a [u8]),
    /// The file that a path leads to, through links.
    Through(&'a [u8]),
}

/// An open file that there is none of, for paths.
pub type NoFile = std::os::fd::BorrowedFd<'static>;

/// Buffers for attributes, one for each thread.
#[derive(Debug)]
pub struct XattrReader {
    names: Vec<u8>,
    value: Vec<u8>,
    left_out: &'static [Errno],
}

impl XattrReader {
    /// Makes a reader that leaves an attribute out, and reports no failure, where its value is
    /// refused with one of these: `NODATA` for one that was removed meanwhile, or is listed for
    /// others to see.
    pub fn new(left_out: &'static [Errno]) -> XattrReader {
        XattrReader {
            names: vec![0; 1024],
            value: vec![0; 1024],
            left_out,
        }
    }

    /// Returns all attributes that this user may see; none where the file system has none.
    ///
    /// # Errors
    /// Those of `listxattr` and `getxattr`.
    pub fn all<F: AsFd>(&mut self, of: Attributed<'_, F>) -> Result<Xattrs> {
        let XattrReader {
            names,
            value,
            left_out,
        } = self;
        let listed = sized("listxattr", names, |names| match &of {
            Attributed::Open(file) => fs::flistxattr(file, names),
            Attributed::At(path) => fs::llistxattr(*path, names),
            Attributed::Through(path) => fs::listxattr(*path, names),
        });
        let listed = match listed {
            Err(FailedCall {
                errno: Errno::NOTSUP | Errno::NOSYS,
                ..
            }) => return Ok(Xattrs::new()),
            listed => listed?,
        };
        let mut all = Xattrs::new();
        let listed = listed.split(|byte| *byte == 0);
        for name in listed.filter(|name| !name.is_empty()) {
            match get(&of, name, value) {
                Ok(value) => all.push((name.to_vec(), value.to_vec())),
                Err(failed) if left_out.contains(&failed.errno) => {}
                Err(failed) => return Err(failed),
            }
        }
        Ok(all)
    }

    /// Returns the value of one attribute; `None` for a file without it, and where the file system
    /// has none.
    ///
    /// # Errors
    /// Those of `getxattr`.
    pub fn value<F: AsFd>(&mut self, of: Attributed<'_, F>, name: &[u8]) -> Result<Option<&[u8]>> {
        match get(&of, name, &mut self.value) {
            Ok(value) => Ok(Some(value)),
            Err(FailedCall {
                errno: Errno::NODATA | Errno::NOTSUP,
                ..
            }) => Ok(None),
            Err(failed) => Err(failed),
        }
    }
}

fn get<'v, F: AsFd>(
    of: &Attributed<'_, F>,
    name: &[u8],
    value: &'v mut Vec<u8>,
) -> Result<&'v [u8]> {
    sized("getxattr", value, |value| match of {
        Attributed::Open(file) => fs::fgetxattr(file, name, value),
        Attributed::At(path) => fs::lgetxattr(*path, name, value),
        Attributed::Through(path) => fs::getxattr(*path, name, value),
    })
}

/// Calls with a buffer that is large enough, which takes a second call where it has grown.
fn sized<'b>(
    op: &'static str,
    buffer: &'b mut Vec<u8>,
    mut ask: impl FnMut(&mut [u8]) -> rustix::io::Result<usize>,
) -> Result<&'b [u8]> {
    let length = loop {
        match call(op, || ask(&mut buffer[..])) {
            Err(FailedCall {
                errno: Errno::RANGE,
                ..
            }) if buffer.len() < XATTR_MAX => buffer.resize(XATTR_MAX, 0),
            asked => break asked?,
        }
    };
    Ok(&buffer[..length])
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use rustix::fs::{XattrFlags, fsetxattr};

    use super::*;

    #[test]
    fn all_ways_see_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let file = File::create(&path).unwrap();
        let long = vec![b'x'; 3000];
        let set = |name: &str, value: &[u8]| fsetxattr(&file, name, value, XattrFlags::empty());
        if set("user.one", b"1").is_err() {
            return bc_testkit::left_out("no user attributes on this file system");
        }
        set("user.long", &long).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let bytes = |path: &std::path::Path| path.as_os_str().as_encoded_bytes().to_vec();
        let (path, link) = (bytes(&path), bytes(&link));
        let mut reader = XattrReader::new(&[Errno::NODATA]);
        let user = |found: Xattrs| {
            let mut found = found;
            found.retain(|(name, _)| name.starts_with(b"user."));
            found.sort();
            found
        };
        let expected = vec![
            (b"user.long".to_vec(), long.clone()),
            (b"user.one".to_vec(), b"1".to_vec()),
        ];
        let open = reader.all(Attributed::Open(&file)).unwrap();
        assert_eq!(user(open), expected);
        for of in [Attributed::At(&path), Attributed::Through(&link)] {
            let of: Attributed<'_, NoFile> = of;
            assert_eq!(user(reader.all(of).unwrap()), expected, "{of:?}");
        }
        let of: Attributed<'_, NoFile> = Attributed::At(&link);
        assert_eq!(user(reader.all(of).unwrap()), vec![]);
        let value = |reader: &mut XattrReader, name: &[u8]| {
            let value = reader.value(Attributed::Open(&file), name).unwrap();
            value.map(<[u8]>::to_vec)
        };
        assert_eq!(value(&mut reader, b"user.long"), Some(long));
        assert_eq!(value(&mut reader, b"user.none"), None);
    }
}
