//! Temporary names of every command, so that whoever meets one knows that it is no file of the
//! user's, and whose it is. What a killed run left under one is removed by its own command alone,
//! which knows what it may hold.

pub mod prune;

/// Beginning of every name that is given here, but that of a link which `bc install` replaces.
pub const OURS: &[u8] = b".bc-";

/// Name of the manifest in a copied tree: a file that stays, though its name begins like these.
pub const COPY_MANIFEST: &str = ".bc-copy-manifest.jsonl";

/// Beginning and end of the names of stages: copies, and repaired files, in the making.
const STAGE: (&[u8], &[u8]) = (b".bc-copy.", b".part");

/// Beginning and end of the names of sources that a move has set aside.
const ASIDE: (&[u8], &[u8]) = (b".bc-move.", b".tmp");

/// End of the names of outputs: `.bc-HASH-PID-N.tmp`, with a hash of the name of the target.
const OUTPUT_END: &[u8] = b".tmp";

/// Digits of a hash in a name.
const HASH: usize = 16;

/// Command that gave a temporary name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Temporary {
    /// `bc copy` and `bc integrity restore`: the file is not complete.
    Stage,
    /// An output that is being written, of any command.
    Output,
    /// `bc move`: a source whose copy is complete, and which is about to be removed.
    Aside,
    /// `bc dup`: perhaps the last name of a file.
    Prune,
}

/// Returns the command that gives such names; `None` for all others.
pub fn temporary(name: &[u8]) -> Option<Temporary> {
    let is_hash = |text: &[u8]| text.len() == HASH && text.iter().all(u8::is_ascii_hexdigit);
    for ((begin, end), known) in [(STAGE, Temporary::Stage), (ASIDE, Temporary::Aside)] {
        let between = |rest: &[u8]| rest.strip_suffix(end).is_some_and(is_hash);
        if name.strip_prefix(begin).is_some_and(between) {
            return Some(known);
        }
    }
    if name.starts_with(prune::PREFIX.as_bytes()) {
        return Some(Temporary::Prune);
    }
    let output = name.strip_prefix(OURS)?.strip_suffix(OUTPUT_END)?;
    let (hash, rest) = output.split_at_checked(HASH)?;
    (is_hash(hash) && rest.starts_with(b"-")).then_some(Temporary::Output)
}

/// Returns the name of the stage with this key.
pub fn stage(key: [u8; HASH / 2]) -> String {
    let (begin, end) = STAGE;
    keyed(begin, key, end)
}

/// Returns the name for a source that is set aside, with this key.
pub fn aside(key: [u8; HASH / 2]) -> String {
    let (begin, end) = ASIDE;
    keyed(begin, key, end)
}

fn keyed(begin: &[u8], key: [u8; HASH / 2], end: &[u8]) -> String {
    let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    text(begin) + &hex + &text(end)
}

/// Returns the beginning of the names of all outputs to one target. Of fixed length, so that a name
/// at the file system's limit has temporaries too.
pub(crate) fn output(target: &[u8]) -> String {
    // FNV-1a, for a name that stays the same from version to version.
    let hash = target
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    format!(".bc-{hash:016x}-")
}

/// Prefixes of names under which file systems keep files that were deleted while open: libfuse
/// (`hide_node` in `lib/fuse.c`), NFS on Linux and elsewhere (`nfs_sillyrename` in
/// `fs/nfs/unlink.c`), AFS (`fs/afs/dir_silly.c`) and SMB (`fs/smb/client/cifsfs.h`). A file of
/// another client is shown under such a name as well.
const DELETED: [&[u8]; 4] = [b".fuse_hidden", b".nfs", b".__afs", b".__smb"];

/// Prefix that SMB uses in `fs/smb/client/inode.c`, with 24 hexadecimal digits behind it: people
/// have names that begin so.
const DELETED_ON_SMB: &[u8] = b".smb";

/// True if a file of this name and with so many links exists until it is removed explicitly.
pub fn lasts(name: &[u8], links: u64) -> bool {
    links > 0 && !is_temporary(name)
}

/// True if the name is temporary: a file system's for a file that was deleted while it is open, or
/// that of a copy or an output of ours which is not finished, or of a source that a move is about to
/// remove. Leftovers of [a run of prune](prune::is_ours) are processed by name, and not among them.
pub fn is_temporary(name: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().all(u8::is_ascii_hexdigit);
    name.first() == Some(&b'.')
        && (DELETED.iter().any(|start| name.starts_with(start))
            || name
                .strip_prefix(DELETED_ON_SMB)
                .is_some_and(|rest| rest.len() == 24 && digits(rest))
            || matches!(
                temporary(name),
                Some(Temporary::Stage | Temporary::Output | Temporary::Aside)
            ))
}

/// True for every name that will be removed: such temporary names and those that a run of prune
/// left.
pub fn is_stage(name: &[u8]) -> bool {
    prune::is_ours(name) || is_temporary(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_by_their_whole_form() {
        let stage = stage([0xab; 8]);
        assert_eq!(stage, ".bc-copy.abababababababab.part");
        let output = output(b"list") + "77-0.tmp";
        for (name, known) in [
            (&*stage, Some(Temporary::Stage)),
            (&*output, Some(Temporary::Output)),
            (".bc-dup.1.2.3.tmp", Some(Temporary::Prune)),
            (&*aside([0xab; 8]), Some(Temporary::Aside)),
            (".bc-move.abab.tmp", None),
            (".bc-copy-manifest.jsonl", None),
            (".bc-copy.part", None),
            (".bc-copy.0123.part", None),
            (".bc-notes.tmp", None),
            ("bc-dup.1.2.3.tmp", None),
            ("", None),
        ] {
            assert_eq!(temporary(name.as_bytes()), known, "{name}");
        }
    }

    #[test]
    fn temporaries_are_told_from_the_names_of_people() {
        for name in [
            ".fuse_hidden0000002a00000001",
            ".nfs000000000001869f00000001",
            // Of BSD and Solaris.
            ".nfs.20051025.0001",
            ".nfsA12340004.4",
            ".__afs0B0C",
            ".__smb0B0C",
            ".smb000000000001869f00000001",
            ".bc-copy.0123456789abcdef.part",
            ".bc-move.0123456789abcdef.tmp",
            ".bc-0123456789abcdef-77-0.tmp",
        ] {
            assert!(is_temporary(name.as_bytes()), "{name}");
            assert!(!lasts(name.as_bytes(), 1) && is_stage(name.as_bytes()));
        }
        for name in [
            "report.doc",
            "x.fuse_hidden0000002a00000001",
            "nfs0001",
            ".smbcredentials",
            ".smb",
            ".bc-copy-manifest.jsonl",
            ".bc-notes.tmp",
            ".bc-copy.part",
            "",
        ] {
            assert!(!is_temporary(name.as_bytes()), "{name}");
            assert!(lasts(name.as_bytes(), 1) && !lasts(name.as_bytes(), 0));
        }
        let left = b".bc-dup.1.2.3.tmp";
        assert!(is_stage(left) && !is_temporary(left));
    }
}
