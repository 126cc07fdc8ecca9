//! Pages of records in a `redb` file.
//!
//! The file is open only while it is read at the start and written at the
//! end, so two searches get into each other's way for milliseconds: readers
//! share it, and a writer waits a little and then goes without.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bc_digest::{Algorithm, Digest};
use bc_walk::{Identity, Stamp};
use redb::{
    Builder, Database, DatabaseError, ReadOnlyDatabase, ReadableDatabase, ReadableTable,
    TableDefinition, TableError,
};

use super::record::{Record, check, key, pack, pack_prefixes, page_of, unpack, unpack_prefixes};

/// The name carries the layout's version.
const PAGES: TableDefinition<&[u8], &[u8]> = TableDefinition::new("bc dup pages 2");

/// What it replaces: fast hashes of other parts of the files.
const OLD_PAGES: TableDefinition<&[u8], &[u8]> = TableDefinition::new("bc dup pages 1");

/// Digests of the first bytes of large files, by algorithm and inode.
const PREFIXES: TableDefinition<&[u8], &[u8]> = TableDefinition::new("bc dup prefixes 1");

/// Memory that `redb` may keep pages in.
const KEEP: usize = 16 << 20;

/// Attempts to get the lock, and how long to wait between them.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(25);

/// Why the store is not used.
pub(crate) enum Failure {
    /// Another run holds it.
    Busy,
    /// It cannot be read or written.
    Unusable(String),
    /// It is not what was written.
    Damaged(String),
}

impl From<redb::Error> for Failure {
    fn from(error: redb::Error) -> Failure {
        match error {
            redb::Error::DatabaseAlreadyOpen => Failure::Busy,
            redb::Error::Io(error) if error.kind() != std::io::ErrorKind::InvalidData => {
                Failure::Unusable(error.to_string())
            }
            error => Failure::Damaged(error.to_string()),
        }
    }
}

/// Where a damaged store goes.
pub(crate) fn aside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".damaged");
    PathBuf::from(name)
}

/// `redb` checks sums only after a crash; a damaged page can make it panic,
/// which here is one more way of saying so.
fn guarded<T>(f: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(f))
        .unwrap_or_else(|_| Err(Failure::Damaged("damaged".to_owned())))
}

fn failed(error: impl Into<redb::Error>) -> Failure {
    error.into().into()
}

/// Whether there is a store to read.
fn exists(path: &Path) -> Result<bool, Failure> {
    match std::fs::metadata(path) {
        Ok(meta) => Ok(meta.len() > 0),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Failure::Unusable(error.to_string())),
    }
}

/// A file to look up, and its candidate number.
pub(crate) type Wanted = (Identity, u32);

/// Calls `f` with the record of every one of `wanted` (sorted) that the store
/// has, in whatever state.
pub(crate) fn load(
    path: &Path,
    algorithm: Algorithm,
    wanted: &[Wanted],
    mut f: impl FnMut(u32, &Record),
) -> Result<(), Failure> {
    if !exists(path)? {
        return Ok(());
    }
    let pages = guarded(|| {
        let database = open_to_read(path)?;
        let transaction = database.begin_read().map_err(failed)?;
        let table = match transaction.open_table(PAGES) {
            Ok(table) => table,
            Err(TableError::TableDoesNotExist(_)) => {
                return Err(Failure::Damaged("not a cache of bc dup".to_owned()));
            }
            Err(error) => return Err(failed(error)),
        };
        let mut pages = Vec::new();
        for group in wanted.chunk_by(|a, b| page_of(a.0) == page_of(b.0)) {
            let key = key(algorithm, page_of(group[0].0));
            if let Some(packed) = table.get(key.as_slice()).map_err(failed)? {
                let records = check(algorithm, packed.value()).ok_or_else(mismatch)?;
                pages.push((group, Vec::from(records)));
            }
        }
        Ok(pages)
    })?;
    // Only now that all of it proved sound.
    for (group, records) in pages {
        let page = page_of(group[0].0);
        let mut group = group.iter().peekable();
        for record in unpack(algorithm, page, &records) {
            while group.next_if(|(id, _)| *id < record.id).is_some() {}
            if let Some((id, candidate)) = group.peek()
                && *id == record.id
            {
                f(*candidate, &record);
            }
        }
    }
    Ok(())
}

