//! Pages of records in a `redb` file.
//!
//! The file is open only while it is read at the start and written at the
//! end, so two searches get into each other's way for milliseconds: readers
//! share it, and a writer waits a little and then goes without.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use bc_digest::{Algorithm, Digest};
use bc_fs::dirfd::own_path;
use bc_walk::Stamp;
use redb::{
    Builder, Database, DatabaseError, ReadOnlyDatabase, ReadTransaction, ReadableDatabase,
    ReadableTable, TableDefinition, TableError, TableHandle,
};
use rustix::fs::OFlags;

use super::place::CacheFailure;
use super::place::{Beginning, CacheContent, CachePlace};
use super::record::{
    CacheLookup, CacheRecord, CacheUpdates, check, key, pack, pack_prefixes, page_of, unpack,
    unpack_prefixes,
};

/// The name carries the layout's version.
const PAGES: TableDefinition<&[u8], &[u8]> = TableDefinition::new("bc dup pages 2");

/// Table that [`PAGES`] replaces: fast hashes of other parts of the files.
const OLD_PAGES: TableDefinition<&[u8], &[u8]> = TableDefinition::new("bc dup pages 1");

/// Digests of the first bytes of large files, by algorithm and inode.
const PREFIXES: TableDefinition<&[u8], &[u8]> = TableDefinition::new("bc dup prefixes 1");

/// Memory that `redb` may keep pages in.
const KEEP: usize = 16 << 20;

/// Attempts to get the lock, and how long to wait between them.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(25);

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Is this thread inside of the store, where damage may show as a panic that
/// is caught? A panic hook has nothing to say of such a one.
pub fn panic_is_expected() -> bool {
    GUARDED.get()
}

/// `redb` checks sums only after a crash; a damaged page can make it panic,
/// which here is one more way of saying so.
fn guarded<T>(f: impl FnOnce() -> Result<T, CacheFailure>) -> Result<T, CacheFailure> {
    let outer = GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(f));
    GUARDED.set(outer);
    result.unwrap_or_else(|_| Err(CacheFailure::Damaged("damaged".to_owned())))
}

fn failed(error: impl Into<redb::Error>) -> CacheFailure {
    error.into().into()
}

/// Is there a cache that can be read, or nothing at all?
pub(crate) fn check_place(place: &CachePlace) -> Result<(), CacheFailure> {
    let CacheContent::Cache(_, file) = place.look(OFlags::RDONLY)? else {
        return Ok(());
    };
    guarded(|| {
        let database = open_to_read(place, file)?;
        let transaction = database.begin_read().map_err(failed)?;
        table(&transaction, PAGES).map(drop)
    })
}

type CacheTable = redb::ReadOnlyTable<&'static [u8], &'static [u8]>;

/// Opens one of our tables; `None` if the store has none of that name yet.
fn table(
    transaction: &ReadTransaction,
    which: TableDefinition<'static, &'static [u8], &'static [u8]>,
) -> Result<Option<CacheTable>, CacheFailure> {
    match transaction.open_table(which) {
        Ok(table) => return Ok(Some(table)),
        Err(TableError::TableDoesNotExist(_)) => {}
        Err(error) => return Err(failed(error)),
    }
    // Another layout of ours, or a beginning; but not the store of another program.
    let ours = [PAGES.name(), OLD_PAGES.name(), PREFIXES.name()];
    let mut tables = transaction.list_tables().map_err(failed)?;
    let foreign = tables.any(|table| !ours.contains(&table.name()));
    let mut others = transaction.list_multimap_tables().map_err(failed)?;
    if foreign || others.next().is_some() {
        return Err(CacheFailure::Foreign("not a cache of bc dup".to_owned()));
    }
    Ok(None)
}

