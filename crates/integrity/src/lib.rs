//! bc-integrity.
