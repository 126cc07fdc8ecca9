//! Description of a run's work: only a run with the same one resumes from its journal.

use std::fmt::Write;

use bc_fs::Escaped;

/// Names and values of all inputs that decide which files are read and what is made of them: the
/// command, roots, options, the version of the program.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct JobInputs {
    fields: Vec<(String, Vec<u8>)>,
}

/// Values up to this many bytes are shown where they differ.
const SHOWN: usize = 80;

impl JobInputs {
    /// Adds a field. Fields of one name may be repeated, as roots are.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl AsRef<[u8]>) -> JobInputs {
        self.fields.push((name.to_owned(), value.as_ref().to_vec()));
        self
    }

    /// Returns the names and values, in the order in which they were given.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.fields.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Returns the names of the fields in which an `earlier` job differs, in words; `None` if there
    /// are none.
    pub fn difference(&self, earlier: &JobInputs) -> Option<String> {
        if self == earlier {
            return None;
        }
        let mut names: Vec<&String> = Vec::new();
        let all = earlier.fields.iter().chain(&self.fields);
        for (name, _) in all {
            if !names.contains(&name) && self.values(name) != earlier.values(name) {
                names.push(name);
            }
        }
        let mut text = String::new();
        for name in names {
            let gap = if text.is_empty() { "" } else { "; " };
            let (before, now) = (shown(&earlier.values(name)), shown(&self.values(name)));
            let _ = match (before.len() + now.len()) <= SHOWN {
                true => write!(text, "{gap}{name}: {before}, now {now}"),
                false => write!(text, "{gap}{name}"),
            };
        }
        // Equal fields in another order.
        Some(text)
            .filter(|text| !text.is_empty())
            .or_else(|| Some("order".to_owned()))
    }

    fn values(&self, name: &str) -> Vec<&[u8]> {
        let fields = self.fields.iter().filter(|field| field.0 == name);
        fields.map(|field| field.1.as_slice()).collect()
    }

    /// Appends it as a journal has it.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for (name, value) in &self.fields {
            for text in [name.as_bytes(), value] {
                out.extend_from_slice(&(text.len() as u32).to_le_bytes());
                out.extend_from_slice(text);
            }
        }
    }

    /// Returns the bytes that [`encode`](Self::encode) appends.
    pub(super) fn encoded_len(&self) -> usize {
        let fields = self.fields.iter();
        fields
            .map(|(name, value)| 8 + name.len() + value.len())
            .sum()
    }

    pub(super) fn decode(mut bytes: &[u8]) -> Option<JobInputs> {
        let mut text = || {
            let (length, rest) = bytes.split_first_chunk::<4>()?;
            let length = u32::from_le_bytes(*length) as usize;
            let text = rest.get(..length)?.to_vec();
            bytes = &rest[length..];
            Some((text, bytes.is_empty()))
        };
        let mut job = JobInputs::default();
        loop {
            let (name, _) = text()?;
            let (value, over) = text()?;
            job.fields.push((String::from_utf8(name).ok()?, value));
            if over {
                return Some(job);
            }
        }
    }
}

fn shown(values: &[&[u8]]) -> String {
    match values {
        [] => "none".to_owned(),
        values => {
            let texts = values.iter().map(|value| match value {
                [] => "none".to_owned(),
                value => Escaped(value).to_string(),
            });
            texts.collect::<Vec<_>>().join(" ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> JobInputs {
        JobInputs::default()
            .with("command", "hash")
            .with("root", b"/a\xff")
            .with("root", "/b")
            .with("exclude", "")
    }

    #[test]
    fn a_job_survives_its_journal() {
        let mut bytes = Vec::new();
        job().encode(&mut bytes);
        assert_eq!(bytes.len(), job().encoded_len());
        assert_eq!(JobInputs::decode(&bytes), Some(job()));
        assert!((0..bytes.len()).all(|len| JobInputs::decode(&bytes[..len]) != Some(job())));
    }

    #[test]
    fn what_differs_is_named() {
        assert_eq!(job().difference(&job()), None);
        let other = job().with("exclude", "*.o");
        assert_eq!(
            other.difference(&job()).unwrap(),
            "exclude: none, now none *.o"
        );
        let long = job().with("include", "x".repeat(SHOWN));
        assert_eq!(long.difference(&job()).unwrap(), "include");
        let swapped = JobInputs::default().with("b", "2").with("a", "1");
        let job = JobInputs::default().with("a", "1").with("b", "2");
        assert_eq!(swapped.difference(&job).unwrap(), "order");
    }
}
