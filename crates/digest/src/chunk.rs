//! Pieces that a batch is given, and the algorithms that still need each of them.

/// A live message and its current piece, for [`Batch::advance`](crate::Batch::advance).
#[derive(Copy, Clone, Debug)]
pub struct Chunk<'a> {
    /// The message, below what was given to [`Batch::reserve`](crate::Batch::reserve).
    pub message: usize,
    /// The piece: any length, empty as well.
    pub data: &'a [u8],
    /// True if the message ends with this piece.
    pub end: bool,
}

/// Counts, for every message, the algorithms that still need the current piece.
pub(crate) struct Pending {
    engines: u8,
    needed: Vec<u8>,
}

impl Pending {
    /// Makes the record for so many algorithms, and no messages yet.
    pub(crate) fn new(engines: u8) -> Pending {
        Pending {
            engines,
            needed: Vec::new(),
        }
    }

    /// Makes `0..messages` valid as ids. Never shrinks.
    pub(crate) fn reserve(&mut self, messages: usize) {
        if messages > self.needed.len() {
            self.needed.resize(messages, self.engines);
        }
    }

    pub(crate) fn is_reserved(&self, message: usize) -> bool {
        message < self.needed.len()
    }

    /// Notes that a new message has this id: every algorithm needs its first piece.
    pub(crate) fn begin(&mut self, message: usize) {
        self.needed[message] = self.engines;
    }

    /// Notes that an algorithm is through with the piece; the last one reports it.
    #[inline]
    pub(crate) fn through(&mut self, message: usize, consumed: &mut Vec<usize>) {
        let needed = &mut self.needed[message];
        *needed -= 1;
        if *needed == 0 {
            *needed = self.engines;
            consumed.push(message);
        }
    }

    /// True if no algorithm is through with the message's piece yet. An algorithm that is through
    /// with a piece concludes that all of them were, and that this is the next piece.
    #[inline]
    pub(crate) fn is_new_piece(&self, message: usize) -> bool {
        self.needed[message] == self.engines
    }
}
