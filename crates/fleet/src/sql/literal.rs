//! Values from outside as literals of SQL: nothing in them can end the literal, whatever the engine
//! is set to.

use super::{Engine, SqlError};

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
