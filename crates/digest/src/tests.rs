//! Batches against the RustCrypto crates and the other reference implementations: one function,
//! run with every set of kernels that the machine has.

use proptest::prelude::*;
use sha2::Digest as _;

use crate::batch::hash_many_with;
use crate::hasher::hash_with;
use crate::{Algorithm, Batch, Chunk, CpuFeatures, Digest, Hasher, hash};

/// Computes digests by crates of which we use, at most, the compression function.
fn reference(algorithm: Algorithm, data: &[u8]) -> Digest {
    let new = |bytes: &[u8]| Digest::new(bytes);
    match algorithm {
        Algorithm::Md5 => new(&md5::Md5::digest(data)),
        Algorithm::Sha1 => new(&sha1::Sha1::digest(data)),
        Algorithm::Sha224 => new(&sha2::Sha224::digest(data)),
        Algorithm::Sha256 => new(&sha2::Sha256::digest(data)),
        Algorithm::Sha384 => new(&sha2::Sha384::digest(data)),
        Algorithm::Sha512 => new(&sha2::Sha512::digest(data)),
        Algorithm::Sha512_256 => new(&sha2::Sha512_256::digest(data)),
        Algorithm::Blake2b => new(&blake2::Blake2b512::digest(data)),
        Algorithm::Blake2b256 => new(&blake2::Blake2b256::digest(data)),
        Algorithm::Blake3 => new(blake3::hash(data).as_bytes()),
        Algorithm::Xxh32 => new(&xxhash_rust::xxh32::xxh32(data, 0).to_be_bytes()),
        Algorithm::Xxh64 => new(&xxhash_rust::xxh64::xxh64(data, 0).to_be_bytes()),
        Algorithm::Xxh3 => new(&xxhash_rust::xxh3::xxh3_64(data).to_be_bytes()),
        Algorithm::Xxh128 => new(&xxhash_rust::xxh3::xxh3_128(data).to_be_bytes()),
        Algorithm::Crc32c => new(&crc32c_bitwise(data).to_be_bytes()),
        Algorithm::Crc | Algorithm::Crc32b | Algorithm::Bsd | Algorithm::Sysv => {
            new(&crate::sums::by_definition(algorithm, data))
        }
        // There is no second implementation here; published vectors and other tools check these.
        Algorithm::Sha3_224
        | Algorithm::Sha3_256
        | Algorithm::Sha3_384
        | Algorithm::Sha3_512
        | Algorithm::Sm3 => crate::hash(algorithm, data),
    }
}

fn crc32c_bitwise(data: &[u8]) -> u32 {
    !data.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |c: u32, _| {
            (c >> 1) ^ (0x82f6_3b78 & (c & 1).wrapping_neg())
        })
    })
}

/// xorshift: the tests' own randomness where proptest's would be too slow to draw.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 16
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

/// Presentation of the messages in a test.
#[derive(Copy, Clone, Debug)]
struct Manner {
    /// Messages live at once.
    slots: usize,
    /// Longest piece; 0 presents whole messages.
    piece: usize,
    /// One chunk in so many is left out of a call, 0 for none; the order of chunks changes as well.
    omit: usize,
    /// Follows a message's last byte with an empty last piece, sometimes.
    empty_ends: bool,
}

const WHOLE: Manner = Manner {
    slots: 48,
    piece: 0,
    omit: 0,
    empty_ends: false,
};

/// Messages, and their digests by the references. Those are slow, so they compute once for all
/// manners and sets of kernels.
struct MessageSet<'a> {
    algorithms: &'a [Algorithm],
    messages: &'a [Vec<u8>],
    digests: Vec<Vec<Digest>>,
}

impl<'a> MessageSet<'a> {
    fn new(algorithms: &'a [Algorithm], messages: &'a [Vec<u8>]) -> MessageSet<'a> {
        let of = |message: &Vec<u8>| algorithms.iter().map(|&a| reference(a, message)).collect();
        MessageSet {
            algorithms,
            messages,
            digests: messages.iter().map(of).collect(),
        }
    }
}

