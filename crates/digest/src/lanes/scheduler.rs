//! Keeps the lanes of a kernel full: messages of any length enter a lane as another one leaves.
//!
//! A call runs the lanes for the shortest remaining stretch, moves the lanes that are through to
//! their next stretch, and replaces finished ones from the waiting chunks. No pointer outlives a
//! call: between calls a lane knows its message and how many blocks are left, nothing else.
#![allow(unsafe_code)] // calls kernels with pointers into the caller's pieces

use std::cell::UnsafeCell;
use std::ptr;

use super::LaneKernel;
use super::StreamKernel;
use super::family::{Family, MAX_ROWS, State, TAIL};
use super::message::{Message, MessageStep, set_rows};
use crate::chunk::{Chunk, Pending};
use crate::digest::Digest;
use crate::{Algorithm, CpuFeatures};

/// Greatest number of lanes of any kernel.
pub(crate) const MAX_LANES: usize = 32;
/// Greatest number of lanes of a kernel for few messages.
const MAX_FEW: usize = 4;

/// Position of a message: the number of its lane, or one of the constants.
type Place = u8;
const LANES_END: Place = MAX_LANES as Place;
/// Partly hashed, and in no lane.
const RESUMED: Place = 0xfc;
/// Begun, no byte seen yet.
const FRESH: Place = 0xfd;
/// Done with its piece here, which other algorithms still need.
const DONE: Place = 0xfe;
/// Complete.
const ENDED: Place = 0xff;

const NONE: u32 = u32::MAX;

/// One compression function's share of a batch.
pub(crate) struct Scheduler<F: Family> {
    algorithm: Algorithm,
    iv: State<F::Word>,
    /// Lane kernel; without one there is a single lane that only the stream kernel serves.
    kernel: Option<&'static LaneKernel<F::Word>>,
    few: Option<&'static LaneKernel<F::Word>>,
    stream: &'static StreamKernel<F::Word>,
    few_up_to: usize,
    width: usize,

    /// The lanes' states, row-major from `states_start`, where a cache line begins.
    states: Vec<F::Word>,
    states_start: usize,
    /// The message in each lane, or `NONE`.
    owner: [u32; MAX_LANES],
    /// Blocks left of each lane's run; `NONE` if idle.
    left: [u32; MAX_LANES],
    /// Chunk of each lane, during a call.
    chunk: [u32; MAX_LANES],
    live: usize,

    place: Vec<Place>,
    messages: Vec<Message<F>>,
    /// Written through `&mut` only while no lane reads the message's tail.
    tails: Vec<UnsafeCell<[u8; TAIL]>>,
    /// Chunks not in a lane, during a call, those of half-hashed messages separate because the
    /// longest messages must not be the last.
    resumed: Vec<u32>,
    fresh: Vec<u32>,
    fresh_taken: usize,
    /// First slot of the search for waiting chunks, so that none of them starves.
    rotation: usize,
    /// Lane after those that were advanced last where a few are hashed at a time.
    few_next: usize,
}

