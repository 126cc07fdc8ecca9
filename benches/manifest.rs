//! Recording a tree as a manifest in memory, and verifying the tree against it, by its metadata and
//! by its content.

#![forbid(unsafe_code)]

mod laid;

use std::io::sink;

use bc_digest::{Algorithm, CpuFeatures};
use bc_integrity::fields::{CompareMode, CompareRules};
use bc_integrity::{CreateOptions, ManifestFile, Reading, VerifyOptions, Work, create, verify};
use bc_pool::Cancel;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn bench(c: &mut Criterion) {
    let tree = laid::tree();
    let (cancel, progress) = (Cancel::new(), bc_hash::HashProgress::default());
    let workers = laid::threads().pop().expect("one at least");
    let reading = |_| {
        Ok(Reading {
            workers,
            start: Default::default(),
            read: bc_read::ReadOptions::default(),
        })
    };
    let work = Work {
        walk_workers: workers.into(),
        reading: &reading,
        cpu: CpuFeatures::detect(),
        cancel: &cancel,
        shows_bytes: false,
        progress: &progress,
        observer: None,
    };
    let what = CreateOptions {
        root: tree.path().as_os_str(),
        tree: Default::default(),
        algorithm: Algorithm::Xxh128,
        created_at: 1_700_000_000_000_000_000,
        origin: Default::default(),
        shard: None,
        leave_out: Vec::new(),
    };
    let mut group = c.benchmark_group("manifest");
    group.throughput(Throughput::Elements(laid::FILES as u64));
    group.bench_function("create", |b| {
        b.iter(|| create(&what, &work, sink(), &mut |_, _| {}).expect("a manifest"));
    });
    let (bytes, _) = create(&what, &work, Vec::new(), &mut |_, _| {}).expect("a manifest");
    for (name, mode) in [
        ("verify, metadata", CompareMode::Meta),
        ("verify", CompareMode::Strict),
    ] {
        group.bench_function(name, |b| {
            b.iter(|| {
                let manifest = ManifestFile::from_reader(b"memory", &bytes[..]).expect("readable");
                let what = VerifyOptions {
                    root: tree.path().as_os_str(),
                    manifest: &manifest,
                    rules: CompareRules {
                        mode,
                        ..CompareRules::default()
                    },
                    detail: Default::default(),
                    trust: Default::default(),
                    root_check: Default::default(),
                    leave_out: &[],
                };
                verify(&what, &work, &mut |_| Ok(()))
                    .expect("verified")
                    .summary
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
