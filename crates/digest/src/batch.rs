//! Many messages at once, some of which are still arriving.

use crate::chunk::{Chunk, Pending};
use crate::digest::Digest;
use crate::hasher::{Hasher, hash_with};
#[cfg(feature = "algorithms")]
use crate::lanes::engine::LaneEngine;
use crate::{Algorithm, CpuFeatures};

/// Hashes many messages at once, in the lanes of SIMD registers where that pays.
///
/// A message is an id below [`Batch::reserve`]'s number, and is reused for one message after the
/// other: [`Batch::begin`], any number of pieces through [`Batch::advance`], [`Batch::digests`].
/// Meant to be kept for the whole run of a thread: little is allocated after `reserve`, and nothing for
/// a message of one piece.
///
/// ```
/// use bc_digest::{Algorithm, Batch, Chunk, CpuFeatures, hash};
///
/// let files: Vec<Vec<u8>> = (0..100).map(|i| vec![i as u8; 1000 * i]).collect();
/// let mut batch = Batch::new(&[Algorithm::Sha256], CpuFeatures::detect());
/// let slots = batch.width();
/// batch.reserve(slots);
///
/// let mut next = 0..files.len();
/// let mut live: Vec<Option<usize>> = vec![None; slots]; // the file in each slot
/// let mut consumed = Vec::new();
/// loop {
///     for (slot, file) in live.iter_mut().enumerate() {
///         if file.is_none() {
///             *file = next.next();
///             if file.is_some() {
///                 batch.begin(slot);
///             }
///         }
///     }
///     let chunks: Vec<Chunk> = (0..slots)
///         .filter_map(|slot| Some(Chunk { message: slot, data: &files[live[slot]?], end: true }))
///         .collect();
///     if chunks.is_empty() {
///         break;
///     }
///     batch.advance(&chunks, &mut consumed);
///     for slot in consumed.drain(..) {
///         let file = live[slot].take().expect("a live message");
///         let digest = batch.digests(slot).next().expect("one algorithm");
///         assert_eq!(digest, hash(Algorithm::Sha256, &files[file]));
///     }
/// }
/// ```
pub struct Batch {
    engines: Vec<BatchEngine>,
    pending: Pending,
    /// Pieces, per algorithm, that it is through with during a call and others still need.
    ahead: Vec<usize>,
}

/// Value of `ahead` for an algorithm that is through with all pieces of the call.
const NOTHING_LEFT: usize = usize::MAX;

enum BatchEngine {
    #[cfg(feature = "algorithms")]
    Lanes(LaneEngine),
    Streaming(Streaming),
}

macro_rules! each {
    ($engine:expr, $e:ident => $body:expr) => {
        match $engine {
            #[cfg(feature = "algorithms")]
            BatchEngine::Lanes($e) => $body,
            BatchEngine::Streaming($e) => $body,
        }
    };
}

impl BatchEngine {
    fn new(algorithm: Algorithm, cpu: CpuFeatures) -> BatchEngine {
        #[cfg(feature = "algorithms")]
        if let Some(lanes) = LaneEngine::new(algorithm, cpu) {
            return BatchEngine::Lanes(lanes);
        }
        BatchEngine::Streaming(Streaming::new(algorithm, cpu))
    }

    fn width(&self) -> usize {
        match self {
            #[cfg(feature = "algorithms")]
            BatchEngine::Lanes(lanes) => lanes.width(),
            BatchEngine::Streaming(_) => 1,
        }
    }
}

impl Batch {
    /// Makes a batch that computes `algorithms` of every message. `cpu` is [`CpuFeatures::detect`]
    /// but in tests and benchmarks.
    ///
    /// # Panics
    ///
    /// Without an algorithm, or with more than 255.
    pub fn new(algorithms: &[Algorithm], cpu: CpuFeatures) -> Batch {
        let count = u8::try_from(algorithms.len()).expect("at most 255 algorithms");
        assert!(count > 0, "a batch needs an algorithm");
        Batch {
            engines: algorithms
                .iter()
                .map(|&a| BatchEngine::new(a, cpu))
                .collect(),
            pending: Pending::new(count),
            ahead: vec![0; algorithms.len()],
        }
    }

