//! Checksums of `cksum` and `sum` that are older than digests: two CRCs and two plain sums. They
//! detect accidents, not attacks.

use crate::crc::{BitOrder, Crc};
use crate::{Algorithm, CpuFeatures, Digest};

/// A message on its way through one of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunningSum {
    state: SumState,
    cpu: CpuFeatures,
}

#[derive(Clone, Copy, Debug)]
enum SumState {
    /// POSIX: the message's length is appended to it, as few bytes as it takes, the lowest first.
    Crc {
        crc: Crc,
        length: u64,
    },
    Crc32b(Crc),
    Bsd(u16),
    /// Modulo 2³² until the end.
    Sysv(u32),
}

impl SumState {
    fn new(algorithm: Algorithm, cpu: CpuFeatures) -> Option<SumState> {
        Some(match algorithm {
            Algorithm::Crc => SumState::Crc {
                crc: Crc::new(BitOrder::Normal, 0, cpu),
                length: 0,
            },
            Algorithm::Crc32b => SumState::Crc32b(Crc::new(BitOrder::Reflected, !0, cpu)),
            Algorithm::Bsd => SumState::Bsd(0),
            Algorithm::Sysv => SumState::Sysv(0),
            _ => return None,
        })
    }
}

impl RunningSum {
    /// Returns a new sum; `None` if the algorithm is none of these.
    pub(crate) fn new(algorithm: Algorithm, cpu: CpuFeatures) -> Option<RunningSum> {
        let state = SumState::new(algorithm, cpu)?;
        Some(RunningSum { state, cpu })
    }

    pub(crate) fn update(&mut self, data: &[u8]) {
        match &mut self.state {
            SumState::Crc { crc, length } => {
                crc.update(data);
                *length += data.len() as u64;
            }
            SumState::Crc32b(crc) => crc.update(data),
            SumState::Bsd(sum) => *sum = bsd(*sum, data),
            SumState::Sysv(sum) => *sum = sum.wrapping_add(plain(data)),
        }
    }

    pub(crate) fn finalize(&self) -> Digest {
        match self.state {
            SumState::Crc { mut crc, length } => {
                let bytes = length.to_le_bytes();
                let count = bytes.len() - length.leading_zeros() as usize / 8;
                crc.update(&bytes[..count]);
                Digest::new(&(!crc.register()).to_be_bytes())
            }
            SumState::Crc32b(crc) => Digest::new(&(!crc.register()).to_be_bytes()),
            SumState::Bsd(sum) => Digest::new(&sum.to_be_bytes()),
            SumState::Sysv(sum) => {
                // The carries are added in again, and what that carries.
                let once = (sum & 0xffff) + (sum >> 16);
                let twice = (once & 0xffff) + (once >> 16);
                Digest::new(&(twice as u16).to_be_bytes())
            }
        }
    }

    pub(crate) fn reset(&mut self) {
        let algorithm = match self.state {
            SumState::Crc { .. } => Algorithm::Crc,
            SumState::Crc32b(_) => Algorithm::Crc32b,
            SumState::Bsd(_) => Algorithm::Bsd,
            SumState::Sysv(_) => Algorithm::Sysv,
        };
        self.state = SumState::new(algorithm, self.cpu).unwrap_or(self.state);
    }
}

/// Returns the BSD sum: each byte is added after the sum was rotated right by one bit.
fn bsd(sum: u16, data: &[u8]) -> u16 {
    data.iter().fold(sum, |sum, byte| {
        sum.rotate_right(1).wrapping_add(u16::from(*byte))
    })
}

/// Sums the bytes. Without a carry to look at, the compiler makes vector code of it.
fn plain(data: &[u8]) -> u32 {
    data.iter()
        .fold(0, |sum: u32, byte| sum.wrapping_add(u32::from(*byte)))
}

/// Returns the sums of `cksum` and `sum` as their manuals define them, a bit or a byte at a time.
#[cfg(test)]
pub(crate) fn by_definition(algorithm: Algorithm, data: &[u8]) -> Vec<u8> {
    let cksum = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ (u32::from(*byte) << 24), |c: u32, _| {
            (c << 1) ^ (0x04c1_1db7 & (c >> 31).wrapping_neg())
        })
    };
    match algorithm {
        Algorithm::Crc => {
            let mut length = data.len();
            let mut bytes = Vec::new();
            while length > 0 {
                bytes.push(length as u8);
                length >>= 8;
            }
            let crc = data.iter().chain(&bytes).fold(0, cksum);
            (!crc).to_be_bytes().to_vec()
        }
        Algorithm::Crc32b => {
            let crc = data.iter().fold(!0, |crc, &byte| {
                (0..8).fold(crc ^ u32::from(byte), |c: u32, _| {
                    (c >> 1) ^ (0xedb8_8320 & (c & 1).wrapping_neg())
                })
            });
            (!crc).to_be_bytes().to_vec()
        }
        Algorithm::Bsd => {
            let sum = data.iter().fold(0_u32, |sum, &byte| {
                ((sum >> 1) + ((sum & 1) << 15) + u32::from(byte)) & 0xffff
            });
            (sum as u16).to_be_bytes().to_vec()
        }
        _ => {
            let sum = data.iter().map(|&byte| u64::from(byte)).sum::<u64>() & 0xffff_ffff;
            let once = (sum & 0xffff) + (sum >> 16);
            (((once & 0xffff) + (once >> 16)) as u16)
                .to_be_bytes()
                .to_vec()
        }
    }
}
