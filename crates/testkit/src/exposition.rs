//! A strict parser of Prometheus' text exposition format, version 0.0.4, as its specification
//! states it: a collector may refuse the same texts.

use std::collections::BTreeMap;

/// One line with a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Name of the metric.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its value.
    pub value: f64,
}

/// Parses a whole exposition.
///
/// # Errors
/// The first line that is not as the format wants it, with its number.
pub fn parse(text: &str) -> Result<Vec<Sample>, String> {
    if !text.ends_with('\n') {
        return Err("the last line does not end".to_owned());
    }
    let mut state = State::default();
    for (at, line) in text.lines().enumerate() {
        state
            .line(line)
            .map_err(|error| format!("line {}: {error}: {line:?}", at + 1))?;
    }
    Ok(state.samples)
}

#[derive(Default)]
struct State {
    samples: Vec<Sample>,
    helps: Vec<String>,
    types: Vec<String>,
    /// The metrics in the order of their groups; the last is the present one.
    groups: Vec<String>,
}

impl State {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words[..] {
            [""] => Ok(()),
            ["#", "HELP", name, text] => {
                metric_name(name)?;
                unescaped(text, false)?;
                self.group(name)?;
                once(&mut self.helps, name)
            }
            ["#", "TYPE", name, kind] => {
                metric_name(name)?;
                if self.samples.iter().any(|sample| sample.name == name) {
                    return Err("a type after the samples".to_owned());
                }
                if !["counter", "gauge", "histogram", "summary", "untyped"].contains(&kind) {
                    return Err("no such type".to_owned());
                }
                self.group(name)?;
                once(&mut self.types, name)
            }
            ["#", "HELP" | "TYPE", ..] => Err("an incomplete comment".to_owned()),
            ["#", ..] => Ok(()),
            _ => {
                let sample = sample(line)?;
                self.group(&sample.name)?;
                let same = |s: &Sample| s.name == sample.name && s.labels == sample.labels;
                if self.samples.iter().any(same) {
                    return Err("the same name and labels twice".to_owned());
                }
                self.samples.push(sample);
                Ok(())
            }
        }
    }

    /// Checks that all lines of a metric are adjacent.
    fn group(&mut self, name: &str) -> Result<(), String> {
        if self.groups.last().is_some_and(|last| last == name) {
            return Ok(());
        }
        once(&mut self.groups, name)
    }
}

fn once(seen: &mut Vec<String>, name: &str) -> Result<(), String> {
    if seen.iter().any(|one| one == name) {
        return Err("a second time".to_owned());
    }
    seen.push(name.to_owned());
    Ok(())
}

fn metric_name(name: &str) -> Result<(), String> {
    let mut chars = name.chars();
    let first = chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_' || c == ':');
    if first && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':') {
        Ok(())
    } else {
        Err(format!("{name:?} is no name of a metric"))
    }
}

/// Parses `name{label="value",...} value [timestamp]`
fn sample(line: &str) -> Result<Sample, String> {
    let end = line.find(['{', ' ']).ok_or("no value")?;
    let name = &line[..end];
    metric_name(name)?;
    let mut rest = &line[end..];
    let mut labels = BTreeMap::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        while !rest.starts_with('}') {
            let (label, after) = rest.split_once("=\"").ok_or("a label without a value")?;
            metric_name(label)?;
            if label.contains(':') {
                return Err("a colon in a label".to_owned());
            }
            let end = closing_quote(after).ok_or("an open quote")?;
            let value = unescaped(&after[..end], true)?;
            if labels.insert(label.to_owned(), value).is_some() {
                return Err(format!("label {label} twice"));
            }
            rest = &after[end + 1..];
            match rest.strip_prefix(',') {
                Some(more) => rest = more,
                None if rest.starts_with('}') => {}
                None => return Err("no comma between labels".to_owned()),
            }
        }
        rest = &rest[1..];
    }
    let mut words = rest.strip_prefix(' ').ok_or("no space")?.split(' ');
    let value = match words.next().unwrap_or("") {
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        "NaN" => f64::NAN,
        number if number.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => {
            number.parse().map_err(|_| "no number".to_owned())?
        }
        _ => return Err("no number".to_owned()),
    };
    if let Some(timestamp) = words.next() {
        let _: i64 = timestamp.parse().map_err(|_| "no timestamp".to_owned())?;
    }
    if words.next().is_some() {
        return Err("more than a timestamp".to_owned());
    }
    Ok(Sample {
        name: name.to_owned(),
        labels,
        value,
    })
}

/// Returns the index of the first quote that no backslash escapes.
fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

/// Decodes text whose backslashes mean `\\`, `\n` and, in quotes, `\"`.
fn unescaped(text: &str, quotes: bool) -> Result<String, String> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('\\') => out.push('\\'),
                Some('n') => out.push('\n'),
                Some('"') if quotes => out.push('"'),
                other => return Err(format!("unknown escape {other:?}")),
            },
            c => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn reads_what_the_specification_shows() {
        let text = "# HELP a_total A \\\\ line.\n# TYPE a_total counter\n\
                    a_total{path=\"C:\\\\D\\\"\\n\",code=\"2\",} 1.5e3 -1395066363000\n\
                    # a comment\n\nb +Inf\n";
        let samples = parse(text).unwrap();
        assert_eq!(samples.len(), 2);
        assert_eq!(samples[0].labels["path"], "C:\\D\"\n");
        assert_eq!(samples[0].value, 1500.0);
        assert_eq!(samples[1].value, f64::INFINITY);
    }

    #[test]
    fn refuses_what_is_wrong() {
        for text in [
            "a 1",
            "1a 1\n",
            "a-b 1\n",
            "a\n",
            "a  1\n",
            "a one\n",
            "a inf\n",
            "a 1 2 3\n",
            "a{x=1} 1\n",
            "a{x=\"1\"y=\"2\"} 1\n",
            "a{x=\"1\",x=\"2\"} 1\n",
            "a{x=\"\\t\"} 1\n",
            "a{x=\"1} 1\n",
            "a 1\na 1\n",
            "a 1\n# TYPE a gauge\n",
            "# TYPE a gouge\na 1\n",
            "# TYPE a\na 1\n",
            "a{x=\"1\"} 1\nb 1\na{x=\"2\"} 1\n",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
