//! The words that a question about a group takes.

use bc_prune::Keep;

/// Meanings of the words.
pub const HELP: &str = "\
1 3      these stay, the others go\n\
all, a   all stay\n\
none, n  all go, where a reference has the content\n\
RULE     first, last, newest, oldest, shortest-path, longest-path, most-links, path:GLOB, name:GLOB\n\
skip, s  decide nothing: none goes because of this group\n\
undo, u  back to the group before\n\
quit, q  ask no more: the plan so far\n";

/// An answer.
#[derive(Debug)]
pub enum Word {
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
pub fn read(line: &[u8], members: usize) -> Result<Word, String> {
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
        match read(line.as_bytes(), 3) {
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
