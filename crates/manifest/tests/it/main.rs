//! Tests of the formats against their promises: round trips, odd and damaged samples,
//! other tools, the published schemas.

#![forbid(unsafe_code)]

mod gnu_differential;
mod hash_formats;
mod integrity;
mod integrity_damage;
mod samples;
mod schema;
