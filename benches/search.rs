//! The search for duplicates over a listing: sizes, first reads, whole files.

#![forbid(unsafe_code)]

mod laid;

use bc_find::scan::{ScanOptions, ScanProgress, scan};
use bc_pool::Cancel;
use bc_walk::{Metadata, walk};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

fn bench(c: &mut Criterion) {
    let tree = laid::tree();
    let cancel = Cancel::new();
    let walking = bc_walk::WalkOptions::default().metadata(Metadata::Basic);
    let listing = walk(&laid::roots(&tree), &walking, 1, &cancel).expect("no panic");
    let mut group = c.benchmark_group("search");
    group.throughput(Throughput::Elements(laid::FILES as u64));
    for threads in laid::threads() {
        let options = ScanOptions::default().workers(threads);
        group.bench_function(BenchmarkId::new("scan", threads), |b| {
            b.iter(|| {
                scan(&listing, &options, None, &cancel, &ScanProgress::default()).expect("no panic")
            });
        });
    }
}

criterion_group! {
    name = benches;
    config = laid::criterion();
    targets = bench
}
criterion_main!(benches);
