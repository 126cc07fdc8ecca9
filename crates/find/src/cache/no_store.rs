//! Stands in for the store where the feature `cache` is off.

use bc_digest::{Algorithm, Digest};
use bc_walk::Stamp;

use super::place::{CacheFailure, CachePlace};
use super::record::{CacheLookup, CacheRecord, CacheUpdates};

pub(super) fn check_place(_: &CachePlace) -> Result<(), CacheFailure> {
    Err(CacheFailure::Unusable("built without caches".to_owned()))
}

pub(super) fn load(
    place: &CachePlace,
    _: Algorithm,
    _: &[CacheLookup],
    _: impl FnMut(u32, &CacheRecord),
) -> Result<(), CacheFailure> {
    check_place(place)
}

pub(super) fn load_prefixes(
    place: &CachePlace,
    _: Algorithm,
    _: &[CacheLookup],
    _: impl FnMut(u32, Stamp, Vec<Digest>),
) -> Result<(), CacheFailure> {
    check_place(place)
}

pub(super) fn save(place: &CachePlace, _: &CacheUpdates<'_>) -> Result<(), CacheFailure> {
    check_place(place)
}
