//! Files that last. A file that is kept, or relied on as another copy, has to exist when the run is
//! over: a file that was deleted while it is open goes at the close, and its content with it.

use bc_edit::names::{self, Temporary};

use crate::prune::is_ours;

/// Prefixes of names under which file systems keep files that were deleted while open: libfuse
/// (`hide_node` in `lib/fuse.c`), NFS on Linux and elsewhere (`nfs_sillyrename` in
/// `fs/nfs/unlink.c`), AFS (`fs/afs/dir_silly.c`) and SMB (`fs/smb/client/cifsfs.h`). A file of
/// another client is shown under such a name as well.
const DELETED: [&[u8]; 4] = [b".fuse_hidden", b".nfs", b".__afs", b".__smb"];

/// Prefix that SMB uses in `fs/smb/client/inode.c`, with 24 hexadecimal digits behind it: people
/// have names that begin so.
const DELETED_ON_SMB: &[u8] = b".smb";

/// True if a file of this name and with so many links exists until it is removed explicitly.
pub(crate) fn lasts(name: &[u8], links: u64) -> bool {
    links > 0 && !is_temporary(name)
}

/// True if the name is temporary: a file system's for a file that was deleted while it is open, or
/// that of a copy or an output of ours which is not finished. Leftovers of [a run of
/// prune](is_ours) are processed by name, and not among them.
pub(crate) fn is_temporary(name: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().all(u8::is_ascii_hexdigit);
    name.first() == Some(&b'.')
        && (DELETED.iter().any(|start| name.starts_with(start))
            || name
                .strip_prefix(DELETED_ON_SMB)
                .is_some_and(|rest| rest.len() == 24 && digits(rest))
            || matches!(
                names::temporary(name),
                Some(Temporary::Stage | Temporary::Output)
            ))
}

/// True for every name that will be removed: such temporary names and those that a run of prune
/// left.
pub(crate) fn is_stage(name: &[u8]) -> bool {
    is_ours(name) || is_temporary(name)
}

#[cfg(test)]
mod tests {
    use super::{is_stage, is_temporary, lasts};

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
