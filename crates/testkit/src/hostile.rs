//! A tree of everything that breaks naive tools: hostile names, depth beyond PATH_MAX,
//! special files, links of every sort, a file without permissions.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, fchmod, linkat, mkdirat, mknodat, openat, symlinkat,
};

/// Length of the sparse file: a hole, then the five bytes `tail\n`.
pub const SPARSE_LEN: u64 = 8 << 20;

/// Names that have broken shells, terminals, manifests and parsers.
pub const NAMES: &[&[u8]] = &[
    b"new\nline",
    b"\nleading newline",
    b"trailing newline\n",
    b"back\\slash",
    b"\\n not a newline",
    b"trailing backslash\\",
    b"carriage\rreturn",
    b"trailing return\r",
    b"tab\there",
    b"bell\x07 and escape \x1b[31mred\x1b[0m",
    b"delete \x7f",
    b"title \x1b]0;owned\x07",
    b"latin-1 caf\xe9",
    b"not utf-8 \xff\xfe",
    b"overlong \xc0\xaf",
    b"surrogate \xed\xa0\x80",
    "composed é and decomposed e\u{301}".as_bytes(),
    "right to left \u{202e}txt.exe".as_bytes(),
    "snowman ☃ and 🦀".as_bytes(),
    "line separator \u{2028}".as_bytes(),
    "nel \u{85}".as_bytes(),
    b"-",
    b"--",
    b"-rf",
    b"--output=owned",
    b" ",
    b" leading space",
    b"*leading star",
    b"trailing space ",
    b"two  spaces",
    b"single'quote",
    b"double\"quote",
    b"back`quote`",
    b"$(touch owned)",
    b"${HOME}",
    b";touch owned",
    b"&& touch owned",
    b"|pipe",
    b"> redirect",
    b"*",
    b"?",
    b"[a-z]",
    b"{a,b}",
    b"~",
    b"#comment",
    b"%s%n%x",
    b"%00",
    b"comma,semicolon;",
    b"=formula()",
    b"@formula",
    b"<script>alert(1)<",
    b"<b>&amp;]]>",
    b"{\"type\":\"trailer\"}",
    b"SHA256 (a) = 00",
    b") = 00",
    b"...",
    b".hidden",
    b"..hidden",
];

/// Files that were built, by path relative to the root.
#[derive(Clone, Debug, Default)]
pub struct Hostile {
    /// Regular files that their owner can read, with their content (the sparse file with its
    /// zeros). Hard links appear under each of their names.
    pub files: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Regular files with mode 000 (root can read them: content `secret\n`).
    pub unreadable: Vec<Vec<u8>>,
    /// Directories.
    pub dirs: Vec<Vec<u8>>,
    /// Symbolic links with their targets.
    pub symlinks: BTreeMap<Vec<u8>, Vec<u8>>,
    /// FIFO and socket.
    pub special: Vec<Vec<u8>>,
    /// Pairs of names of one inode.
    pub hard_links: Vec<(Vec<u8>, Vec<u8>)>,
    /// The file whose relative path is longer than PATH_MAX (4096).
    pub deep: Vec<u8>,
    /// Paths that this file system refused, with its reason.
    pub left_out: Vec<(Vec<u8>, rustix::io::Errno)>,
}

/// Builds the tree inside the existing directory `root`. Names that a file system may refuse
/// (invalid UTF-8, for one) are noted in [`Hostile::left_out`]; remove it with
/// [`remove_tree`](crate::remove_tree).
///
/// # Errors
/// If anything else cannot be made.
pub fn build(root: &Path) -> io::Result<Hostile> {
    let mut made = Hostile::default();
    let root = openat(CWD, root, directory(), Mode::empty())?;
    let names = make_dir(&root, b"", b"names", &mut made)?;
    let longest = [b'L'; 255];
    for (index, name) in NAMES.iter().copied().chain([&longest[..]]).enumerate() {
        let content = format!("content {index}\n").into_bytes();
        match make_file(&names, b"names", name, &content, &mut made) {
            Ok(_) => {}
            Err(refused) => made.left_out.push((join(b"names", name), refused)),
        }
        // The same names as directories, each with one file.
        match make_dir(&names, b"names", &prefixed(b"d", name), &mut made) {
            Ok(dir) => {
                let path = join(b"names", &prefixed(b"d", name));
                make_file(&dir, &path, b"f", b"inside\n", &mut made)?;
            }
            Err(refused) => made
                .left_out
                .push((join(b"names", &prefixed(b"d", name)), refused)),
        }
    }
    make_deep(&root, &mut made)?;
    make_special(&root, &mut made)?;
    make_links(&root, &mut made)?;
    Ok(made)
}

/// Returns a directory name made of a hostile name, at most 255 bytes long.
fn prefixed(prefix: &[u8], name: &[u8]) -> Vec<u8> {
    let mut out = [prefix, name].concat();
    out.truncate(255);
    out
}

/// Makes 20 levels of 240 bytes: a path of about 4,800 bytes.
fn make_deep(root: &OwnedFd, made: &mut Hostile) -> io::Result<()> {
    let mut dir = make_dir(root, b"", b"deep", made)?;
    let mut path = b"deep".to_vec();
    for level in 0..20u8 {
        let name = [b'a' + level; 240];
        dir = make_dir(&dir, &path, &name, made)?;
        path = join(&path, &name);
    }
    make_file(&dir, &path, b"bottom", b"far down\n", made)?;
    made.deep = join(&path, b"bottom");
    Ok(())
}

