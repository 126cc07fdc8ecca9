//! Fields of a manifest made by one of several readers of a tree: in the header the number of the
//! part, in the trailer the figures needed to put the parts together.

use serde_json::{Map, Value, json};

use super::header::Header;

/// The key of both.
const KEY: &str = "shard";

/// Hash by which directories are assigned to parts.
const HASH: &str = "xxh64";

/// Part of a tree that a manifest covers, as recorded in its header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ShardHeader {
    /// Number, from 1 to `of`.
    pub index: u32,
    /// Number of parts.
    pub of: u32,
}

impl ShardHeader {
    /// Returns the form of [`Header::shard`]: `{"index":2,"of":7,"hash":"xxh64"}`.
    pub fn to_value(self) -> Value {
        json!({"index": self.index, "of": self.of, "hash": HASH})
    }

    /// Reads the header: `None` if it is of no part of a tree.
    ///
    /// # Errors
    /// If it is of a part that this version does not know.
    pub fn of_header(header: &Header) -> Result<Option<ShardHeader>, &'static str> {
        ShardHeader::of_value(&header.shard)
    }

    /// Reads the value alone.
    pub(crate) fn of_value(value: &Value) -> Result<Option<ShardHeader>, &'static str> {
        if value.is_null() {
            return Ok(None);
        }
        let number = |key: &str| value[key].as_u64()?.try_into().ok();
        let (index, of) = (number("index"), number("of"));
        match index.zip(of).filter(|_| value["hash"] == HASH) {
            Some((index, of)) if 1 <= index && index <= of => Ok(Some(ShardHeader { index, of })),
            _ => Err("a part of a tree that is chosen in a way unknown here"),
        }
    }
}

/// Fields of the trailer of a part of a tree besides its counts.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ShardTrailer {
    /// Number of directories of this part that are known to their end.
    pub directories: u64,
    /// The sum of a hash of their paths.
    pub sum: u64,
    /// Numbers of the devices of the entries by the index that entries have, the root's first.
    pub devices: Vec<u64>,
    /// Number of these, from the first on, that are devices of directories, which every part knows
    /// and numbers alike.
    pub shared_devices: u64,
    /// Inode number of the tree's root: all parts are of one directory. Earlier versions do not
    /// record it.
    pub root_ino: Option<u64>,
}

impl ShardTrailer {
    /// Returns the fields to write behind the other keys of the trailer.
    pub fn to_fields(&self) -> Map<String, Value> {
        let value = json!({
            "directories": self.directories,
            "sum": format!("{:016x}", self.sum),
            "devices": self.devices,
            "shared_devices": self.shared_devices,
            "root_ino": self.root_ino,
        });
        Map::from_iter([(KEY.to_owned(), value)])
    }

    /// Reads the keys of a trailer that the format itself does not know.
    pub fn of_fields(fields: &Map<String, Value>) -> Option<ShardTrailer> {
        let value = fields.get(KEY)?;
        let sum = value["sum"].as_str().filter(|text| text.len() == 16)?;
        let devices = value["devices"].as_array()?.iter().map(Value::as_u64);
        Some(ShardTrailer {
            directories: value["directories"].as_u64()?,
            sum: u64::from_str_radix(sum, 16).ok()?,
            devices: devices.collect::<Option<_>>()?,
            shared_devices: value["shared_devices"].as_u64()?,
            root_ino: value["root_ino"].as_u64(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_read_as_they_are_written() {
        let mut header = Header::new("sha256", "0");
        assert_eq!(ShardHeader::of_header(&header), Ok(None));
        let part = ShardHeader { index: 3, of: 7 };
        header.shard = part.to_value();
        assert_eq!(ShardHeader::of_header(&header), Ok(Some(part)));
        for odd in [
            json!({"index": 0, "of": 7, "hash": "xxh64"}),
            json!({"index": 8, "of": 7, "hash": "xxh64"}),
            json!({"index": 3, "of": 7, "hash": "md5"}),
            json!({"index": 3, "of": 7}),
            json!("3/7"),
        ] {
            header.shard = odd;
            assert!(ShardHeader::of_header(&header).is_err());
        }
        let trailer = ShardTrailer {
            directories: 5,
            sum: u64::MAX - 1,
            devices: vec![66_305, 40],
            shared_devices: 1,
            root_ino: Some(2),
        };
        assert_eq!(ShardTrailer::of_fields(&trailer.to_fields()), Some(trailer));
        assert_eq!(ShardTrailer::of_fields(&Map::new()), None);
    }
}
