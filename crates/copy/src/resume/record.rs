//! The records of a copy's journal and their encoding.

use bc_digest::{Algorithm, Digest, hash};
use bc_edit::{journal, names};
use bc_walk::{FileStat, Identity, Stamp};

use crate::place::Existing;

/// Subject of the job; the first record.
pub(crate) const JOB: u8 = 1;
/// A run begins.
pub(crate) const SESSION: u8 = 2;
/// A root of the destination is this directory.
pub(crate) const ROOT: u8 = 3;
/// A file is complete as soon as its name leads to this inode.
pub(crate) const DONE: u8 = 4;
/// A block of a stage is written, with the hash values of its parts.
pub(crate) const BLOCK: u8 = 5;
/// All records so far are on the disk.
pub(crate) const DURABLE: u8 = 6;
/// A stage that can be resumed from exists.
pub(crate) const STAGE: u8 = 7;

/// Absolute path of the top: for a later run that removes the leftovers when none resumes.
pub(crate) const TOP: u8 = 16;
/// A file is started: its stage may be there.
pub(crate) const BEGUN: u8 = 17;

/// The journal belongs to the repair of a tree, not to a copy.
pub(crate) const RESTORES: u8 = 18;
/// File that the stage of a repair may lead to.
pub(crate) const MADE: u8 = 19;

/// A file has its name, and is in this state.
pub(crate) const PLACED: u8 = 20;

/// The volume that a device of the sources is, as numbered in this run.
pub(crate) const VOLUME: u8 = 21;
/// Metadata that a run gives its copies, see [`given`](crate::resume::stamp::given).
pub(crate) const GIVEN: u8 = 22;
/// A file that was recorded as complete could not be given all that its source has.
pub(crate) const LACKING: u8 = 23;

/// A moved source is to be set aside: it may have this private name, and has to have its own again.
pub(crate) const ASIDE: u8 = 24;
/// From here on sources are removed: every copy, and the manifest, is complete and on the disk.
pub(crate) const REMOVES: u8 = 25;
/// A source is renamed to the destination.
pub(crate) const RENAMED: u8 = 26;
/// The volume that a source to be moved is on.
pub(crate) const SITE: u8 = 27;
/// A source that was to be removed was not, and has its own name: the one with this private name.
pub(crate) const KEPT: u8 = 28;

/// The file that a source of a move was when it kept its name. Its number alone is the next file's
/// once it is gone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct KeptSource {
    pub(crate) ino: u64,
    /// Time at which it was made, in nanoseconds since 1970.
    pub(crate) born_ns: i64,
}

impl KeptSource {
    /// Returns which file it is; `None` where the file system does not keep the time of birth.
    pub(crate) fn of(file: &Existing) -> Option<KeptSource> {
        Some(KeptSource {
            ino: file.stat.id.ino,
            born_ns: file.born_ns?,
        })
    }
}

/// A path of more bytes is not recorded: a record has a greatest length.
pub(crate) const LONGEST_PATH: usize = journal::LONGEST / 2;

/// The first record of a journal.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct JobRecord {
    /// Random number from which the names of its stages are made.
    pub(crate) id: [u8; 16],
    /// Time at which it began, in nanoseconds since 1970.
    pub(crate) began_ns: i64,
    /// True if the sources go into the destination, not in its place.
    pub(crate) into: bool,
    /// The directory that everything is put below.
    pub(crate) top: Identity,
    /// The digest's name, or nothing: that of its first run.
    pub(crate) algorithm: String,
    /// The UUID of the file system that the top is on, or nothing where it is not known: numbers of
    /// devices change from boot to boot.
    pub(crate) file_system: String,
}

/// A file that was copied.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct CopiedRecord {
    /// Path below the top.
    pub(crate) path: Vec<u8>,
    /// Identity of the source.
    pub(crate) source: Identity,
    pub(crate) stamp: Stamp,
    /// Inode number of the copy.
    pub(crate) ino: u64,
    pub(crate) mtime_ns: i64,
    /// True if a later write to the source would have given it another time.
    pub(crate) settled: bool,
    pub(crate) digest: Option<Digest>,
}

struct RecordReader<'a>(&'a [u8]);

impl<'a> RecordReader<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes(8)?.try_into().ok()?))
    }

    fn id(&mut self) -> Option<[u8; 16]> {
        self.bytes(16)?.try_into().ok()
    }
}

fn put(out: &mut Vec<u8>, numbers: &[u64]) {
    for number in numbers {
        out.extend_from_slice(&number.to_le_bytes());
    }
}

