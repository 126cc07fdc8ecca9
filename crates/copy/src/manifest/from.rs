//! What a manifest says of when and from where its entries were copied: what was found of one says
//! nothing of another that comes to the same place, however alike their files look.

use std::collections::HashMap;

use bc_digest::{Algorithm, hash, push_hex};
use bc_manifest::integrity::{Entry, Header, ROOT};
use serde_json::{Map, Value};

use super::{Plan, below};
use crate::target::Source;
use crate::tree::Tree;

/// Of a header: when the copy began that found what its entries say, in nanoseconds since 1970 by
/// the clock that stamps files. Of an entry: the same where another copy found it, or null where none
/// has compared it with a source.
pub(super) const COPIED_SINCE: &str = "copied_since";

/// Of a header: digests of the sources, by what they are called in the manifest.
const COPIED_FROM: &str = "copied_from";

/// Sources by what they are called in a manifest: one name, or that of its root.
pub(super) struct Sources(HashMap<Vec<u8>, String>);

impl Sources {
    pub(super) fn of(plan: &Plan, tree: &Tree) -> Sources {
        let named = |root: &crate::tree::Root| (below(plan, root.name.clone()), key(&root.source));
        Sources(tree.roots.iter().map(named).collect())
    }

    /// Whether the entry at `path` is none of these sources' or was copied from the one that it is
    /// of now.
    pub(super) fn are_those_of(&self, header: &Header, path: &[u8]) -> bool {
        let first = path.split(|byte| *byte == b'/').next().unwrap_or(path);
        let own = [ROOT, first].into_iter().find_map(|name| {
            let key = self.0.get(name)?;
            Some((name, key))
        });
        own.is_none_or(|(name, key)| {
            let known = header.extra.get(COPIED_FROM);
            let known = known.and_then(|known| known.get(&*String::from_utf8_lossy(name)));
            known.and_then(Value::as_str) == Some(key)
        })
    }

    /// Has a header name them, and those of an earlier one that these leave alone.
    pub(super) fn set(&self, header: &mut Header, earlier: Option<&Header>) {
        let known = earlier.and_then(|earlier| earlier.extra.get(COPIED_FROM)?.as_object());
        let mut all = known.cloned().unwrap_or_else(Map::new);
        for (name, key) in &self.0 {
            let name = String::from_utf8_lossy(name).into_owned();
            all.insert(name, key.as_str().into());
        }
        header.extra.insert(COPIED_FROM.to_owned(), all.into());
    }
}

/// What tells a source from others: where it is, and its inode. Numbers of devices change from boot to
/// boot.
fn key(source: &Source) -> String {
    let real = std::fs::canonicalize(&source.path).map(std::path::PathBuf::into_os_string);
    let real = real.unwrap_or_else(|_| source.path.clone());
    let mut bytes = source.stat.id.ino.to_le_bytes().to_vec();
    bytes.extend_from_slice(real.as_encoded_bytes());
    let mut hex = Vec::new();
    push_hex(&mut hex, &hash(Algorithm::Blake3, &bytes).as_bytes()[..16]);
    String::from_utf8(hex).unwrap_or_default()
}

/// Has a header say when the copy began.
pub(super) fn set_since(header: &mut Header, since_ns: i64) {
    header
        .extra
        .insert(COPIED_SINCE.to_owned(), since_ns.into());
}

/// An entry that is carried on was found by an earlier copy, which began `since`, perhaps of other
/// sources.
pub(super) fn carry(
    mut entry: Entry,
    (earlier, since): (&Header, Option<i64>),
    sources: &Sources,
) -> Entry {
    if entry.digest.is_none() {
        return entry;
    }
    if !sources.are_those_of(earlier, &entry.path) {
        uncompared(&mut entry);
    } else if !entry.extra.contains_key(COPIED_SINCE) {
        let since = since.map_or(Value::Null, Value::from);
        entry.extra.insert(COPIED_SINCE.to_owned(), since);
    }
    entry
}

/// An entry of what was left as it was, without a look at the source's content.
pub(super) fn uncompared(entry: &mut Entry) {
    entry.extra.insert(COPIED_SINCE.to_owned(), Value::Null);
}
