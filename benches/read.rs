//! The pump over a tree in the cache, with a consumer that looks at nothing: opening, reading and
//! closing, through each reader.

#![forbid(unsafe_code)]

mod laid;

use bc_pool::Cancel;
use bc_read::{Choice, Consumer, Feed, Opened, Plan, ReadOptions, pump};
use bc_walk::{EntryId, Error, walk};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// Takes what it is fed.
#[derive(Default)]
struct Sink {
    bytes: u64,
}

impl Consumer for Sink {
    fn width(&self) -> usize {
        16
    }

    fn begin(&mut self, _slot: usize, _opened: &Opened) {}

    fn advance(&mut self, feeds: &[Feed<'_>], consumed: &mut Vec<usize>) {
        for feed in feeds {
            self.bytes += feed.data.len() as u64;
            consumed.push(feed.slot);
        }
    }

    fn finish(&mut self, _slot: usize, result: Result<Opened, Error>, _entry: EntryId) {
        result.expect("every file can be read");
    }
}

fn bench(c: &mut Criterion) {
    let tree = laid::tree();
    let cancel = Cancel::new();
    let walking = bc_walk::WalkOptions::default();
    let listing = walk(&laid::roots(&tree), &walking, 1, &cancel).expect("no panic");
    let mut group = c.benchmark_group("read");
    group.throughput(Throughput::Elements(laid::FILES as u64));
    let mut choices = vec![("auto", Choice::Auto), ("sync", Choice::Sync)];
    if bc_read::uring_available().is_ok() {
        choices.push(("io_uring", Choice::Uring));
    }
    for (name, choice) in choices {
        let options = ReadOptions::default().backend(choice);
        group.bench_function(name, |b| {
            b.iter(|| {
                let mut sink = Sink::default();
                pump(
                    &listing,
                    &Plan::all(&listing, 1),
                    &options,
                    &cancel,
                    &mut sink,
                );
                sink.bytes
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