pub(crate) fn push_job(piece: &mut Vec<u8>, job: &JobRecord) {
    journal::push(piece, JOB, |out| {
        out.extend_from_slice(&job.id);
        let (top, into) = (job.top, u64::from(job.into));
        put(out, &[job.began_ns as u64, into, top.dev, top.ino]);
        out.push(job.algorithm.len() as u8);
        out.extend_from_slice(job.algorithm.as_bytes());
        out.extend_from_slice(job.file_system.as_bytes());
    });
}

pub(crate) fn job(body: &[u8]) -> Option<JobRecord> {
    let mut read = RecordReader(body);
    let id = read.id()?;
    let (began_ns, into) = (read.number()? as i64, read.number()? != 0);
    let (dev, ino) = (read.number()?, read.number()?);
    let length = usize::from(*read.bytes(1)?.first()?);
    let algorithm = String::from_utf8(read.bytes(length)?.to_vec()).ok()?;
    let file_system = String::from_utf8(read.0.to_vec()).ok()?;
    Some(JobRecord {
        id,
        began_ns,
        into,
        top: Identity { dev, ino },
        algorithm,
        file_system,
    })
}

/// Appends that a file gets a stage now, unless its path is too long to be recorded.
pub(crate) fn push_begun(piece: &mut Vec<u8>, path: &[u8]) {
    if path.len() <= LONGEST_PATH {
        journal::push(piece, BEGUN, |out| out.extend_from_slice(path));
    }
}

/// A run: the boot that it is in, the mount that it writes to, and the digest that it takes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct SessionRecord {
    pub(crate) boot: [u8; 16],
    pub(crate) mount: u64,
    /// The digest's name, or nothing.
    pub(crate) algorithm: String,
}

pub(crate) fn push_session(piece: &mut Vec<u8>, session: &SessionRecord) {
    journal::push(piece, SESSION, |out| {
        out.extend_from_slice(&session.boot);
        put(out, &[session.mount]);
        out.extend_from_slice(session.algorithm.as_bytes());
    });
}

pub(crate) fn session(body: &[u8]) -> Option<SessionRecord> {
    let mut read = RecordReader(body);
    Some(SessionRecord {
        boot: read.id()?,
        mount: read.number()?,
        algorithm: String::from_utf8(read.0.to_vec()).ok()?,
    })
}

pub(crate) fn push_volume(piece: &mut Vec<u8>, dev: u64, name: &str) {
    journal::push(piece, VOLUME, |out| {
        put(out, &[dev]);
        out.extend_from_slice(name.as_bytes());
    });
}

/// A device number and the name of the volume.
pub(crate) fn volume(body: &[u8]) -> Option<(u64, String)> {
    let mut read = RecordReader(body);
    Some((read.number()?, String::from_utf8(read.0.to_vec()).ok()?))
}

pub(crate) fn push_given(piece: &mut Vec<u8>, given: u64) {
    journal::push(piece, GIVEN, |out| put(out, &[given]));
}

pub(crate) fn given(body: &[u8]) -> Option<u64> {
    RecordReader(body).number()
}

pub(crate) fn push_lacking(piece: &mut Vec<u8>, path: &[u8]) {
    journal::push(piece, LACKING, |out| out.extend_from_slice(path));
}

/// The directory that a root is at the destination.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct RootRecord {
    pub(crate) root: u64,
    /// Inode 0 where it is about to be made.
    pub(crate) id: Identity,
    /// True if the copy made it.
    pub(crate) made: bool,
}

pub(crate) fn push_root(piece: &mut Vec<u8>, root: &RootRecord) {
    let RootRecord { root, id, made } = *root;
    let numbers = [root, id.dev, id.ino, u64::from(made)];
    journal::push(piece, ROOT, |out| put(out, &numbers));
}

pub(crate) fn root(body: &[u8]) -> Option<RootRecord> {
    let mut read = RecordReader(body);
    let root = read.number()?;
    let (dev, ino) = (read.number()?, read.number()?);
    Some(RootRecord {
        root,
        id: Identity { dev, ino },
        made: read.number()? != 0,
    })
}

