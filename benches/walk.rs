//! The walk of a tree in the cache: names alone, and with the metadata of every file.

#![forbid(unsafe_code)]

mod laid;

use bc_pool::Cancel;
use bc_walk::{Metadata, WalkOptions, walk};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

fn bench(c: &mut Criterion) {
    let tree = laid::tree();
    let (roots, cancel) = (laid::roots(&tree), Cancel::new());
    let mut group = c.benchmark_group("walk");
    group.throughput(Throughput::Elements(laid::FILES as u64));
    for (name, metadata) in [("names", Metadata::None), ("statx", Metadata::Basic)] {
        let options = WalkOptions::default().metadata(metadata);
        for threads in laid::threads() {
            group.bench_function(BenchmarkId::new(name, threads), |b| {
                b.iter(|| walk(&roots, &options, threads, &cancel).expect("no panic"));
            });
        }
    }
}

criterion_group! {
    name = benches;
    config = laid::criterion();
    targets = bench
}
criterion_main!(benches);
