//! Time of short messages, one by one and many at once, against the crate that is the best for one
//! message of each function: what the way to a kernel costs.

#![forbid(unsafe_code)]

use bc_digest::{Algorithm, Batch, CpuFeatures, hash};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::Duration;

const MESSAGES: usize = 1000;
/// Bytes of a message: those where XXH3 and SHA-256 take other ways, and one of many blocks.
const LENGTHS: [usize; 5] = [0, 16, 100, 240, 1000];

fn short(c: &mut Criterion) {
    // The function is named where it is called, as programs do that use one.
    macro_rules! compare {
        ($($name:ident: $peer:expr;)*) => {
            $(compare(c, Algorithm::$name, |m| $peer(m) as u8, |m| {
                hash(Algorithm::$name, m).as_bytes()[0]
            });)*
        };
    }
    compare! {
        Xxh3: xxhash_rust::xxh3::xxh3_64;
        Xxh128: xxhash_rust::xxh3::xxh3_128;
        Xxh64: |m| xxhash_rust::xxh64::xxh64(m, 0);
        Crc32c: crc32c::crc32c;
        Blake3: |m| blake3::hash(m).as_bytes()[0];
        Md5: |m| <md5::Md5 as sha3::Digest>::digest(m)[0];
        Sha1: |m| <sha1::Sha1 as sha3::Digest>::digest(m)[0];
        Sha256: |m| <sha2::Sha256 as sha3::Digest>::digest(m)[0];
        Sha512: |m| <sha2::Sha512 as sha3::Digest>::digest(m)[0];
        Blake2b: |m| <blake2::Blake2b512 as sha3::Digest>::digest(m)[0];
        Sha3_256: |m| <sha3::Sha3_256 as sha3::Digest>::digest(m)[0];
    }
}

fn compare(
    c: &mut Criterion,
    algorithm: Algorithm,
    peer: impl Fn(&[u8]) -> u8,
    one: impl Fn(&[u8]) -> u8,
) {
    for len in LENGTHS {
        let bytes: Vec<u8> = (0..MESSAGES * len).map(|i| ((i * 7) >> 3) as u8).collect();
        let messages: Vec<&[u8]> = (0..MESSAGES).map(|i| &bytes[i * len..][..len]).collect();
        let mut group = c.benchmark_group(format!("{algorithm}/{len}"));
        group.throughput(Throughput::Elements(MESSAGES as u64));
        group.bench_function("peer", |b| b.iter(|| all(&messages, &peer)));
        group.bench_function("hash", |b| b.iter(|| all(&messages, &one)));
        let mut batch = Batch::new(&[algorithm], CpuFeatures::detect());
        group.bench_function("many", |b| {
            b.iter(|| {
                let mut all = 0;
                batch.hash_all(black_box(&messages), |_, digest| {
                    all ^= digest.as_bytes()[0]
                });
                all
            })
        });
    }
}

/// Folds a byte of every digest into one.
fn all(messages: &[&[u8]], hash: impl Fn(&[u8]) -> u8) -> u8 {
    messages.iter().fold(0, |all, m| all ^ hash(black_box(m)))
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(30))
        .measurement_time(Duration::from_millis(100));
    targets = short
}
criterion_main!(benches);