pub(crate) fn push_done(piece: &mut Vec<u8>, done: &CopiedRecord) {
    journal::push(piece, DONE, |out| {
        let (id, stamp) = (done.source, done.stamp);
        let times = [stamp.mtime_ns as u64, stamp.ctime_ns as u64];
        put(out, &[id.dev, id.ino, stamp.size, times[0], times[1]]);
        put(out, &[done.ino, done.mtime_ns as u64]);
        out.push(u8::from(done.settled));
        let digest = done.digest.as_ref().map_or(&[][..], Digest::as_bytes);
        out.push(digest.len() as u8);
        out.extend_from_slice(digest);
        out.extend_from_slice(&done.path);
    });
}

pub(crate) fn done(body: &[u8]) -> Option<CopiedRecord> {
    let mut read = RecordReader(body);
    let source = Identity {
        dev: read.number()?,
        ino: read.number()?,
    };
    let stamp = Stamp {
        size: read.number()?,
        mtime_ns: read.number()? as i64,
        ctime_ns: read.number()? as i64,
    };
    let (ino, mtime_ns) = (read.number()?, read.number()? as i64);
    let settled = *read.bytes(1)?.first()? != 0;
    let length = usize::from(*read.bytes(1)?.first()?);
    let digest = read.bytes(length)?;
    let digest = match length {
        0 => None,
        _ => Some(Digest::from_slice(digest)?),
    };
    Some(CopiedRecord {
        path: read.0.to_vec(),
        source,
        stamp,
        ino,
        mtime_ns,
        settled,
        digest,
    })
}

/// State of a file that has its name. It differs from the state of its stage, whose time of change
/// the renaming has changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Placed {
    pub(crate) ino: u64,
    /// `None` where the file system keeps no birth times.
    pub(crate) born_ns: Option<i64>,
    pub(crate) size: u64,
    pub(crate) mtime_ns: i64,
    pub(crate) ctime_ns: i64,
}

impl Placed {
    pub(crate) fn of(now: &Existing) -> Placed {
        let (id, stamp) = (now.stat.id, now.stat.stamp);
        Placed {
            ino: id.ino,
            born_ns: now.born_ns,
            size: stamp.size,
            mtime_ns: stamp.mtime_ns,
            ctime_ns: stamp.ctime_ns,
        }
    }
}

pub(crate) fn push_placed(piece: &mut Vec<u8>, path: &[u8], state: &Placed) {
    journal::push(piece, PLACED, |out| {
        let (is_kept, born) = (state.born_ns.is_some(), state.born_ns.unwrap_or_default());
        put(
            out,
            &[state.ino, state.size, u64::from(is_kept), born as u64],
        );
        put(out, &[state.mtime_ns as u64, state.ctime_ns as u64]);
        out.extend_from_slice(path);
    });
}

pub(crate) fn placed(body: &[u8]) -> Option<(Vec<u8>, Placed)> {
    let mut read = RecordReader(body);
    let (ino, size) = (read.number()?, read.number()?);
    let (is_kept, born) = (read.number()? != 0, read.number()? as i64);
    let state = Placed {
        ino,
        born_ns: is_kept.then_some(born),
        size,
        mtime_ns: read.number()? as i64,
        ctime_ns: read.number()? as i64,
    };
    Some((read.0.to_vec(), state))
}

/// Appends the name of a stage and the path of the file that it is for.
pub(crate) fn push_stage(piece: &mut Vec<u8>, stage: &str, path: &[u8]) {
    journal::push(piece, STAGE, |out| {
        out.push(stage.len() as u8);
        out.extend_from_slice(stage.as_bytes());
        out.extend_from_slice(path);
    });
}

pub(crate) fn stage(body: &[u8]) -> Option<(String, Vec<u8>)> {
    let mut read = RecordReader(body);
    let length = usize::from(*read.bytes(1)?.first()?);
    let name = String::from_utf8(read.bytes(length)?.to_vec()).ok()?;
    Some((name, read.0.to_vec()))
}

/// A moved source that may have a private name in its directory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct AsideRecord {
    /// Absolute path of the directory.
    pub(crate) dir: Vec<u8>,
    /// The source's own name.
    pub(crate) name: Vec<u8>,
    pub(crate) private: String,
}

/// Returns the private name of the source at an absolute path, for a job with this number.
pub(crate) fn private_name(job: &[u8; 16], path: &[u8]) -> String {
    let key = [&job[..], b"aside", path].concat();
    let digest = hash(Algorithm::Blake3, &key);
    let mut start = [0; 8];
    start.copy_from_slice(&digest.as_bytes()[..8]);
    names::aside(start)
}

