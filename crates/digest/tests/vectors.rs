//! Published test vectors, through the public interface: whole, byte by byte, and in batches.
//! Every file of `vectors` (a link to the workspace's `fixtures/vectors`) names its source;
//! `empty.json` holds the empty message, which the published lists mostly lack.
#![forbid(unsafe_code)]

use bc_digest::{Algorithm, Batch, Chunk, CpuFeatures, Digest, Hasher, hash, hash_many};
use serde_json::Value;

struct Case {
    algorithm: Algorithm,
    input: Vec<u8>,
    digest: Digest,
}

fn input(case: &Value) -> Vec<u8> {
    let length = |key: &str| case[key].as_u64().map(|n| n as usize);
    if let Some(text) = case["text"].as_str() {
        return text.repeat(length("repeat").unwrap_or(1)).into_bytes();
    }
    if let Some(hex) = case["hex"].as_str() {
        return Digest::from_hex(hex.as_bytes())
            .expect("up to 64 bytes")
            .as_bytes()
            .to_vec();
    }
    if let Some(n) = length("counting") {
        return (0..n).map(|i| i as u8).collect();
    }
    if let Some(n) = length("cycle251") {
        return (0..n).map(|i| (i % 251) as u8).collect();
    }
    let n = length("xsum").expect("a kind of input");
    let mut byte = 2_654_435_761u64;
    (0..n)
        .map(|_| {
            let next = (byte >> 56) as u8;
            byte = byte.wrapping_mul(11_400_714_785_074_694_797);
            next
        })
        .collect()
}

fn cases() -> Vec<Case> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors");
    let files = std::fs::read_dir(folder).expect("vectors");
    files
        .flat_map(|file| {
            let text = std::fs::read(file.unwrap().path()).unwrap();
            let file: Value = serde_json::from_slice(&text).expect("JSON");
            assert!(file["source"].is_string());
            file["cases"].as_array().expect("cases").clone()
        })
        .map(|case| Case {
            algorithm: case["algorithm"].as_str().unwrap().parse().unwrap(),
            input: input(&case),
            digest: Digest::from_hex(case["digest"].as_str().unwrap().as_bytes()).unwrap(),
        })
        .collect()
}

#[test]
fn every_algorithm_has_vectors() {
    let cases = cases();
    for &algorithm in Algorithm::ALL {
        let of = |c: &&Case| c.algorithm == algorithm;
        assert!(cases.iter().filter(of).count() >= 2, "{algorithm}");
    }
    assert!(cases.len() > 300);
}

#[test]
fn whole_and_in_pieces() {
    for case in cases() {
        let len = case.input.len();
        assert_eq!(
            hash(case.algorithm, &case.input),
            case.digest,
            "{} of {len} bytes",
            case.algorithm
        );
        assert_eq!(case.digest.as_bytes().len(), case.algorithm.digest_len());
        for piece in [1, 63, 4096] {
            if len / piece > 10_000 {
                continue;
            }
            let mut hasher = Hasher::new(case.algorithm);
            for piece in case.input.chunks(piece) {
                hasher.update(piece);
            }
            assert_eq!(
                hasher.finalize(),
                case.digest,
                "{} of {len} bytes by {piece}",
                case.algorithm
            );
        }
    }
}

#[test]
fn in_batches_of_every_instruction_set() {
    let cases = cases();
    for &algorithm in Algorithm::ALL {
        let cases: Vec<&Case> = cases.iter().filter(|c| c.algorithm == algorithm).collect();
        let inputs: Vec<&[u8]> = cases.iter().map(|c| c.input.as_slice()).collect();
        let expected: Vec<Digest> = cases.iter().map(|c| c.digest).collect();
        assert_eq!(hash_many(algorithm, &inputs), expected, "{algorithm}");
        for cpu in CpuFeatures::available() {
            // Repeated, so that all lanes are taken at first.
            let slots = 64.max(cases.len());
            let mut batch = Batch::new(&[algorithm], cpu);
            batch.reserve(slots);
            let mut chunks: Vec<Chunk<'_>> = (0..slots)
                .map(|message| Chunk {
                    message,
                    data: inputs[message % inputs.len()],
                    end: true,
                })
                .collect();
            (0..slots).for_each(|message| batch.begin(message));
            let mut consumed = Vec::new();
            while !chunks.is_empty() {
                batch.advance(&chunks, &mut consumed);
                chunks.retain(|f| !consumed.contains(&f.message));
                for message in consumed.drain(..) {
                    assert_eq!(
                        batch.digests(message).next(),
                        Some(expected[message % expected.len()]),
                        "{algorithm} with {}",
                        cpu.describe()
                    );
                }
            }
        }
    }
}
