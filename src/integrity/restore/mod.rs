//! `bc integrity restore`: files that verify finds damaged or gone are restored from copies.

mod args;
mod output;
mod plan;
mod run;

pub use args::RestoreArgs;
pub use run::restore;
