//! Duplicate files: finding them and giving the space back.
#![forbid(unsafe_code)]

mod json;
pub mod prune;
mod text;

pub use text::Shown;
