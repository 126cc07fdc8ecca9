//! Questions about many manifests, as SQL for the engines that answer them: DuckDB on one machine,
//! Spark on a cluster. The texts are in the folder `sql` of this crate; here they are filled in.
//!
//! Values from outside get into them only as literals, which nothing in them can end.
//!
//! ```
//! use bc_fleet::sql::{Engine, Param, Query, Request, sql};
//!
//! let request = Request::new(Engine::DuckDb, &[b"it's/*.jsonl.zst"])
//!     .query(Some(Query::Duplicates))
//!     .params(&[Param { key: "min_size", value: b"4096" }]);
//! let text = sql(&request)?;
//! assert!(text.contains("'it''s/*.jsonl.zst'") && text.contains("size >= 4096"));
//! # Ok::<(), bc_fleet::sql::SqlError>(())
//! ```

mod dialect;
mod params;
mod sources;

use std::collections::BTreeMap;
use std::fmt;

use self::params::Values;
use self::sources::fill;

/// An engine that answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Engine {
    /// DuckDB, 1.3 or later.
    DuckDb,
    /// Spark SQL, 3.5 or later.
    Spark,
}

impl Engine {
    /// All engines.
    pub const ALL: [Engine; 2] = [Engine::DuckDb, Engine::Spark];

    /// Returns its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::DuckDb => "duckdb",
            Engine::Spark => "spark",
        }
    }
}

/// A question.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Query {
    /// Content in more than one place.
    Duplicates,
    /// Content in one place only, or in no backup.
    Unprotected,
    /// Content of older manifests that is nowhere now.
    Lost,
    /// Content that changed while size and time did not.
    Decayed,
    /// Content under other paths than before.
    Moved,
    /// Bytes in further copies within a place, by directory.
    Waste,
    /// Growth since an earlier time.
    Growth,
    /// Places of a digest, or of a path.
    Find,
}

impl Query {
    /// All queries.
    pub const ALL: [Query; 8] = [
        Query::Duplicates,
        Query::Unprotected,
        Query::Lost,
        Query::Decayed,
        Query::Moved,
        Query::Waste,
        Query::Growth,
        Query::Find,
    ];

    /// Returns its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Query::Duplicates => "duplicates",
            Query::Unprotected => "unprotected",
            Query::Lost => "lost",
            Query::Decayed => "decayed",
            Query::Moved => "moved",
            Query::Waste => "waste",
            Query::Growth => "growth",
            Query::Find => "find",
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Query::Duplicates => include_str!("../../sql/queries/duplicates.sql"),
            Query::Unprotected => include_str!("../../sql/queries/unprotected.sql"),
            Query::Lost => include_str!("../../sql/queries/lost.sql"),
            Query::Decayed => include_str!("../../sql/queries/decayed.sql"),
            Query::Moved => include_str!("../../sql/queries/moved.sql"),
            Query::Waste => include_str!("../../sql/queries/waste.sql"),
            Query::Growth => include_str!("../../sql/queries/growth.sql"),
            Query::Find => include_str!("../../sql/queries/find.sql"),
        }
    }
}

/// Parameter of a question: see [`sql`].
#[derive(Clone, Copy, Debug)]
pub struct Param<'a> {
    /// Its name.
    pub key: &'a str,
    /// Raw bytes: a path may be no text.
    pub value: &'a [u8],
}

/// A question about some manifests.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Request<'a> {
    /// Engine that is to answer.
    pub engine: Engine,
    /// The question; `None` for the views alone.
    pub query: Option<Query>,
    /// Parameters of the question.
    pub params: &'a [Param<'a>],
    /// Names of files, or patterns as the engine has them; see [`exact`].
    pub manifests: &'a [&'a [u8]],
}

