//! Times as people write them for `--newer` and `--older`: a date, a time, or how long ago.

use std::str::FromStr;

use bc_manifest::time::parse_rfc3339;

const SECOND: i64 = 1_000_000_000;

/// A bound of times of modification.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TimeBound {
    /// Text that was typed.
    text: String,
    kind: BoundKind,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum BoundKind {
    /// Nanoseconds since 1970.
    At(i64),
    /// Nanoseconds before the command starts.
    Ago(i64),
}

impl TimeBound {
    /// Returns the bound in nanoseconds since 1970.
    pub fn at(&self, now: i64) -> i64 {
        match self.kind {
            BoundKind::At(time) => time,
            BoundKind::Ago(span) => now.saturating_sub(span),
        }
    }

    /// True for how long ago, which each run reckons from its own start.
    pub fn is_span(&self) -> bool {
        matches!(self.kind, BoundKind::Ago(_))
    }

    /// Returns the bound as a journal records it: a span stays one, so that the same command
    /// resumes.
    pub fn recorded(&self) -> String {
        match self.kind {
            BoundKind::At(time) => format!("@{time}"),
            BoundKind::Ago(_) => self.text.clone(),
        }
    }
}

impl FromStr for TimeBound {
    type Err = String;

    fn from_str(text: &str) -> Result<TimeBound, String> {
        let of_epoch = || text.strip_prefix('@').map(seconds);
        let kind = match of_epoch() {
            Some(time) => time.map(BoundKind::At),
            None => span(text)
                .map(BoundKind::Ago)
                .or_else(|| date(text).map(BoundKind::At)),
        };
        let text = text.to_owned();
        match kind {
            Some(kind) => Ok(TimeBound { text, kind }),
            None if is_beyond(&text) => Err(format!(
                "'{text}' is before 1677-09-22 or after 2262-04-11: no such time is recorded or compared"
            )),
            None => Err(format!(
                "'{text}' is no time; write a date (2024-05-31), a time (2024-05-31T18:00:00Z), how long ago (2d, \
                 12h, 30m) or seconds since 1970 (@1717178400)"
            )),
        }
    }
}

/// Reads seconds with at most nine digits of a fraction, as nanoseconds.
fn seconds(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_fraction = (1..=9).contains(&fraction.len());
    let digits = is_fraction && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let part: i64 = digits.then(|| format!("{fraction:0<9}").parse().ok())??;
    let whole: i64 = whole.parse().ok()?;
    let part = if text.starts_with('-') { -part } else { part };
    whole.checked_mul(SECOND)?.checked_add(part)
}

/// True for what would be a time, were it nearer to now.
fn is_beyond(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if let Some(seconds) = text.strip_prefix('@') {
        let seconds = seconds.strip_prefix('-').unwrap_or(seconds);
        let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
        return is_number(whole) && is_number(fraction) && fraction.len() <= 9;
    }
    let (year, rest) = text.split_at_checked(4).unwrap_or_default();
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_date = is_number(year) && date(&format!("2000{rest}")).is_some();
    is_date || unit.len() < text.len() && span(&format!("1{unit}")).is_some()
}

/// A span of time, such as `30d`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TimeSpan(i64);

impl TimeSpan {
    /// Returns the span in nanoseconds.
    pub fn ns(self) -> i64 {
        self.0
    }
}

impl FromStr for TimeSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<TimeSpan, String> {
        let wrong = || format!("'{text}' is no span of time, such as 30d, 12h or 2w");
        span(text).map(TimeSpan).ok_or_else(wrong)
    }
}

/// Reads a number and its unit, as nanoseconds.
fn span(text: &str) -> Option<i64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let unit = match unit {
        "s" | "sec" | "second" | "seconds" => 1,
        "m" | "min" | "minute" | "minutes" => 60,
        "h" | "hour" | "hours" => 3600,
        "d" | "day" | "days" => 86_400,
        "w" | "week" | "weeks" => 7 * 86_400,
        _ => return None,
    };
    number.parse::<i64>().ok()?.checked_mul(unit * SECOND)
}

/// Reads a date, or a time in UTC or with an offset, as nanoseconds since 1970.
fn date(text: &str) -> Option<i64> {
    let Some((date, time)) = text.split_once(['T', ' ']) else {
        return parse_rfc3339(&format!("{text}T00:00:00Z"));
    };
    let (time, offset) = match time.find(['Z', '+', '-']) {
        Some(at) => (&time[..at], offset(&time[at..])?),
        None => (time, 0),
    };
    let seconds = if time.len() == 5 { ":00" } else { "" };
    parse_rfc3339(&format!("{date}T{time}{seconds}Z"))?.checked_sub(offset)
}

/// Reads `Z` or `+02:00`, as nanoseconds.
fn offset(text: &str) -> Option<i64> {
    if text == "Z" {
        return Some(0);
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = text.get(1..)?.split_once(':')?;
    let number = |text: &str, most: i64| {
        let is_two = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = is_two.then(|| text.parse::<i64>().ok())??;
        (number <= most).then_some(number)
    };
    Some(sign * (number(hours, 23)? * 3600 + number(minutes, 59)? * 60) * SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_people_write_them() {
        let now = 2_000_000_000 * SECOND;
        let at = |text: &str| text.parse::<TimeBound>().ok().map(|bound| bound.at(now));
        for (text, seconds) in [
            ("@0", 0),
            ("@-5", -5),
            ("1970-01-02", 86_400),
            ("1970-01-02T01:00:00Z", 90_000),
            ("1970-01-02 01:00:00", 90_000),
            ("1970-01-02T01:00", 90_000),
            ("1970-01-02T01:00:00+01:00", 86_400),
            ("1970-01-02T01:00-00:30", 91_800),
            ("30s", 1_999_999_970),
            ("2m", 1_999_999_880),
            ("1h", 1_999_996_400),
            ("2d", 1_999_827_200),
            ("1week", 1_999_395_200),
        ] {
            assert_eq!(at(text), Some(seconds * SECOND), "{text}");
        }
        assert_eq!(at("@1.5"), Some(1_500_000_000));
        assert_eq!(at("@-1.5"), Some(-1_500_000_000));
        assert_eq!(at("@1.000000001"), Some(1_000_000_001));
        for wrong in [
            "",
            "2",
            "d",
            "2x",
            "-2d",
            "yesterday",
            "@",
            "@x",
            "@1.",
            "@1.0000000001",
            "2024-02-30",
            "2024-05-31T25:00",
            "2024-05-31T10:00+2",
            "2024-05-31T",
            "99999999999w",
            "20240531",
        ] {
            assert!(at(wrong).is_none(), "{wrong}");
        }
        let why = |text: &str| text.parse::<TimeBound>().unwrap_err();
        for distant in [
            "1600-01-01",
            "2400-02-29",
            "2263-01-01T10:00+02:00",
            "@99999999999",
            "@-99999999999.5",
            "99999999999w",
        ] {
            assert!(why(distant).contains("2262"), "{distant}: {}", why(distant));
        }
        for wrong in [
            "1600-13-01",
            "2400",
            "@",
            "@9x",
            "99999999999x",
            "1600-01-01T",
        ] {
            assert!(why(wrong).contains("is no time"), "{wrong}: {}", why(wrong));
        }
    }

    #[test]
    fn a_span_is_recorded_as_one() {
        let recorded = |text: &str| text.parse::<TimeBound>().unwrap().recorded();
        assert_eq!(recorded("2d"), "2d");
        assert_eq!(recorded("1970-01-01T00:00:01Z"), "@1000000000");
    }
}
