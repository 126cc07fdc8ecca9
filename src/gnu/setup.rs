//! The few settings that are taken from configuration under another program's name: those that say
//! how to work, never what to do.

use std::ffi::OsString;

use bc_digest::{Algorithm, CpuFeatures};
use bc_fs::Size;
use bc_hash::HashOptions;
use bc_pool::{Cancel, Effort, Start, Threads};
use bc_walk::Workers;
use clap::{Args as _, FromArgMatches};

use crate::parse::args::Common;
use crate::parse::environment::Environment;
use crate::session::budget;

/// Options that a file or the environment may set here.
const TAKEN: &[&str] = &["threads", "io", "memory-budget"];

/// Threads, reader and budget of a run.
pub struct Setup {
    /// Number of threads.
    pub threads: Threads,
    io: bc_read::Choice,
    budget: Option<u64>,
    /// Set by the memory budget alone.
    pub cancel: Cancel,
    /// Instructions that may be used.
    pub cpu: CpuFeatures,
}

impl Setup {
    /// Loads the settings from configuration; an error names the file and line, or the variable.
    pub fn load() -> Result<Setup, String> {
        let mut setup = Setup {
            threads: Threads::Auto,
            io: bc_read::Choice::Auto,
            budget: None,
            cancel: Cancel::new(),
            cpu: allowed(),
        };
        let env = Environment::of_process();
        let (extra, cautions) = crate::parse::config::settings_of(TAKEN, &env)?;
        for text in cautions {
            crate::report::caution("bc", &text);
        }
        if extra.is_empty() {
            return Ok(setup);
        }
        let command = Common::augment_args(clap::Command::new("gnu"));
        let argv = std::iter::once(OsString::from("gnu")).chain(extra);
        let matches = command.try_get_matches_from(argv);
        let common = matches.and_then(|mut matches| Common::from_arg_matches_mut(&mut matches));
        let common = common.map_err(|error| error.to_string())?;
        setup.threads = common.threads;
        setup.io = common.io;
        setup.budget = common.memory_budget.map(|Size(bytes)| bytes);
        if let bc_read::Choice::Uring = setup.io {
            bc_read::uring_available()
                .map_err(|error| format!("--io=uring: io_uring_setup: {}", error.message()))?;
        }
        Ok(setup)
    }

    /// Returns the threads that may look files up.
    pub fn walk_workers(&self) -> Workers {
        self.threads.workers()
    }

    /// Returns the number of threads for so many files, with so many bytes if that is known.
    pub fn workers(&self, files: usize, bytes: Option<u64>) -> usize {
        let most = self.threads.most();
        match (self.threads.start(), bytes) {
            (Start::AsItPays, Some(bytes)) => Effort::of(files as u64, bytes).worth(most),
            _ => most.min(files.max(1)),
        }
    }

    /// Returns the engine's options, with a budget for `state` bytes of the files' state.
    pub fn options(&self, algorithm: Algorithm, state: u64) -> Result<HashOptions, String> {
        let mut options = HashOptions::new(vec![algorithm]);
        options.cpu = self.cpu;
        options.start = self.threads.start();
        let workers = self.threads.workers();
        options.workers = workers.usual();
        options.read.changed = bc_read::Changed::Allow;
        options.read.backend = self.io;
        if let Some(bytes) = self.budget {
            let width = bc_digest::Batch::new(&[algorithm], self.cpu).width();
            if self.threads.start() == Start::AsItPays {
                let affordable = budget::workers(bytes, width, state);
                let affordable = usize::try_from(affordable).unwrap_or(usize::MAX);
                options.workers = options.workers.min(affordable).max(1);
            }
            budget::fit(&mut options.read, bytes, options.workers, width, state)?;
        } else {
            options.read.waiting = workers.most();
        }
        Ok(options)
    }
}

/// Returns the CPU features that the user has not switched off, by the variable that coreutils
/// reads.
fn allowed() -> CpuFeatures {
    let tunables = std::env::var("GLIBC_TUNABLES").unwrap_or_default();
    let off = |feature: &str| {
        tunables
            .split(':')
            .filter_map(|tunable| tunable.strip_prefix("glibc.cpu.hwcaps="))
            .flat_map(|list| list.split(','))
            .any(|word| word.strip_prefix('-') == Some(feature))
    };
    if off("AVX") {
        CpuFeatures::portable()
    } else if off("AVX512F") {
        CpuFeatures::sha_ni().unwrap_or(CpuFeatures::portable())
    } else {
        CpuFeatures::detect()
    }
}
