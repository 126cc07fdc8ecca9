//! Speed of every kernel that this machine can run, on 16 KiB for each lane: the figures to compare
//! the scheduler's with, and the basis of the choices in `lanes/kernels`.

#![forbid(unsafe_code)]

use bc_digest::raw;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::time::Duration;

const LEN: usize = 16 << 10;
/// Keeps the lanes' buffers from starting in the same set of the L1 cache.
const STAGGER: usize = 64;

fn kernels(c: &mut Criterion) {
    for mut kernel in raw::kernels() {
        let buffer: Vec<u8> = (0..kernel.lanes * (LEN + STAGGER))
            .map(|i| ((i * 7) >> 3) as u8)
            .collect();
        let messages: Vec<&[u8]> = buffer
            .chunks(LEN + STAGGER)
            .map(|lane| &lane[..LEN])
            .collect();
        let (function, variant) = kernel.name.split_once('/').expect("function/variant");
        let mut group = c.benchmark_group(function);
        group.throughput(Throughput::Bytes((LEN * kernel.lanes) as u64));
        group.bench_function(variant, |b| b.iter(|| kernel.compress(&messages)));
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(50))
        .measurement_time(Duration::from_millis(150));
    targets = kernels
}
criterion_main!(benches);
