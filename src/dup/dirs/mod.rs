//! `bc dup dirs`: which directories are copies of each other.

pub mod args;
mod html;
mod output;
pub mod run;
