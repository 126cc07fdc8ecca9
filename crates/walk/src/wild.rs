//! One pattern with wildcards, compared with raw bytes as git and shells do.
//!
//! - `*` stands for any bytes but `/`, `?` for one of those.
//! - `**` between slashes, or a slash and an end, stands for any directories, and at the end for
//!   all that is below one. Elsewhere it is `*`.
//! - `[a-z]`, `[!a-z]`, `[^a-z]` and `[[:digit:]]` stand for one byte, never for `/`.
//! - `\` takes the meaning away from the byte that follows it.
//!
//! A comparison takes steps in proportion to the pattern's length and the text's, whatever they
//! are, and nothing here recurses: patterns come from files of other people.

/// Greatest number of tokens of a pattern, which bounds the time of a comparison.
pub(crate) const MAX_TOKENS: usize = 4096;

/// A set of bytes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct ByteSet([u64; 4]);

impl ByteSet {
    fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte / 64)] |= 1 << (byte % 64);
    }

    fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte / 64)] & 1 << (byte % 64) != 0
    }

    fn invert(&mut self) {
        self.0.iter_mut().for_each(|word| *word = !*word);
    }

    fn remove(&mut self, byte: u8) {
        self.0[usize::from(byte / 64)] &= !(1 << (byte % 64));
    }
}

/// A part of a pattern.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Token {
    Byte(u8),
    /// Any byte but `/`.
    Any,
    /// One of these.
    Class(Box<ByteSet>),
    /// Any bytes but `/`.
    Star,
    /// Any bytes.
    All,
    /// Empty, or any bytes that end in `/`.
    Dirs,
}

/// Meaning of a class whose range runs backwards, `[z-a]`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Backwards {
    /// The range holds nothing, as in git.
    Empty,
    Refused,
}

/// A pattern.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Wild(Vec<Token>);

impl Wild {
    /// Takes a pattern apart.
    pub(crate) fn parse(pattern: &[u8], backwards: Backwards) -> Result<Wild, &'static str> {
        let mut tokens = Vec::with_capacity(pattern.len().min(MAX_TOKENS));
        let mut at = 0;
        while let Some(&byte) = pattern.get(at) {
            if tokens.len() == MAX_TOKENS {
                return Err("longer than 4096 bytes");
            }
            at += 1;
            tokens.push(match byte {
                b'?' => Token::Any,
                b'*' => {
                    let begins = at == 1 || pattern[at - 2] == b'/';
                    let first = at;
                    at += count(&pattern[at..], b'*');
                    match &pattern[at..] {
                        // One, or not by itself between slashes.
                        _ if at == first || !begins => Token::Star,
                        [] => Token::All,
                        [b'/', ..] => {
                            at += 1;
                            Token::Dirs
                        }
                        [b'\\', b'/', ..] => Token::All,
                        _ => Token::Star,
                    }
                }
                b'[' => {
                    let (class, end) = class(pattern, at, backwards)?;
                    at = end;
                    Token::Class(Box::new(class))
                }
                b'\\' => {
                    let escaped = *pattern.get(at).ok_or("ends with a backslash")?;
                    at += 1;
                    Token::Byte(escaped)
                }
                byte => Token::Byte(byte),
            });
        }
        Ok(Wild(tokens))
    }

    /// Returns the only text that the pattern matches, if it has no wildcards.
    pub(crate) fn literal(&self) -> Option<Vec<u8>> {
        literal(&self.0)
    }

    /// Returns the end of all matching texts, if the pattern is `*` and a literal.
    pub(crate) fn suffix(&self) -> Option<Vec<u8>> {
        match self.0.split_first() {
            Some((Token::Star, rest)) => literal(rest),
            _ => None,
        }
    }

    /// Returns `x` of `x/**`: the pattern of directories whose whole contents match.
    pub(crate) fn contents_of(&self) -> Option<Wild> {
        match &self.0[..] {
            [above @ .., Token::Byte(b'/'), Token::All] if !above.is_empty() => {
                Some(Wild(above.to_vec()))
            }
            _ => None,
        }
    }

    /// True if the pattern matches all of `text`.
    pub(crate) fn is_match(&self, text: &[u8]) -> bool {
        let tokens = &self.0[..];
        // Most texts can be decided at once.
        if let Some(Token::Byte(last)) = tokens.last()
            && text.last() != Some(last)
        {
            return false;
        }
        let words = tokens.len() / 64 + 1;
        // Places in the pattern that the text so far leads to.
        let (mut now, mut next) = ([0_u64; WORDS], [0_u64; WORDS]);
        enter(tokens, &mut now, 0);
        for &byte in text {
            next[..words].fill(0);
            let mut any = false;
            for (nth, mut word) in now[..words].iter().copied().enumerate() {
                while word != 0 {
                    let at = nth * 64 + word.trailing_zeros() as usize;
                    word &= word - 1;
                    any |= step(tokens, &mut next, at, byte);
                }
            }
            if !any {
                return false;
            }
            std::mem::swap(&mut now, &mut next);
        }
        now[tokens.len() / 64] & 1 << (tokens.len() % 64) != 0
    }
}

