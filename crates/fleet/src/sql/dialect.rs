//! Differences between the SQL of the two engines, and expressions that the texts use more than
//! once.

use super::Engine;

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
