//! Formats of other tools: manifests written in them, and made of their files.

mod export;
mod import;

pub use export::{Exported, Foreign, export};
pub use import::{ImportOptions, import};
