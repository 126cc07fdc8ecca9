//! Looks before a change: is it the file that was searched, would anything be lost, can the file
//! system and may this process do it. Nothing here changes a file; [`precheck`] has the order of
//! looks for a pair, as [`plan`](crate::plan) asks for them.

pub(crate) mod abilities;
pub(crate) mod compare;
pub(crate) mod denied;
pub(crate) mod dir;
pub(crate) mod freed;
pub(crate) mod meta;
pub(crate) mod open_file;
pub(crate) mod pace;
pub(crate) mod precheck;
