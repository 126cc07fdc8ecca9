//! Changes that wait for later ones, packed one after the other.
//!
//! It is only known at the end whether a path was removed or moved, and reports are in path order:
//! from the first such path on, changes wait here. A packed change takes about 30 bytes and its
//! values instead of several allocations; beyond [`KEPT`] bytes they go to a file.

use std::ffi::OsString;
use std::io::{self, BufReader, Read};
use std::os::unix::ffi::OsStringExt;

use bc_edit::spill::Spill;
use bc_fs::PathError;
use bc_manifest::integrity::Kind;

use crate::change::{Change, Class, Ctime, Difference, Value};
use crate::fields::Field;

/// Bytes kept in memory.
const KEPT: usize = 1 << 20;

/// Packed changes in the order they came, each known by its offset.
#[derive(Debug)]
pub(crate) struct SpillBuffer {
    spill: Spill,
    packed: Vec<u8>,
}

impl Default for SpillBuffer {
    fn default() -> SpillBuffer {
        SpillBuffer::keeping(KEPT)
    }
}

impl SpillBuffer {
    fn keeping(kept: usize) -> SpillBuffer {
        SpillBuffer {
            spill: Spill::keeping(kept),
            packed: Vec::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.spill.is_empty()
    }

    /// Returns the offset that the next change will have.
    pub(crate) fn len(&self) -> u64 {
        self.spill.len()
    }

    /// Appends a change and returns its offset.
    pub(crate) fn push(&mut self, change: &Change) -> u64 {
        self.packed.clear();
        self.packed.extend_from_slice(&[0; 4]);
        pack(change, &mut self.packed);
        let len = (self.packed.len() - 4) as u32;
        self.packed[..4].copy_from_slice(&len.to_le_bytes());
        self.spill.push(&self.packed)
    }

    /// Returns the change at an offset that `push` returned.
    pub(crate) fn get(&self, offset: u64) -> io::Result<Change> {
        let mut len = [0; 4];
        self.spill.read_exact_at(&mut len, offset)?;
        let mut packed = vec![0; u32::from_le_bytes(len) as usize];
        self.spill.read_exact_at(&mut packed, offset + 4)?;
        Ok(unpack(&mut PackedInput(&packed)))
    }

    /// Returns all changes in order, with their offsets.
    pub(crate) fn iter(&self) -> impl Iterator<Item = io::Result<(u64, Change)>> + '_ {
        let mut input = BufReader::with_capacity(256 << 10, self.spill.reader(0, self.len()));
        let mut offset = 0;
        let mut packed = Vec::new();
        std::iter::from_fn(move || {
            if offset == self.len() {
                return None;
            }
            let at = offset;
            let mut next = || {
                let mut len = [0; 4];
                input.read_exact(&mut len)?;
                packed.resize(u32::from_le_bytes(len) as usize, 0);
                input.read_exact(&mut packed)?;
                offset += 4 + packed.len() as u64;
                Ok((at, unpack(&mut PackedInput(&packed))))
            };
            Some(next())
        })
    }
}

fn kind_number(kind: Kind) -> u64 {
    Kind::ALL
        .iter()
        .position(|&k| k == kind)
        .map_or(0, |at| at as u64)
}

/// Appends a number as LEB128.
fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends 0 for nothing, else 1 and the bytes.
fn put_optional(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    put(out, u64::from(bytes.is_some()));
    if let Some(bytes) = bytes {
        put_bytes(out, bytes);
    }
}

fn put_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::None => put(out, 0),
        Value::Number(number) => {
            put(out, 1);
            put(out, *number);
        }
        Value::Mode(mode) => {
            put(out, 2);
            put(out, u64::from(*mode));
        }
        Value::Time(time) => {
            put(out, 3);
            out.extend_from_slice(&time.to_le_bytes());
        }
        Value::Kind(kind) => {
            put(out, 4);
            put(out, kind_number(*kind));
        }
        Value::Digest(bytes) => {
            put(out, 5);
            put_bytes(out, bytes);
        }
        Value::Bytes(bytes) => {
            put(out, 6);
            put_bytes(out, bytes);
        }
        Value::Xattrs(all) => {
            put(out, 7);
            put(out, all.len() as u64);
            for (name, value) in all {
                put_bytes(out, name);
                put_bytes(out, value);
            }
        }
    }
}

fn pack(change: &Change, out: &mut Vec<u8>) {
    put(out, change.class as u64);
    put_bytes(out, &change.path);
    put_optional(out, change.to.as_deref());
    put(out, kind_number(change.kind));
    put(out, change.differences.len() as u64);
    for difference in &change.differences {
        put(out, difference.field as u64);
        put_value(out, &difference.old);
        put_value(out, &difference.new);
    }
    put_optional(out, change.reason.as_deref().map(str::as_bytes));
    put_failed(out, change.failed.as_ref());
    put(out, change.ctime.map_or(0, |ctime| 1 + ctime as u64));
    put(out, u64::from(change.readable_now));
    put(out, u64::from(change.recorded_now));
    put(out, u64::from(change.is_new));
    put(out, u64::from(change.unproven));
}

fn put_failed(out: &mut Vec<u8>, failed: Option<&PathError>) {
    put_optional(
        out,
        failed.map(|failed| failed.path().as_os_str().as_encoded_bytes()),
    );
    if let Some(failed) = failed {
        put_bytes(out, failed.operation().as_bytes());
        // One more, as 0 says that there is no number; any number, since manifests are read, too.
        put(
            out,
            failed.raw_os_error().map_or(0, |n| u64::from(n as u32) + 1),
        );
        put_bytes(out, failed.reason().as_bytes());
    }
}

