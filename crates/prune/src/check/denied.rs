//! Refusals of the kernel that are foreseen, with the reason.

use rustix::io::Errno;

use crate::skip::Skip;

/// Reason why a name cannot be removed from a directory with such a mark.
pub(crate) const FIXED: &str = "its directory is append-only or immutable (chattr)";

/// Reason why a name cannot be removed from a sticky directory.
pub(crate) const STUCK: &str = "its directory is sticky, and another user's";

/// Returns the refusal that the kernel would give to this operation, with the reason.
pub(crate) fn denied(op: &'static str, why: &'static str) -> Skip {
    Skip::Denied {
        op,
        errno: Errno::PERM.raw_os_error(),
        why,
    }
}