/// Hashes the messages in one batch and compares every digest.
#[track_caller]
fn check(cpu: CpuFeatures, set: &MessageSet<'_>, manner: Manner, seed: u64) {
    let MessageSet {
        algorithms,
        messages,
        digests: expected,
    } = set;
    let mut random = Random(seed | 1);
    let mut batch = Batch::new(algorithms, cpu);
    batch.reserve(manner.slots);
    struct Live {
        message: usize,
        from: usize,
        to: usize,
        end: bool,
    }
    let mut live: Vec<Option<Live>> = (0..manner.slots).map(|_| None).collect();
    let mut next = 0..messages.len();
    let mut consumed = Vec::new();
    let mut seen = 0;
    let piece = |random: &mut Random, message: usize, from: usize| {
        let rest = messages[message].len() - from;
        let len = match manner.piece {
            0 => rest,
            most => random.below(most + 1).min(rest),
        };
        let late = manner.empty_ends && random.below(2) == 0 && len > 0;
        Live {
            message,
            from,
            to: from + len,
            end: len == rest && !late,
        }
    };
    loop {
        for (slot, place) in live.iter_mut().enumerate() {
            if place.is_none()
                && let Some(message) = next.next()
            {
                batch.begin(slot);
                *place = Some(piece(&mut random, message, 0));
            }
        }
        let mut chunks: Vec<Chunk<'_>> = live
            .iter()
            .enumerate()
            .filter_map(|(slot, place)| {
                let l = place.as_ref()?;
                Some(Chunk {
                    message: slot,
                    data: &messages[l.message][l.from..l.to],
                    end: l.end,
                })
            })
            .collect();
        if chunks.is_empty() {
            break;
        }
        if manner.omit > 0 {
            chunks.retain(|_| random.below(manner.omit) > 0);
            for i in (1..chunks.len()).rev() {
                chunks.swap(i, random.below(i + 1));
            }
            if chunks.is_empty() {
                continue;
            }
        }
        batch.advance(&chunks, &mut consumed);
        assert!(!consumed.is_empty(), "no progress");
        for slot in consumed.drain(..) {
            let l = live[slot].take().expect("consumed once");
            if !l.end {
                live[slot] = Some(piece(&mut random, l.message, l.to));
                continue;
            }
            seen += 1;
            let digests: Vec<Digest> = batch.digests(slot).collect();
            assert_eq!(digests.len(), algorithms.len());
            let both = digests.iter().zip(&expected[l.message]);
            for (algorithm, (digest, expected)) in algorithms.iter().zip(both) {
                assert_eq!(
                    digest,
                    expected,
                    "{algorithm}, {} bytes, {}, {manner:?}, seed {seed}",
                    messages[l.message].len(),
                    cpu.describe(),
                );
            }
        }
    }
    assert_eq!(seen, messages.len());
}

/// Returns every length to 300, and those around the blocks and the lengths' place in the padding
/// beyond.
fn boundary_lengths() -> Vec<usize> {
    let mut lengths: Vec<usize> = (0..=300).collect();
    for k in 5..20 {
        lengths.extend([64 * k - 9, 64 * k - 8, 64 * k - 1, 64 * k, 64 * k + 1]);
    }
    for k in 3..20 {
        for d in [0, 1, 8, 9, 16, 17] {
            lengths.extend([128 * k - d, 128 * k + d]);
        }
    }
    lengths
}

/// Checks an algorithm on every set of kernels: lengths, pieces and orders.
fn check_algorithm(algorithm: Algorithm) {
    let mut random = Random(0x5eed_0001 + algorithm as u64);
    let boundary: Vec<Vec<u8>> = boundary_lengths()
        .into_iter()
        .map(|len| random.bytes(len))
        .collect();
    // Long and short ones mixed, longer than any lane's share.
    let mixed: Vec<Vec<u8>> = (0..150)
        .map(|i| {
            let len = match i % 10 {
                0 => random.below(60_000),
                1..4 => random.below(6_000),
                _ => random.below(400),
            };
            random.bytes(len)
        })
        .collect();
    let algorithms = [algorithm];
    let [boundary, mixed] = [&boundary, &mixed].map(|all| MessageSet::new(&algorithms, all));
    for cpu in CpuFeatures::available() {
        // Every number of live messages around the lane counts and the switch to single streams.
        for slots in [1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64] {
            let manner = Manner { slots, ..WHOLE };
            check(cpu, &boundary, manner, slots as u64);
            check(cpu, &mixed, manner, slots as u64);
        }
        for (slots, piece, omit) in [(5, 70, 0), (16, 300, 3), (40, 129, 0), (33, 4096, 5)] {
            let manner = Manner {
                slots,
                piece,
                omit,
                empty_ends: true,
            };
            check(cpu, &boundary, manner, piece as u64);
            check(cpu, &mixed, manner, piece as u64);
        }
        let slices: Vec<&[u8]> = boundary.messages.iter().map(Vec::as_slice).collect();
        let digests = hash_many_with(algorithm, cpu, &slices);
        for (nth, digest) in digests.into_iter().enumerate() {
            assert_eq!(digest, boundary.digests[nth][0], "hash_many");
            assert_eq!(hash_with(algorithm, cpu, slices[nth]), digest, "hash");
        }
        let messages = boundary.messages.iter().chain(&mixed.messages[..20]);
        for (message, expected) in messages.zip(boundary.digests.iter().chain(&mixed.digests)) {
            let mut hasher = Hasher::with_cpu(algorithm, cpu);
            let (a, b) = message.split_at(random.below(message.len() + 1));
            hasher.update(a);
            assert_eq!(hasher.finalize(), reference(algorithm, a));
            hasher.update(b);
            assert_eq!(hasher.finalize(), expected[0]);
            hasher.reset();
            assert_eq!(hasher.finalize(), reference(algorithm, b""));
        }
    }
}

