//! One message through a single-stream kernel.
#![allow(unsafe_code)] // calls kernels

use super::StreamKernel;
use super::family::{Family, State, TAIL};
use super::message::{Message, Next, set_rows};
use crate::CpuFeatures;

/// A message and the kernel for it.
pub(crate) struct MessageStream<F: Family> {
    message: Message<F>,
    tail: [u8; TAIL],
    kernel: &'static StreamKernel<F::Word>,
}

impl<F: Family> Clone for MessageStream<F> {
    fn clone(&self) -> Self {
        MessageStream {
            message: self.message.clone(),
            ..*self
        }
    }
}

impl<F: Family> MessageStream<F> {
    pub(crate) fn new(iv: &State<F::Word>, cpu: CpuFeatures) -> MessageStream<F> {
        MessageStream {
            message: Message::new(iv),
            tail: [0; TAIL],
            kernel: F::select(cpu).stream,
        }
    }

    pub(crate) fn reset(&mut self, iv: &State<F::Word>) {
        self.message = Message::new(iv);
    }

    pub(crate) fn update(&mut self, data: &[u8]) {
        self.run(data, false);
    }

    /// Returns the digest's bytes, before truncation.
    pub(crate) fn finalize(&self) -> [u8; 64] {
        let mut last = self.clone();
        last.run(&[], true);
        F::bytes(&last.message.state)
    }

    fn run(&mut self, data: &[u8], end: bool) {
        loop {
            let blocks = match self.message.next(data, end, &mut self.tail) {
                Next::Blocks(blocks) => blocks,
                Next::Padding(blocks, rows) => {
                    set_rows(&mut self.message.state, rows);
                    blocks
                }
                Next::Consumed | Next::Finished => return,
            };
            let source = self.message.source(data, &self.tail, blocks);
            // SAFETY: `select` gave a kernel of the instruction sets that `cpu` is the proof
            // of; the state has the family's rows; `source` is whole blocks.
            unsafe { (self.kernel.compress)(&mut self.message.state[..F::ROWS], source) }
        }
    }
}
