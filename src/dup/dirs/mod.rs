//! `bc dup dirs`: which directories are copies of each other.

pub mod args;
mod html;
pub mod output;
pub mod prune;
pub mod run;
pub mod search;