macro_rules! per_algorithm {
    ($($name:ident $algorithm:ident,)*) => {$(
        #[test]
        fn $name() {
            check_algorithm(Algorithm::$algorithm);
        }
    )*

        #[test]
        fn no_algorithm_is_left_out() {
            assert_eq!([$(Algorithm::$algorithm),*], Algorithm::ALL);
        }
    };
}

per_algorithm! {
    md5 Md5,
    sha1 Sha1,
    sha224 Sha224,
    sha256 Sha256,
    sha384 Sha384,
    sha512 Sha512,
    sha512_256 Sha512_256,
    sha3_224 Sha3_224,
    sha3_256 Sha3_256,
    sha3_384 Sha3_384,
    sha3_512 Sha3_512,
    sm3 Sm3,
    blake2b Blake2b,
    blake2b_256 Blake2b256,
    blake3 Blake3,
    xxh32 Xxh32,
    xxh64 Xxh64,
    xxh3 Xxh3,
    xxh128 Xxh128,
    crc32c Crc32c,
    crc Crc,
    crc32b Crc32b,
    bsd Bsd,
    sysv Sysv,
}

#[test]
fn all_algorithms_together() {
    let mut random = Random(77);
    let messages: Vec<Vec<u8>> = (0..200)
        .map(|i| {
            let len = random.below(if i % 9 == 0 { 20_000 } else { 700 });
            random.bytes(len)
        })
        .collect();
    let pair = [Algorithm::Sha256, Algorithm::Sha512];
    let same = [Algorithm::Md5, Algorithm::Md5];
    let all = MessageSet::new(Algorithm::ALL, &messages);
    let [pair, same] = [&pair, &same].map(|algorithms| MessageSet::new(algorithms, &messages));
    for cpu in CpuFeatures::available() {
        for (slots, piece, omit) in [
            (1, 0, 0),
            (8, 0, 0),
            (20, 500, 0),
            (40, 0, 0),
            (70, 1000, 4),
        ] {
            let manner = Manner {
                slots,
                piece,
                omit,
                empty_ends: omit > 0,
            };
            check(cpu, &all, manner, 1);
        }
        check(cpu, &pair, WHOLE, 2);
        check(cpu, &same, WHOLE, 3);
    }
}

