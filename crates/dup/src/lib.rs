//! bc-dup.