/// Appends it, unless its path is too long to be recorded; false then.
pub(crate) fn push_aside(piece: &mut Vec<u8>, aside: &AsideRecord) -> bool {
    let AsideRecord { dir, name, private } = aside;
    if dir.len() + name.len() > LONGEST_PATH || name.len() > usize::from(u16::MAX) {
        return false;
    }
    journal::push(piece, ASIDE, |out| {
        out.push(private.len() as u8);
        out.extend_from_slice(private.as_bytes());
        out.extend_from_slice(&(name.len() as u16).to_le_bytes());
        out.extend_from_slice(name);
        out.extend_from_slice(dir);
    });
    true
}

pub(crate) fn aside(body: &[u8]) -> Option<AsideRecord> {
    let mut read = RecordReader(body);
    let length = usize::from(*read.bytes(1)?.first()?);
    let private = String::from_utf8(read.bytes(length)?.to_vec()).ok()?;
    let length = u16::from_le_bytes(read.bytes(2)?.try_into().ok()?);
    let name = read.bytes(usize::from(length))?.to_vec();
    Some(AsideRecord {
        dir: read.0.to_vec(),
        name,
        private,
    })
}

/// Appends the private name of a source that has kept its own, and which file it is.
pub(crate) fn push_kept(piece: &mut Vec<u8>, private: &str, source: KeptSource) {
    journal::push(piece, KEPT, |out| {
        put(out, &[source.ino, source.born_ns as u64]);
        out.extend_from_slice(private.as_bytes());
    });
}

pub(crate) fn kept(body: &[u8]) -> Option<(Vec<u8>, KeptSource)> {
    let mut read = RecordReader(body);
    let source = KeptSource {
        ino: read.number()?,
        born_ns: read.number()? as i64,
    };
    Some((read.0.to_vec(), source))
}

/// Appends the number of a source that is about to be renamed, and its identity.
pub(crate) fn push_renamed(piece: &mut Vec<u8>, source: u64, id: Identity) {
    journal::push(piece, RENAMED, |out| put(out, &[source, id.dev, id.ino]));
}

pub(crate) fn renamed(body: &[u8]) -> Option<(u64, Identity)> {
    let mut read = RecordReader(body);
    let source = read.number()?;
    let (dev, ino) = (read.number()?, read.number()?);
    Some((source, Identity { dev, ino }))
}

/// Volume that a source is on: where that is away, the source is not gone.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct SiteRecord {
    pub(crate) source: u64,
    pub(crate) dev: u64,
    /// Name of the volume; empty where it has none.
    pub(crate) volume: String,
}

pub(crate) fn push_site(piece: &mut Vec<u8>, site: &SiteRecord) {
    let named = Some(&site.volume).filter(|name| name.len() <= LONGEST_PATH);
    journal::push(piece, SITE, |out| {
        put(out, &[site.source, site.dev]);
        out.extend_from_slice(named.map_or(&[], |name| name.as_bytes()));
    });
}

pub(crate) fn site(body: &[u8]) -> Option<SiteRecord> {
    let mut read = RecordReader(body);
    let (source, dev) = (read.number()?, read.number()?);
    let volume = String::from_utf8(read.0.to_vec()).ok()?;
    Some(SiteRecord {
        source,
        dev,
        volume,
    })
}

/// File that the stage of a repair may lead to: the new file, which has this number alone, or the
/// replaced one, if it is still as it was.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Made {
    pub(crate) ino: u64,
    /// Size and time of modification of the replaced file.
    pub(crate) stamp: Option<(u64, i64)>,
}

pub(crate) fn push_made(piece: &mut Vec<u8>, path: &[u8], made: Made) {
    journal::push(piece, MADE, |out| {
        let (size, mtime_ns) = made.stamp.unwrap_or_default();
        let is_stamped = u64::from(made.stamp.is_some());
        put(out, &[made.ino, is_stamped, size, mtime_ns as u64]);
        out.extend_from_slice(path);
    });
}

pub(crate) fn made(body: &[u8]) -> Option<(Vec<u8>, Made)> {
    let mut read = RecordReader(body);
    let (ino, is_stamped) = (read.number()?, read.number()? != 0);
    let stamp = (read.number()?, read.number()? as i64);
    let stamp = is_stamped.then_some(stamp);
    Some((read.0.to_vec(), Made { ino, stamp }))
}

