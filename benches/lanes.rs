//! Digests of many messages in memory, one lane each, and of one message alone: what lanes win.

#![forbid(unsafe_code)]

use bc_digest::{Algorithm, hash_many};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::time::Duration;

const MESSAGE: usize = 16 << 10;
const MESSAGES: usize = 64;

fn bench(c: &mut Criterion) {
    let buffer: Vec<u8> = (0..MESSAGE * MESSAGES)
        .map(|i| ((i * 7) >> 3) as u8)
        .collect();
    let many: Vec<&[u8]> = buffer.chunks(MESSAGE).collect();
    for (name, messages) in [("many", &many[..]), ("one", &many[..1])] {
        let mut group = c.benchmark_group(format!("lanes/{name}"));
        group.throughput(Throughput::Bytes((messages.len() * MESSAGE) as u64));
        for &algorithm in Algorithm::ALL {
            group.bench_function(BenchmarkId::from_parameter(algorithm), |b| {
                b.iter(|| hash_many(algorithm, messages));
            });
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(50))
        .measurement_time(Duration::from_millis(300));
    targets = bench
}
criterion_main!(benches);
