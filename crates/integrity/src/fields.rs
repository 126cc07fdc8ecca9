//! Sets of fields as they are named for `--ignore`, and the rules of a comparison.

use std::fmt;
use std::str::FromStr;

use bc_manifest::integrity::Kind;

pub use crate::field::Field;

/// A set of fields. Parsed from names with commas between them; the empty
/// text is the empty set.
#[derive(Clone, Copy, Default, Eq, PartialEq)]
pub struct Fields(u32);

impl Fields {
    /// No fields.
    pub const NONE: Fields = Fields(0);

    /// All fields.
    pub const ALL: Fields = Fields((1 << Field::ALL.len()) - 1);

    /// Fields that a restore from a backup cannot bring back: not compared unless fields to ignore
    /// are given explicitly.
    pub const NOT_RESTORED: Fields = {
        let mut fields = Fields::ALL;
        let mut nth = 0;
        while nth < Field::ALL.len() {
            if Field::ALL[nth].is_restored() {
                fields = fields.without(Field::ALL[nth]);
            }
            nth += 1;
        }
        fields
    };

    /// Returns this set with `field`.
    #[must_use]
    pub const fn with(self, field: Field) -> Fields {
        Fields(self.0 | 1 << field as u8)
    }

    /// Returns this set without `field`.
    #[must_use]
    pub const fn without(self, field: Field) -> Fields {
        Fields(self.0 & !(1 << field as u8))
    }

    /// True if `field` is in the set.
    pub const fn contains(self, field: Field) -> bool {
        self.0 & (1 << field as u8) != 0
    }

    /// Returns the fields, in order.
    pub fn iter(self) -> impl Iterator<Item = Field> {
        Field::ALL
            .into_iter()
            .filter(move |&field| self.contains(field))
    }
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, field) in self.iter().enumerate() {
            if nth > 0 {
                f.write_str(",")?;
            }
            f.write_str(field.name())?;
        }
        Ok(())
    }
}

/// A name that is no field's.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownField(String);

impl fmt::Display for UnknownField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown field '{}'; fields are ", self.0)?;
        for (nth, field) in Field::ALL.iter().skip(1).enumerate() {
            if nth > 0 {
                f.write_str(", ")?;
            }
            f.write_str(field.name())?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownField {}

impl FromStr for Fields {
    type Err = UnknownField;

    fn from_str(text: &str) -> Result<Fields, UnknownField> {
        let mut fields = Fields::NONE;
        for name in text
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
        {
            let field = Field::ALL
                .into_iter()
                // The kind decides which other fields exist: it cannot be left out.
                .filter(|&field| field != Field::Kind)
                .find(|field| {
                    field.name() == name || (field.key() == name && name.ends_with("_ns"))
                })
                .ok_or_else(|| UnknownField(name.to_string()))?;
            fields = fields.with(field);
        }
        Ok(fields)
    }
}

/// Extent of a comparison of entries.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum CompareMode {
    /// Content and every field that is not ignored.
    #[default]
    Strict,
    /// Kind, digest and link target only.
    Content,
    /// Every field that is not ignored, without reading any content.
    Meta,
}

impl CompareMode {
    /// All variants.
    pub const ALL: [CompareMode; 3] =
        [CompareMode::Strict, CompareMode::Content, CompareMode::Meta];

    /// Returns `strict`, `content` or `meta`.
    pub const fn name(self) -> &'static str {
        match self {
            CompareMode::Strict => "strict",
            CompareMode::Content => "content",
            CompareMode::Meta => "meta",
        }
    }
}

/// Fields that count as a difference.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct CompareRules {
    /// The mode.
    pub mode: CompareMode,
    /// Fields left out of the comparison.
    pub ignore: Fields,
}

impl Default for CompareRules {
    fn default() -> CompareRules {
        CompareRules {
            mode: CompareMode::Strict,
            ignore: Fields::NOT_RESTORED,
        }
    }
}

impl CompareRules {
    /// Makes rules of a mode and the fields to ignore.
    pub const fn new(mode: CompareMode, ignore: Fields) -> CompareRules {
        CompareRules { mode, ignore }
    }

    /// True if a difference in `field` between two entries of this kind counts. `Size` and `Nlink`
    /// stand for `DirSize` and `DirNlink` too.
    pub fn compares(&self, field: Field, kind: Kind) -> bool {
        let field = match (field, kind) {
            (Field::Size, Kind::Dir) => Field::DirSize,
            (Field::Nlink, Kind::Dir) => Field::DirNlink,
            _ => field,
        };
        let content = matches!(field, Field::Kind | Field::Digest | Field::Target);
        match self.mode {
            CompareMode::Content if !content => false,
            CompareMode::Meta if field == Field::Digest => false,
            _ => !self.ignore.contains(field),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_unknown_ones_are_told() {
        for field in Field::ALL.into_iter().skip(1) {
            let set: Fields = field.name().parse().unwrap();
            assert_eq!(set, Fields::NONE.with(field));
            assert_eq!(set.to_string(), field.name());
        }
        let set: Fields = "mtime_ns, uid".parse().unwrap();
        assert_eq!(set, Fields::NONE.with(Field::Mtime).with(Field::Uid));
        assert_eq!("".parse(), Ok(Fields::NONE));
        let error = "mode,owner".parse::<Fields>().unwrap_err().to_string();
        assert!(
            error.contains("'owner'") && error.contains("dir-nlink"),
            "{error}"
        );
        assert!("kind".parse::<Fields>().is_err());
    }

    #[test]
    fn modes_limit_what_is_compared() {
        let strict = CompareRules::default();
        assert!(strict.compares(Field::Size, Kind::File));
        assert!(!strict.compares(Field::Size, Kind::Dir));
        assert!(!strict.compares(Field::Ctime, Kind::File));
        let explicit = CompareRules {
            mode: CompareMode::Strict,
            ignore: Fields::NONE,
        };
        assert!(explicit.compares(Field::Ctime, Kind::File));
        assert!(explicit.compares(Field::Nlink, Kind::Dir));
        let content = CompareRules {
            mode: CompareMode::Content,
            ..strict
        };
        assert!(content.compares(Field::Digest, Kind::File));
        assert!(content.compares(Field::Target, Kind::Symlink));
        assert!(!content.compares(Field::Mode, Kind::File));
        let meta = CompareRules {
            mode: CompareMode::Meta,
            ..strict
        };
        assert!(!meta.compares(Field::Digest, Kind::File));
        assert!(meta.compares(Field::Target, Kind::Symlink));
    }
}
