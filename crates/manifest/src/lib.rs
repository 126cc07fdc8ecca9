//! bc-manifest.
