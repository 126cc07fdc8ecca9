//! `bc`: picks the applet, runs it, maps its end to an exit code.

#![deny(unsafe_code)]
#![allow(
    unreachable_pub,
    reason = "nothing of a binary is reachable from outside; pub says: used by other modules"
)]

mod applet;
mod args;
mod budget;
mod commands;
mod config;
mod copy;
mod describe;
mod details;
mod diagnostic;
mod dirs;
mod dispatch;
mod dup;
mod environment;
mod exit;
mod generate;
mod gnu;
mod hash;
mod help;
mod hints;
mod html;
mod input;
mod install;
mod integrity;
mod interruptible;
mod lists;
mod metrics;
mod names;
mod output;
mod overlap;
mod panics;
mod parse;
mod progress;
mod report;
mod resume;
mod run;
mod signals;
mod style;
mod tables;
mod totals;
mod usage;

use std::process::ExitCode;

use exit::Exit;

fn main() -> ExitCode {
    panics::report_as_errors();
    let exit = panics::caught(|| dispatch::run(std::env::args_os().collect()));
    let exit = signals::interrupted().map_or(exit, |number| exit.worst(Exit::Signal(number)));
    if let Exit::Signal(number) = exit {
        // Ends the process by the signal itself, so that shells and `timeout` see its cause;
        // returns only if that fails.
        let _ = signal_hook::low_level::emulate_default_handler(number);
    }
    exit.into()
}