/// Calls `f` with every record of `wanted` (sorted) that the store has, in whatever state.
pub(crate) fn load(
    place: &CachePlace,
    algorithm: Algorithm,
    wanted: &[CacheLookup],
    mut f: impl FnMut(u32, &CacheRecord),
) -> Result<(), CacheFailure> {
    let CacheContent::Cache(_, file) = place.look(OFlags::RDONLY)? else {
        return Ok(());
    };
    let pages = guarded(|| {
        let database = open_to_read(place, file)?;
        let transaction = database.begin_read().map_err(failed)?;
        let mut pages = Vec::new();
        let Some(table) = table(&transaction, PAGES)? else {
            return Ok(pages);
        };
        for group in wanted.chunk_by(|a, b| page_of(a.0) == page_of(b.0)) {
            let page = page_of(group[0].0);
            let key = key(algorithm, page.dev, page.number);
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

fn mismatch() -> CacheFailure {
    CacheFailure::Damaged("checksum does not match".to_owned())
}

/// Calls `f` with the prefix digests of those of `wanted` that the store has,
/// and the state they are of.
pub(crate) fn load_prefixes(
    place: &CachePlace,
    algorithm: Algorithm,
    wanted: &[CacheLookup],
    mut f: impl FnMut(u32, Stamp, Vec<Digest>),
) -> Result<(), CacheFailure> {
    if wanted.is_empty() {
        return Ok(());
    }
    let CacheContent::Cache(_, file) = place.look(OFlags::RDONLY)? else {
        return Ok(());
    };
    let found = guarded(|| {
        let database = open_to_read(place, file)?;
        let transaction = database.begin_read().map_err(failed)?;
        let Some(table) = table(&transaction, PREFIXES)? else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for (id, candidate) in wanted {
            let key = key(algorithm, id.dev, id.ino);
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

fn open_to_read(place: &CachePlace, file: File) -> Result<ReadOnlyDatabase, CacheFailure> {
    // The opened file, whichever file its name leads to by now.
    let own = own_path(&file);
    let mut tries = 0;
    loop {
        match Builder::new().set_cache_size(KEEP).open_read_only(&own) {
            Ok(database) => return Ok(database),
            Err(DatabaseError::DatabaseAlreadyOpen) if tries < TRIES => {
                tries += 1;
                std::thread::sleep(PAUSE);
            }
            // The last writer was cut off: opening to write puts it right.
            Err(DatabaseError::RepairAborted) if tries < TRIES => {
                tries = TRIES;
                if let CacheContent::Cache(_, file) = place.look(OFlags::RDWR)? {
                    drop(open_to_write(&file)?);
                }
            }
            Err(error) => return Err(failed(error)),
        }
    }
}

fn open_to_write(file: &File) -> Result<Database, CacheFailure> {
    let mut tries = 0;
    loop {
        let file = file
            .try_clone()
            .map_err(|e| CacheFailure::Unusable(e.to_string()))?;
        match Builder::new().set_cache_size(KEEP).create_file(file) {
            Ok(database) => return Ok(database),
            Err(DatabaseError::DatabaseAlreadyOpen) if tries < TRIES => {
                tries += 1;
                std::thread::sleep(PAUSE);
            }
            Err(error) => return Err(failed(error)),
        }
    }
}

/// Adds new records to the store, in place of older ones of the same inodes.
pub(crate) fn save(place: &CachePlace, updates: &CacheUpdates<'_>) -> Result<(), CacheFailure> {
    let unusable = |error: std::io::Error| CacheFailure::Unusable(error.to_string());
    for _ in 0..TRIES {
        let new = match place.look(OFlags::RDWR)? {
            CacheContent::Cache(_, file) => {
                write(&file, updates)?;
                return bc_fs::call::flush(&file).map_err(|errno| unusable(errno.into()));
            }
            CacheContent::Nothing(new) => new,
        };
        let (new, file) = Beginning::at(new).map_err(unusable)?;
        write(&file, updates)?;
        match new.commit() {
            Ok(()) => return Ok(()),
            // Another run was quicker: then that one is added to.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(unusable(error)),
        }
    }
    Err(CacheFailure::Busy)
}

fn write(file: &File, updates: &CacheUpdates<'_>) -> Result<(), CacheFailure> {
    let algorithm = updates.algorithm;
    guarded(|| {
        let database = open_to_write(file)?;
        let transaction = database.begin_write().map_err(failed)?;
        {
            transaction.delete_table(OLD_PAGES).map_err(failed)?;
            let mut table = transaction.open_table(PAGES).map_err(failed)?;
            for group in updates
                .records
                .chunk_by(|a, b| page_of(a.id) == page_of(b.id))
            {
                let page = page_of(group[0].id);
                let key = key(algorithm, page.dev, page.number);
                let old: Vec<CacheRecord> = match table.get(key.as_slice()).map_err(failed)? {
                    Some(packed) => {
                        let records = check(algorithm, packed.value()).ok_or_else(mismatch)?;
                        unpack(algorithm, page, records).collect()
                    }
                    None => Vec::new(),
                };
                let merged: BTreeMap<u64, &CacheRecord> = old
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
            for (id, stamp, known) in updates.prefixes {
                let key = key(algorithm, id.dev, id.ino);
                let packed = pack_prefixes(stamp, known);
                table
                    .insert(key.as_slice(), packed.as_slice())
                    .map_err(failed)?;
            }
        }
        transaction.commit().map_err(failed)
    })
}
