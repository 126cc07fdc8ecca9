//! `bc`: picks the applet, runs it, maps its end to an exit code.

#![deny(unsafe_code)]
#![allow(
    unreachable_pub,
    reason = "nothing of a binary is reachable from outside; pub says: used by other modules"
)]

mod copy;
mod dispatch;
mod dup;
mod files;
mod generate;
mod gnu;
mod hash;
mod html;
mod install;
mod integrity;
mod parse;
mod report;
mod session;

use std::process::ExitCode;

use report::Exit;

fn main() -> ExitCode {
    session::panics::report_as_errors();
    let exit = session::panics::caught(|| dispatch::run(std::env::args_os().collect()));
    let exit =
        session::signals::interrupted().map_or(exit, |number| exit.worst(Exit::Signal(number)));
    if let Exit::Signal(number) = exit {
        // Ends the process by the signal itself, so that shells and `timeout` see its cause;
        // returns only if that fails.
        let _ = signal_hook::low_level::emulate_default_handler(number);
    }
    exit.into()
}
