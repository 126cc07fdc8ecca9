//! `bc dup prune --interactive`: one group at a time is shown and asked about; at the end the plan is
//! shown, and confirmed once.

use bc_find::groups::FileGroup;
use bc_manifest::time::format_rfc3339;
use bc_prune::{Inode, Keep, KeepRules, Planned, PruneOptions, Roots, at_stake};

use super::output;
use super::question::{self, act, answer, verb};
use crate::session::Session;
use crate::session::progress::{size, thousands};

/// A group to choose from.
pub struct Offer<'a> {
    /// Heading: size of the files and their number.
    pub heading: String,
    /// The names; `None`: none of them can go.
    pub group: Option<&'a FileGroup>,
    /// Text put after each path.
    pub suffix: &'static str,
}

/// Choice from a group, by index into it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Pick {
    /// Names that stay, with whose file the others are compared.
    pub kept_file: Vec<usize>,
    /// Names that go; none, if all are to be kept.
    pub targets: Vec<usize>,
}

/// Returns the rules of a run whose groups were chosen from: the kept file comes first.
pub fn rules() -> KeepRules {
    KeepRules::new(vec![Keep::First], Roots::Chosen)
}

/// Asks about each group. `None` if nothing was chosen, or the input ended or a signal came before
/// that.
pub fn choose(
    session: &Session,
    offers: &[Offer<'_>],
    options: &PruneOptions,
) -> Option<Vec<Option<Pick>>> {
    let mut picks: Vec<Option<Pick>> = vec![None; offers.len()];
    let rules = &options.rules;
    for group in offers.iter().filter_map(|offer| offer.group) {
        rules.order(group);
    }
    for text in output::unmatched_rules(rules) {
        crate::report::ask(&format!("{text}\n"));
    }
    let mut at = 0;
    // Where questions were answered, for those that are taken back.
    let mut answered = Vec::new();
    while let Some(offer) = offers.get(at) {
        let Some(group) = offer.group else {
            at += 1;
            continue;
        };
        let inodes = options.rules.order(group);
        show(offer, group, &inodes, at, offers.len());
        match ask(session, group, &inodes, options)? {
            Reply::Keep(kept) => picks[at] = pick(group, &inodes, &kept, options),
            Reply::Skip => picks[at] = None,
            Reply::Undo => {
                if let Some(last) = answered.pop() {
                    at = last;
                    picks[at] = None;
                } else {
                    crate::report::ask("nothing was answered yet\n");
                }
                continue;
            }
            Reply::Quit => break,
        }
        answered.push(at);
        at += 1;
    }
    plan(offers, &picks, verb(&options.action));
    let goes = |pick: &Pick| !pick.targets.is_empty();
    picks.iter().flatten().any(goes).then_some(picks)
}

/// An answer that was understood.
enum Reply {
    /// Physical files that stay, by number.
    Keep(Vec<usize>),
    Skip,
    Undo,
    Quit,
}

/// Asks until the answer can be read.
fn ask(
    session: &Session,
    group: &FileGroup,
    inodes: &[Inode],
    options: &PruneOptions,
) -> Option<Reply> {
    loop {
        crate::report::ask("keep [1 2 …, all, none, a rule, skip, undo, quit, ?] ");
        let Some(line) = answer(session) else {
            // The cursor is behind the question.
            crate::report::ask("\n");
            return None;
        };
        let references: Vec<usize> = (0..inodes.len())
            .filter(|at| inodes[*at].protected)
            .collect();
        let kept = match read_word(&line, inodes.len()) {
            Ok(Word::Numbers(numbers)) => numbers,
            Ok(Word::All) => (0..inodes.len()).collect(),
            Ok(Word::Skip) => return Some(Reply::Skip),
            Ok(Word::Undo) => return Some(Reply::Undo),
            Ok(Word::Quit) => return Some(Reply::Quit),
            Ok(Word::None) if !references.is_empty() => Vec::new(),
            Ok(Word::None) => {
                crate::report::ask("one has to stay: no reference has this content\n");
                continue;
            }
            Ok(Word::Rule(rule)) => {
                let rules = KeepRules::new(vec![*rule], options.rules.roots);
                let first = rules.order(group).first().map(|inode| inode.id);
                // Otherwise another rule would decide, which the user did not type.
                if let Some(text) = rules.keep.iter().find_map(Keep::unmatched) {
                    let text = bc_fs::escape(text.as_bytes());
                    crate::report::ask(&format!("{text} matches none of these\n"));
                    continue;
                }
                let same = |inode: &Inode| Some(inode.id) == first;
                inodes.iter().position(same).into_iter().collect()
            }
            Ok(Word::Help) => {
                crate::report::ask(ANSWERS);
                continue;
            }
            Err(why) => {
                crate::report::ask(&format!("{why}\n"));
                continue;
            }
        };
        let mut kept: Vec<usize> = references.into_iter().chain(kept).collect();
        kept.sort_unstable();
        kept.dedup();
        return Some(Reply::Keep(kept));
    }
}

/// Returns the choice that follows from an answer; `None` if no file stays.
fn pick(
    group: &FileGroup,
    inodes: &[Inode],
    kept: &[usize],
    options: &PruneOptions,
) -> Option<Pick> {
    let kept_file = inodes.get(*kept.first()?)?;
    let root = group.files[kept_file.names[0]].root;
    let may_go = |at: &usize| options.rules.roots == Roots::Any || group.files[*at].root != root;
    let goes = (0..inodes.len()).filter(|at| !kept.contains(at));
    let targets: Vec<usize> = goes
        .flat_map(|at| inodes[at].names.iter().copied())
        .filter(may_go)
        .collect();
    Some(Pick {
        kept_file: kept_file.names.clone(),
        targets,
    })
}

impl Pick {
    /// Returns the group with only the files chosen, as [`rules`] take it.
    pub fn of(&self, group: &FileGroup) -> FileGroup {
        let named = |root: u32| {
            move |at: &usize| {
                let mut file = group.files[*at].clone();
                file.root = root;
                file
            }
        };
        let kept_file = self.kept_file.iter().map(named(0));
        let targets = self.targets.iter().map(named(1));
        FileGroup {
            files: kept_file.chain(targets).collect(),
        }
    }
}

/// Shows group `at` of `of`: a number for each physical file, with its time and all of its names.
fn show(offer: &Offer<'_>, group: &FileGroup, inodes: &[Inode], at: usize, of: usize) {
    let mut text = format!(
        "\n[{}/{}] {}\n",
        thousands(at as u64 + 1),
        thousands(of as u64),
        offer.heading
    );
    for (number, inode) in inodes.iter().enumerate() {
        for (nth, name) in inode.names.iter().enumerate() {
            let file = &group.files[*name];
            let lead = match nth {
                0 => format!("{:>4}  {}", number + 1, time(file.stamp.mtime_ns)),
                _ => " ".repeat(4 + 2 + TIME),
            };
            let tag = match inode.protected && nth == 0 {
                true => "  (reference: stays)",
                false => "",
            };
            let path = bc_fs::escape(&file.path);
            text += &format!("{lead}  {path}{}{tag}\n", offer.suffix);
        }
    }
    crate::report::ask(&text);
}

/// Letters of a time to the minute.
const TIME: usize = 16;

/// Returns `2026-11-22 15:41`, in UTC.
fn time(ns: i64) -> String {
    let text = format_rfc3339(ns);
    let text: String = text.chars().take(TIME).collect();
    text.replace('T', " ")
}

/// Shows the choices.
fn plan(offers: &[Offer<'_>], picks: &[Option<Pick>], verb: &str) {
    let mut text = String::new();
    for (offer, pick) in offers.iter().zip(picks) {
        let (Some(group), Some(pick)) = (offer.group, pick) else {
            continue;
        };
        if pick.targets.is_empty() {
            continue;
        }
        let path = |at: &usize| {
            let path = bc_fs::escape(&group.files[*at].path);
            format!("{path}{}", offer.suffix)
        };
        text += &format!("keep {}\n", path(&pick.kept_file[0]));
        for target in &pick.targets {
            text += &format!("  {verb} {}\n", path(target));
        }
    }
    if !text.is_empty() {
        crate::report::ask(&format!("\nThe plan:\n{text}"));
    }
}

/// Asks whether the plan is to be carried out.
pub fn confirmed(session: &Session, options: &PruneOptions, planned: &Planned, dirs: u64) -> bool {
    let done = act(options, planned, dirs);
    question::confirmed(session, &format!("{done}, as chosen?"))
}

/// Asks about groups of files; returns the groups of files chosen. `None` if nothing is to be done.
pub fn files(
    session: &Session,
    groups: &[FileGroup],
    options: &mut PruneOptions,
    asks: bool,
) -> Option<Vec<FileGroup>> {
    let heading = |group: &FileGroup| {
        let each = group.files.first().map_or(0, |file| file.stamp.size);
        let names = thousands(group.files.len() as u64);
        format!("{} × {names}", size(each))
    };
    let by = options.rules.clone();
    // Files that go without a choice are not offered.
    let is_choice = |group: &FileGroup| {
        let names = by.order(group).into_iter().map(|file| file.names.len());
        names.sum::<usize>() > 1
    };
    let offer = |group| Offer {
        heading: heading(group),
        group: Some(group).filter(|group| is_choice(group)),
        suffix: "",
    };
    let offers: Vec<Offer<'_>> = groups.iter().map(offer).collect();
    let picks = choose(session, &offers, options)?;
    options.rules = rules();
    let both = groups.iter().zip(&picks);
    let chosen = both.filter_map(|(group, pick)| {
        let pick = pick.as_ref().filter(|pick| !pick.targets.is_empty());
        Some(pick?.of(group))
    });
    let chosen: Vec<FileGroup> = chosen.collect();
    if asks {
        let planned = at_stake(&chosen, options, &session.cancel);
        if planned.files == 0 || !confirmed(session, options, &planned, 0) {
            return None;
        }
    }
    Some(chosen)
}

/// Meanings of the words that answer a question about a group.
const ANSWERS: &str = "\
1 3      these stay, the others go\n\
all, a   all stay\n\
none, n  all go, where a reference has the content\n\
RULE     first, last, newest, oldest, shortest-path, longest-path, most-links, path:GLOB, name:GLOB\n\
skip, s  decide nothing: none goes because of this group\n\
undo, u  back to the group before\n\
quit, q  ask no more: the plan so far\n";

/// Answer to a question about a group.
#[derive(Debug)]
enum Word {
    /// Files that stay, counted from 0.
    Numbers(Vec<usize>),
    All,
    None,
    Rule(Box<Keep>),
    Skip,
    Undo,
    Quit,
    Help,
}

/// Reads an answer about `members` physical files.
///
/// # Errors
/// A message about an answer that cannot be read.
fn read_word(line: &[u8], members: usize) -> Result<Word, String> {
    let bytes = line.trim_ascii();
    let line = String::from_utf8_lossy(bytes);
    let line = line.trim();
    Ok(match line.to_ascii_lowercase().as_str() {
        "a" | "all" => Word::All,
        "n" | "none" => Word::None,
        "s" | "skip" => Word::Skip,
        "u" | "undo" => Word::Undo,
        "q" | "quit" => Word::Quit,
        "?" | "h" | "help" => Word::Help,
        "" => return Err("an answer is needed; 's' leaves the group as it is".to_owned()),
        words if words.starts_with(|c: char| c.is_ascii_digit()) => {
            Word::Numbers(numbers(words, members)?)
        }
        _ => match Keep::parse(bytes) {
            Ok(rule) => Word::Rule(Box::new(rule)),
            Err(_) => {
                let line = bc_fs::escape(line.as_bytes());
                return Err(format!("'{line}' is no answer; '?' lists them"));
            }
        },
    })
}

fn numbers(words: &str, members: usize) -> Result<Vec<usize>, String> {
    let words = words
        .split([' ', ',', '\t'])
        .filter(|word| !word.is_empty());
    let number = |word: &str| match word.parse::<usize>() {
        Ok(number) if (1..=members).contains(&number) => Ok(number - 1),
        _ => {
            let word = bc_fs::escape(word.as_bytes());
            Err(format!("'{word}' is no number from 1 to {members}"))
        }
    };
    words.map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> String {
        match read_word(line.as_bytes(), 3) {
            Ok(Word::Numbers(numbers)) => format!("{numbers:?}"),
            Ok(Word::Rule(_)) => "rule".to_owned(),
            Ok(word) => format!("{word:?}"),
            Err(why) => why,
        }
    }

    #[test]
    fn each_word_has_one_meaning() {
        for (line, expected) in [
            ("1 3", "[0, 2]"),
            (" 2,3 ", "[1, 2]"),
            ("a", "All"),
            ("ALL", "All"),
            ("n", "None"),
            ("s", "Skip"),
            ("u", "Undo"),
            ("q", "Quit"),
            ("?", "Help"),
            ("newest", "rule"),
            ("path:a/*", "rule"),
            ("0", "'0' is no number from 1 to 3"),
            ("1 4", "'4' is no number from 1 to 3"),
            ("2x", "'2x' is no number from 1 to 3"),
            ("", "an answer is needed; 's' leaves the group as it is"),
            ("y", "'y' is no answer; '?' lists them"),
            ("path:[", "'path:[' is no answer; '?' lists them"),
        ] {
            assert_eq!(said(line), expected, "{line}");
        }
    }
}
