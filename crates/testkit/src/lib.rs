//! bc-testkit.
