//! `bc dup summary`: what could be reclaimed, and where most of it is.

use std::io::Write;

use crate::exit::Exit;
use crate::output::{Output, Written};
use crate::progress::{size, thousands};
use crate::run::{Outcome, Session};

use super::Found;
use super::args::SummaryArgs;

/// Groups shown.
const LARGEST: usize = 10;

pub fn run(args: &SummaryArgs) -> Outcome<Exit> {
    let mut read = args.walk.inputs();
    read.extend(args.search.cache.as_deref());
    let session = Session::start("dup", "summary", &args.common, &read, None)?;
    let found = super::search(&session, &args.paths, &args.search, &args.walk, None)?;
    if session.cancel.is_cancelled() {
        return Ok(session.end(Exit::Done));
    }
    let mut output = Output::open(None).map_err(|text| session.fatal(&text))?;
    let result = output.write_all(text(&found).as_bytes());
    let exit = match output.finish(result) {
        Ok(Written::Whole | Written::ReaderLeft) => session.report.exit(),
        Err(text) => session.fatal(&text),
    };
    Ok(super::session_end(session, &found, exit))
}

fn text(found: &Found) -> String {
    let (scan, stats) = (&found.scan, &found.scan.stats);
    let mut text = format!(
        "could be freed {:>12}\ngroups         {:>12}\nduplicates     {:>12}\n\
         files          {:>12}  {}\nsame size      {:>12}\nread           {:>12}  {}\nunreadable     {:>12}\n",
        size(scan.wasted()),
        thousands(scan.groups().len() as u64),
        thousands(scan.duplicates()),
        thousands(stats.files),
        size(stats.bytes),
        thousands(stats.size_candidates),
        thousands(stats.fast_hashed + stats.full_hashed),
        size(stats.bytes_read),
        thousands(scan.errors.len() as u64 + found.listing.errors().len() as u64),
    );
    let seconds = stats.times.map(|time| time.as_secs_f64());
    text += &format!(
        "time           {:>12}  size {:.3} s, first read {:.3} s, second read {:.3} s\n",
        format!("{:.3} s", seconds.iter().sum::<f64>()),
        seconds[0],
        seconds[1],
        seconds[2],
    );
    if scan.groups().len() > 0 {
        text += "\nlargest waste\n";
    }
    for group in scan.groups().take(LARGEST) {
        let names = group.files().flat_map(|file| file.names).next();
        let first = names.map_or_else(Vec::new, |name| found.listing.path(*name));
        text += &format!(
            "{:>12}  {} files of {}: {}\n",
            size(group.wasted),
            thousands(group.files().len() as u64),
            size(group.size),
            bc_fs::escape(&first),
        );
    }
    text
}
