//! Origin of a page: the time, the host and the command that made it, and the settings that
//! applied. A page is kept, sent and read elsewhere, where none of this is known.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::escape::{Text, shown};

/// Arguments that are shown; a shell's `*` may have made thousands.
const ARGUMENTS: usize = 40;

/// Returns the paragraph, HTML.
pub fn made() -> String {
    let mut html = format!(
        "<p class=made>Made {}{} by <code>{}</code>",
        Text(&moment(&crate::session::metrics::now())),
        on_host(host().as_deref()),
        Text(&command(std::env::args_os().collect())),
    );
    let settings = settings();
    if !settings.is_empty() {
        html += &format!(" with settings of {}", settings.join(", "));
    }
    html + "</p>\n"
}

/// Returns `2026-11-22 10:20:31 UTC` of an RFC 3339 time in UTC; any other text as it is.
pub fn moment(time: &str) -> String {
    let seconds = time.split(['.', 'Z']).next().unwrap_or_default();
    match (seconds.split_once('T'), time.ends_with('Z')) {
        (Some((day, second)), true) => format!("{day} {second} UTC"),
        _ => time.to_owned(),
    }
}

/// Returns ` on HOST`, HTML.
pub fn on_host(host: Option<&str>) -> String {
    host.map_or_else(String::new, |host| {
        format!(" on {}", Text(&shown(host.as_bytes())))
    })
}

/// Returns a path as it is found from anywhere. It begins with one slash: two mean the same here, and
/// would be lost where the root of all files is the directory above.
pub fn absolute(path: &[u8]) -> Vec<u8> {
    let Ok(whole) = std::path::absolute(Path::new(OsStr::from_bytes(path))) else {
        return path.to_vec();
    };
    let whole = whole.into_os_string().into_encoded_bytes();
    match whole.strip_prefix(b"/") {
        Some(rest) if rest.starts_with(b"/") => rest.to_vec(),
        _ => whole,
    }
}

/// Returns the same of a file that is read, unless it is standard input.
pub fn absolute_input(path: &[u8]) -> Vec<u8> {
    match path {
        b"-" => path.to_vec(),
        path => absolute(path),
    }
}

fn host() -> Option<String> {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy().into_owned();
    (!name.is_empty()).then_some(name)
}

/// Returns the command line as it was typed, the program by its base name.
fn command(argv: Vec<OsString>) -> String {
    let all = argv.len();
    let mut words: Vec<String> = Vec::new();
    for (nth, argument) in argv.into_iter().take(ARGUMENTS).enumerate() {
        let base = Path::new(&argument).file_name();
        let word = match (nth, base) {
            (0, Some(base)) => base,
            _ => &argument,
        };
        let word = shown(word.as_bytes());
        let plain = |c: char| c.is_alphanumeric() || "-_=./,:@%+~".contains(c);
        let quoted = match !word.is_empty() && word.chars().all(plain) {
            true => word.into_owned(),
            false => format!("'{}'", word.replace('\'', "'\\''")),
        };
        words.push(quoted);
    }
    if all > ARGUMENTS {
        words.push(format!("\u{2026} and {} more", all - ARGUMENTS));
    }
    words.join(" ")
}

/// Returns the settings that the command line does not show: variables and the configuration file,
/// HTML.
fn settings() -> Vec<String> {
    let (file, variables) = crate::parse::environment::settings();
    let variables = variables
        .iter()
        .map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat());
    let file = file.map(|path| path.into_os_string().into_encoded_bytes());
    variables
        .chain(file)
        .map(|text| format!("<code>{}</code>", Text(&shown(&text))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_shown_as_typed() {
        let argv = |words: &[&str]| words.iter().map(OsString::from).collect();
        assert_eq!(
            command(argv(&[
                "/usr/bin/bc",
                "dup",
                "--min-size=1M",
                "a b",
                "it's"
            ])),
            "bc dup --min-size=1M 'a b' 'it'\\''s'"
        );
        let many: Vec<OsString> = vec!["x".into(); 50];
        assert!(command(many).ends_with("x \u{2026} and 10 more"));
    }

    #[test]
    fn times_and_paths() {
        assert_eq!(
            moment("2026-11-22T10:20:31.123456789Z"),
            "2026-11-22 10:20:31 UTC"
        );
        assert_eq!(moment("long ago"), "long ago");
        assert_eq!(absolute_input(b"-"), b"-");
        assert!(absolute(b"-").starts_with(b"/") && absolute(b"-").ends_with(b"/-"));
        for path in [&b"//"[..], b"/", b"///"] {
            assert_eq!(absolute(path), b"/");
            assert_eq!(absolute(&[path, b"x"].concat()), b"/x");
        }
        assert_eq!(absolute(b"/a/./b"), b"/a/b");
        assert!(absolute(b"x").starts_with(b"/") && absolute(b"x").ends_with(b"/x"));
    }
}
