//! Which kernel serves which compression function on which instruction sets.

use super::{LaneKernel, StreamKernel, portable};
use crate::Kernels;

/// The kernels for one compression function.
pub(crate) struct Selection<W: 'static> {
    /// Many messages in lockstep, if that beats one after the other.
    pub(crate) lanes: Option<&'static LaneKernel<W>>,
    /// One message.
    pub(crate) stream: &'static StreamKernel<W>,
    /// With so many live messages or fewer, `few` and `stream` are faster: the speed of `lanes`
    /// shrinks with every idle lane, theirs does not.
    pub(crate) few_up_to: usize,
    /// A few messages interleaved, if that beats one after the other.
    pub(crate) few: Option<&'static LaneKernel<W>>,
}

impl<W: 'static> Selection<W> {
    fn serial(stream: &'static StreamKernel<W>) -> Selection<W> {
        Selection {
            lanes: None,
            stream,
            few_up_to: 0,
            few: None,
        }
    }
}

pub(crate) fn md5(_kernels: Kernels) -> Selection<u32> {
    Selection::serial(&portable::MD5)
}

pub(crate) fn sha1(_kernels: Kernels) -> Selection<u32> {
    Selection::serial(&portable::SHA1)
}

pub(crate) fn sha256(_kernels: Kernels) -> Selection<u32> {
    Selection::serial(&portable::SHA256)
}

pub(crate) fn sha512(_kernels: Kernels) -> Selection<u64> {
    Selection::serial(&portable::SHA512)
}

pub(crate) fn blake2b(_kernels: Kernels) -> Selection<u64> {
    Selection::serial(&portable::BLAKE2B)
}