impl<F: Family> Scheduler<F> {
    pub(crate) fn new(algorithm: Algorithm, iv: State<F::Word>, cpu: CpuFeatures) -> Scheduler<F> {
        let selection = F::select(cpu);
        let width = selection.lanes.map_or(1, |k| k.lanes);
        assert!(width <= MAX_LANES && F::ROWS <= MAX_ROWS);
        assert!(selection.few.is_none_or(|k| k.lanes <= MAX_FEW));
        let line = 64 / size_of::<F::Word>();
        let states = vec![F::Word::default(); F::ROWS * width + line];
        let states_start = states.as_ptr().align_offset(64).min(line);
        Scheduler {
            algorithm,
            iv,
            kernel: selection.lanes,
            few: selection.few,
            stream: selection.stream,
            few_up_to: selection.few_up_to,
            width,
            states,
            states_start,
            owner: [NONE; MAX_LANES],
            left: [NONE; MAX_LANES],
            chunk: [NONE; MAX_LANES],
            live: 0,
            place: Vec::new(),
            messages: Vec::new(),
            tails: Vec::new(),
            resumed: Vec::new(),
            fresh: Vec::new(),
            fresh_taken: 0,
            rotation: 0,
            few_next: 0,
        }
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn reserve(&mut self, messages: usize) {
        assert!(messages < NONE as usize);
        if messages > self.messages.len() {
            self.place.resize(messages, FRESH);
            self.messages
                .resize_with(messages, || Message::new(&self.iv));
            self.tails
                .resize_with(messages, || UnsafeCell::new([0; TAIL]));
            self.resumed.reserve(messages);
            self.fresh.reserve(messages);
        }
    }

    pub(crate) fn begin(&mut self, message: usize) {
        if self.place[message] < LANES_END {
            self.vacate(usize::from(self.place[message]));
        }
        self.place[message] = FRESH;
        self.messages[message] = Message::new(&self.iv);
    }

    /// # Panics
    ///
    /// If the message has not ended.
    pub(crate) fn digest(&self, message: usize) -> Digest {
        assert!(
            self.place[message] == ENDED,
            "message {message} has not ended"
        );
        Digest::truncated(
            F::bytes(&self.messages[message].state),
            self.algorithm.digest_len(),
        )
    }

    /// Begins a call: finds the chunks of the lanes, and those that wait. Returns the number of
    /// those that only other algorithms still need.
    pub(crate) fn attach(&mut self, chunks: &[Chunk<'_>], pending: &Pending) -> usize {
        let mut ahead = 0;
        self.chunk[..self.width].fill(NONE);
        self.resumed.clear();
        self.fresh.clear();
        self.fresh_taken = 0;
        let start = if self.rotation < chunks.len() {
            self.rotation
        } else {
            0
        };
        let order = (start..chunks.len()).chain(0..start);
        for i in order {
            let message = chunks[i].message;
            match self.place[message] {
                FRESH => self.fresh.push(i as u32),
                RESUMED => self.resumed.push(i as u32),
                // This algorithm is through with the piece, but another one still needs it.
                DONE | ENDED if !pending.is_new_piece(message) => ahead += 1,
                DONE => {
                    self.place[message] = RESUMED;
                    self.resumed.push(i as u32);
                }
                ENDED => panic!("message {message} fed after its end"),
                lane => self.chunk[usize::from(lane)] = i as u32,
            }
        }
        if self.live > 0 {
            for lane in 0..self.width {
                if self.owner[lane] != NONE && self.chunk[lane] == NONE {
                    self.suspend(lane);
                }
            }
        }
        ahead
    }

    /// Does the work of a call: hashes until a piece is used up and nothing is waiting for its
    /// lane, or until a whole set of lanes' pieces is. Returns how many were; none if none was
    /// left. The chunks are those of [`Scheduler::attach`].
    pub(crate) fn work(
        &mut self,
        chunks: &[Chunk<'_>],
        pending: &mut Pending,
        consumed: &mut Vec<usize>,
    ) -> usize {
        let mut pointers = [ptr::null::<u8>(); MAX_LANES];
        let mut through = 0;
        for lane in 0..self.width {
            if self.owner[lane] != NONE {
                pointers[lane] = self.pointer(lane, chunks);
            } else {
                through += self.refill(lane, chunks, &mut pointers, pending, consumed);
            }
        }
        // Enough for the caller to fill in one go; beyond it, its reads would wait for us.
        let enough = self.width.max(2);
        while self.live > 0 && (through == 0 || (self.live == self.width && through < enough)) {
            self.step(&mut pointers);
            for lane in 0..self.width {
                if self.left[lane] == 0 {
                    through += self.turn(lane, chunks, &mut pointers, pending, consumed);
                }
            }
        }
        through
    }

    /// Compresses the next blocks: in all lanes, or with fewer messages in some or one.
    #[inline]
    fn step(&mut self, pointers: &mut [*const u8; MAX_LANES]) {
        if self.live > self.few_up_to
            && let Some(kernel) = self.kernel
        {
            return self.step_all(kernel, pointers);
        }
        match self.few {
            Some(few) if self.live >= few.lanes => self.step_few(few, pointers),
            _ => self.step_one(pointers),
        }
    }

    #[inline]
    fn step_all(
        &mut self,
        kernel: &'static LaneKernel<F::Word>,
        pointers: &mut [*const u8; MAX_LANES],
    ) {
        let width = self.width;
        let left = &mut self.left[..width];
        let blocks = *left.iter().min().expect("a lane");
        debug_assert!(blocks > 0 && blocks != NONE);
        if self.live < width {
            let busy = left.iter().position(|&l| l != NONE).expect("a live lane");
            for lane in 0..width {
                if self.owner[lane] == NONE {
                    pointers[lane] = pointers[busy];
                }
            }
        }
        let states = &mut self.states[self.states_start..][..F::ROWS * width];
        // SAFETY: `select` gave a kernel of the instruction sets that `cpu` was the proof of;
        // every live lane's pointer has `left[lane] >= blocks` readable blocks, and idle lanes
        // share the pointer of a live one.
        unsafe { (kernel.compress)(states, &pointers[..width], blocks as usize) }
        for (left, pointer) in left.iter_mut().zip(pointers.iter_mut()) {
            *left -= blocks;
            *pointer = pointer.wrapping_add(blocks as usize * F::BLOCK);
        }
        if self.live < width {
            for lane in 0..width {
                if self.owner[lane] == NONE {
                    self.left[lane] = NONE;
                }
            }
        }
    }

    /// Advances the lanes with the shortest runs, taken out of their columns and put back: nothing
    /// compared with runs that are long, as they are when few messages are left. Among equal ones
    /// it takes those that have waited longest: of three long messages two would otherwise be done
    /// before the third begins, which would then have to be hashed alone, a quarter more time for
    /// all of them.
    fn step_few(
        &mut self,
        few: &'static LaneKernel<F::Word>,
        pointers: &mut [*const u8; MAX_LANES],
    ) {
        let mut chosen = [0; MAX_FEW];
        let chosen = &mut chosen[..few.lanes];
        for i in 0..chosen.len() {
            chosen[i] = (self.few_next..self.width)
                .chain(0..self.few_next)
                .filter(|lane| self.owner[*lane] != NONE && !chosen[..i].contains(lane))
                .min_by_key(|&lane| self.left[lane])
                .expect("as many live lanes");
        }
        self.few_next = (chosen[chosen.len() - 1] + 1) % self.width;
        let blocks = self.left[chosen[0]];
        let mut states = [F::Word::default(); MAX_ROWS * MAX_FEW];
        let mut sources = [ptr::null(); MAX_FEW];
        for (i, &lane) in chosen.iter().enumerate() {
            sources[i] = pointers[lane];
            for row in 0..F::ROWS {
                states[row * few.lanes + i] = self.word(row, lane);
            }
        }
        // SAFETY: as in `step_all`; `blocks` is the smallest `left` of the chosen lanes.
        unsafe {
            (few.compress)(
                &mut states[..F::ROWS * few.lanes],
                &sources[..few.lanes],
                blocks as usize,
            )
        }
        for (i, &lane) in chosen.iter().enumerate() {
            self.left[lane] -= blocks;
            pointers[lane] = pointers[lane].wrapping_add(blocks as usize * F::BLOCK);
            for row in 0..F::ROWS {
                self.set_word(row, lane, states[row * few.lanes + i]);
            }
        }
    }

    /// Compresses the whole of the shortest run.
    fn step_one(&mut self, pointers: &mut [*const u8; MAX_LANES]) {
        let lane = (0..self.width)
            .min_by_key(|&lane| self.left[lane])
            .expect("a lane");
        let blocks = std::mem::take(&mut self.left[lane]);
        let mut state = self.column(lane);
        // SAFETY: `pointer` gave `left[lane]` readable blocks, of which none has been used.
        let source =
            unsafe { std::slice::from_raw_parts(pointers[lane], blocks as usize * F::BLOCK) };
        // SAFETY: `select` gave a kernel of the instruction sets that `cpu` was the proof of;
        // the state has the family's rows; `source` is whole blocks.
        unsafe { (self.stream.compress)(&mut state[..F::ROWS], source) }
        self.set_column(lane, &state);
    }

    /// Ends the run of a lane: finds the next one, or the next message. Returns the number of
    /// pieces used up.
    #[inline]
    fn turn(
        &mut self,
        lane: usize,
        chunks: &[Chunk<'_>],
        pointers: &mut [*const u8; MAX_LANES],
        pending: &mut Pending,
        consumed: &mut Vec<usize>,
    ) -> usize {
        let index = self.owner[lane] as usize;
        let chunk = &chunks[self.chunk[lane] as usize];
        // SAFETY: no lane reads this tail: its only reader's run is over.
        let tail = unsafe { &mut *self.tails[index].get() };
        match self.messages[index].next(chunk.data, chunk.end, tail) {
            MessageStep::Blocks(blocks) => self.left[lane] = blocks,
            MessageStep::Padding(blocks, rows) => {
                self.left[lane] = blocks;
                if let Some([counter, flag]) = rows {
                    self.set_word(8, lane, counter);
                    self.set_word(9, lane, flag);
                }
            }
            next => {
                self.messages[index].state = self.column(lane);
                self.messages[index].left = 0;
                self.vacate(lane);
                self.retire(
                    index,
                    matches!(next, MessageStep::Finished),
                    pending,
                    consumed,
                );
                return 1 + self.refill(lane, chunks, pointers, pending, consumed);
            }
        }
        pointers[lane] = self.pointer(lane, chunks);
        0
    }

    /// Puts the next waiting message, if any, into an idle lane. Returns the number of pieces that
    /// were used up without needing one.
    fn refill(
        &mut self,
        lane: usize,
        chunks: &[Chunk<'_>],
        pointers: &mut [*const u8; MAX_LANES],
        pending: &mut Pending,
        consumed: &mut Vec<usize>,
    ) -> usize {
        let mut through = 0;
        while let Some(number) = self.next_waiting() {
            let chunk = &chunks[number as usize];
            let place = self.place[chunk.message];
            if place < LANES_END || place == ENDED {
                continue; // the same message twice among the chunks
            }
            let message = &mut self.messages[chunk.message];
            let mut left = message.left;
            if left == 0 {
                // SAFETY: the message is in no lane, so nothing reads its tail.
                let tail = unsafe { &mut *self.tails[chunk.message].get() };
                match message.next(chunk.data, chunk.end, tail) {
                    MessageStep::Blocks(blocks) => left = blocks,
                    MessageStep::Padding(blocks, rows) => {
                        left = blocks;
                        set_rows(&mut message.state, rows);
                    }
                    next => {
                        through += 1;
                        let finished = matches!(next, MessageStep::Finished);
                        self.retire(chunk.message, finished, pending, consumed);
                        continue;
                    }
                }
            }
            let state = message.state;
            self.set_column(lane, &state);
            self.left[lane] = left;
            self.owner[lane] = chunk.message as u32;
            self.chunk[lane] = number;
            self.place[chunk.message] = lane as Place;
            self.live += 1;
            pointers[lane] = self.pointer(lane, chunks);
            break;
        }
        through
    }

    #[inline]
    fn next_waiting(&mut self) -> Option<u32> {
        if let Some(chunk) = self.resumed.pop() {
            return Some(chunk);
        }
        let chunk = *self.fresh.get(self.fresh_taken)?;
        self.fresh_taken += 1;
        self.rotation = chunk as usize + 1;
        Some(chunk)
    }

    fn retire(
        &mut self,
        message: usize,
        finished: bool,
        pending: &mut Pending,
        consumed: &mut Vec<usize>,
    ) {
        self.place[message] = if finished { ENDED } else { DONE };
        pending.through(message, consumed);
    }

    /// Takes a message out of its lane because its chunk is missing in this call; it resumes where
    /// it was.
    #[cold]
    fn suspend(&mut self, lane: usize) {
        let index = self.owner[lane] as usize;
        self.messages[index].state = self.column(lane);
        self.messages[index].left = self.left[lane];
        self.place[index] = RESUMED;
        self.vacate(lane);
    }

    fn vacate(&mut self, lane: usize) {
        self.owner[lane] = NONE;
        self.left[lane] = NONE;
        self.live -= 1;
    }

    /// Returns the address of the rest of a lane's run: `left[lane]` readable blocks.
    #[inline]
    fn pointer(&self, lane: usize, chunks: &[Chunk<'_>]) -> *const u8 {
        let index = self.owner[lane] as usize;
        let data = chunks[self.chunk[lane] as usize].data;
        // SAFETY: a tail is only written between its message's runs, never while one is set up.
        let tail = unsafe { &*self.tails[index].get() };
        self.messages[index]
            .source(data, tail, self.left[lane])
            .as_ptr()
    }

    #[inline]
    fn word(&self, row: usize, lane: usize) -> F::Word {
        self.states[self.states_start + row * self.width + lane]
    }

    #[inline]
    fn set_word(&mut self, row: usize, lane: usize, word: F::Word) {
        self.states[self.states_start + row * self.width + lane] = word;
    }

    #[inline]
    fn column(&self, lane: usize) -> State<F::Word> {
        let mut state = [F::Word::default(); MAX_ROWS];
        for (row, word) in state[..F::ROWS].iter_mut().enumerate() {
            *word = self.word(row, lane);
        }
        state
    }

    #[inline]
    fn set_column(&mut self, lane: usize, state: &State<F::Word>) {
        for (row, &word) in state[..F::ROWS].iter().enumerate() {
            self.set_word(row, lane, word);
        }
    }
}
