//! Files that a run would read and replace, or write twice: refused before anything is written.
//! Existing files are known by identity, under any name.
//!
//! Of the files that a command works on, it replaces only a list of the kind that it writes itself,
//! such as the result of last time.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bc_fs::place::Place;
use bc_fs::streams::Stream;
use bc_pool::Cancel;
use bc_walk::{Identity, OwnFile, Symlinks, Workers, is_among};
use rustix::fs::OFlags;

use crate::files::lists::{ListKind, is_list};
use crate::parse::args::{WalkArgs, is_dash};

/// Files that a command is given.
#[derive(Clone, Default)]
pub struct Given<'a> {
    /// Files that the command reads, such as lists and manifests (`-` is stdin): none of them is
    /// ever written.
    inputs: Vec<&'a OsStr>,
    /// Files and directories that the command works on.
    operands: Vec<&'a OsStr>,
    /// Policy of the walk for symbolic links.
    symlinks: Symlinks,
    /// Kind of lists that it writes, if it does.
    writes: Option<ListKind>,
}

impl<'a> Given<'a> {
    /// Starts with the files that the command reads.
    pub fn inputs(inputs: impl IntoIterator<Item = &'a OsStr>) -> Given<'a> {
        Given {
            inputs: inputs.into_iter().collect(),
            ..Given::default()
        }
    }

    /// Adds more of them.
    pub fn and_inputs(mut self, inputs: impl IntoIterator<Item = &'a OsStr>) -> Given<'a> {
        self.inputs.extend(inputs);
        self
    }

    /// Adds files and directories that it works on.
    pub fn operands<P: AsRef<OsStr> + ?Sized + 'a>(
        mut self,
        operands: impl IntoIterator<Item = &'a P>,
    ) -> Given<'a> {
        let operands = operands.into_iter().map(AsRef::as_ref);
        self.operands.extend(operands.filter(|name| !is_dash(name)));
        self
    }

    /// Takes the policy for symbolic links from the options of the walk.
    pub fn walking(mut self, walk: &WalkArgs) -> Given<'a> {
        if walk.follow_symlinks {
            self.symlinks = Symlinks::Follow;
        }
        self
    }

    /// Sets the kind of lists that it writes.
    pub fn writes(mut self, kind: ListKind) -> Given<'a> {
        self.writes = Some(kind);
        self
    }

    /// Returns true if a walk of the operands, with any filters, finds the file; also if the walk
    /// failed.
    fn lead_to(&self, own: &OwnFile, workers: Workers) -> bool {
        // Signals end the process here: none is handled yet.
        let cancel = Cancel::new();
        let found = is_among(&self.operands, own, self.symlinks, workers, &cancel);
        // A walk that failed is no reason to replace anything.
        found.unwrap_or(true)
    }
}

/// A file that an output would replace, and that is not a list of the kind that the command writes.
#[derive(Clone, Debug)]
pub struct Precious {
    shown: String,
    file: OwnFile,
}

impl Precious {
    fn of(path: &Path, shown: String, kind: ListKind, given: &Given<'_>) -> Option<Precious> {
        of_output(path)?;
        // A file that cannot be looked at cannot be replaced either, and that error says why.
        let place = Place::find(path).ok()?;
        let file = OwnFile::at(path).ok()?;
        let opened = place.open(place.name(), OFlags::RDONLY);
        let is_list = opened.is_ok_and(|opened| is_list(opened.into(), kind, &given.operands));
        (!is_list).then_some(Precious { shown, file })
    }

    /// Returns true if a path that is worked on leads to it.
    pub fn is_at(&self, path: &[u8]) -> bool {
        use std::os::unix::ffi::OsStrExt as _;
        self.file.is_at(OsStr::from_bytes(path))
    }

    /// Returns the message why it is not replaced.
    pub fn refusal(&self) -> String {
        format!(
            "{}: is one of the files that this command is given, and no list that it writes: it would \
             be replaced; name another file",
            self.shown
        )
    }

    /// Returns the refusal where it is not asked which files are worked on.
    pub fn refusal_unasked(&self) -> String {
        format!(
            "{}: is no list that this command writes, and may be a file that it works on: it would be \
             replaced; name another file",
            self.shown
        )
    }
}

/// Reason why nothing may be written, and the stream on which to report it.
pub struct Refusal {
    pub text: String,
    /// The first of stderr and stdout that does not lead to one of the files: a message written to
    /// such a file would change it.
    pub say_on: Option<Stream>,
}

/// Looks at the files of a command before anything is done: `written` is the file that the command
/// itself writes, `metrics` the file of `--metrics`. Returns those that it may replace only if none
/// of the paths that it reads later leads to them.
pub fn check(
    given: &Given<'_>,
    written: Option<&Path>,
    metrics: Option<&Path>,
    workers: impl Fn() -> Workers,
) -> Result<Vec<Precious>, Refusal> {
    let read = &given.inputs[..];
    let refused = |text| Err(refusal(text, read, written, metrics));
    if let Some(text) = reason(read, written, metrics) {
        return refused(text);
    }
    let written = written.zip(given.writes);
    let outputs = written.map(|(path, kind)| (path, shown(path), kind));
    let metrics = metrics.map(|path| {
        let name = format!("--metrics={}", shown(path));
        (path, name, ListKind::Metrics)
    });
    let precious = outputs.into_iter().chain(metrics);
    let precious = precious.filter_map(|(path, name, kind)| Precious::of(path, name, kind, given));
    let precious: Vec<Precious> = precious.collect();
    let is_given = |one: &&Precious| given.lead_to(&one.file, workers());
    match precious.iter().find(is_given) {
        Some(one) => refused(one.refusal()),
        None => Ok(precious),
    }
}

fn refusal(
    text: String,
    read: &[&OsStr],
    written: Option<&Path>,
    metrics: Option<&Path>,
) -> Refusal {
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
    Refusal {
        text,
        say_on: streams.into_iter().find(|stream| !is_spared(stream)),
    }
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

/// Returns the identity of the regular file that a standard stream leads to.
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
pub fn of_output(path: &Path) -> Option<Identity> {
    let is_stream = is_dash(path.as_os_str()) || bc_edit::output::descriptor(path).is_some();
    regular(path).filter(|_| !is_stream)
}

fn shown(path: &Path) -> String {
    bc_fs::escape(path.as_os_str().as_encoded_bytes()).into_owned()
}

/// Returns the identity of the regular file that an input is.
fn of_input(name: &OsStr) -> Option<Identity> {
    if !is_dash(name) {
        return regular(Path::new(name));
    }
    file_behind(Stream::Input)
}

/// Returns the identity of the regular file that a path leads to: other types cannot be replaced.
fn regular(path: &Path) -> Option<Identity> {
    let meta = std::fs::metadata(path).ok().filter(|meta| meta.is_file())?;
    Some(Identity {
        dev: meta.dev(),
        ino: meta.ino(),
    })
}

/// Returns true if one of two outputs would replace the other. Neither need exist yet.
fn is_same_place(one: &Path, other: &Path) -> bool {
    let same = |one: Option<_>, other| one.is_some() && one == other;
    matches!((place(one), place(other)), (Some(one), Some(other)) if one == other)
        || !is_dash(one.as_os_str())
            && !is_dash(other.as_os_str())
            && same(regular(one), regular(other))
}

/// Returns the path that writing to FILE replaces, links resolved. None for stdout, devices and the
/// like, where both simply follow each other.
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
