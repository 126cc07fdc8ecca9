//! Files that the user names: what is read, what is written, and what may be neither read nor
//! replaced by the same run.

pub mod input;
pub mod lists;
pub mod output;
pub mod overlap;
