//! Temporary names of every command, so that whoever meets one knows that it is no file of the
//! user's, and whose it is. What a killed run left under one is removed by its own command alone,
//! which knows what it may hold.

/// Beginning of every name that is given here, but that of a link which `bc install` replaces.
pub const OURS: &[u8] = b".bc-";

/// Beginning and end of the names of stages: copies, and repaired files, in the making.
const STAGE: (&[u8], &[u8]) = (b".bc-copy.", b".part");

/// Beginning of the names that prune and undo give: `.bc-dup.PID.START.N`, with the mark of another
/// file where there is one, and an end that says what the file is.
pub const PRUNE: &str = ".bc-dup.";

/// End of the names of outputs: `.bc-HASH-PID-N.tmp`, with a hash of the name of the target.
const OUTPUT_END: &[u8] = b".tmp";

/// Digits of a hash in a name.
const HASH: usize = 16;

/// Command that gave a temporary name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Temporary {
    /// `bc copy` and `bc integrity restore`: the file is not complete.
    Stage,
    /// An output that is being written, of any command.
    Output,
    /// `bc dup`: perhaps the last name of a file.
    Prune,
}

/// Returns the command that gives such names; `None` for all others.
pub fn temporary(name: &[u8]) -> Option<Temporary> {
    let is_hash = |text: &[u8]| text.len() == HASH && text.iter().all(u8::is_ascii_hexdigit);
    let (begin, end) = STAGE;
    let between = |rest: &[u8]| rest.strip_suffix(end).is_some_and(is_hash);
    if name.strip_prefix(begin).is_some_and(between) {
        return Some(Temporary::Stage);
    }
    if name.starts_with(PRUNE.as_bytes()) {
        return Some(Temporary::Prune);
    }
    let output = name.strip_prefix(OURS)?.strip_suffix(OUTPUT_END)?;
    let (hash, rest) = output.split_at_checked(HASH)?;
    (is_hash(hash) && rest.starts_with(b"-")).then_some(Temporary::Output)
}

/// Returns the name of the stage with this key.
pub fn stage(key: [u8; HASH / 2]) -> String {
    let (begin, end) = STAGE;
    let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    text(begin) + &hex + &text(end)
}

/// Returns the beginning of the names of all outputs to one target. Of fixed length, so that a name
/// at the file system's limit has temporaries too.
pub(crate) fn output(target: &[u8]) -> String {
    // FNV-1a, for a name that stays the same from version to version.
    let hash = target
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    format!(".bc-{hash:016x}-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_by_their_whole_form() {
        let stage = stage([0xab; 8]);
        assert_eq!(stage, ".bc-copy.abababababababab.part");
        let output = output(b"list") + "77-0.tmp";
        for (name, known) in [
            (&*stage, Some(Temporary::Stage)),
            (&*output, Some(Temporary::Output)),
            (".bc-dup.1.2.3.tmp", Some(Temporary::Prune)),
            (".bc-copy-manifest.jsonl", None),
            (".bc-copy.part", None),
            (".bc-copy.0123.part", None),
            (".bc-notes.tmp", None),
            ("bc-dup.1.2.3.tmp", None),
            ("", None),
        ] {
            assert_eq!(temporary(name.as_bytes()), known, "{name}");
        }
    }
}
