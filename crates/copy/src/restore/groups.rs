//! Names that are one file: they are repaired together, and stay one.

use std::collections::HashMap;
use std::hash::Hash;

use bc_digest::Digest;
use bc_walk::Identity;

use super::needs::{Need, RecordedInode};

/// Names of one file, by the numbers of the needs.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct NameGroup {
    pub(super) needs: Vec<usize>,
}

/// Evidence that names are one file.
#[derive(Eq, Hash, PartialEq)]
enum SameFileKey {
    /// They had one inode when they were recorded.
    Recorded(RecordedInode),
    /// They have one inode now.
    Now(Identity, Digest),
}

/// Puts names together that are one file now or, if the record is relied on for that, were one.
pub(super) fn groups(
    needs: &[Need],
    trusts: bool,
    now: impl Fn(&Need) -> Option<Identity>,
) -> Vec<NameGroup> {
    let keys = needs.iter().enumerate().filter_map(|(nth, need)| {
        let digest = need.digest()?;
        let recorded = need
            .recorded_inode()
            .filter(|_| trusts)
            .map(SameFileKey::Recorded);
        let now = now(need).map(|id| SameFileKey::Now(id, digest));
        Some((nth, [recorded, now]))
    });
    let joined = join(keys.map(|(nth, keys)| (nth, keys.into_iter().flatten())));
    joined
        .into_iter()
        .map(|needs| NameGroup { needs })
        .collect()
}

/// Joins numbers that share a key, directly or by others, in the order of the first of each.
fn join<K: Eq + Hash>(
    all: impl Iterator<Item = (usize, impl Iterator<Item = K>)>,
) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut of_key: HashMap<K, usize> = HashMap::new();
    // Where the members of a group went that was found to be another one.
    let mut went: Vec<usize> = Vec::new();
    let last = |went: &[usize], mut group: usize| {
        while went[group] != group {
            group = went[group];
        }
        group
    };
    for (number, keys) in all {
        let mut group = groups.len();
        groups.push(vec![number]);
        went.push(group);
        for key in keys {
            let known = *of_key.entry(key).or_insert(group);
            let known = last(&went, known);
            if known == group {
                continue;
            }
            let (into, from) = (known.min(group), known.max(group));
            let members = std::mem::take(&mut groups[from]);
            groups[into].extend(members);
            went[from] = into;
            group = into;
        }
    }
    groups.retain(|group| !group.is_empty());
    groups.iter_mut().for_each(|group| group.sort_unstable());
    groups
}

#[cfg(test)]
mod tests {
    use super::join;

    #[test]
    fn keys_join_directly_and_by_others() {
        let all = [
            vec!["a"],
            vec!["b"],
            vec![],
            vec!["a", "c"],
            vec!["c", "b"],
            vec![],
        ];
        let joined = join(all.into_iter().map(|keys| keys.into_iter()).enumerate());
        assert_eq!(joined, [vec![0, 1, 3, 4], vec![2], vec![5]]);
    }
}
