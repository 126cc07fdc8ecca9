//! Permission tests mean nothing to root: these run a command as another user.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// User and group id used in place of root: `nobody` on Linux.
pub const NOBODY: u32 = 65534;

/// True if this process is root, for whom permission bits do not count.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Makes `command` run as an ordinary user: as [`NOBODY`] (no groups, no capabilities) when
/// this process is root, unchanged otherwise. The program must be reachable for that user:
/// [`Run::as_nobody`](crate::Run::as_nobody) takes care of that by copying it.
pub fn as_nobody(command: &mut Command) -> &mut Command {
    if is_root() {
        // The standard library clears the supplementary groups as well when root sets a uid.
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::{as_nobody, is_root};
    use std::process::Command;

    #[test]
    fn the_command_is_not_root() {
        let output = as_nobody(Command::new("id").arg("-u")).output().unwrap();
        assert_ne!(output.stdout, b"0\n");
        assert!(output.status.success());
        let own = Command::new("id").arg("-u").output().unwrap();
        assert_eq!(is_root(), own.stdout == b"0\n");
    }
}
