//! Values from outside as literals of SQL: nothing in them can end the literal, whatever the engine
//! is set to.

use super::{Engine, SqlError};

/// Ways to write a value.
pub(super) struct Literal;

impl Literal {
    /// A string.
    ///
    /// In DuckDB a quote is doubled and nothing else has a meaning. In Spark a setting says whether
    /// a backslash has one: quotes and backslashes are written by their numbers there, which are
    /// taken for other text at worst.
    pub(super) fn text(engine: Engine, value: &str) -> Result<String, SqlError> {
        if value.contains('\0') {
            return Err(SqlError::new("a value must not hold NUL"));
        }
        let mut literal = String::with_capacity(value.len() + 2);
        literal.push('\'');
        for letter in value.chars() {
            match (engine, letter) {
                (Engine::DuckDb, '\'') => literal.push_str("''"),
                (Engine::Spark, '\'') => literal.push_str("\\u0027"),
                (Engine::Spark, '\\') => literal.push_str("\\u005C"),
                // What Spark would replace by the value of a variable before it takes it apart.
                (Engine::Spark, '$') => literal.push_str("\\u0024"),
                _ => literal.push(letter),
            }
        }
        literal.push('\'');
        Ok(literal)
    }

    /// The name of a file.
    pub(super) fn of_name(engine: Engine, name: &[u8]) -> Result<String, SqlError> {
        match std::str::from_utf8(name) {
            Ok("") => Err(SqlError::new("a name of a manifest is empty")),
            Ok(name) => Literal::text(engine, name),
            Err(_) => Err(SqlError::new(
                "a name of a manifest is no UTF-8: engines cannot open it by that",
            )),
        }
    }

    /// A string, or none.
    pub(super) fn optional(engine: Engine, value: Option<&str>) -> Result<String, SqlError> {
        match value {
            Some(value) => Literal::text(engine, value),
            None => Ok("CAST(NULL AS VARCHAR(20))".to_owned()),
        }
    }
}
