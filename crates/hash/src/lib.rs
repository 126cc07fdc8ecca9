//! bc-hash.
