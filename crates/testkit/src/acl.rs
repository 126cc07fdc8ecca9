//! Access control lists, written as the kernel keeps them: no tool is needed.

use std::path::Path;

use rustix::fs::XattrFlags;

use crate::NOBODY;

const ACCESS: &str = "system.posix_acl_access";
const DEFAULT: &str = "system.posix_acl_default";

/// Returns a list that gives [`NOBODY`] everything: version 2, then tag, permissions and id of each
/// entry (`linux/posix_acl_xattr.h`).
fn list() -> Vec<u8> {
    const UNDEFINED: u32 = u32::MAX;
    let entries = [
        (0x01, 7, UNDEFINED), // owner
        (0x02, 7, NOBODY),
        (0x04, 7, UNDEFINED), // group
        (0x10, 7, UNDEFINED), // mask
        (0x20, 0, UNDEFINED), // others
    ];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        list.extend_from_slice(&u16::to_le_bytes(tag));
        list.extend_from_slice(&u16::to_le_bytes(permissions));
        list.extend_from_slice(&u32::to_le_bytes(id));
    }
    list
}

/// Makes files that are created in a directory from now on inherit a list that gives [`NOBODY`]
/// everything.
///
/// # Errors
/// The reason why that is impossible here: a file system without lists.
pub fn give_default_acl(dir: &Path) -> Result<(), String> {
    rustix::fs::setxattr(dir, DEFAULT, &list(), XattrFlags::empty())
        .map_err(|e| format!("{}: default ACL: {e}", dir.display()))
}

/// Gives a file or directory itself such a list.
///
/// # Errors
/// Errors of [`give_default_acl`].
pub fn give_acl(path: &Path) -> Result<(), String> {
    rustix::fs::setxattr(path, ACCESS, &list(), XattrFlags::empty())
        .map_err(|e| format!("{}: ACL: {e}", path.display()))
}

/// True if a file has a list of its own, or a directory one for files that are created in it. A
/// link has none.
pub fn has_acl(path: &Path) -> bool {
    let has = |name| rustix::fs::lgetxattr(path, name, &mut [0_u8; 256][..]).is_ok();
    has(ACCESS) || has(DEFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_inherits_the_list() {
        let dir = tempfile::tempdir().unwrap();
        if let Err(reason) = give_default_acl(dir.path()) {
            return crate::left_out(&reason);
        }
        let file = dir.path().join("file");
        std::fs::write(&file, "x").unwrap();
        assert!(has_acl(&file) && has_acl(dir.path()));
    }
}
