//! Refusals of the kernel that are foreseen, with the reason.

use rustix::io::Errno;

use crate::skip::Skip;

/// Returns the refusal that the kernel would give to this operation, with the reason.
pub(crate) fn denied(op: &'static str, why: &'static str) -> Skip {
    Skip::Denied {
        op,
        errno: Errno::PERM.raw_os_error(),
        why,
    }
}
