//! bc-read.
#![deny(unsafe_code)]

mod buffer;
mod open;
pub mod order;
mod plan;
mod progress;
mod pump;
mod queue;
mod slot;
mod stream;
mod types;
mod uring;

pub use open::open_checked;
pub use plan::Plan;
pub use pump::pump;
pub use stream::{map_chunks, stream, unchanged};
pub use types::{Backend, Changed, Choice, Consumer, Feed, Opened, Options, Stats, Trust, Want};
pub use uring::uring_available;
