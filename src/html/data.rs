//! Data of a page that its script lists: JSON in zlib's format in base64, which cannot be markup and
//! stays small where names and figures are alike.

use std::collections::HashMap;
use std::fmt::Display;

use bc_manifest::base64;
use serde_json::Value;

use super::dirs::parent;
use super::escape::shown;

/// Returns data as the text of an element.
pub fn packed(data: &Value) -> String {
    // Strings and numbers into a Vec: cannot fail.
    let json = serde_json::to_vec(data).unwrap_or_default();
    const LEVEL: u8 = 6;
    let small = miniz_oxide::deflate::compress_to_vec_zlib(&json, LEVEL);
    let mut encoded = Vec::with_capacity(small.len().div_ceil(3) * 4);
    base64::encode(&mut encoded, &small);
    String::from_utf8(encoded).unwrap_or_default()
}

/// Values as one text: alike ones stand side by side, which shrinks well.
#[derive(Debug, Default)]
pub struct Column {
    text: String,
    /// True once there is a value, which may be empty.
    has_any: bool,
}

impl Column {
    /// Adds a number or a word; blanks separate them.
    pub fn word(&mut self, value: impl Display) {
        self.add(' ', value);
    }

    /// Adds text of one line.
    pub fn line(&mut self, text: impl Display) {
        self.add('\n', text);
    }

    fn add(&mut self, separator: char, value: impl Display) {
        if self.has_any {
            self.text.push(separator);
        }
        self.has_any = true;
        // Writing to a String cannot fail.
        let _ = std::fmt::Write::write_fmt(&mut self.text, format_args!("{value}"));
    }
}

impl From<Column> for Value {
    fn from(column: Column) -> Value {
        Value::String(column.text)
    }
}

/// Directories of paths, each once.
#[derive(Debug, Default)]
pub struct DirColumns {
    ids: HashMap<Vec<u8>, i64>,
    /// As the paths have them.
    pub dirs: Column,
}

impl DirColumns {
    /// Returns the number of a path's directory.
    pub fn id(&mut self, path: &[u8]) -> i64 {
        let dir = parent(path);
        if let Some(known) = self.ids.get(dir) {
            return *known;
        }
        let next = self.ids.len() as i64;
        self.ids.insert(dir.to_vec(), next);
        self.dirs.line(shown(dir));
        next
    }

    /// Returns the number of all directories.
    pub fn len(&self) -> i64 {
        self.ids.len() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_comes_back_and_is_no_markup() {
        let mut column = Column::default();
        column.line("</script><b>");
        column.line("");
        let text = packed(&column.into());
        assert!(
            text.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte))
        );
        let small = base64::decode(text.as_bytes()).unwrap();
        let json = miniz_oxide::inflate::decompress_to_vec_zlib(&small).unwrap();
        assert_eq!(json, br#""</script><b>\n""#);
    }
}
