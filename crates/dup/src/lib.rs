//! Duplicate files: finding them and giving the space back.
#![forbid(unsafe_code)]

mod json;
pub mod prune;
pub mod report;
pub mod scan;
mod text;

pub use text::Shown;