/// Reads back the bytes that `pack` wrote; no others ever get here.
struct PackedInput<'a>(&'a [u8]);

impl<'a> PackedInput<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }

    fn number(&mut self) -> u64 {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        number
    }

    fn index(&mut self) -> usize {
        self.number() as usize
    }

    fn bytes(&mut self) -> Vec<u8> {
        let count = self.index();
        self.take(count).to_vec()
    }

    fn optional(&mut self) -> Option<Vec<u8>> {
        (self.number() == 1).then(|| self.bytes())
    }

    fn text(&mut self) -> String {
        String::from_utf8(self.bytes()).unwrap_or_default()
    }

    fn failed(&mut self) -> Option<PathError> {
        let path = OsString::from_vec(self.optional()?);
        let operation = self.text();
        let errno = self.number().checked_sub(1).map(|n| n as u32 as i32);
        let reason = self.text();
        Some(PathError::with_reason(path, operation, errno, reason))
    }

    fn value(&mut self) -> Value {
        match self.number() {
            1 => Value::Number(self.number()),
            2 => Value::Mode(self.number() as u32),
            3 => {
                let mut time = [0; 8];
                time.copy_from_slice(self.take(8));
                Value::Time(i64::from_le_bytes(time))
            }
            4 => Value::Kind(Kind::ALL[self.index()]),
            5 => Value::Digest(self.bytes()),
            6 => Value::Bytes(self.bytes()),
            7 => {
                let count = self.index();
                Value::Xattrs((0..count).map(|_| (self.bytes(), self.bytes())).collect())
            }
            _ => Value::None,
        }
    }
}

fn unpack(input: &mut PackedInput<'_>) -> Change {
    let class = Class::ALL[input.index()];
    let path = input.bytes();
    let to = input.optional();
    let kind = Kind::ALL[input.index()];
    let count = input.index();
    let differences = (0..count)
        .map(|_| {
            let field = Field::ALL[input.index()];
            Difference {
                field,
                old: input.value(),
                new: input.value(),
            }
        })
        .collect();
    let reason = input
        .optional()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let failed = input.failed();
    let ctime = match input.number() {
        0 => None,
        1 => Some(Ctime::Same),
        2 => Some(Ctime::Other),
        3 => Some(Ctime::Unknown),
        _ => Some(Ctime::Mute),
    };
    let readable_now = input.number() == 1;
    let recorded_now = input.number() == 1;
    let is_new = input.number() == 1;
    let unproven = input.number() == 1;
    Change {
        class,
        path,
        to,
        // Found out when nothing waits any more.
        was_at: None,
        entries: None,
        kind,
        differences,
        reason,
        failed,
        ctime,
        readable_now,
        recorded_now,
        is_new,
        unproven,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Value> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..40);
        prop_oneof![
            Just(Value::None),
            any::<u64>().prop_map(Value::Number),
            any::<u32>().prop_map(Value::Mode),
            any::<i64>().prop_map(Value::Time),
            proptest::sample::select(&Kind::ALL[..]).prop_map(Value::Kind),
            bytes().prop_map(Value::Digest),
            bytes().prop_map(Value::Bytes),
            proptest::collection::btree_map(bytes(), bytes(), 0..3).prop_map(Value::Xattrs),
        ]
    }

    fn failed() -> impl Strategy<Value = PathError> {
        let path = proptest::collection::vec(any::<u8>(), 0..40);
        (path, ".{0,9}", any::<Option<i32>>(), ".{0,20}").prop_map(
            |(path, operation, errno, reason)| {
                PathError::with_reason(OsString::from_vec(path), operation, errno, reason)
            },
        )
    }

    fn change() -> impl Strategy<Value = Change> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..300);
        let difference = (proptest::sample::select(&Field::ALL[..]), value(), value())
            .prop_map(|(field, old, new)| Difference { field, old, new });
        (
            proptest::sample::select(&Class::ALL[..]),
            bytes(),
            proptest::option::of(bytes()),
            proptest::sample::select(&Kind::ALL[..]),
            proptest::collection::vec(difference, 0..5),
            proptest::option::of(".{0,20}"),
            proptest::option::of(failed()),
            proptest::sample::select(
                &[
                    None,
                    Some(Ctime::Same),
                    Some(Ctime::Other),
                    Some(Ctime::Unknown),
                    Some(Ctime::Mute),
                ][..],
            ),
            any::<[bool; 4]>(),
        )
            .prop_map(
                |(class, path, to, kind, differences, reason, failed, ctime, marks)| Change {
                    class,
                    path,
                    to,
                    was_at: None,
                    entries: None,
                    kind,
                    differences,
                    reason,
                    failed,
                    ctime,
                    readable_now: marks[0],
                    recorded_now: marks[1],
                    is_new: marks[2],
                    unproven: marks[3],
                },
            )
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(
            changes in proptest::collection::vec(change(), 0..20),
            kept in proptest::sample::select(&[0, 1, 500, usize::MAX][..]),
        ) {
            let mut buffer = SpillBuffer::keeping(kept);
            let offsets: Vec<u64> = changes.iter().map(|change| buffer.push(change)).collect();
            for (&offset, change) in offsets.iter().zip(&changes) {
                prop_assert_eq!(&buffer.get(offset).unwrap(), change);
            }
            let all: Vec<_> = offsets.into_iter().zip(changes).collect();
            prop_assert_eq!(buffer.iter().collect::<Result<Vec<_>, _>>().unwrap(), all);
        }
    }
}
