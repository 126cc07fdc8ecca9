//! Question of `bc dup prune` before it gives files up: the action, how many files it concerns, and
//! the rule.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use bc_fs::dirfd::own_path;
use bc_prune::{Action, Keep, Planned, PruneOptions, Roots};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::session::Session;
use crate::session::progress::{counted, size, thousands};

/// A signal is seen after this long at the latest; nearly always it wakes the wait up itself.
const LOOK: Duration = Duration::from_millis(50);

/// No answer is longer.
const LONGEST: usize = 1024;

/// Asks once. Only `y` and `yes`, in letters of either case, are a yes: another answer, the end of the input and a signal
/// are not.
pub fn asked(
    session: &Session,
    options: &PruneOptions,
    planned: &Planned,
    dirs: u64,
    references: bool,
) -> bool {
    let question = question(options, planned, dirs, references);
    let hint = "--dry-run lists every step and changes nothing.";
    let first = first_names(options, planned, dirs);
    confirmed(session, &format!("{first}{hint}\n{question}"))
}

/// Returns a line for each of the first names that would go, and one for the others.
fn first_names(options: &PruneOptions, planned: &Planned, dirs: u64) -> String {
    let (verb, suffix) = (verb(&options.action), if dirs > 0 { "/" } else { "" });
    let lines = planned.first.iter().map(|path| {
        let path = bc_fs::escape(path);
        format!("  {verb} {path}{suffix}\n")
    });
    let lines: String = lines.collect();
    let all = if dirs > 0 { dirs } else { planned.files };
    match all.saturating_sub(planned.first.len() as u64) {
        0 => lines,
        more => format!("{lines}  and {} more\n", thousands(more)),
    }
}

/// Returns what an action does to a file, in a word.
pub fn verb(action: &Action) -> &'static str {
    match action {
        Action::Delete => "delete",
        Action::Hardlink | Action::Symlink => "link",
        Action::Reflink => "share",
        Action::Move(_) => "move",
        Action::Trash(_) => "trash",
    }
}

/// Asks the question; returns true for a yes.
pub fn confirmed(session: &Session, question: &str) -> bool {
    crate::report::ask(&format!("{question} [y/N] "));
    match answer(session) {
        Some(line) => is_yes(&line),
        None => {
            // The cursor is behind the question.
            crate::report::ask("\n");
            false
        }
    }
}

fn is_yes(line: &[u8]) -> bool {
    let answer = line.trim_ascii();
    answer.eq_ignore_ascii_case(b"y") || answer.eq_ignore_ascii_case(b"yes")
}

/// Reads a line from the terminal; `None` if the input ended or a signal came before. Not by
/// `read_line`, which a signal does not end.
pub fn answer(session: &Session) -> Option<Vec<u8>> {
    let stdin = std::io::stdin();
    let own = unwaiting(stdin.as_fd());
    let input = own.as_ref().map_or(stdin.as_fd(), |own| own.as_fd());
    let wait = Timespec::try_from(LOOK).ok()?;
    let mut line = Vec::new();
    let mut piece = [0; 256];
    while !session.cancel.is_cancelled() && line.len() < LONGEST {
        let mut polled = [PollFd::from_borrowed_fd(input, PollFlags::IN)];
        match poll(&mut polled, Some(&wait)) {
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) => {}
            Err(_) => return None,
        }
        match rustix::io::read(input, &mut piece) {
            Ok(0) => return None,
            Ok(count) => line.extend_from_slice(&piece[..count]),
            Err(Errno::INTR | Errno::AGAIN) => continue,
            Err(_) => return None,
        }
        if let Some(end) = line.iter().position(|byte| *byte == b'\n') {
            line.truncate(end);
            return Some(line);
        }
    }
    None
}

/// Opens the terminal once more, for reads that never wait: Ctrl-C discards the typed line, perhaps
/// just after it was found to be there, and a read would wait for the next line then. The
/// description that the shell shares is left as it is.
fn unwaiting(terminal: BorrowedFd<'_>) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let is_terminal = rustix::termios::isatty(terminal);
    let path = own_path(terminal);
    is_terminal
        .then(|| rustix::fs::open(path, flags, Mode::empty()).ok())
        .flatten()
}

/// Returns `Delete 12 files (3.1 GiB) of 9 groups, keeping the first of each?`
fn question(options: &PruneOptions, planned: &Planned, dirs: u64, references: bool) -> String {
    let done = act(options, planned, dirs);
    let mut rules: Vec<String> = options.rules.keep.iter().map(rule).collect();
    if !rules.is_empty()
        && options
            .rules
            .keep
            .iter()
            .all(|rule| rule.unmatched().is_some())
    {
        rules.push("the first".to_owned());
    }
    let kept_file = match (rules.is_empty(), dirs) {
        // Of a directory there are no hard links.
        (true, 1..) => "the first".to_owned(),
        (true, 0) => "the one with most hard links, then the first".to_owned(),
        (false, _) => rules.join(", then "),
    };
    let first = match (references, dirs) {
        (true, 0) => "reference files, else ",
        (true, _) => "references, else ",
        (false, _) => "",
    };
    let each = if planned.groups == 1 { "" } else { " of each" };
    let further = match options.rules.copies {
        0 | 1 => String::new(),
        copies => format!(" and {} more", counted(copies as u64 - 1, "copy", "copies")),
    };
    let beside = match options.rules.roots {
        Roots::Any | Roots::Chosen => "",
        Roots::Across => ", and files under the same PATH",
    };
    format!("{done}, keeping {first}{kept_file}{each}{further}{beside}?")
}