/// Each message is reported once for every algorithm, in the algorithms' order, whatever the number
/// of messages beside that of lanes, and a batch serves again after it.
#[test]
fn all_messages_with_all_algorithms() {
    let cpu = CpuFeatures::detect();
    let bytes: Vec<u8> = (0..300).map(|i| (i * 13) as u8).collect();
    for algorithms in [
        &[Algorithm::Xxh3][..],
        &[Algorithm::Sha512],
        &[Algorithm::Md5, Algorithm::Blake3, Algorithm::Sha256],
    ] {
        let mut batch = Batch::new(algorithms, cpu);
        for count in [0, 1, 7, 40, 300] {
            let messages: Vec<&[u8]> = (0..count).map(|i| &bytes[..(i * 7) % 300]).collect();
            let mut digests = vec![Vec::new(); count];
            batch.hash_all(&messages, |message, digest| digests[message].push(digest));
            for (message, digests) in messages.iter().zip(digests) {
                let expected = algorithms.iter().map(|&a| reference(a, message));
                assert_eq!(digests, expected.collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn nothing_to_hash() {
    assert!(hash_many_with(Algorithm::Sha256, CpuFeatures::detect(), &[]).is_empty());
    let mut batch = Batch::new(&[Algorithm::Sha256], CpuFeatures::detect());
    batch.reserve(1);
    let mut consumed = Vec::new();
    batch.advance(&[], &mut consumed);
    assert!(consumed.is_empty());
}

#[test]
fn an_abandoned_message_leaves_no_trace() {
    for cpu in CpuFeatures::available() {
        for algorithm in [Algorithm::Sha256, Algorithm::Blake2b, Algorithm::Xxh128] {
            let mut batch = Batch::new(&[algorithm], cpu);
            batch.reserve(2);
            let mut consumed = Vec::new();
            let long = vec![7; 5000];
            batch.begin(0);
            batch.begin(1);
            // Message 1 ends first, message 0 is then in the middle of its piece, or was consumed.
            let chunks = [
                Chunk {
                    message: 0,
                    data: &long,
                    end: false,
                },
                Chunk {
                    message: 1,
                    data: b"abc",
                    end: true,
                },
            ];
            while !consumed.contains(&1) {
                batch.advance(&chunks[consumed.len()..], &mut consumed);
            }
            consumed.clear();
            batch.begin(0);
            let chunk = Chunk {
                message: 0,
                data: b"",
                end: true,
            };
            batch.advance(&[chunk], &mut consumed);
            assert_eq!(consumed, [0]);
            assert_eq!(batch.digests(0).next(), Some(hash(algorithm, b"")));
            assert_eq!(batch.digests(1).next(), Some(hash(algorithm, b"abc")));
        }
    }
}

#[test]
fn buffers_may_move_between_calls() {
    for cpu in CpuFeatures::available() {
        let mut batch = Batch::new(&[Algorithm::Sha256], cpu);
        batch.reserve(20);
        let messages: Vec<Vec<u8>> = (0..20).map(|i| vec![i as u8; 100 + 640 * i]).collect();
        (0..20).for_each(|i| batch.begin(i));
        let mut done = [false; 20];
        let mut consumed = Vec::new();
        while done.contains(&false) {
            // Each call sees copies, which are then gone.
            let copies = messages.clone();
            let chunks: Vec<Chunk<'_>> = (0..20)
                .filter(|&i| !done[i])
                .map(|i| Chunk {
                    message: i,
                    data: &copies[i],
                    end: true,
                })
                .collect();
            batch.advance(&chunks, &mut consumed);
            for i in consumed.drain(..) {
                done[i] = true;
                let digest = batch.digests(i).next();
                assert_eq!(digest, Some(reference(Algorithm::Sha256, &messages[i])));
            }
        }
    }
}

#[test]
#[should_panic(expected = "fed after its end")]
fn feeding_an_ended_message_panics() {
    let mut batch = Batch::new(&[Algorithm::Sha256], CpuFeatures::detect());
    batch.reserve(1);
    batch.begin(0);
    let chunk = Chunk {
        message: 0,
        data: b"abc",
        end: true,
    };
    let mut consumed = Vec::new();
    batch.advance(&[chunk], &mut consumed);
    batch.advance(&[chunk], &mut consumed);
}

#[test]
#[should_panic(expected = "has not ended")]
fn no_digest_before_the_end() {
    let mut batch = Batch::new(&[Algorithm::Blake3], CpuFeatures::detect());
    batch.reserve(1);
    batch.begin(0);
    let _ = batch.digests(0).next();
}

#[test]
fn the_same_message_twice_among_the_feeds_is_memory_safe() {
    for cpu in CpuFeatures::available() {
        let mut batch = Batch::new(&[Algorithm::Sha256], cpu);
        batch.reserve(2);
        batch.begin(0);
        batch.begin(1);
        let long = vec![1; 1000];
        let chunk = Chunk {
            message: 0,
            data: &long,
            end: true,
        };
        let other = Chunk {
            message: 1,
            data: &long,
            end: true,
        };
        let mut consumed = Vec::new();
        batch.advance(&[chunk, chunk, other], &mut consumed);
        assert!(consumed.contains(&0) || consumed.contains(&1));
    }
}

fn sendable<T: Send>() {}

#[test]
fn batches_and_hashers_move_to_threads() {
    sendable::<Batch>();
    sendable::<Hasher>();
    sendable::<CpuFeatures>();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_batch(
        lengths in proptest::collection::vec(prop_oneof![0usize..300, 0usize..3000, Just(0)], 1..80),
        algorithms in proptest::sample::subsequence(Algorithm::ALL.to_vec(), 1..=3),
        slots in 1usize..70,
        piece in prop_oneof![Just(0usize), 1usize..200, 200usize..3000],
        omit in prop_oneof![Just(0usize), 2usize..6],
        empty_ends in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut random = Random(seed | 1);
        let messages: Vec<Vec<u8>> = lengths.into_iter().map(|len| random.bytes(len)).collect();
        let manner = Manner { slots, piece, omit, empty_ends };
        let set = MessageSet::new(&algorithms, &messages);
        for cpu in CpuFeatures::available() {
            check(cpu, &set, manner, seed);
        }
    }
}
