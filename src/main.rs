//! bc.
fn main() {}