/// Appends a block of a stage with the values that prove it: the chaining values of its parts, or,
/// for digests other than BLAKE3, the digest of all up to its end.
pub(crate) fn push_block(piece: &mut Vec<u8>, stage: &str, block: u64, parts: &[[u8; 32]]) {
    journal::push(piece, BLOCK, |out| {
        out.push(stage.len() as u8);
        out.extend_from_slice(stage.as_bytes());
        put(out, &[block]);
        parts.iter().for_each(|part| out.extend_from_slice(part));
    });
}

/// A complete block of a stage, as [`push_block`] wrote it.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct BlockRecord {
    /// Name of the stage.
    pub(crate) stage: String,
    pub(crate) number: u64,
    /// Hash values.
    pub(crate) parts: Vec<[u8; 32]>,
}

pub(crate) fn block(body: &[u8]) -> Option<BlockRecord> {
    let mut read = RecordReader(body);
    let length = usize::from(*read.bytes(1)?.first()?);
    let stage = String::from_utf8(read.bytes(length)?.to_vec()).ok()?;
    let number = read.number()?;
    let (parts, rest) = read.0.as_chunks::<32>();
    rest.is_empty().then(|| BlockRecord {
        stage,
        number,
        parts: parts.to_vec(),
    })
}

/// Returns the record of a file that was copied from `source` and is staged as `stage`.
pub(crate) fn done_of(
    path: &[u8],
    source: &FileStat,
    settled: bool,
    stage: &FileStat,
    digest: Option<Digest>,
) -> CopiedRecord {
    CopiedRecord {
        path: path.to_vec(),
        source: source.id,
        stamp: source.stamp,
        ino: stage.id.ino,
        mtime_ns: stage.stamp.mtime_ns,
        settled,
        digest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record that is cut short.
    fn all(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
        (0..bytes.len()).map(|length| &bytes[..length])
    }

    fn body(piece: &[u8]) -> &[u8] {
        &piece[9..]
    }

    #[test]
    fn what_is_written_is_read_again() {
        let identity = Identity {
            dev: 3,
            ino: 1 << 60,
        };
        let job_record = JobRecord {
            id: [9; 16],
            began_ns: -5,
            into: true,
            top: identity,
            algorithm: "blake3".to_owned(),
            file_system: "3ca6-1f".to_owned(),
        };
        let mut piece = Vec::new();
        push_job(&mut piece, &job_record);
        assert_eq!(job(body(&piece)), Some(job_record));
        let record = CopiedRecord {
            path: b"a/\xff".to_vec(),
            source: identity,
            stamp: Stamp {
                size: 7,
                mtime_ns: -1,
                ctime_ns: i64::MAX,
            },
            ino: 4,
            mtime_ns: -1,
            settled: true,
            digest: Some(Digest::new(&[3; 32])),
        };
        for digest in [record.digest, None] {
            let record = CopiedRecord {
                digest,
                ..record.clone()
            };
            piece.clear();
            push_done(&mut piece, &record);
            assert_eq!(done(body(&piece)), Some(record.clone()));
            assert!(all(body(&piece)).all(|cut| done(cut) != Some(record.clone())));
        }
        for born_ns in [Some(-3), None] {
            let state = Placed {
                ino: 4,
                born_ns,
                size: 7,
                mtime_ns: -1,
                ctime_ns: i64::MIN,
            };
            piece.clear();
            push_placed(&mut piece, b"a/\xff", &state);
            let expected = (b"a/\xff".to_vec(), state);
            assert_eq!(placed(body(&piece)), Some(expected.clone()));
            assert!(all(body(&piece)).all(|cut| placed(cut) != Some(expected.clone())));
        }
        piece.clear();
        push_block(&mut piece, ".bc-copy.x.part", 3, &[[1; 32], [2; 32]]);
        let expected = BlockRecord {
            stage: ".bc-copy.x.part".to_owned(),
            number: 3,
            parts: vec![[1; 32], [2; 32]],
        };
        assert_eq!(block(body(&piece)), Some(expected));
        piece.clear();
        push_stage(&mut piece, "stage", b"a/b");
        assert_eq!(
            stage(body(&piece)),
            Some(("stage".to_owned(), b"a/b".to_vec()))
        );
        piece.clear();
        let record = RootRecord {
            root: 2,
            id: identity,
            made: true,
        };
        push_root(&mut piece, &record);
        assert_eq!(root(body(&piece)), Some(record));
        piece.clear();
        let record = SessionRecord {
            boot: [1; 16],
            mount: 8,
            algorithm: "sha256".to_owned(),
        };
        push_session(&mut piece, &record);
        assert_eq!(session(body(&piece)), Some(record));
    }
}
