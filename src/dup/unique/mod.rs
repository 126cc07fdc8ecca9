//! `bc dup unique`: contents that are here and nowhere else; may I wipe this card?

mod args;
mod output;
mod plan;
mod report;
mod run;

pub use args::{UniqueArgs, as_command};
pub use run::unique;