    /// Returns the number of messages worth keeping live, so that no lane idles: 1 if nothing is
    /// hashed in lanes, as with xxHash and BLAKE3. More are allowed and wait their turn.
    ///
    /// A quarter more than there are lanes: one that waits takes over a lane within the call, so
    /// that calls get rarer by that factor. On a source tree's sizes (median 4 KiB, mean 17 KiB)
    /// that gained 2 % for SHA-256 and 8 % for MD5 on a Zen 5 core with AVX-512; twice the lanes
    /// gained nothing more and need twice the cache.
    pub fn width(&self) -> usize {
        let widest = self
            .engines
            .iter()
            .map(BatchEngine::width)
            .max()
            .unwrap_or(1);
        let in_lanes = self.engines.iter().filter(|e| e.width() > 1).count();
        match in_lanes {
            0 => 1,
            1 => widest + widest.div_ceil(4),
            // Two algorithms rarely finish with the same message first; slack keeps both busy.
            _ => 2 * widest,
        }
    }

    /// Makes `0..messages` valid as ids. Never shrinks.
    pub fn reserve(&mut self, messages: usize) {
        for engine in &mut self.engines {
            each!(engine, e => e.reserve(messages));
        }
        self.pending.reserve(messages);
    }

    /// Starts a message under this id; an earlier one is forgotten.
    ///
    /// # Panics
    ///
    /// If the id was not reserved.
    pub fn begin(&mut self, message: usize) {
        for engine in &mut self.engines {
            each!(engine, e => e.begin(message));
        }
        self.pending.begin(message);
    }

    /// Hashes until at least one piece is used up by all algorithms, and appends the messages for
    /// which that is so to `consumed`.
    ///
    /// `chunks` holds each live message with its current piece at most once, in any order. A piece
    /// must be presented unchanged, by content and length, until it is reported: the batch keeps
    /// its place in it. It may be left out of a call, which costs a little; its buffer may move
    /// between calls. Without chunks nothing happens.
    ///
    /// Returning early lets the caller fill the free slot while the other lanes stay loaded. As long
    /// as waiting chunks can take over the freed lanes, several pieces are used up in one call, so a
    /// few more chunks than [`Batch::width`] make calls rarer.
    ///
    /// # Panics
    ///
    /// If an id was not reserved, if a message is fed after its end, or if a piece became shorter.
    pub fn advance(&mut self, chunks: &[Chunk<'_>], consumed: &mut Vec<usize>) {
        let Batch {
            engines,
            pending,
            ahead,
        } = self;
        for (engine, ahead) in engines.iter_mut().zip(ahead.iter_mut()) {
            *ahead = each!(engine, e => e.attach(chunks, pending));
        }
        let before = consumed.len();
        // An engine without lanes to keep full goes through all new pieces, fresh in the cache as
        // they are.
        for (engine, ahead) in engines.iter_mut().zip(ahead.iter_mut()) {
            // No other engine is there without the other algorithms.
            #[cfg_attr(not(feature = "algorithms"), allow(irrefutable_let_patterns))]
            if let BatchEngine::Streaming(streaming) = engine {
                streaming.work(chunks, pending, consumed);
                *ahead = NOTHING_LEFT;
            }
        }
        // Among the others the one works that holds up the most pieces. In turns, the faster ones
        // would run out of pieces that only the slower ones still need, and be left with idle
        // lanes.
        while consumed.len() == before
            && let Some((ahead, engine)) = ahead
                .iter_mut()
                .zip(engines.iter_mut())
                .filter(|(ahead, _)| **ahead != NOTHING_LEFT)
                .min_by_key(|(ahead, _)| **ahead)
        {
            *ahead = match each!(engine, e => e.work(chunks, pending, consumed)) {
                0 => NOTHING_LEFT,
                through => *ahead + through,
            };
        }
    }

    /// Hashes messages that are all in memory. Gives `each` the position of a message and its digest,
    /// in the order in which messages end; with several algorithms once for each of them, in the
    /// order given to [`Batch::new`]. Begins ids below [`Batch::width`] anew.
    ///
    /// Nothing is allocated for a message: the way for very many short ones.
    ///
    /// ```
    /// use bc_digest::{Algorithm, Batch, CpuFeatures, hash};
    ///
    /// let lines: Vec<&[u8]> = b"one two three two".split(|&byte| byte == b' ').collect();
    /// let mut batch = Batch::new(&[Algorithm::Xxh3], CpuFeatures::detect());
    /// let mut seen = std::collections::HashMap::new();
    /// batch.hash_all(&lines, |line, digest| {
    ///     *seen.entry(digest).or_insert(0) += 1;
    ///     assert_eq!(digest, hash(Algorithm::Xxh3, lines[line]));
    /// });
    /// assert_eq!(seen.len(), 3);
    /// ```
    pub fn hash_all(&mut self, messages: &[&[u8]], mut each: impl FnMut(usize, Digest)) {
        if let [BatchEngine::Streaming(streaming)] = &self.engines[..] {
            return hash_each(streaming.algorithm, streaming.cpu, messages, each);
        }
        let slots = self.width().min(messages.len());
        self.reserve(slots);
        let mut live: Vec<usize> = (0..slots).collect();
        let mut chunks: Vec<Chunk<'_>> = Vec::with_capacity(slots);
        for (slot, data) in messages.iter().take(slots).enumerate() {
            chunks.push(Chunk {
                message: slot,
                data,
                end: true,
            });
            self.begin(slot);
        }
        let mut next = slots..messages.len();
        // Chunks stay in place: one that has nothing left is swapped out. So this is where each
        // slot's chunk lies.
        let mut place: Vec<usize> = (0..slots).collect();
        let mut consumed = Vec::with_capacity(slots);
        while !chunks.is_empty() {
            self.advance(&chunks, &mut consumed);
            for slot in consumed.drain(..) {
                for digest in self.digests(slot) {
                    each(live[slot], digest);
                }
                if let Some(message) = next.next() {
                    live[slot] = message;
                    self.begin(slot);
                    chunks[place[slot]].data = messages[message];
                } else {
                    chunks.swap_remove(place[slot]);
                    if let Some(moved) = chunks.get(place[slot]) {
                        place[moved.message] = place[slot];
                    }
                }
            }
        }
    }

    /// Returns the digests of a message that has ended, one per algorithm in the order given to
    /// [`Batch::new`]. Valid until the id is begun again.
    ///
    /// # Panics
    ///
    /// If the id was not reserved. The iterator panics if the message's last piece was not
    /// reported as consumed yet.
    pub fn digests(&self, message: usize) -> impl ExactSizeIterator<Item = Digest> + '_ {
        assert!(
            self.pending.is_reserved(message),
            "message {message} was not reserved"
        );
        self.engines
            .iter()
            .map(move |engine| each!(engine, e => e.digest(message)))
    }
}