/// Words of a set of places; the end of the pattern is one of them.
const WORDS: usize = MAX_TOKENS / 64 + 1;

/// Takes a byte at a place; returns whether that leads on.
fn step(tokens: &[Token], next: &mut [u64; WORDS], at: usize, byte: u8) -> bool {
    let leads_to = match tokens.get(at) {
        // The text continues behind the pattern.
        None => return false,
        Some(Token::Byte(own)) => (*own == byte).then_some(at + 1),
        Some(Token::Any) => (byte != b'/').then_some(at + 1),
        Some(Token::Class(class)) => class.contains(byte).then_some(at + 1),
        Some(Token::Star) => (byte != b'/').then_some(at),
        Some(Token::All) => Some(at),
        Some(Token::Dirs) => {
            // Only behind a slash it may end.
            next[at / 64] |= 1 << (at % 64);
            if byte == b'/' {
                enter(tokens, next, at + 1);
            }
            return true;
        }
    };
    if let Some(place) = leads_to {
        enter(tokens, next, place);
    }
    leads_to.is_some()
}

/// Adds a place and those behind it that are reached without a byte.
fn enter(tokens: &[Token], places: &mut [u64; WORDS], mut at: usize) {
    loop {
        places[at / 64] |= 1 << (at % 64);
        match tokens.get(at) {
            Some(Token::Star | Token::All | Token::Dirs) => at += 1,
            _ => return,
        }
    }
}

fn literal(tokens: &[Token]) -> Option<Vec<u8>> {
    let byte = |token: &Token| match token {
        Token::Byte(byte) => Some(*byte),
        _ => None,
    };
    tokens.iter().map(byte).collect()
}

fn count(bytes: &[u8], wanted: u8) -> usize {
    bytes.iter().take_while(|&&byte| byte == wanted).count()
}

/// Parses the class that begins at `at`, behind its bracket; returns it and its end.
fn class(
    pattern: &[u8],
    mut at: usize,
    backwards: Backwards,
) -> Result<(ByteSet, usize), &'static str> {
    const OPEN: &str = "'[' without its ']'";
    let mut class = ByteSet::default();
    let is_negated = matches!(pattern.get(at), Some(b'!' | b'^'));
    at += usize::from(is_negated);
    // Byte that a range may begin with.
    let mut last = None;
    let mut is_first = true;
    loop {
        let mut byte = *pattern.get(at).ok_or(OPEN)?;
        if byte == b']' && !is_first {
            break;
        }
        is_first = false;
        at += 1;
        let to = pattern.get(at).copied();
        match (byte, last, to) {
            (b'-', Some(from), Some(mut to)) if to != b']' => {
                if to == b'\\' {
                    at += 1;
                    to = *pattern.get(at).ok_or(OPEN)?;
                }
                at += 1;
                if from > to && backwards == Backwards::Refused {
                    return Err("a range that runs backwards");
                }
                (from..=to).for_each(|byte| class.insert(byte));
                last = None;
                continue;
            }
            (b'[', _, Some(b':')) => {
                let name = &pattern[at + 1..];
                let end = name.iter().position(|byte| *byte == b']').ok_or(OPEN)?;
                if let Some(name) = name[..end].strip_suffix(b":") {
                    let is_in = named(name).ok_or("an unknown class of characters")?;
                    (0..=u8::MAX)
                        .filter(is_in)
                        .for_each(|byte| class.insert(byte));
                    at += end + 2;
                    last = None;
                    continue;
                }
            }
            (b'\\', _, to) => {
                byte = to.ok_or(OPEN)?;
                at += 1;
            }
            _ => {}
        }
        class.insert(byte);
        last = Some(byte);
    }
    if is_negated {
        class.invert();
    }
    class.remove(b'/');
    Ok((class, at + 1))
}

