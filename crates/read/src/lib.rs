//! bc-read.
