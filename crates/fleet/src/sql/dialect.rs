//! Differences between the SQL of the two engines: expressions that the texts use more than once,
//! and values from outside as literals. Nothing in a value can end its literal, whatever the engine
//! is set to.

use super::{Engine, SqlError};

/// Pattern of a time in UTC, as in manifests (RFC 3339): a regular expression without backslashes,
/// which a setting of Spark gives a meaning.
pub(super) const TIME: &str =
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?Z$";

/// Returns the column with the name of the file that lines were read from, as the engine lists
/// files. Spark escapes the names that it gives with lines as those of an URI.
pub(super) fn file_name(engine: Engine) -> &'static str {
    match engine {
        Engine::DuckDb => "counted.manifest",
        Engine::Spark => {
            "regexp_replace(url_decode(replace(counted.manifest, '+', '%2B')), '^file:/+', 'file:/')"
        }
    }
}

/// Returns the latest time that a manifest can be of, in UTC: in an hour, since clocks differ.
pub(super) fn soon(engine: Engine) -> &'static str {
    match engine {
        Engine::DuckDb => {
            "strftime(make_timestamp(epoch_us(now()) + 3600000000), '%Y-%m-%dT%H:%M:%S')"
        }
        Engine::Spark => {
            "concat_ws('T',
          date_format(to_utc_timestamp(now() + INTERVAL 1 HOUR, current_timezone()), 'yyyy-MM-dd'),
          date_format(to_utc_timestamp(now() + INTERVAL 1 HOUR, current_timezone()), 'HH:mm:ss'))"
        }
    }
}

/// Returns an expression that is true if the source of a mount names a file system that several
/// machines can mount, as servers and clusters have it: `server:/export`, `//server/share`,
/// `user@fsid.name=/path`. Devices are paths; a bare word may be anything.
pub(super) fn is_shared(source: &str) -> String {
    format!(
        "({source} LIKE '//%' OR {source} NOT LIKE '/%'
        AND ({source} LIKE '%:%' OR {source} LIKE '%=%' OR {source} LIKE '%@%'))"
    )
}

/// Returns the first commands for the engine's shell: it ends at the first error, since an
/// incomplete answer must not count.
pub(super) fn beginning(engine: Engine) -> &'static str {
    match engine {
        Engine::DuckDb => ".bail on\n",
        Engine::Spark => "",
    }
}

/// Returns commands for the engine's shell before and behind output that is no part of the answer:
/// a second table in the middle of CSV makes that unreadable. `/dev/stderr` would be cut short
/// where it is a file.
pub(super) fn aside(engine: Engine) -> (&'static str, &'static str) {
    match engine {
        Engine::DuckDb => (".output \"|cat >&2\"\n", ".output\n"),
        Engine::Spark => ("", ""),
    }
}

/// Ways to write a value.
pub(super) struct Literal;

impl Literal {
    /// Returns a string literal, on one line.
    ///
    /// In DuckDB a quote is doubled and nothing else has a meaning; control characters need the
    /// kind of literal in which a backslash has one, which is doubled there. In Spark a setting
    /// decides whether a backslash has one: quotes, backslashes and control characters are written
    /// by their numbers there, which are taken for other text at worst.
    pub(super) fn text(engine: Engine, value: &str) -> Result<String, SqlError> {
        if value.contains('\0') {
            return Err(SqlError::new("a value must not hold NUL"));
        }
        let has_control = value.chars().any(|letter| letter.is_ascii_control());
        let mut literal = String::with_capacity(value.len() + 3);
        if engine == Engine::DuckDb && has_control {
            literal.push('E');
        }
        literal.push('\'');
        for letter in value.chars() {
            let number = letter as u32;
            match (engine, letter) {
                (Engine::DuckDb, '\'') => literal.push_str("''"),
                (Engine::DuckDb, '\\') if has_control => literal.push_str("\\\\"),
                (Engine::DuckDb, _) if letter.is_ascii_control() => {
                    literal.push_str(&format!("\\x{number:02x}"));
                }
                // A dollar begins what Spark would replace by the value of a variable before it
                // takes the text apart.
                (Engine::Spark, '\'' | '\\' | '$') => literal.push_str(&format!("\\u{number:04X}")),
                (Engine::Spark, _) if letter.is_ascii_control() => {
                    literal.push_str(&format!("\\u{number:04X}"));
                }
                _ => literal.push(letter),
            }
        }
        literal.push('\'');
        Ok(literal)
    }

    /// Returns the literal of a file's name.
    pub(super) fn of_name(engine: Engine, name: &[u8]) -> Result<String, SqlError> {
        match std::str::from_utf8(name) {
            Ok("") => Err(SqlError::new("a name of a manifest is empty")),
            Ok(name) => Literal::text(engine, name),
            Err(_) => Err(SqlError::new(
                "a name of a manifest is no UTF-8: engines cannot open it by that",
            )),
        }
    }

    /// Returns the literal of a string, or none.
    pub(super) fn optional(engine: Engine, value: Option<&str>) -> Result<String, SqlError> {
        match value {
            Some(value) => Literal::text(engine, value),
            None => Ok("CAST(NULL AS VARCHAR(20))".to_owned()),
        }
    }
}
