//! The engine behind `bc integrity`.
#![forbid(unsafe_code)]

pub mod atomic;
pub mod change;
pub mod compare;
mod error;
pub mod fields;
mod moves;
pub mod report;
mod spool;
mod summary;
pub mod view;

pub use error::{Error, ErrorKind};
pub use summary::{Outcome, Summary};
