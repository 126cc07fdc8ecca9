//! Items of a library as text: the attributes and visibility before them, their heads, and the
//! public parts of their bodies.

use crate::circles::tokens::{Token, group_end, is_test_only, item_end};

/// Attributes and visibility before an item.
#[derive(Default)]
pub(super) struct Before {
    pub(super) is_of_tests: bool,
    pub(super) is_hidden: bool,
    pub(super) is_public: bool,
    /// Derived traits, and attributes that callers notice.
    pub(super) notes: Vec<String>,
}

/// Returns the attributes and visibility before an item, and the index of the next token.
pub(super) fn before(tokens: &[Token], mut at: usize) -> (Before, usize) {
    let mut before = Before::default();
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|t| t.is(text));
    while is(at, "#") && (is(at + 1, "[") || is(at + 1, "!")) {
        let open = at + 1 + usize::from(is(at + 1, "!"));
        let end = group_end(tokens, open);
        let attribute = &tokens[at..end];
        let has = |word: &str| attribute.iter().any(|t| t.is(word));
        before.is_of_tests |= is_test_only(attribute);
        before.is_hidden |= has("doc") && has("hidden");
        if has("derive") || has("non_exhaustive") {
            before.notes.push(text(attribute));
        }
        at = end;
    }
    if is(at, "pub") {
        before.is_public = !is(at + 1, "(");
        at += 1;
        if !before.is_public {
            at = group_end(tokens, at);
        }
    }
    (before, at)
}

/// Returns the index after words that come before a keyword: `const unsafe extern fn`.
pub(super) fn skip_words(tokens: &[Token], mut at: usize) -> usize {
    let is = |at: usize, words: &[&str]| {
        let token = tokens.get(at);
        token.is_some_and(|t| words.contains(&t.text.as_str()))
    };
    while is(at, &["unsafe", "async", "extern", "default"])
        || is(at, &["const"]) && is(at + 1, &["fn", "unsafe", "extern", "async"])
    {
        at += 1;
    }
    at
}

/// Returns the tokens up to the body or the value.
pub(super) fn head(tokens: &[Token]) -> &[Token] {
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            "{" | ";" => break,
            // A default or a value; `=` in angle brackets belongs to a bound.
            "=" if !is_bound(tokens, at) => break,
            "(" | "[" => at = group_end(tokens, at),
            _ => at += 1,
        }
    }
    &tokens[..at.min(tokens.len())]
}

/// Returns true if the `=` at `at` is one of `Iterator<Item = T>` or `==`.
pub(super) fn is_bound(tokens: &[Token], at: usize) -> bool {
    let (mut depth, mut before) = (0, "");
    for token in &tokens[..at] {
        match token.text.as_str() {
            "<" => depth += 1,
            ">" if before != "-" => depth -= 1,
            _ => {}
        }
        before = &token.text;
    }
    depth > 0
}

/// Returns the index after the `>` that closes the `<` at `at`.
pub(super) fn angle_end(tokens: &[Token], at: usize) -> usize {
    let (mut depth, mut before) = (0, "");
    for (i, token) in tokens.iter().enumerate().skip(at) {
        match token.text.as_str() {
            "<" => depth += 1,
            ">" if before != "-" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i + 1;
        }
        before = &token.text;
    }
    tokens.len()
}

/// Returns the tokens in the braces.
pub(super) fn body(tokens: &[Token]) -> &[Token] {
    match tokens.iter().position(|t| t.is("{")) {
        Some(open) => &tokens[open + 1..group_end(tokens, open) - 1],
        None => &[],
    }
}

/// Head of a function, constant or type in a body.
pub(super) struct Signature {
    pub(super) text: String,
    pub(super) is_hidden: bool,
}

/// Returns the functions, constants and types of a body, without their bodies; all of them, or
/// those that say `pub`, at any depth.
pub(super) fn signatures(tokens: &[Token], public_alone: bool) -> Vec<Signature> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let (before, start) = before(tokens, at);
        let keyword = skip_words(tokens, start);
        let is_item = tokens
            .get(keyword)
            .is_some_and(|t| ["fn", "const", "type"].contains(&t.text.as_str()));
        if is_item && (before.is_public || !public_alone) {
            if !before.is_of_tests {
                found.push(Signature {
                    text: text(head(&tokens[start..])),
                    is_hidden: before.is_hidden,
                });
            }
            at = item_end(tokens, keyword).max(start + 1);
        } else {
            at = start.max(at + 1);
        }
    }
    found
}