fn mismatch() -> Failure {
    Failure::Damaged("checksum does not match".to_owned())
}

/// Calls `f` with the prefix digests of those of `wanted` that the store has,
/// and the state they are of.
pub(crate) fn load_prefixes(
    path: &Path,
    algorithm: Algorithm,
    wanted: &[Wanted],
    mut f: impl FnMut(u32, Stamp, Vec<Digest>),
) -> Result<(), Failure> {
    if wanted.is_empty() || !exists(path)? {
        return Ok(());
    }
    let found = guarded(|| {
        let database = open_to_read(path)?;
        let transaction = database.begin_read().map_err(failed)?;
        let table = match transaction.open_table(PREFIXES) {
            Ok(table) => table,
            Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut found = Vec::new();
        for (id, candidate) in wanted {
            let key = key(algorithm, (id.dev, id.ino));
            if let Some(packed) = table.get(key.as_slice()).map_err(failed)? {
                let (stamp, known) =
                    unpack_prefixes(algorithm, packed.value()).ok_or_else(mismatch)?;
                found.push((*candidate, stamp, known));
            }
        }
        Ok(found)
    })?;
    for (candidate, stamp, known) in found {
        f(candidate, stamp, known);
    }
    Ok(())
}

fn open_to_read(path: &Path) -> Result<ReadOnlyDatabase, Failure> {
    let mut tries = 0;
    loop {
        match Builder::new().set_cache_size(KEEP).open_read_only(path) {
            Ok(database) => return Ok(database),
            Err(DatabaseError::DatabaseAlreadyOpen) if tries < TRIES => {
                tries += 1;
                std::thread::sleep(PAUSE);
            }
            // The last writer was cut off: opening to write puts it right.
            Err(DatabaseError::RepairAborted) if tries < TRIES => {
                tries = TRIES;
                drop(open_to_write(path)?);
            }
            Err(error) => return Err(failed(error)),
        }
    }
}

fn open_to_write(path: &Path) -> Result<Database, Failure> {
    let mut tries = 0;
    loop {
        match Builder::new().set_cache_size(KEEP).create(path) {
            Ok(database) => return Ok(database),
            Err(DatabaseError::DatabaseAlreadyOpen) if tries < TRIES => {
                tries += 1;
                std::thread::sleep(PAUSE);
            }
            Err(error) => return Err(failed(error)),
        }
    }
}

/// Adds `news` (sorted by identity) to the store, in place of what it had of
/// the same inodes.
pub(crate) fn save(
    path: &Path,
    algorithm: Algorithm,
    news: &[Record],
    prefixes: &[(Identity, Stamp, &[Digest])],
) -> Result<(), Failure> {
    if let Some(parent) = path.parent() {
        let _ = std::fs::create_dir_all(parent);
    }
    guarded(|| {
        let database = open_to_write(path)?;
        let transaction = database.begin_write().map_err(failed)?;
        {
            transaction.delete_table(OLD_PAGES).map_err(failed)?;
            let mut table = transaction.open_table(PAGES).map_err(failed)?;
            for group in news.chunk_by(|a, b| page_of(a.id) == page_of(b.id)) {
                let page = page_of(group[0].id);
                let key = key(algorithm, page);
                let old: Vec<Record> = match table.get(key.as_slice()).map_err(failed)? {
                    Some(packed) => {
                        let records = check(algorithm, packed.value()).ok_or_else(mismatch)?;
                        unpack(algorithm, page, records).collect()
                    }
                    None => Vec::new(),
                };
                let merged: BTreeMap<u64, &Record> = old
                    .iter()
                    .chain(group)
                    .map(|record| (record.id.ino, record))
                    .collect();
                let packed = pack(algorithm, merged.into_values());
                table
                    .insert(key.as_slice(), packed.as_slice())
                    .map_err(failed)?;
            }
            let mut table = transaction.open_table(PREFIXES).map_err(failed)?;
            for (id, stamp, known) in prefixes {
                let key = key(algorithm, (id.dev, id.ino));
                let packed = pack_prefixes(stamp, known);
                table
                    .insert(key.as_slice(), packed.as_slice())
                    .map_err(failed)?;
            }
        }
        transaction.commit().map_err(failed)
    })
}