/// Returns `Delete 12 files (3.1 GiB) of 9 groups`
pub fn act(options: &PruneOptions, planned: &Planned, dirs: u64) -> String {
    let files = counted(planned.files, "file", "files");
    let files = match dirs {
        0 => files,
        1 => format!("1 directory with {files}"),
        _ => format!("{} directories with {files}", thousands(dirs)),
    };
    let groups = counted(planned.groups, "group", "groups");
    let what = format!("{files} ({}) of {groups}", size(planned.bytes));
    match &options.action {
        Action::Delete => format!("Delete {what}"),
        Action::Symlink => format!("Replace {what} by symbolic links"),
        Action::Hardlink => format!("Replace {what} by hard links"),
        Action::Reflink => format!("Share the blocks of {what}"),
        Action::Move(dir) => format!("Move {what} to {}", bc_fs::escape(dir)),
        Action::Trash(_) => format!("Move {what} to the trash"),
    }
}

/// Returns words for the file that a rule keeps.
fn rule(keep: &Keep) -> String {
    let word = match keep {
        Keep::First => "the first",
        Keep::Last => "the last",
        Keep::Newest => "the newest",
        Keep::Oldest => "the oldest",
        Keep::ShortestPath => "the one with the shortest path",
        Keep::LongestPath => "the one with the longest path",
        Keep::MostLinks => "the one with most hard links",
        Keep::Path(pattern) | Keep::Name(pattern) => {
            let nothing = keep.unmatched().map_or("", |_| " (nothing does)");
            let pattern = bc_fs::escape(pattern.text().as_bytes());
            return format!("what matches {pattern}{nothing}");
        }
    };
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bc_prune::KeepRules;

    #[track_caller]
    fn check(action: &str, keep: &[&str], figures: [u64; 3], references: bool, expected: &str) {
        check_dirs(action, keep, (figures, 0), references, expected);
    }

    #[track_caller]
    fn check_dirs(
        action: &str,
        keep: &[&str],
        (figures, dirs): ([u64; 3], u64),
        references: bool,
        expected: &str,
    ) {
        let mut planned = Planned::default();
        [planned.files, planned.bytes, planned.groups] = figures;
        let options =
            PruneOptions::new(Action::parse(action.as_bytes()).unwrap()).rules(KeepRules::new(
                keep.iter().map(|rule| rule.parse().unwrap()).collect(),
                Roots::Any,
            ));
        assert_eq!(question(&options, &planned, dirs, references), expected);
    }

    #[test]
    fn yes_is_a_yes_in_any_case() {
        for yes in ["y", "Y", "yes", "Yes", "YES", " yes \r"] {
            assert!(is_yes(yes.as_bytes()), "{yes}");
        }
        for no in ["", "n", "no", "ye", "yess", "yes no", "j", "1"] {
            assert!(!is_yes(no.as_bytes()), "{no}");
        }
    }

    #[test]
    fn says_what_to_how_much_and_by_which_rule() {
        check(
            "delete",
            &["first"],
            [12, 3 << 30, 9],
            false,
            "Delete 12 files (3.0 GiB) of 9 groups, keeping the first of each?",
        );
        check(
            "symlink",
            &["oldest"],
            [1, 4096, 1],
            false,
            "Replace 1 file (4.0 KiB) of 1 group by symbolic links, keeping the oldest?",
        );
        check(
            "move:a\nb",
            &["path:x*", "newest"],
            [1234, 0, 2],
            true,
            "Move 1,234 files (0 B) of 2 groups to a\\nb, keeping reference files, else what \
             matches path:x* (nothing does), then the newest of each?",
        );
        check(
            "delete",
            &["name:z", "path:x"],
            [2, 1, 2],
            false,
            "Delete 2 files (1 B) of 2 groups, keeping what matches name:z (nothing does), then what \
             matches path:x (nothing does), then the first of each?",
        );
        check(
            "delete",
            &[],
            [2, 1, 1],
            false,
            "Delete 2 files (1 B) of 1 group, keeping the one with most hard links, then the first?",
        );
        check_dirs(
            "delete",
            &[],
            ([2004, 1 << 20, 2], 3),
            true,
            "Delete 3 directories with 2,004 files (1.0 MiB) of 2 groups, keeping references, else the \
             first of each?",
        );
        check(
            "trash",
            &["newest"],
            [2, 1, 2],
            false,
            "Move 2 files (1 B) of 2 groups to the trash, keeping the newest of each?",
        );
        check_dirs(
            "move:old",
            &["newest"],
            ([1, 1, 1], 1),
            false,
            "Move 1 directory with 1 file (1 B) of 1 group to old, keeping the newest?",
        );
    }
}
