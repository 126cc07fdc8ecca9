//! Multi-lane and single-stream block compression: the types of kernels, and the choice of one for
//! an algorithm on the instruction sets of a [`CpuFeatures`](crate::CpuFeatures) value.

pub(crate) mod engine;
pub(crate) mod family;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod kernels;
pub(crate) mod message;
mod portable;
pub mod raw;
pub(crate) mod scheduler;
mod select;

/// Compresses blocks of several independent messages in lockstep, one message per lane.
pub(crate) struct LaneKernel<W: 'static> {
    /// Name for `bc --version` and failure messages, e.g. `"sha256/avx512x16"`.
    pub(crate) name: &'static str,
    /// Messages per call.
    pub(crate) lanes: usize,
    /// Runs `blocks` blocks of every lane: `(state, data, blocks)`.
    ///
    /// `state` is row-major: row `r` of lane `l` is `state[r * lanes + l]`. Rows are the words of
    /// the chaining value (MD5 4, SHA-1 5, SHA-2 8, BLAKE2b 8), and for BLAKE2b two more: row 8 is
    /// the low byte counter, to which the kernel adds 128 *before* each block, row 9 the final
    /// flag word `f0`.
    ///
    /// # Safety
    ///
    /// The kernel's instruction set must be present; `state.len()` must be `rows * lanes`,
    /// `data.len()` must be `lanes`, and every `data[l]` must be readable for `blocks` whole
    /// blocks, without any alignment. Pointers may repeat: an idle lane points at another lane's data.
    pub(crate) compress: unsafe fn(state: &mut [W], data: &[*const u8], blocks: usize),
}

/// Compresses consecutive blocks of one message.
pub(crate) struct StreamKernel<W: 'static> {
    /// Name for `bc --version` and failure messages, e.g. `"sha256/sha-ni"`.
    pub(crate) name: &'static str,
    /// Runs all of `blocks` (`(state, blocks)`); `state` has the rows described at
    /// [`LaneKernel::compress`], of a single lane.
    ///
    /// # Safety
    ///
    /// The kernel's instruction set must be present, `state.len()` must be the number of rows, and
    /// `blocks.len()` a multiple of the block size.
    pub(crate) compress: unsafe fn(state: &mut [W], blocks: &[u8]),
}