fn make_special(root: &OwnedFd, made: &mut Hostile) -> io::Result<()> {
    make_dir(root, b"", b"empty-dir", made)?;
    let dir = make_dir(root, b"", b"special", made)?;
    make_file(&dir, b"special", b"empty-file", b"", made)?;
    make_file(&dir, b"special", b"empty-file-2", b"", made)?;
    for (name, kind) in [(c"fifo", FileType::Fifo), (c"socket", FileType::Socket)] {
        match mknodat(&dir, name, kind, Mode::RUSR | Mode::WUSR, 0) {
            Ok(()) => made.special.push(join(b"special", name.to_bytes())),
            Err(refused) => made
                .left_out
                .push((join(b"special", name.to_bytes()), refused)),
        }
    }
    let mut sparse = make_file(&dir, b"special", b"sparse", b"", made)?;
    sparse.seek(SeekFrom::Start(SPARSE_LEN - 5))?;
    sparse.write_all(b"tail\n")?;
    let mut content = vec![0; SPARSE_LEN as usize - 5];
    content.extend_from_slice(b"tail\n");
    made.files.insert(b"special/sparse".to_vec(), content);

    let closed = make_file(&dir, b"special", b"unreadable", b"secret\n", made)?;
    fchmod(&closed, Mode::empty())?;
    made.files.remove(&b"special/unreadable"[..]);
    made.unreadable.push(b"special/unreadable".to_vec());
    Ok(())
}

fn make_links(root: &OwnedFd, made: &mut Hostile) -> io::Result<()> {
    let dir = make_dir(root, b"", b"links", made)?;
    make_dir(&dir, b"links", b"dir", made)?;
    make_file(&dir, b"links", b"file", b"linked\n", made)?;
    for (name, target) in [
        (&b"to-file"[..], &b"file"[..]),
        (b"to-dir", b"dir"),
        (b"to-parent", b".."),
        (b"to-self-dir", b"."),
        (b"to-root", b"/"),
        (b"to-device", b"/dev/zero"),
        (b"dangling", b"no such target"),
        (b"loop-a", b"loop-b"),
        (b"loop-b", b"loop-a"),
        (b"loop-self", b"loop-self"),
        (b"to-not-utf-8", b"\xff\xfe\n"),
    ] {
        match symlinkat(c_string(target)?, &dir, c_string(name)?) {
            Ok(()) => drop(made.symlinks.insert(join(b"links", name), target.to_vec())),
            Err(refused) => made.left_out.push((join(b"links", name), refused)),
        }
    }
    for name in [c"hard-1", c"hard-2"] {
        linkat(&dir, c"file", &dir, name, AtFlags::empty())?;
        let path = join(b"links", name.to_bytes());
        made.files.insert(path.clone(), b"linked\n".to_vec());
        made.hard_links.push((b"links/file".to_vec(), path));
    }
    Ok(())
}

fn directory() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

fn make_dir(
    at: &OwnedFd,
    above: &[u8],
    name: &[u8],
    made: &mut Hostile,
) -> rustix::io::Result<OwnedFd> {
    let c_name = c_string(name)?;
    mkdirat(at, &c_name, Mode::from_raw_mode(0o755))?;
    made.dirs.push(join(above, name));
    openat(at, &c_name, directory(), Mode::empty())
}

fn make_file(
    at: &OwnedFd,
    above: &[u8],
    name: &[u8],
    content: &[u8],
    made: &mut Hostile,
) -> rustix::io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mut file = File::from(openat(
        at,
        c_string(name)?,
        flags,
        Mode::from_raw_mode(0o644),
    )?);
    let written = file.write_all(content);
    written.map_err(|e| rustix::io::Errno::from_io_error(&e).unwrap_or(rustix::io::Errno::IO))?;
    made.files.insert(join(above, name), content.to_vec());
    Ok(file)
}

fn c_string(bytes: &[u8]) -> rustix::io::Result<CString> {
    CString::new(bytes).map_err(|_| rustix::io::Errno::INVAL)
}

fn join(above: &[u8], name: &[u8]) -> Vec<u8> {
    if above.is_empty() {
        name.to_vec()
    } else {
        [above, b"/", name].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TestTree, reference};

    #[test]
    fn everything_reported_is_there_and_nothing_else() {
        let tree = TestTree::new();
        let made = build(tree.path()).unwrap();
        let listed = reference::listing(tree.path()).unwrap();
        let counted = made.files.len()
            + made.unreadable.len()
            + made.dirs.len()
            + made.symlinks.len()
            + made.special.len();
        assert_eq!(listed.len(), counted);
        for (path, content) in &made.files {
            let read = reference::read(tree.path(), path).unwrap();
            assert!(read == *content, "{}", path.escape_ascii());
        }
        for (path, target) in &made.symlinks {
            let found = listed.iter().find(|f| f.path == *path).unwrap();
            assert_eq!(found.target.as_ref(), Some(target));
        }
        assert!(made.deep.len() > 4096);
        assert!(made.files.keys().any(|p| p.ends_with(&[b'L'; 255])));
        for (a, b) in &made.hard_links {
            let identity = |p: &Vec<u8>| listed.iter().find(|f| f.path == *p).unwrap().identity();
            assert_eq!(identity(a), identity(b));
        }
    }
}
