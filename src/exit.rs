//! Exit codes, one enum for all applets (see `src/guide/rules.md`, "Exit codes").

use std::process::ExitCode;

/// Exit status of a run. The order is the order of gravity: of two outcomes the larger one decides
/// ([`Exit::worst`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// All done; nothing differs.
    Done,
    /// Done, but something differs, failed verification or could not be read.
    Differs,
    /// `integrity verify`: damage suspected.
    Damage,
    /// Usage error, unusable input or a fatal failure.
    Fatal,
    /// Ended by this signal, which `main` raises again after clean-up.
    Signal(i32),
}

impl Exit {
    /// Returns the graver of two outcomes.
    pub fn worst(self, other: Exit) -> Exit {
        self.max(other)
    }

    /// Returns the exit code; of a signal the one that shells give it.
    pub fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Differs => 1,
            Exit::Fatal => 2,
            Exit::Damage => 3,
            Exit::Signal(number) => 128 + (number & 0x7f) as u8,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        // That of a signal is reached only where it could not be raised again.
        ExitCode::from(exit.code())
    }
}
