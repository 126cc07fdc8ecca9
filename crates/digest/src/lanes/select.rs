//! Selection of the kernel for each compression function and instruction set.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use super::kernels;
use super::{LaneKernel, StreamKernel, portable};
use crate::CpuFeatures;

/// The kernels for one compression function.
pub(crate) struct Selection<W: 'static> {
    /// Many messages in lockstep, if that beats one after the other.
    pub(crate) lanes: Option<&'static LaneKernel<W>>,
    /// One message.
    pub(crate) stream: &'static StreamKernel<W>,
    /// Number of live messages up to which `few` and `stream` are faster: the speed of `lanes`
    /// shrinks with every idle lane, theirs does not.
    pub(crate) few_up_to: usize,
    /// A few messages interleaved, if that beats one after the other.
    pub(crate) few: Option<&'static LaneKernel<W>>,
}

impl<W: 'static> Selection<W> {
    fn stream_only(stream: &'static StreamKernel<W>) -> Selection<W> {
        Selection {
            lanes: None,
            stream,
            few_up_to: 0,
            few: None,
        }
    }

    /// Returns the kernels' names, without repetition.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        names.extend(self.lanes.map(|k| k.name));
        names.extend(self.few.map(|k| k.name));
        names.push(self.stream.name);
        names.dedup();
        names
    }
}

/// Takes the SIMD kernels for the instruction sets, if there are any, else the portable stream.
macro_rules! selections {
    ($($function:ident: $word:ty = $portable:ident, on $($arch:literal)*;)*) => {$(
        #[cfg(any($(target_arch = $arch),*))]
        pub(crate) fn $function(cpu: CpuFeatures) -> Selection<$word> {
            kernels::$function::select(cpu)
                .unwrap_or(Selection::stream_only(&portable::$portable))
        }

        #[cfg(not(any($(target_arch = $arch),*)))]
        pub(crate) fn $function(_cpu: CpuFeatures) -> Selection<$word> {
            Selection::stream_only(&portable::$portable)
        }
    )*};
}

selections! {
    md5: u32 = MD5, on "x86_64" "aarch64";
    sha1: u32 = SHA1, on "x86_64" "aarch64";
    sha256: u32 = SHA256, on "x86_64" "aarch64";
    sha512: u64 = SHA512, on "x86_64" "aarch64";
    blake2b: u64 = BLAKE2B, on "x86_64";
}
