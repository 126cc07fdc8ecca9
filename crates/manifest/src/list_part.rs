//! Fields of a JSON list of `bc hash` made by one of several readers of a tree: in its header the
//! number of the part and the job, in its summary the figures needed to put the parts together.

use serde_json::{Map, Value, json};

use crate::integrity::ShardHeader;

/// The key of both.
const KEY: &str = "shard";

/// Part that a list covers, and the work that it is a part of.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListPart {
    /// Number of the part.
    pub shard: ShardHeader,
    /// Names and values of the options that decide which files are read and what is made of them.
    /// Parts of one work have the same.
    pub job: Vec<(String, String)>,
}

/// Sets of directories of a walk, each as how many they are and the sum of a hash of their paths.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ListPartEnd {
    /// Directories of the part that are known to their end.
    pub settled: (u64, u64),
    /// Directories of all parts that the walk came upon.
    pub met: (u64, u64),
}

impl ListPart {
    /// Returns the fields of a header beside its other keys.
    pub fn to_fields(&self) -> Map<String, Value> {
        let mut value = self.shard.to_value();
        value["job"] = json!(self.job);
        Map::from_iter([(KEY.to_owned(), value)])
    }

    /// Reads the keys of a header that the format itself does not know; `None` if it is of no part.
    ///
    /// # Errors
    /// If it is of a part that this version does not know.
    pub fn of_fields(fields: &Map<String, Value>) -> Result<Option<ListPart>, &'static str> {
        let Some(value) = fields.get(KEY) else {
            return Ok(None);
        };
        let shard = ShardHeader::of_value(value)?;
        let job = serde_json::from_value(value["job"].clone());
        let job = job.map_err(|_| "a part of a work that is told in a way unknown here")?;
        Ok(shard.map(|shard| ListPart { shard, job }))
    }
}

impl ListPartEnd {
    /// Returns the fields of a summary beside its other keys.
    pub fn to_fields(self) -> Map<String, Value> {
        let set = |(count, sum): (u64, u64)| json!({"directories": count, "sum": hex(sum)});
        let value = json!({"settled": set(self.settled), "met": set(self.met)});
        Map::from_iter([(KEY.to_owned(), value)])
    }

    /// Reads the keys of a summary that the format itself does not know.
    pub fn of_fields(fields: &Map<String, Value>) -> Option<ListPartEnd> {
        let set = |key: &str| {
            let set = &fields.get(KEY)?[key];
            let sum = u64::from_str_radix(set["sum"].as_str()?, 16).ok()?;
            Some((set["directories"].as_u64()?, sum))
        };
        Some(ListPartEnd {
            settled: set("settled")?,
            met: set("met")?,
        })
    }
}

fn hex(sum: u64) -> String {
    format!("{sum:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_read_as_they_are_written() {
        let part = ListPart {
            shard: ShardHeader { index: 2, of: 3 },
            job: vec![("root".to_owned(), "/srv".to_owned())],
        };
        assert_eq!(ListPart::of_fields(&part.to_fields()), Ok(Some(part)));
        assert_eq!(ListPart::of_fields(&Map::new()), Ok(None));
        let end = ListPartEnd {
            settled: (1, u64::MAX),
            met: (7, 0),
        };
        assert_eq!(ListPartEnd::of_fields(&end.to_fields()), Some(end));
        assert_eq!(ListPartEnd::of_fields(&Map::new()), None);
    }
}
