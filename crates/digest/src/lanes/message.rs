//! One message on its way through a compression function: the blocks that come next, where they are,
//! and the way through a kernel for a single stream.
#![allow(unsafe_code)] // calls kernels

use std::marker::PhantomData;

use super::StreamKernel;
use super::family::{Family, MAX_ROWS, State, TAIL};
use crate::CpuFeatures;

/// A stretch of whole blocks to compress next.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum BlockRun {
    /// Blocks of the piece, up to [`Message::position`].
    Body,
    /// One block put together in the tail from the end of one piece and the start of the next.
    Head,
    /// Blocks of padding, in the tail.
    Last(u32),
}

/// Result of [`Message::next`].
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum MessageStep<W> {
    /// Number of blocks of the kind of [`Message::run`].
    Blocks(u32),
    /// The padding; rows 8 and 9 of the state are to be set first, if given.
    Padding(u32, Option<[W; 2]>),
    /// The piece is used up, and more are to come.
    Consumed,
    /// The message is complete.
    Finished,
}

/// A message being hashed. Its tail buffer is kept apart, because kernels read from it through
/// pointers while other messages' fields change.
pub(crate) struct Message<F: Family> {
    /// Row by row; not up to date while the message is in a lane.
    pub(crate) state: State<F::Word>,
    /// Bytes of the message before the current piece.
    before: u64,
    /// Bytes of the current piece that are compressed, copied to the tail, or part of `run`.
    pub(crate) position: usize,
    /// BlockRun that is being compressed, or was last.
    pub(crate) run: BlockRun,
    /// Blocks of `run` left; not up to date while the message is in a lane.
    pub(crate) left: u32,
    /// Bytes in the tail that no run has taken yet.
    tail_len: u16,
    family: PhantomData<F>,
}

/// Blocks per run: keeps counters in 32 bits for pieces of any size.
const MAX_RUN: usize = 1 << 24;

impl<F: Family> Clone for Message<F> {
    fn clone(&self) -> Self {
        Message { ..*self }
    }
}

impl<F: Family> Message<F> {
    pub(crate) fn new(iv: &State<F::Word>) -> Message<F> {
        Message {
            state: *iv,
            before: 0,
            position: 0,
            run: BlockRun::Body,
            left: 0,
            tail_len: 0,
            family: PhantomData,
        }
    }

    /// Moves on, once the last run is done. `data` is the whole current piece, `end` is true for the
    /// message's last one.
    #[inline]
    pub(crate) fn next(
        &mut self,
        data: &[u8],
        end: bool,
        tail: &mut [u8; TAIL],
    ) -> MessageStep<F::Word> {
        if let BlockRun::Last(_) = self.run {
            return MessageStep::Finished;
        }
        let mut held = usize::from(self.tail_len);
        let mut rest = &data[self.position..];
        if !rest.is_empty() && held > 0 {
            let take = rest.len().min(F::BLOCK - held);
            tail[held..held + take].copy_from_slice(&rest[..take]);
            held += take;
            rest = &rest[take..];
            self.position += take;
            self.tail_len = held as u16;
            if held == F::BLOCK && !(F::HOLD_LAST && rest.is_empty()) {
                self.tail_len = 0;
                self.run = BlockRun::Head;
                return MessageStep::Blocks(1);
            }
        } else if !rest.is_empty() {
            let blocks = (rest.len() - usize::from(F::HOLD_LAST)) / F::BLOCK;
            if blocks > 0 {
                let blocks = blocks.min(MAX_RUN);
                self.position += blocks * F::BLOCK;
                self.run = BlockRun::Body;
                return MessageStep::Blocks(blocks as u32);
            }
            held = rest.len();
            tail[..held].copy_from_slice(rest);
            self.position = data.len();
            self.tail_len = held as u16;
        }
        debug_assert_eq!(self.position, data.len());
        if !end {
            self.before += data.len() as u64;
            self.position = 0;
            return MessageStep::Consumed;
        }
        let (blocks, rows) = F::pad(tail, held, self.before + data.len() as u64);
        self.run = BlockRun::Last(blocks);
        MessageStep::Padding(blocks, rows)
    }

    /// Returns the next `left` blocks of the current run.
    #[inline]
    pub(crate) fn source<'a>(&self, data: &'a [u8], tail: &'a [u8; TAIL], left: u32) -> &'a [u8] {
        let bytes = left as usize * F::BLOCK;
        match self.run {
            BlockRun::Body => &data[self.position - bytes..self.position],
            BlockRun::Head => &tail[F::BLOCK - bytes..F::BLOCK],
            BlockRun::Last(blocks) => {
                let end = blocks as usize * F::BLOCK;
                &tail[end - bytes..end]
            }
        }
    }
}

/// Writes the words that [`Family::pad`] asked for into a whole state.
pub(crate) fn set_rows<W: Copy>(state: &mut [W; MAX_ROWS], rows: Option<[W; 2]>) {
    if let Some([counter, flag]) = rows {
        state[8] = counter;
        state[9] = flag;
    }
}

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

    /// Returns the digest's bytes, before truncation, of a message that is all there.
    pub(crate) fn whole(iv: &State<F::Word>, cpu: CpuFeatures, data: &[u8]) -> [u8; 64] {
        let mut stream = MessageStream::<F>::new(iv, cpu);
        stream.run(data, true);
        F::bytes(&stream.message.state)
    }

    fn run(&mut self, data: &[u8], end: bool) {
        loop {
            let blocks = match self.message.next(data, end, &mut self.tail) {
                MessageStep::Blocks(blocks) => blocks,
                MessageStep::Padding(blocks, rows) => {
                    set_rows(&mut self.message.state, rows);
                    blocks
                }
                MessageStep::Consumed | MessageStep::Finished => return,
            };
            let source = self.message.source(data, &self.tail, blocks);
            // SAFETY: `select` gave a kernel of the instruction sets that `cpu` is the proof
            // of; the state has the family's rows; `source` is whole blocks.
            unsafe { (self.kernel.compress)(&mut self.message.state[..F::ROWS], source) }
        }
    }
}
