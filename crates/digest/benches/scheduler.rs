//! Speed of a batch over files of a source tree's sizes, already in the cache, against the kernel
//! alone on as many bytes: the cost of padding, refilling lanes and the last lanes' drain.

#![forbid(unsafe_code)]

use bc_digest::{Algorithm, Batch, Chunk, CpuFeatures, raw};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use std::time::Duration;

const FILES: usize = 1000;

/// Returns log-normal sizes with a median of 4 KB and a mean of 17 KB, as in the source of Linux
/// 6.12; those over 256 KiB first, largest first, as a program would take them.
fn sizes() -> Vec<usize> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut uniform = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 40) as f64 / (1_u64 << 24) as f64
    };
    let mut normal = move || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
    let mut sizes: Vec<usize> = (0..FILES)
        .map(|_| (4000.0 * (1.7 * normal()).exp()) as usize)
        .collect();
    sizes.sort_by_key(|&size| std::cmp::Reverse(size.saturating_sub(256 << 10)));
    sizes
}

/// Hashes all files, each fed whole, with as many slots as the batch asks for.
fn hash_all(batch: &mut Batch, files: &[&[u8]]) -> u8 {
    let mut taken = 0;
    let mut chunks: Vec<Chunk> = Vec::new();
    let mut consumed = Vec::new();
    let mut folded = 0;
    for slot in 0..batch.width().min(files.len()) {
        batch.begin(slot);
        chunks.push(Chunk {
            message: slot,
            data: files[taken],
            end: true,
        });
        taken += 1;
    }
    while !chunks.is_empty() {
        batch.advance(&chunks, &mut consumed);
        for slot in consumed.drain(..) {
            let digest = batch.digests(slot).next().expect("one algorithm");
            folded ^= digest.as_bytes()[0];
            let chunk = chunks
                .iter()
                .position(|chunk| chunk.message == slot)
                .expect("its chunk");
            if let Some(data) = files.get(taken) {
                batch.begin(slot);
                chunks[chunk].data = data;
                taken += 1;
            } else {
                chunks.swap_remove(chunk);
            }
        }
    }
    folded
}

/// Measures the kernel for many messages, on 16 KiB per lane until about `bytes` are through.
fn bench_kernel(group: &mut BenchmarkGroup<WallTime>, name: &str, buffer: &[u8], bytes: usize) {
    let Some(mut kernel) = raw::kernels()
        .into_iter()
        .find(|kernel| kernel.name == name)
    else {
        return;
    };
    let lanes: Vec<&[u8]> = buffer.chunks_exact(16 << 10).take(kernel.lanes).collect();
    let rounds = (bytes >> 14).div_ceil(kernel.lanes);
    group.throughput(Throughput::Bytes(((rounds * kernel.lanes) << 14) as u64));
    group.bench_function("kernel alone", |b| {
        b.iter(|| (0..rounds).for_each(|_| kernel.compress(&lanes)));
    });
}

fn scheduler(c: &mut Criterion) {
    let sizes = sizes();
    let bytes: usize = sizes.iter().sum();
    // All files share a buffer that fits the L2 cache: memory is not what is measured.
    let longest = sizes.iter().max().expect("files");
    let buffer: Vec<u8> = (0..longest.max(&(512 << 10)) + (1 << 16))
        .map(|i| ((i * 7) >> 3) as u8)
        .collect();
    let files: Vec<&[u8]> = sizes
        .iter()
        .enumerate()
        .map(|(i, &size)| &buffer[(i * 4032) % (1 << 16)..][..size])
        .collect();

    let cpu = CpuFeatures::detect();
    for algorithm in [
        Algorithm::Md5,
        Algorithm::Sha1,
        Algorithm::Sha256,
        Algorithm::Sha512,
        Algorithm::Blake2b,
    ] {
        let mut group = c.benchmark_group(format!("tree/{algorithm}"));
        bench_kernel(&mut group, cpu.serving(algorithm)[0], &buffer, bytes);
        group.throughput(Throughput::Bytes(bytes as u64));
        let mut batch = Batch::new(&[algorithm], cpu);
        batch.reserve(batch.width());
        group.bench_function("batch", |b| b.iter(|| hash_all(&mut batch, &files)));
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(300));
    targets = scheduler
}
criterion_main!(benches);
