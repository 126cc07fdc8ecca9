//! Times as manifests write them: RFC 3339 in UTC, from nanoseconds since 1970 and back.
//!
//! Done here and not by `jiff`, with which the format would be checked here all the same: it also
//! takes other separators, offsets, leap seconds and times without seconds. What would be left to it
//! are two functions of the calendar, for a quarter of a megabyte of program.

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400;

/// Returns `2026-11-21T02:51:37Z`, with a fraction of nine digits only if there is one. Every `i64`
/// has a form (years 1677 to 2262).
pub fn format_rfc3339(nanoseconds: i64) -> String {
    let (seconds, fraction) = (
        nanoseconds.div_euclid(SECOND),
        nanoseconds.rem_euclid(SECOND),
    );
    let (days, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    let (year, month, day) = civil_from_days(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let fraction = if fraction == 0 {
        String::new()
    } else {
        format!(".{fraction:09}")
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// True if this stands for a time that 64 bits of nanoseconds cannot hold, after 2262-04-11 or
/// before 1677-09-22. Such times are all recorded as the last or the first value, so that two of
/// them that look equal may be any two. Earlier versions put a fraction of a second on the first.
pub const fn is_beyond(nanoseconds: i64) -> bool {
    nanoseconds == i64::MAX || nanoseconds < i64::MIN + SECOND
}

/// Formats like [`format_rfc3339`], but returns only the known bound for a time that could not be
/// held.
pub fn describe(nanoseconds: i64) -> String {
    match (is_beyond(nanoseconds), nanoseconds > 0) {
        (true, true) => "after 2262-04-11".to_owned(),
        (true, false) => "before 1677-09-22".to_owned(),
        (false, _) => format_rfc3339(nanoseconds),
    }
}

/// Reads exactly the form that [`format_rfc3339`] writes (UTC as `Z`, a fraction of one to
/// nine digits allowed); `None` for anything else, leap seconds included.
pub fn parse_rfc3339(text: &str) -> Option<i64> {
    let text = text.strip_suffix('Z')?;
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, digits)) if (1..=9).contains(&digits.len()) => (
            whole,
            number(digits.as_bytes())? * 10i64.pow(9 - digits.len() as u32),
        ),
        Some(_) => return None,
        None => (text, 0),
    };
    let bytes = whole.as_bytes();
    if bytes.len() != 19
        || ![(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')]
            .iter()
            .all(|&(at, b)| bytes[at] == b)
    {
        return None;
    }
    let part = |from: usize, to: usize| number(&bytes[from..to]);
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let (hour, minute, second) = (part(11, 13)?, part(14, 16)?, part(17, 19)?);
    let days = days_from_civil(year, month, day);
    if hour > 23 || minute > 59 || second > 59 || civil_from_days(days) != (year, month, day) {
        return None;
    }
    let seconds = i128::from(days * DAY + hour * 3600 + minute * 60 + second);
    i64::try_from(seconds * i128::from(SECOND) + i128::from(fraction)).ok()
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |value, digit| {
        digit
            .is_ascii_digit()
            .then(|| value * 10 + i64::from(digit - b'0'))
    })
}

/// Converts days since 1970-01-01 to year, month, day of the proleptic Gregorian calendar. From
/// Howard Hinnant, "chrono-compatible low-level date algorithms": eras of 400 years, years that
/// begin in March so that the leap day comes last.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Converts a date to days since 1970-01-01, by the inverse from the same source.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_times() {
        // Computed with `date -u -d @SECONDS +%FT%TZ`.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (1_795_229_497, "2026-11-21T02:51:37Z"),
            (-2_208_988_800, "1900-01-01T00:00:00Z"),
        ] {
            assert_eq!(format_rfc3339(seconds * SECOND), text);
            assert_eq!(parse_rfc3339(text), Some(seconds * SECOND));
        }
        assert_eq!(format_rfc3339(-1), "1969-12-31T23:59:59.999999999Z");
        assert_eq!(parse_rfc3339("1970-01-01T00:00:00.5Z"), Some(SECOND / 2));
    }

    #[test]
    fn times_that_cannot_be_held() {
        for (time, words) in [
            (i64::MAX, "after 2262-04-11"),
            (i64::MIN, "before 1677-09-22"),
            (i64::MIN + SECOND - 1, "before 1677-09-22"),
        ] {
            assert!(is_beyond(time));
            assert_eq!(describe(time), words);
        }
        for time in [i64::MAX - 1, i64::MIN + SECOND, 0, -1] {
            assert!(!is_beyond(time));
            assert_eq!(describe(time), format_rfc3339(time));
        }
    }

    #[test]
    fn refuses_other_forms() {
        for text in [
            "",
            "Z",
            "1970-01-01T00:00:00",
            "1970-01-01 00:00:00Z",
            "1970-01-01T00:00:00.Z",
            "1970-01-01T00:00:00.0000000001Z",
            "2023-02-29T00:00:00Z",
            "2023-13-01T00:00:00Z",
            "2023-00-10T00:00:00Z",
            "2023-01-01T24:00:00Z",
            "2023-01-01T23:60:00Z",
            "2023-01-01T23:59:60Z",
            "9999-01-01T00:00:00Z",
            "+970-01-01T00:00:00Z",
            "1970-01-01T00:00:00+00:00",
        ] {
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(time: i64) {
            prop_assert_eq!(parse_rfc3339(&format_rfc3339(time)), Some(time));
        }

        #[test]
        fn any_text_is_fine(text: String) {
            let _ = parse_rfc3339(&text);
        }
    }
}
