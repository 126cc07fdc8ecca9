//! Descriptors for a test, whatever limit it was started with.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that the tests of one process get along with, if they may have them.
const PLENTY: u64 = 4096;

/// Raises the limit of this process, if it is lower, to a number that its tests get along with, or
/// as far as that is allowed; returns it.
pub fn raise_descriptors() -> u64 {
    let now = getrlimit(Resource::Nofile);
    let current = now.current.unwrap_or(u64::MAX);
    if current >= PLENTY {
        return current;
    }
    let most = now.maximum.unwrap_or(u64::MAX);
    // Beyond the upper limit root alone may go.
    for wanted in [PLENTY, PLENTY.min(most)] {
        let limit = Rlimit {
            current: Some(wanted),
            maximum: now.maximum.map(|most| most.max(wanted)),
        };
        if setrlimit(Resource::Nofile, limit).is_ok() {
            return wanted;
        }
    }
    current
}

/// True if this process may have so many descriptors. Prints a notice if not.
pub fn has_descriptors(needed: u64) -> bool {
    let allowed = raise_descriptors();
    let enough = allowed >= needed;
    if !enough {
        crate::left_out(&format!(
            "{needed} descriptors are needed, and {allowed} are allowed (ulimit -n)"
        ));
    }
    enough
}

#[cfg(test)]
mod tests {
    use crate::TestTree;

    #[test]
    fn a_low_limit_does_not_stay_where_it_may_be_raised() {
        // In a process of its own: a limit is that of all tests.
        if std::env::var_os("OF_A_LOW_LIMIT").is_some() {
            assert!(super::raise_descriptors() > 20);
            assert!(super::has_descriptors(21));
            assert!(!super::has_descriptors(u64::MAX));
            return;
        }
        let tree = TestTree::new();
        let line = "ulimit -S -n 20 && exec \"$@\"";
        let name = "descriptors::tests::a_low_limit_does_not_stay_where_it_may_be_raised";
        tree.run("sh")
            .args(["-c", line, "sh"])
            .args(crate::own_words())
            .args(["--exact", name])
            .env("OF_A_LOW_LIMIT", "1")
            .go()
            .code(0)
            .stdout_has("1 passed");
    }
}
