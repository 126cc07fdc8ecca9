//! bc-pool.
