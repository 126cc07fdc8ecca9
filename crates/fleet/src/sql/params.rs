//! Parameters of the questions: the keys that each has, and checks of their values.

use std::collections::BTreeMap;

use bc_digest::{Algorithm, Digest};
use bc_manifest::base64;
use bc_manifest::time::parse_rfc3339;

use super::dialect::Literal;
use super::{Engine, Query, Request, SqlError};

/// Returns the keys that a question has besides those of all questions.
const fn keys(query: Option<Query>) -> &'static [&'static str] {
    match query {
        None => &["algorithm"],
        Some(Query::Duplicates | Query::Waste) => &["algorithm", "limit", "min_size"],
        Some(Query::Unprotected | Query::Lost) => &["algorithm", "limit", "min_size", "backups"],
        Some(Query::Decayed | Query::Moved) => &["algorithm", "limit"],
        Some(Query::Growth) => &["algorithm", "limit", "from", "to"],
        Some(Query::Find) => &["algorithm", "limit", "digest", "path"],
    }
}

/// Values that were found right, as literals where they are no lists.
pub(super) struct Values<'a> {
    texts: BTreeMap<&'static str, &'a str>,
    /// The path as joins know it.
    path_key: Option<String>,
    pub(super) backups: Vec<&'a [u8]>,
    query: Option<Query>,
}

impl<'a> Values<'a> {
    pub(super) fn new(request: &Request<'a>) -> Result<Values<'a>, SqlError> {
        let keys = keys(request.query);
        let mut values = Values {
            texts: BTreeMap::new(),
            path_key: None,
            backups: Vec::new(),
            query: request.query,
        };
        for param in request.params {
            let Some(key) = keys.iter().find(|key| **key == param.key) else {
                let name = request.query.map_or("the views", Query::name);
                let known = keys.join(", ");
                let key = param.key.escape_debug();
                let text = format!("{key}: no such parameter; {name}: {known}");
                return Err(SqlError::new(text));
            };
            if param.value.contains(&0) {
                return Err(SqlError::new(format!("{key}: must not hold NUL")));
            }
            if *key == "path" && param.value.first() == Some(&b'/') {
                let text = "is absolute: paths in manifests are relative to their root, which the \
                            answer names";
                return Err(SqlError::new(format!("path: {text}")));
            }
            match *key {
                "backups" => values.backups.push(param.value),
                "path" if values.path_key.is_none() => {
                    values.path_key = Some(path_key(param.value));
                }
                key => {
                    let text = checked(key, param.value)?;
                    if key == "path" || values.texts.insert(key, text).is_some() {
                        return Err(SqlError::new(format!("{key}: given twice")));
                    }
                }
            }
        }
        values.complete()?;
        Ok(values)
    }

    fn complete(&self) -> Result<(), SqlError> {
        let has = |key| self.texts.contains_key(key);
        match self.query {
            Some(Query::Growth) if !has("from") || !has("to") => {
                Err(SqlError::new("growth needs from=DATE and to=DATE"))
            }
            Some(Query::Growth)
                if moment("from", self.texts["from"]) > moment("to", self.texts["to"]) =>
            {
                Err(SqlError::new("from is later than to"))
            }
            Some(Query::Find) if has("digest") == self.path_key.is_some() => {
                Err(SqlError::new("find needs digest=HEX or path=PATH"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the algorithm that is asked for, if any.
    pub(super) fn algorithm(&self, engine: Engine) -> String {
        self.text(engine, "algorithm")
    }

    /// Returns the values for the places in the question's text.
    pub(super) fn of_query(&self, engine: Engine) -> BTreeMap<&'static str, String> {
        let number = |key| self.texts.get(key).map(|text| (*text).to_owned());
        let time = |key| {
            let time = self.texts.get(key).map(|text| moment(key, text));
            literal(engine, time.as_deref())
        };
        BTreeMap::from([
            ("min_size", number("min_size").unwrap_or("1".to_owned())),
            (
                "limit",
                number("limit").map_or_else(String::new, |limit| format!(" LIMIT {limit}")),
            ),
            ("has_backups", (!self.backups.is_empty()).to_string()),
            ("digest", self.text(engine, "digest")),
            ("path_key", literal(engine, self.path_key.as_deref())),
            ("from", time("from")),
            ("to", time("to")),
        ])
    }

    fn text(&self, engine: Engine, key: &str) -> String {
        literal(engine, self.texts.get(key).copied())
    }
}

/// Returns the literal of a text without a NUL.
fn literal(engine: Engine, value: Option<&str>) -> String {
    Literal::optional(engine, value).unwrap_or_default()
}

/// Returns the value of a key that is a text of some kind.
fn checked<'a>(key: &str, value: &'a [u8]) -> Result<&'a str, SqlError> {
    let refuse = |what: &str| SqlError::new(format!("{key}: {what}"));
    let text = std::str::from_utf8(value).map_err(|_| refuse("no UTF-8"))?;
    let is_right = match key {
        "limit" | "min_size" => {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            digits && text.parse::<i64>().is_ok()
        }
        "from" | "to" => is_moment(text),
        "digest" => {
            let is_lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
            let has_length = |algorithm: &Algorithm| 2 * algorithm.digest_len() == text.len();
            let is_whole = Algorithm::ALL.iter().any(has_length);
            is_lower && is_whole && Digest::from_hex(text.as_bytes()).is_some()
        }
        "algorithm" => Algorithm::from_name(text).is_some(),
        _ => true,
    };
    match (is_right, key) {
        (true, _) => Ok(text),
        (false, "limit" | "min_size") => Err(refuse("not a whole number")),
        (false, "from" | "to") => Err(refuse(
            "not a date (2026-11-22) or time (2026-11-22T08:00:00Z)",
        )),
        (false, "digest") => Err(refuse("not a whole digest in hexadecimal, in lower case")),
        (false, _) => Err(refuse("not an algorithm")),
    }
}

/// Returns the path as entries have it for joins: raw bytes that are no text are encoded, behind a
/// prefix that no path can begin with.
fn path_key(path: &[u8]) -> String {
    match std::str::from_utf8(path) {
        Ok(path) => path.to_owned(),
        Err(_) => {
            let mut key = b"/b64/".to_vec();
            base64::encode(&mut key, path);
            String::from_utf8_lossy(&key).into_owned()
        }
    }
}

/// True for an existing day, or a second of it in UTC.
fn is_moment(text: &str) -> bool {
    let time = match text.len() {
        10 => parse_rfc3339(&format!("{text}T00:00:00Z")),
        20 => parse_rfc3339(text),
        _ => None,
    };
    time.is_some()
}

/// Returns the text with which the beginnings of recorded times are compared; a day is meant to its
/// end, where growth ends, and from its beginning, where it starts.
fn moment(key: &str, text: &str) -> String {
    match (text.strip_suffix('Z'), key) {
        (Some(second), _) => second.to_owned(),
        (None, "from") => format!("{text}T00:00:00"),
        (None, _) => format!("{text}T23:59:59"),
    }
}