impl<'a> Request<'a> {
    /// Makes a request for the views of these manifests; names of files, or patterns as the engine
    /// has them.
    pub fn new(engine: Engine, manifests: &'a [&'a [u8]]) -> Request<'a> {
        Request {
            engine,
            query: None,
            params: &[],
            manifests,
        }
    }

    /// Sets the question.
    #[must_use]
    pub fn query(mut self, query: Option<Query>) -> Request<'a> {
        self.query = query;
        self
    }

    /// Sets the parameters of the question.
    #[must_use]
    pub fn params(mut self, params: &'a [Param<'a>]) -> Request<'a> {
        self.params = params;
        self
    }
}

/// Reason why there is no SQL for the request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SqlError(String);

impl SqlError {
    fn new(text: impl Into<String>) -> SqlError {
        SqlError(text.into())
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SqlError {}

/// Returns SQL that defines the views `manifests`, `entries` and `warnings` over these manifests,
/// lists what no answer covers, and asks the question. DuckDB's shell is set to end at the first
/// error, and to print the warnings on standard error, by lines that begin with a dot: elsewhere
/// they are to be left out.
///
/// Parameters: `algorithm` for all, if not the digests that most manifests have are to be compared;
/// `limit` for all; `min_size` in bytes for duplicates, unprotected, lost and waste; `backups`,
/// files or patterns, any number of them, for unprotected and lost; `from` and `to` (dates, or RFC
/// 3339 in UTC) for growth, which needs both; `digest` or `path` for find.
///
/// # Errors
/// A parameter that is unknown, repeated, missing or malformed; a name with a NUL, or that is no
/// text; no manifests.
pub fn sql(request: &Request<'_>) -> Result<String, SqlError> {
    if request.manifests.is_empty() {
        return Err(SqlError::new("no manifests are named"));
    }
    let values = Values::new(request)?;
    let engine = request.engine;
    let mut text = dialect::beginning(engine).to_owned();
    text.push_str(&sources::sources(request, &values)?);
    let (stored, cache) = match engine {
        Engine::DuckDb => ("TABLE", ""),
        Engine::Spark => ("VIEW", "CACHE TABLE manifests;\n"),
    };
    let views = BTreeMap::from([
        ("stored", stored.to_owned()),
        ("cache", cache.to_owned()),
        ("algorithm", values.algorithm(engine)),
        ("file_name", dialect::file_name(engine).to_owned()),
        ("soon", dialect::soon(engine).to_owned()),
        ("time", dialect::TIME.to_owned()),
        ("mount_source_is_shared", dialect::is_shared("mount_source")),
        ("mount_is_shared", dialect::is_shared("d.mount")),
    ]);
    text.push_str(&fill(include_str!("../../sql/views.sql"), &views));
    text.push_str(include_str!("../../sql/warnings.sql"));
    match request.query {
        Some(query) => {
            let (before, after) = dialect::aside(engine);
            text.push('\n');
            text.push_str(before);
            text.push_str("SELECT * FROM warnings ORDER BY warning, manifest;\n");
            text.push_str(after);
            text.push('\n');
            text.push_str(&fill(query.text(), &values.of_query(engine)));
        }
        None => text.push_str(match engine {
            Engine::DuckDb => include_str!("../../sql/parquet_duckdb.sql"),
            Engine::Spark => include_str!("../../sql/parquet_spark.sql"),
        }),
    }
    Ok(text)
}

/// The pattern that the file of this name, which is there, matches, and no other. DuckDB takes a name
/// as it is if there is such a file, and by the time it looks there may be none; in its patterns
/// each special letter stands in brackets, and a name with `\\` has none.
pub fn exact(engine: Engine, name: &[u8]) -> Vec<u8> {
    let mut pattern = Vec::with_capacity(name.len());
    for byte in name {
        match engine {
            Engine::Spark if b"*?[]{}\\".contains(byte) => pattern.extend([b'\\', *byte]),
            Engine::DuckDb if b"*?[".contains(byte) && !name.contains(&b'\\') => {
                pattern.extend([b'[', *byte, b']']);
            }
            _ => pattern.push(*byte),
        }
    }
    pattern
}

#[cfg(test)]
mod tests;
