//! What the two engines say in other words, and what the texts say more than once.

use super::Engine;

/// What a time in UTC is, as manifests have it (RFC 3339): a regular expression without
/// backslashes, which a setting of Spark gives a meaning.
pub(super) const TIME: &str =
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?Z$";

/// The name of the file that lines were counted of, as the engine lists files. Spark escapes the
/// names that it gives with lines as those of an URI.
pub(super) fn file_name(engine: Engine) -> &'static str {
    match engine {
        Engine::DuckDb => "counted.manifest",
        Engine::Spark => {
            "regexp_replace(url_decode(replace(counted.manifest, '+', '%2B')), '^file:/+', 'file:/')"
        }
    }
}

/// The latest time that a manifest can be of, in UTC: in an hour, since clocks differ.
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

/// Whether the source of a mount names a file system that several machines can mount, as servers
/// and clusters have it: `server:/export`, `//server/share`, `user@fsid.name=/path`. Devices are
/// paths; a bare word may be anything.
pub(super) fn is_shared(source: &str) -> String {
    format!(
        "({source} LIKE '//%' OR {source} NOT LIKE '/%'
        AND ({source} LIKE '%:%' OR {source} LIKE '%=%' OR {source} LIKE '%@%'))"
    )
}

/// What the engine's shell is told first: half an answer is none.
pub(super) fn beginning(engine: Engine) -> &'static str {
    match engine {
        Engine::DuckDb => ".bail on\n",
        Engine::Spark => "",
    }
}

/// What the engine's shell is told before and behind what is no part of the answer: a table of its
/// own in the middle of CSV is none that can be read. `/dev/stderr` would be cut short where it is a
/// file.
pub(super) fn aside(engine: Engine) -> (&'static str, &'static str) {
    match engine {
        Engine::DuckDb => (".output \"|cat >&2\"\n", ".output\n"),
        Engine::Spark => ("", ""),
    }
}
