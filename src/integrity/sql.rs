//! `bc integrity sql`: questions about many manifests, for engines that answer them.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::Path;

use bc_fleet::sql::{Engine, Param, Request, exact, sql};

use super::args::SqlArgs;
use super::job::{opened, start};
use crate::files::overlap::Given;
use crate::report::Exit;
use crate::session::Outcome;

pub fn run(args: &SqlArgs) -> Outcome<Exit> {
    let session = start("sql", &args.common, &Given::default(), None)?;
    let mut params = Vec::with_capacity(args.params.len());
    for param in &args.params {
        let text = "--param takes KEY=VALUE";
        let (key, value) = key_and_value(param).ok_or_else(|| session.fatal(text))?;
        params.push((key, pattern_if(key == "backups", args.engine, value)));
    }
    let params: Vec<Param<'_>> = params
        .iter()
        .map(|(key, value)| Param { key, value })
        .collect();
    let manifests = args.manifests.iter().map(|name| name.as_encoded_bytes());
    let manifests: Vec<Cow<'_, [u8]>> = manifests
        .map(|name| pattern_if(true, args.engine, name))
        .collect();
    let names: Vec<&[u8]> = manifests.iter().map(|name| &**name).collect();
    let request = Request::new(args.engine, &names)
        .query(args.query)
        .params(&params);
    let text = sql(&request).map_err(|error| {
        let what = match args.params.is_empty() {
            true => "sql",
            false => "--param",
        };
        session.fatal(format!("{what}: {error}"))
    })?;
    let (engine, names) = (args.engine.name(), args.manifests.len());
    let text_of = match args.query {
        Some(query) => query.name(),
        None => "views",
    };
    session.report.note(format_args!(
        "sql: {text_of} for {engine}, {names} names of manifests"
    ));
    let mut output = opened(&session, None)?;
    let written = output.write_all(text.as_bytes());
    let exit = session.finished(output, written);
    Ok(session.end(exit))
}

fn key_and_value(param: &OsString) -> Option<(&str, &[u8])> {
    let bytes = param.as_encoded_bytes();
    let at = bytes.iter().position(|byte| *byte == b'=')?;
    let key = std::str::from_utf8(&bytes[..at]).ok()?;
    Some((key, &bytes[at + 1..]))
}

/// Escapes the name of an existing file, which is meant literally, even if it contains letters of
/// patterns.
fn pattern_if(is_name: bool, engine: Engine, name: &[u8]) -> Cow<'_, [u8]> {
    use std::os::unix::ffi::OsStrExt as _;
    let is_there = is_name
        && Path::new(OsStr::from_bytes(name))
            .symlink_metadata()
            .is_ok();
    match is_there {
        true => Cow::Owned(exact(engine, name)),
        false => Cow::Borrowed(name),
    }
}