/// Returns the text of a type with its public fields.
pub(super) fn fields(tokens: &[Token]) -> String {
    let head = head(tokens);
    let open = head.iter().position(|t| t.is("("));
    // Fields without names are between parentheses.
    let (head, body) = match open.filter(|_| !tokens.iter().any(|t| t.is("{"))) {
        Some(open) => (&head[..open], &head[open + 1..group_end(head, open) - 1]),
        None => (head, body(tokens)),
    };
    let head = text(head);
    let mut shown = Vec::new();
    let (mut at, mut hidden) = (0, false);
    while at < body.len() {
        let (before, start) = before(body, at);
        let end = field_end(body, start);
        match before.is_public && !before.is_hidden {
            true => shown.push(text(&body[start..end])),
            false => hidden = true,
        }
        at = end + 1;
    }
    if hidden {
        shown.push("..".to_owned());
    }
    match shown.is_empty() {
        true => head,
        false => format!("{head} {{ {} }}", shown.join(", ")),
    }
}

/// Returns the text of an enum's types, without the names of its variants.
pub(super) fn payloads(tokens: &[Token]) -> String {
    let (mut shown, mut at) = (String::new(), 0);
    let variants = without_attributes(body(tokens));
    while at < variants.len() {
        let end = match variants[at].text.as_str() {
            "(" | "{" => group_end(&variants, at),
            _ => at,
        };
        shown += &text(&variants[at.min(end)..end]);
        shown.push(' ');
        at = end.max(at + 1);
    }
    shown
}

/// Returns the text of the types that the implementation of a trait chooses: `type Err = Odd;`.
pub(super) fn associated(tokens: &[Token]) -> String {
    let (mut shown, mut at) = (String::new(), 0);
    while at < tokens.len() {
        let end = item_end(tokens, at).max(at + 1).min(tokens.len());
        if tokens[at].is("type") {
            shown += &text(&tokens[at..end]);
        }
        at = end;
    }
    shown
}

/// Returns the index of the comma after a field, or of what closes the list.
pub(super) fn field_end(tokens: &[Token], from: usize) -> usize {
    let (mut at, mut depth) = (from, 0);
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            "," if depth == 0 => break,
            ")" | "]" | "}" => break,
            "<" => depth += 1,
            ">" if !tokens[at - 1].is("-") => depth -= 1,
            "(" | "[" | "{" => at = group_end(tokens, at) - 1,
            _ => {}
        }
        at += 1;
    }
    at.min(tokens.len())
}

pub(super) fn without_attributes(tokens: &[Token]) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].is("#") && tokens.get(at + 1).is_some_and(|t| t.is("[")) {
            at = group_end(tokens, at + 1);
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// Returns the tokens without the parts of a list that are hidden: `#[doc(hidden)] name: Type,`.
pub(super) fn without_hidden(tokens: &[Token]) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let (before, start) = before(tokens, at);
        if before.is_hidden {
            at = field_end(tokens, start);
            at += usize::from(tokens.get(at).is_some_and(|t| t.is(",")));
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// Returns the tokens as text, with a space between words.
pub(super) fn text(tokens: &[Token]) -> String {
    let mut text = String::new();
    let mut before: Option<&Token> = None;
    for (at, token) in tokens.iter().enumerate() {
        // How a list is broken into lines makes no difference.
        let closes = |t: &Token| matches!(t.text.as_str(), "}" | ")" | "]" | ">");
        if token.is(",") && tokens.get(at + 1).is_some_and(closes) {
            continue;
        }
        // Nor does it make one to callers whether a function changes its own copy of an argument.
        if token.is("mut") && before.is_some_and(|b| b.is("(") || b.is(",")) {
            continue;
        }
        let spaced =
            |t: &Token| t.is_word() || matches!(t.text.as_str(), ">" | ")" | "," | "=" | "-");
        let opens = token.is_word() || matches!(token.text.as_str(), "{" | "=" | "-" | "&" | "}");
        if before.is_some_and(|b| (spaced(b) || b.is("{") || b.is(":")) && opens && !b.is("-")) {
            text.push(' ');
        }
        text.push_str(&token.text);
        before = Some(token);
    }
    text
}
