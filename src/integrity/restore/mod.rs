//! `bc integrity restore`: what verify finds damaged or gone is healed from copies.

mod args;
mod output;
mod plan;
mod run;

pub use args::RestoreArgs;
pub use run::restore;
