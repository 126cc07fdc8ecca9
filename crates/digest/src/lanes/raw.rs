//! Kernels without padding and scheduling, for this crate's benchmarks. No part of the interface.
#![allow(unsafe_code)] // calls kernels

use super::family::{Blake2b, Family, Md5, Sha1, Sha256, Sha512};
use super::scheduler::MAX_LANES;
use super::{LaneKernel, StreamKernel};
use crate::CpuFeatures;
use std::ptr;

/// One kernel and the states of its lanes.
pub struct RawKernel {
    /// Name as in [`CpuFeatures::serving`].
    pub name: &'static str,
    /// Messages per call; 1 for the kernel of a single stream.
    pub lanes: usize,
    compress: Box<Compress>,
}

type Compress = dyn FnMut(&[&[u8]]);

impl RawKernel {
    /// Compresses one run of blocks per lane.
    ///
    /// # Panics
    ///
    /// Unless there are as many messages as lanes, all of the same number of whole blocks.
    pub fn compress(&mut self, messages: &[&[u8]]) {
        (self.compress)(messages);
    }
}

/// Returns every kernel that this machine can run, each once.
pub fn kernels() -> Vec<RawKernel> {
    let mut all = Vec::new();
    for cpu in CpuFeatures::available() {
        collect::<Md5>(cpu, &mut all);
        collect::<Sha1>(cpu, &mut all);
        collect::<Sha256>(cpu, &mut all);
        collect::<Sha512>(cpu, &mut all);
        collect::<Blake2b>(cpu, &mut all);
    }
    all.sort_by_key(|kernel| kernel.name);
    all.dedup_by_key(|kernel| kernel.name);
    all
}

fn collect<F: Family>(cpu: CpuFeatures, all: &mut Vec<RawKernel>) {
    let selection = F::select(cpu);
    let lanes = [selection.lanes, selection.few].into_iter().flatten();
    all.extend(lanes.map(raw_lanes::<F>));
    all.push(raw_stream::<F>(selection.stream));
}

fn raw_lanes<F: Family>(kernel: &'static LaneKernel<F::Word>) -> RawKernel {
    let mut state = vec![F::Word::default(); F::ROWS * kernel.lanes];
    let compress = move |messages: &[&[u8]]| {
        assert_eq!(messages.len(), kernel.lanes);
        let blocks = messages[0].len() / F::BLOCK;
        let mut data = [ptr::null(); MAX_LANES];
        for (pointer, message) in data.iter_mut().zip(messages) {
            assert_eq!(message.len(), blocks * F::BLOCK);
            *pointer = message.as_ptr();
        }
        // SAFETY: the kernel comes from a selection for this machine; the state is of its rows and
        // lanes; every message was just found to have `blocks` blocks.
        unsafe { (kernel.compress)(&mut state, &data[..kernel.lanes], blocks) }
    };
    RawKernel {
        name: kernel.name,
        lanes: kernel.lanes,
        compress: Box::new(compress),
    }
}

fn raw_stream<F: Family>(kernel: &'static StreamKernel<F::Word>) -> RawKernel {
    let mut state = vec![F::Word::default(); F::ROWS];
    let compress = move |messages: &[&[u8]]| {
        let [message] = messages else {
            panic!("one message for a single stream");
        };
        assert!(message.len().is_multiple_of(F::BLOCK));
        // SAFETY: the kernel comes from a selection for this machine; the state is of its rows; the
        // message is whole blocks.
        unsafe { (kernel.compress)(&mut state, message) }
    };
    RawKernel {
        name: kernel.name,
        lanes: 1,
        compress: Box::new(compress),
    }
}
