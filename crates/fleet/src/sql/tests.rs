//! Values from outside, in both dialects.

use super::*;

fn asked(
    engine: Engine,
    query: Option<Query>,
    params: &[(&str, &[u8])],
) -> Result<String, SqlError> {
    let params: Vec<Param<'_>> = params
        .iter()
        .map(|&(key, value)| Param { key, value })
        .collect();
    sql(&Request {
        engine,
        query,
        params: &params,
        manifests: &[b"m.jsonl"],
    })
}

/// Returns the parameters that each question requires.
fn needed(query: Query) -> Vec<(&'static str, &'static [u8])> {
    match query {
        Query::Growth => vec![("from", b"2026-01-01"), ("to", b"2026-02-01T10:00:00Z")],
        Query::Find => vec![("digest", b"00ff00ff")],
        _ => Vec::new(),
    }
}

#[test]
fn every_place_is_filled_in() {
    for engine in Engine::ALL {
        let views = asked(engine, None, &[]).unwrap();
        for query in Query::ALL {
            let text = asked(engine, Some(query), &needed(query)).unwrap();
            assert!(!text.contains("{{") && !text.contains("}}"), "{text}");
            assert!(text.contains("'m.jsonl'") && text.len() > views.len() / 2);
        }
        assert!(!views.contains("{{"));
        assert!(views.lines().all(|line| line.len() <= 120));
    }
}

/// Takes the SQL apart as an engine does, strings and comments alone, and returns the text outside
/// of them. Backslashes have a meaning, or none.
fn outside(text: &str, backslash: bool) -> String {
    let mut out = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => {
                while let Some(inner) = letters.next() {
                    match inner {
                        '\\' if backslash => drop(letters.next()),
                        '\'' if letters.peek() == Some(&'\'') => drop(letters.next()),
                        '\'' => break,
                        _ => {}
                    }
                }
                // The kind of a literal is of no matter here.
                if [" E", "[E", "(E"].iter().any(|end| out.ends_with(end)) {
                    out.pop();
                }
                out.push('?');
            }
            '-' if letters.peek() == Some(&'-') => {
                letters.by_ref().find(|letter| *letter == '\n');
            }
            letter => out.push(letter),
        }
    }
    out
}

#[test]
fn no_value_ends_its_literal() {
    let hostile: [&[u8]; 9] = [
        b"'); COPY (SELECT 1) TO '/tmp/x'; --",
        b"\\'); DROP TABLE entries; --",
        b"\\",
        b"''",
        b"a\n'; SELECT 1;\n--",
        b"\n\\'; SELECT 1; --\x1b\x7f",
        b"${spark.sql.x}'",
        b"{{files}}'{{algorithm}}",
        "\u{2019}\u{ff07}'".as_bytes(),
    ];
    for engine in Engine::ALL {
        let ask = |names: &[&[u8]], path: &[u8], backup: &[u8]| {
            let find = sql(&Request {
                engine,
                query: Some(Query::Find),
                params: &[Param {
                    key: "path",
                    value: path,
                }],
                manifests: names,
            });
            let lost = sql(&Request {
                engine,
                query: Some(Query::Lost),
                params: &[Param {
                    key: "backups",
                    value: backup,
                }],
                manifests: names,
            });
            [find.unwrap(), lost.unwrap()]
        };
        let modes: &[bool] = match engine {
            Engine::DuckDb => &[false],
            Engine::Spark => &[false, true],
        };
        for &mode in modes {
            let harmless = ask(&[b"x"], b"x", b"x").map(|text| outside(&text, mode));
            for value in hostile {
                let texts = ask(&[value], value, value).map(|text| outside(&text, mode));
                assert_eq!(texts, harmless, "{}", value.escape_ascii());
            }
        }
    }
}

#[test]
fn what_is_not_of_its_kind_is_refused() {
    let refused = |query, params: &[(&str, &[u8])], why: &str| {
        for engine in Engine::ALL {
            let error = asked(engine, query, params).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    };
    let lost = Some(Query::Lost);
    refused(
        lost,
        &[("min_sizes", b"1")],
        "no such parameter; lost: algorithm, limit, min_size",
    );
    refused(
        None,
        &[("limit", b"1")],
        "no such parameter; the views: algorithm",
    );
    for bad in [
        &b"-1"[..],
        b"1;",
        b"1 OR 1",
        b"",
        b"99999999999999999999",
        b"0x10",
    ] {
        refused(lost, &[("min_size", bad)], "not a whole number");
    }
    refused(lost, &[("limit", b"1"), ("limit", b"2")], "given twice");
    refused(lost, &[("backups", b"a\0b")], "must not hold NUL");
    refused(lost, &[("backups", b"a\xff")], "no UTF-8");
    refused(lost, &[("algorithm", b"sha256' OR 1")], "not an algorithm");
    let growth = Some(Query::Growth);
    refused(
        growth,
        &[("from", b"2026-01-01")],
        "needs from=DATE and to=DATE",
    );
    let day = ("from", &b"2026-01-01"[..]);
    refused(growth, &[day, ("to", b"yesterday")], "not a date");
    refused(
        growth,
        &[day, ("to", b"2026-01-01T00:00:00'")],
        "not a date",
    );
    for never in [
        "2026-02-31",
        "2026-13-01",
        "2026-01-01T24:00:00Z",
        "2026-1-01",
    ] {
        refused(growth, &[day, ("to", never.as_bytes())], "not a date");
    }
    refused(
        growth,
        &[day, ("to", b"2025-12-31")],
        "from is later than to",
    );
    let find = Some(Query::Find);
    refused(find, &[], "find needs");
    refused(
        find,
        &[("digest", b"00ff00ff"), ("path", b"x")],
        "find needs",
    );
    for part in [&b"XY"[..], b"00ff00", b"00FF00FF"] {
        refused(find, &[("digest", part)], "not a whole digest");
    }
    refused(find, &[("path", b"x"), ("path", b"y")], "given twice");
    for names in [&[][..], &[&b""[..]], &[&b"a\xff"[..]], &[&b"a\0"[..]]] {
        let request = Request {
            engine: Engine::DuckDb,
            query: None,
            params: &[],
            manifests: names,
        };
        assert!(sql(&request).is_err());
    }
}

#[test]
fn paths_that_are_no_text_are_found_by_their_bytes() {
    let text = asked(Engine::DuckDb, Some(Query::Find), &[("path", b"a/\xff")]).unwrap();
    assert!(text.contains("path_key = '/b64/YS//'"), "{text}");
}

#[test]
fn names_that_are_there_are_no_patterns() {
    assert_eq!(exact(Engine::DuckDb, b"a*[b]?"), b"a[*][[]b][?]");
    assert_eq!(exact(Engine::DuckDb, b"a*[b]\\"), b"a*[b]\\");
    assert_eq!(exact(Engine::Spark, b"a*[b]\\"), br"a\*\[b\]\\");
}
