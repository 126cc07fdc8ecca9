//! The times at which the contents of a tree were read last, as its manifest has them.

use bc_manifest::integrity::{ContentFault, Entry, Header, Kind};
use bc_manifest::time::parse_rfc3339;
use bc_walk::job::Error;

use crate::input::{ManifestFile, Trust};

/// Times at which the contents of the recorded files were read last. A file counts once for each
/// name; one whose content was never read has no time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct LastRead {
    /// The earliest of them, in nanoseconds since 1970; `None` if no content was read.
    pub oldest: Option<i64>,
    /// Bytes of the files.
    pub bytes: u64,
    /// Bytes of those that were read since the time that was asked for.
    pub recent_bytes: u64,
}

/// The times to count.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ReadTimes {
    /// The time now, in nanoseconds since 1970: that of contents that this run reads.
    pub now: i64,
    /// Beginning of the time of which [`LastRead::recent_bytes`] are counted.
    pub since: i64,
}

impl ReadTimes {
    /// Counts contents read since `since`; the time now is `now`, both in nanoseconds since 1970.
    pub const fn new(now: i64, since: i64) -> ReadTimes {
        ReadTimes { now, since }
    }
}

impl LastRead {
    /// Reads the times that a manifest has, which its reader has found whole.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of(manifest: &ManifestFile, times: ReadTimes) -> Result<LastRead, Error> {
        let mut old = manifest.again(Trust::Forced)?;
        let made = made(old.header());
        let mut found = LastRead::default();
        while let Some(entry) = old.take()? {
            if entry.kind == Kind::File {
                found.add(recorded(entry, made), entry.size(), times);
            }
        }
        Ok(found)
    }

    /// Adds a file whose content was read at this time, if ever.
    pub(crate) fn add(&mut self, read: Option<i64>, size: Option<u64>, times: ReadTimes) {
        let size = size.unwrap_or(0);
        self.bytes = self.bytes.saturating_add(size);
        let Some(read) = read else { return };
        // A clock that was ahead proves no reading before now.
        self.oldest = Some(self.oldest.map_or(read, |oldest| oldest.min(read)));
        if (times.since..=times.now).contains(&read) {
            self.recent_bytes = self.recent_bytes.saturating_add(size);
        }
    }
}

/// Returns the time at which a manifest was made: that of entries without a time of their own.
pub(crate) fn made(header: &Header) -> Option<i64> {
    header.created_at.as_deref().and_then(parse_rfc3339)
}

/// Returns the time at which the content of a recorded file was read last: found as recorded, or
/// damaged.
pub(crate) fn recorded(entry: &Entry, made: Option<i64>) -> Option<i64> {
    entry.digest?;
    let tried = entry
        .tried_at
        .filter(|_| entry.found == Some(ContentFault::Damaged));
    tried.max(entry.verified_at.or(made))
}

#[cfg(test)]
mod tests {
    use bc_digest::Digest;

    use super::*;

    fn file(verified_at: Option<i64>, tried_at: Option<i64>, found: Option<ContentFault>) -> Entry {
        let mut entry = Entry::new(b"a".to_vec(), Kind::File);
        entry.digest = Some(Digest::new(&[1; 32]));
        (entry.verified_at, entry.tried_at, entry.found) = (verified_at, tried_at, found);
        entry
    }

    #[test]
    fn a_failed_attempt_read_nothing() {
        let (damaged, unreadable) = (ContentFault::Damaged, ContentFault::Unreadable);
        assert_eq!(recorded(&file(None, None, None), Some(5)), Some(5));
        assert_eq!(recorded(&file(Some(7), None, None), Some(5)), Some(7));
        assert_eq!(
            recorded(&file(Some(7), Some(9), Some(damaged)), Some(5)),
            Some(9)
        );
        assert_eq!(
            recorded(&file(Some(7), Some(9), Some(unreadable)), Some(5)),
            Some(7)
        );
        let mut never = file(None, None, None);
        never.digest = None;
        assert_eq!(recorded(&never, Some(5)), None);
    }

    #[test]
    fn the_oldest_and_the_recent_ones() {
        let times = ReadTimes::new(100, 70);
        let mut all = LastRead::default();
        for (read, size) in [
            (Some(60), 1),
            (Some(70), 2),
            (Some(100), 4),
            (Some(101), 8),
            (None, 16),
        ] {
            all.add(read, Some(size), times);
        }
        assert_eq!((all.oldest, all.bytes, all.recent_bytes), (Some(60), 31, 6));
    }
}
