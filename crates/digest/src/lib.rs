//! bc-digest.