/// Hashes one message after the other with a function that has no lanes, each of the quick ones in a
/// loop of its own: to choose the function again for every message would cost more than sixteen
/// bytes of it.
fn hash_each(
    algorithm: Algorithm,
    cpu: CpuFeatures,
    messages: &[&[u8]],
    mut each: impl FnMut(usize, Digest),
) {
    macro_rules! by_name {
        ($($name:ident),*) => {
            match algorithm {
                $(Algorithm::$name => {
                    for (i, message) in messages.iter().enumerate() {
                        each(i, hash_with(Algorithm::$name, cpu, message));
                    }
                })*
                other => {
                    for (i, message) in messages.iter().enumerate() {
                        each(i, hash_with(other, cpu, message));
                    }
                }
            }
        };
    }
    by_name!(Xxh3, Xxh128, Xxh64, Xxh32, Crc32c, Blake3);
}

/// The share of a batch that an algorithm has which gains nothing from other messages: xxHash, BLAKE3,
/// CRC-32C.
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
    /// State that is kept from message to message; made when one comes in more than one piece, which
    /// few do.
    hasher: Option<Hasher>,
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
                hasher: None,
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
                    let new = || Hasher::with_cpu(self.algorithm, self.cpu);
                    let hasher = message.hasher.get_or_insert_with(new);
                    if matches!(progress, MessageProgress::Fresh) {
                        hasher.reset();
                    }
                    hasher.update(chunk.data);
                    message.progress = match end {
                        true => MessageProgress::Ended(hasher.finalize()),
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

/// Returns the digests of messages that are all in memory: [`Batch`] for the simple case.
///
/// ```
/// use bc_digest::{Algorithm, hash_many};
///
/// let digests = hash_many(Algorithm::Sha256, &[b"".as_slice(), b"abc"]);
/// assert!(digests[1].to_string().starts_with("ba7816bf"));
/// ```
pub fn hash_many(algorithm: Algorithm, messages: &[&[u8]]) -> Vec<Digest> {
    hash_many_with(algorithm, CpuFeatures::detect(), messages)
}

pub(crate) fn hash_many_with(
    algorithm: Algorithm,
    cpu: CpuFeatures,
    messages: &[&[u8]],
) -> Vec<Digest> {
    let mut digests = vec![None; messages.len()];
    Batch::new(&[algorithm], cpu).hash_all(messages, |message, digest| {
        digests[message] = Some(digest);
    });
    digests
        .into_iter()
        .map(|d| d.expect("every message ends"))
        .collect()
}
