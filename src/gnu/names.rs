//! The names under which the program is another one.

use super::family::Family;

/// Another program.
#[derive(Debug)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// ProgramKind of program.
    pub kind: ProgramKind,
}

/// Program whose options it has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProgramKind {
    /// GNU coreutils', of one digest.
    Sum(Family),
    /// GNU coreutils' `cksum`.
    Cksum,
    /// BLAKE3's.
    B3sum,
    /// xxHash's, with this algorithm (`-H`) if none is named.
    Xxhsum(u8),
}

const fn program(name: &'static str, kind: ProgramKind) -> Program {
    Program { name, kind }
}

/// All of them, as `bc install --gnu` makes links for them.
pub const PROGRAMS: &[Program] = &[
    program("md5sum", ProgramKind::Sum(Family::Md5)),
    program("sha1sum", ProgramKind::Sum(Family::Sha1)),
    program("sha224sum", ProgramKind::Sum(Family::Sha224)),
    program("sha256sum", ProgramKind::Sum(Family::Sha256)),
    program("sha384sum", ProgramKind::Sum(Family::Sha384)),
    program("sha512sum", ProgramKind::Sum(Family::Sha512)),
    program("b2sum", ProgramKind::Sum(Family::Blake2b)),
    program("cksum", ProgramKind::Cksum),
    program("b3sum", ProgramKind::B3sum),
    program("xxhsum", ProgramKind::Xxhsum(1)),
    program("xxh32sum", ProgramKind::Xxhsum(0)),
    program("xxh64sum", ProgramKind::Xxhsum(1)),
    program("xxh128sum", ProgramKind::Xxhsum(2)),
];

/// Returns the program that is called by this name.
pub fn by_program(base: &[u8]) -> Option<&'static Program> {
    PROGRAMS.iter().find(|p| p.name.as_bytes() == base)
}
