//! The search: size, fast hash, full hash. (In work by the lead: size groups,
//! passes and results live in this folder; the report and the cache do not.)
