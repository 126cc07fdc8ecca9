//! Algorithms that gain nothing from other messages (xxHash, BLAKE3, CRC-32C) inside a batch.

use crate::chunk::{Chunk, Pending};
use crate::digest::Digest;
use crate::hasher::{Hasher, hash_with};
use crate::{Algorithm, CpuFeatures};

/// One algorithm's share of a batch.
pub(crate) struct Streaming {
    algorithm: Algorithm,
    cpu: CpuFeatures,
    messages: Vec<StreamedMessage>,
    /// Chunks not yet hashed, during a call.
    waiting: Vec<u32>,
}

#[derive(Clone)]
struct StreamedMessage {
    progress: MessageProgress,
    /// True if this algorithm is through with the current piece.
    through: bool,
    /// State that is kept from message to message; untouched by messages of a single piece.
    hasher: Hasher,
}

#[derive(Clone)]
enum MessageProgress {
    /// No byte seen.
    Fresh,
    /// Some pieces are in the hasher.
    Begun,
    Ended(Digest),
}

impl Streaming {
    pub(crate) fn new(algorithm: Algorithm, cpu: CpuFeatures) -> Streaming {
        Streaming {
            algorithm,
            cpu,
            messages: Vec::new(),
            waiting: Vec::new(),
        }
    }

    pub(crate) fn reserve(&mut self, messages: usize) {
        if messages > self.messages.len() {
            let new = StreamedMessage {
                progress: MessageProgress::Fresh,
                through: false,
                hasher: Hasher::with_cpu(self.algorithm, self.cpu),
            };
            self.messages.resize(messages, new);
            self.waiting.reserve(messages);
        }
    }

    pub(crate) fn begin(&mut self, message: usize) {
        self.messages[message].progress = MessageProgress::Fresh;
        self.messages[message].through = false;
    }

    pub(crate) fn digest(&self, message: usize) -> Digest {
        match self.messages[message].progress {
            MessageProgress::Ended(digest) => digest,
            _ => panic!("message {message} has not ended"),
        }
    }

    /// Begins a call: finds the pieces to hash. Returns the number of those that only other
    /// algorithms still need.
    pub(crate) fn attach(&mut self, chunks: &[Chunk<'_>], pending: &Pending) -> usize {
        self.waiting.clear();
        for (i, chunk) in chunks.iter().enumerate() {
            let message = &mut self.messages[chunk.message];
            if !message.through || pending.is_new_piece(chunk.message) {
                message.through = false;
                self.waiting.push(i as u32);
            }
        }
        chunks.len() - self.waiting.len()
    }

    /// Hashes all these pieces, and returns their number.
    pub(crate) fn work(
        &mut self,
        chunks: &[Chunk<'_>],
        pending: &mut Pending,
        consumed: &mut Vec<usize>,
    ) -> usize {
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut count = 0;
        for chunk in waiting.drain(..).map(|i| &chunks[i as usize]) {
            let message = &mut self.messages[chunk.message];
            if message.through {
                continue; // the same message twice among the chunks
            }
            match (&message.progress, chunk.end) {
                (MessageProgress::Fresh, true) => {
                    let digest = hash_with(self.algorithm, self.cpu, chunk.data);
                    message.progress = MessageProgress::Ended(digest);
                }
                (MessageProgress::Ended(_), _) => {
                    panic!("message {} fed after its end", chunk.message)
                }
                (progress, end) => {
                    if matches!(progress, MessageProgress::Fresh) {
                        message.hasher.reset();
                    }
                    message.hasher.update(chunk.data);
                    message.progress = match end {
                        true => MessageProgress::Ended(message.hasher.finalize()),
                        false => MessageProgress::Begun,
                    };
                }
            }
            message.through = true;
            count += 1;
            pending.through(chunk.message, consumed);
        }
        self.waiting = waiting;
        count
    }
}