/// Returns the end of the class that begins at `at`, behind its bracket.
pub(crate) fn end_of_class(pattern: &[u8], at: usize) -> Result<usize, &'static str> {
    class(pattern, at, Backwards::Refused).map(|(_, end)| end)
}

fn named(name: &[u8]) -> Option<fn(&u8) -> bool> {
    Some(match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| byte.is_ascii_graphic() || *byte == b' ',
        b"punct" => u8::is_ascii_punctuation,
        // The vertical tab, too, as in C.
        b"space" => |byte| byte.is_ascii_whitespace() || *byte == 0x0b,
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_match(pattern: &str, text: &str) -> bool {
        let wild = Wild::parse(pattern.as_bytes(), Backwards::Refused).unwrap();
        wild.is_match(text.as_bytes())
    }

    #[track_caller]
    fn check(pattern: &str, yes: &[&str], no: &[&str]) {
        for (texts, expected) in [(yes, true), (no, false)] {
            for text in texts {
                assert_eq!(is_match(pattern, text), expected, "{pattern} {text}");
            }
        }
    }

    #[test]
    fn wildcards() {
        check("a*b*c", &["abc", "axbbc", "abcbc"], &["ab", "abcd", "a/bc"]);
        check("a/**/b", &["a/b", "a/x/b", "a/x/y/b"], &["ab", "a/xb"]);
        check("**/b", &["b", "x/b", "x/y/b"], &["xb", "b/x"]);
        check("a/**", &["a/x", "a/x/y"], &["a", "ab"]);
        check("**", &["a", "a/b"], &[]);
        check("***/b", &["b", "x/b"], &["xb"]);
        check("a**b", &["ab", "axb"], &["a/b"]);
        check("a/**b", &["a/b", "a/xb"], &["a/x/b"]);
        check("**/**/b", &["b", "x/b", "x/y/b"], &["xb"]);
        check("*/**/*", &["a/b", "a/b/c"], &["a"]);
        check(r"\*\[", &["*["], &["x["]);
    }

    #[test]
    fn classes() {
        check("[a-c]", &["a", "b", "c"], &["d", "", "ab"]);
        check("[!a-c]", &["d", "-"], &["a", "/"]);
        check("x[^a]y", &["xby"], &["xay", "x/y"]);
        check("[]]", &["]"], &["["]);
        check("[]-]", &["]", "-"], &["["]);
        check("[a-]", &["a", "-"], &["b"]);
        check(r"[\]]", &["]"], &["\\"]);
        check(r"[a\-c]", &["a", "-", "c"], &["b"]);
        check("[[:digit:]x]", &["1", "x"], &["a", ":"]);
        check("[![:alpha:]]", &["1"], &["a"]);
        check("[[:x]", &["[", ":", "x"], &["]"]);
        check("a[/]b", &[], &["a/b"]);
        check("[.-0]", &[".", "0"], &["/"]);
        for bad in [
            "[",
            "[a",
            "[!",
            r"[\",
            "[]",
            "[[:digit:]",
            "[[:x:]]",
            "[z-a]",
            r"a\",
        ] {
            assert!(
                Wild::parse(bad.as_bytes(), Backwards::Refused).is_err(),
                "{bad}"
            );
        }
        let class = Wild::parse(b"[z-ab]", Backwards::Empty).unwrap();
        assert!(class.is_match(b"b") && !class.is_match(b"a"));
    }

    #[test]
    fn what_is_long_takes_no_longer_than_its_length() {
        let stars = "*a".repeat(MAX_TOKENS / 2 - 1);
        let text = "a".repeat(100_000);
        assert!(is_match(&stars, &text));
        assert!(!is_match(&(stars + "b"), &text));
        let longest = "a".repeat(MAX_TOKENS);
        assert!(is_match(&longest, &longest));
        let longer = "[".to_owned() + &"a".repeat(100_000) + "]";
        assert!(is_match(&longer, "a"));
        assert!(Wild::parse(&[b'a'; MAX_TOKENS + 1], Backwards::Empty).is_err());
    }
}
