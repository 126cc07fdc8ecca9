//! Files that a run would read and replace, or write twice: refused before anything is written.
//! Files that are there are known by identity, whatever names lead to them.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bc_fs::streams::Stream;
use bc_walk::Identity;

use crate::args::is_dash;

/// Why nothing may be written, and where that may be said.
pub struct Refusal {
    pub text: String,
    /// The first of stderr and stdout that does not lead to one of the files: to say it there would
    /// do what is refused.
    pub say_on: Option<Stream>,
}

/// Looks at the files of a command: `read` are the inputs (`-` is stdin), `written` is what the
/// command itself writes, `metrics` the file of `--metrics`.
pub fn refusal(read: &[&OsStr], written: Option<&Path>, metrics: Option<&Path>) -> Option<Refusal> {
    let text = reason(read, written, metrics)?;
    let own = [written, metrics]
        .into_iter()
        .flatten()
        .filter_map(of_output);
    let files: Vec<Identity> = read
        .iter()
        .filter_map(|name| of_input(name))
        .chain(own)
        .collect();
    let is_spared =
        |stream: &Stream| file_behind(*stream).is_some_and(|file| files.contains(&file));
    let streams = [Stream::Error, Stream::Output];
    Some(Refusal {
        text,
        say_on: streams.into_iter().find(|stream| !is_spared(stream)),
    })
}

fn reason(read: &[&OsStr], written: Option<&Path>, metrics: Option<&Path>) -> Option<String> {
    if let (Some(metrics), Some(written)) = (metrics, written)
        && is_same_place(metrics, written)
    {
        return Some(format!(
            "--metrics={}: the command writes that file itself; name another one",
            shown(metrics)
        ));
    }
    let inputs: Vec<Identity> = read.iter().filter_map(|name| of_input(name)).collect();
    let is_read = |path: &Path| {
        let file = Some(path).filter(|path| !is_dash(path.as_os_str()));
        file.and_then(regular)
            .is_some_and(|id| inputs.contains(&id))
    };
    let streams = [(Stream::Output, "stdout"), (Stream::Error, "stderr")];
    let mut streams = streams
        .into_iter()
        .filter_map(|(stream, name)| Some((file_behind(stream)?, name)));
    let what = if let Some(output) = written.filter(|path| is_read(path)) {
        shown(output)
    } else if let Some(metrics) = metrics.filter(|path| is_read(path)) {
        format!("--metrics={}", shown(metrics))
    } else if let Some((_, name)) = streams.clone().find(|(file, _)| inputs.contains(file)) {
        name.to_owned()
    } else {
        let own: Vec<Identity> = [written, metrics]
            .into_iter()
            .flatten()
            .filter_map(of_output)
            .collect();
        let (_, name) = streams.find(|(file, _)| own.contains(file))?;
        return Some(format!(
            "{name}: the command writes that file itself; name another one"
        ));
    };
    Some(format!(
        "{what}: is read by this command, and would be written; name another file"
    ))
}

/// Which regular file a standard stream leads to.
fn file_behind(stream: Stream) -> Option<Identity> {
    let stat = match stream {
        Stream::Input => rustix::fs::fstat(rustix::stdio::stdin()),
        Stream::Output => rustix::fs::fstat(rustix::stdio::stdout()),
        Stream::Error => rustix::fs::fstat(rustix::stdio::stderr()),
    };
    let stat = stat.ok()?;
    let is_file = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file();
    is_file.then_some(Identity {
        dev: stat.st_dev,
        ino: stat.st_ino,
    })
}

/// Which regular file an output replaces or adds to. A descriptor by name is the stream itself.
fn of_output(path: &Path) -> Option<Identity> {
    let is_stream = is_dash(path.as_os_str()) || crate::output::descriptor(path).is_some();
    regular(path).filter(|_| !is_stream)
}

fn shown(path: &Path) -> String {
    bc_fs::escape(path.as_os_str().as_encoded_bytes()).into_owned()
}

/// Which regular file an input is.
fn of_input(name: &OsStr) -> Option<Identity> {
    if !is_dash(name) {
        return regular(Path::new(name));
    }
    file_behind(Stream::Input)
}

/// Which regular file a path leads to: others cannot be replaced.
fn regular(path: &Path) -> Option<Identity> {
    let meta = std::fs::metadata(path).ok().filter(|meta| meta.is_file())?;
    Some(Identity {
        dev: meta.dev(),
        ino: meta.ino(),
    })
}

/// Would one of two outputs take the place of the other? Both may not be there yet.
fn is_same_place(one: &Path, other: &Path) -> bool {
    let same = |one: Option<_>, other| one.is_some() && one == other;
    matches!((place(one), place(other)), (Some(one), Some(other)) if one == other)
        || !is_dash(one.as_os_str())
            && !is_dash(other.as_os_str())
            && same(regular(one), regular(other))
}

/// The path that writing to FILE replaces, links resolved. None for stdout,
/// devices and the like, where both simply follow each other.
fn place(file: &Path) -> Option<PathBuf> {
    if file.as_os_str() == "-" {
        return None;
    }
    match std::fs::metadata(file) {
        Ok(meta) => meta.is_file().then(|| std::fs::canonicalize(file).ok())?,
        Err(_) => {
            let directory = match file.parent()? {
                here if here.as_os_str().is_empty() => Path::new("."),
                directory => directory,
            };
            let directory = std::fs::canonicalize(directory).ok()?;
            Some(directory.join(file.file_name()?))
        }
    }
}
