//! bc-walk.
