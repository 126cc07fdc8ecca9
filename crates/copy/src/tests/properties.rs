//! Attributes, access control lists and capabilities, and what a destination would add of its own.

use rustix::fs::{XattrFlags, setxattr};

use super::{Ground, done, seen};

/// An access control list in the kernel's form (`linux/posix_acl_xattr.h`): owner, user 1000,
/// group, mask and others with these permissions.
fn acl(permissions: [u16; 5]) -> Vec<u8> {
    let tags = [
        (0x01_u16, u32::MAX),
        (0x02, 1000),
        (0x04, u32::MAX),
        (0x10, u32::MAX),
        (0x20, u32::MAX),
    ];
    let mut value = 2_u32.to_le_bytes().to_vec();
    for ((tag, id), permission) in tags.into_iter().zip(permissions) {
        value.extend_from_slice(&tag.to_le_bytes());
        value.extend_from_slice(&permission.to_le_bytes());
        value.extend_from_slice(&id.to_le_bytes());
    }
    value
}

fn set(ground: &Ground, path: &str, name: &str, value: &[u8]) -> bool {
    let set = setxattr(ground.at(path), name, value, XattrFlags::empty());
    if let Err(errno) = set {
        bc_testkit::left_out(&format!("{name}: {errno}"));
    }
    set.is_ok()
}

#[test]
fn attributes_lists_and_capabilities() {
    let ground = Ground::new();
    ground.write("from/d/file", b"x");
    ground.write("from/program", b"x");
    set(&ground, "from/d", "user.dir", b"of a directory");
    set(&ground, "from/d/file", "user.empty", b"");
    set(&ground, "from/d/file", "user.long", &[7; 2000]);
    set(
        &ground,
        "from/d/file",
        "system.posix_acl_access",
        &acl([6, 4, 0, 4, 0]),
    );
    set(
        &ground,
        "from/d",
        "system.posix_acl_default",
        &acl([7, 5, 5, 5, 0]),
    );
    // CAP_NET_BIND_SERVICE, permitted and effective (VFS_CAP_REVISION_2).
    let capability = [1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    if set(&ground, "from/program", "security.capability", &capability) {
        // A change of the owner takes it away: it has to come after that.
        let path = ground.at("from/program");
        let _ = std::os::unix::fs::chown(&path, Some(12), Some(34));
        set(&ground, "from/program", "security.capability", &capability);
    }
    let copied = done(&ground.options(&["from"], "to"));
    assert_eq!(copied.incomplete, 0);
    let (from, to) = (seen(&ground.at("from")), seen(&ground.at("to")));
    for (path, one) in &from {
        assert_eq!(Some(one), to.get(path), "{}", path.display());
    }
}

#[test]
fn what_a_destination_would_add_is_not_in_the_copy() {
    let ground = Ground::new();
    ground.write("from/d/file", b"x");
    std::os::unix::fs::symlink("x", ground.at("from/d/link")).unwrap();
    std::fs::create_dir(ground.at("into")).unwrap();
    if !set(
        &ground,
        "into",
        "system.posix_acl_default",
        &acl([7, 7, 7, 7, 7]),
    ) {
        return;
    }
    let set_group = std::os::unix::fs::PermissionsExt::from_mode(0o2777);
    std::fs::set_permissions(ground.at("into"), set_group).unwrap();
    done(&ground.options(&["from"], "into"));
    assert_eq!(seen(&ground.at("from")), seen(&ground.at("into/from")));
}
