//! The engine on real trees: every class, every command, every way a manifest
//! can be bad.

#![forbid(unsafe_code)]
#![allow(missing_docs, unreachable_pub)]

mod bad_manifests;
mod classes;
mod clocks;
mod damage;
mod doubts;
mod foreign;
mod large_manifests;
mod nights;
mod recording;
mod refusals;
mod renames;
mod resuming;
mod scrubbing;
mod support;
mod turns;
mod unreadable;
mod updating;
