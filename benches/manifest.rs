//! Recording a tree as a manifest in memory, and verifying the tree against it, by its metadata and
//! by its content.

#![forbid(unsafe_code)]

mod laid;

use std::io::sink;

use bc_digest::Algorithm;
use bc_integrity::fields::{CompareMode, CompareRules};
use bc_integrity::{CreateOptions, ManifestFile, Reading, VerifyOptions, Work, create, verify};
use bc_pool::Cancel;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn bench(c: &mut Criterion) {
    let tree = laid::tree();
    let (cancel, progress) = (Cancel::new(), bc_hash::HashProgress::default());
    let workers = laid::threads().pop().expect("one at least");
    let reading = |_| Ok(Reading::new(workers));
    let work = Work::new(workers.into(), &reading, &cancel, &progress);
    let what = CreateOptions::new(tree.path().as_os_str(), Algorithm::Xxh128)
        .created_at(1_700_000_000_000_000_000);
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
                let what = VerifyOptions::new(tree.path().as_os_str(), &manifest).rules(
                    CompareRules::new(mode, bc_integrity::fields::Fields::NOT_RESTORED),
                );
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
