//! Rust source as words and signs: the tokens without comments, literals and tests.

/// A word or a sign, and its line, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(super) line: usize,
}

impl Token {
    pub(crate) fn is(&self, text: &str) -> bool {
        self.text == text
    }

    /// Returns true if it is a name or a keyword.
    pub(crate) fn is_word(&self) -> bool {
        self.text.starts_with(is_word_start)
    }
}

fn is_word_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn is_word_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the tokens of a file, without those of items that only tests have.
pub(super) fn tokens(source: &str) -> Vec<Token> {
    without_tests(split(source))
}

/// Returns all tokens of a file, in tests too.
pub(crate) fn split(source: &str) -> Vec<Token> {
    let chars: Vec<char> = source.chars().collect();
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < chars.len() {
        let end = token_end(&chars, at);
        let word = is_word_start(chars[at]);
        // Numbers name nothing.
        let sign = end == at + 1 && !chars[at].is_whitespace() && !chars[at].is_ascii_digit();
        let path = chars[at..end] == [':', ':'];
        if (word && end - at > 0 && !is_literal(&chars, at, end)) || sign || path {
            tokens.push(Token {
                text: chars[at..end].iter().collect(),
                line,
            });
        }
        line += chars[at..end].iter().filter(|c| **c == '\n').count();
        at = end;
    }
    tokens
}

/// Returns true if a token that begins like a word is a string with a prefix (`b"…"`, `r#"…"#`).
fn is_literal(chars: &[char], at: usize, end: usize) -> bool {
    chars[at..end].iter().any(|c| matches!(c, '"' | '\''))
}

/// Returns the end of the token, comment, literal or white space that begins at `at`.
fn token_end(chars: &[char], at: usize) -> usize {
    let next = chars.get(at + 1).copied().unwrap_or(' ');
    match chars[at] {
        '/' if next == '/' => find(chars, at, |c| c == '\n'),
        '/' if next == '*' => block_comment_end(chars, at),
        '"' => string_end(chars, at + 1),
        '\'' => quote_end(chars, at),
        ':' if next == ':' => at + 2,
        c if c.is_whitespace() => find(chars, at, |c| !c.is_whitespace()),
        c if is_word_start(c) => {
            let end = find(chars, at, |c| !is_word_part(c));
            prefixed_literal_end(chars, at, end).unwrap_or(end)
        }
        c if c.is_ascii_digit() => find(chars, at, |c| !is_word_part(c)),
        _ => at + 1,
    }
    .min(chars.len())
}

fn find(chars: &[char], from: usize, stop: impl Fn(char) -> bool) -> usize {
    let found = chars[from..].iter().position(|c| stop(*c));
    found.map_or(chars.len(), |offset| from + offset)
}

fn block_comment_end(chars: &[char], at: usize) -> usize {
    let (mut depth, mut at) = (0, at);
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => (depth, at) = (depth + 1, at + 2),
            ('*', '/') if depth == 1 => return at + 2,
            ('*', '/') => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    chars.len()
}

/// Returns the end of a string whose first character is at `from`.
fn string_end(chars: &[char], from: usize) -> usize {
    let mut at = from;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// Returns the end of a character literal, or of the quotation mark of a lifetime alone.
fn quote_end(chars: &[char], at: usize) -> usize {
    match (chars.get(at + 1), chars.get(at + 2)) {
        (Some('\\'), _) => find(chars, at + 3, |c| c == '\'') + 1,
        (Some(_), Some('\'')) => at + 3,
        _ => at + 1,
    }
}

/// Returns the end of `b"…"`, `c"…"`, `r"…"`, `br##"…"##`, `b'…'`; `None` if the word is just a
/// word.
fn prefixed_literal_end(chars: &[char], at: usize, end: usize) -> Option<usize> {
    let prefix: String = chars[at..end].iter().collect();
    let next = *chars.get(end)?;
    match (prefix.as_str(), next) {
        ("b", '\'') => Some(quote_end(chars, end)),
        ("b" | "c", '"') => Some(string_end(chars, end + 1)),
        ("r" | "br" | "cr", '"' | '#') => {
            let quote = find(chars, end, |c| c != '#');
            if chars.get(quote) != Some(&'"') {
                return None; // r#word
            }
            let hashes = quote - end;
            let mut at = quote + 1;
            loop {
                at = find(chars, at, |c| c == '"') + 1;
                let after = chars.get(at..at + hashes);
                if at >= chars.len() || after.is_some_and(|a| a.iter().all(|c| *c == '#')) {
                    return Some(at + hashes);
                }
            }
        }
        _ => None,
    }
}

/// Drops every item behind `#[cfg(test)]` and the like.
fn without_tests(tokens: Vec<Token>) -> Vec<Token> {
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].is("#") && tokens.get(at + 1).is_some_and(|t| t.is("[")) {
            let end = group_end(&tokens, at + 1);
            if is_test_only(&tokens[at..end]) {
                at = item_end(&tokens, end);
            } else {
                at = end; // an attribute names no module
            }
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

pub(crate) fn is_test_only(attribute: &[Token]) -> bool {
    let has = |word: &str| attribute.iter().any(|t| t.is(word));
    has("cfg") && has("test") && !has("not") && !has("any")
}

/// Returns the end of the item that begins at `at`, perhaps with further attributes.
pub(crate) fn item_end(tokens: &[Token], mut at: usize) -> usize {
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            ";" => return at + 1,
            "{" => {
                let end = group_end(tokens, at);
                return end + usize::from(tokens.get(end).is_some_and(|t| t.is(";")));
            }
            "}" => return at,
            "(" | "[" => at = group_end(tokens, at),
            _ => at += 1,
        }
    }
    at
}

/// Returns the index after the bracket that closes the one at `at`.
pub(crate) fn group_end(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0;
    for (i, token) in tokens.iter().enumerate().skip(at) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i + 1;
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::tokens;

    fn words(source: &str) -> String {
        let texts: Vec<String> = tokens(source).into_iter().map(|t| t.text).collect();
        texts.join(" ")
    }

    #[test]
    fn literals_and_comments_are_gone() {
        assert_eq!(
            words("a /* b /* c */ d */ \"e\\\"f\" // g\n'h' '\\'' b'i' r#\"j\"k\"# br\"l\" 'm n"),
            "a ' m n"
        );
        assert_eq!(words("r#type::x(1.5, 0x1f)"), "r # type :: x ( . , )");
        let lines: Vec<usize> = tokens("a\n\"x\ny\"\nb").iter().map(|t| t.line).collect();
        assert_eq!(lines, [1, 4]);
    }

    #[test]
    fn what_only_tests_have_is_gone() {
        let source = "#[cfg(test)] mod a; #[derive(B)] c; #[cfg(test)] #[x] fn d(e: [f; 2]) { g } h \
                      #[cfg(not(test))] i; #[cfg(all(test, unix))] use j::{k}; l";
        assert_eq!(words(source), "c ; h i ; l");
    }
}
