//! A view of two disks that number alike: directories and files there share device and inode
//! number and nothing else. None is taken for the other, and none is left out for it.

use bc_testkit::{Outcome, TestTree, left_out, tool};

use crate::integrity_mounts::{mounting, says};

/// Two new disks, made alike, and `v`, which shows both by their own numbers.
const VIEW: &str = r#"
    mkdir -p src/A src/B v
    for n in A B; do
        mount -t tmpfs none src/$n
        mkdir src/$n/d; echo "content $n" >src/$n/d/f; echo "top $n" >src/$n/x
    done
    touch -d 2020-01-01 src/A/d/f src/B/d/f src/A/x src/B/x
    bindfs src v 2>/dev/null || { echo cannot; exit; }
    trap 'umount v' EXIT
    alike() { [ "$(stat -c %d:%i "v/A/$1")" = "$(stat -c %d:%i "v/B/$1")" ] || echo cannot; }
    alike .; alike d; alike d/f; alike x
    find v -type f | sort >"$S/list"; xargs sha256sum <"$S/list" >"$S/want"
    same() { cmp "$S/want" - && echo same; }
"#;

/// Runs a script in the view; `None` where there can be none.
fn in_view(script: &str) -> Option<Outcome> {
    for needed in ["bindfs", "sha256sum", "unshare"] {
        if tool(needed).is_none() {
            left_out(&format!("not installed: {needed}"));
            return None;
        }
    }
    let t = TestTree::new();
    let outcome = mounting(&t, &format!("{VIEW}\n{script}"))?;
    if outcome.text().lines().any(|line| line == "cannot") {
        left_out("no view of two disks that number alike");
        return None;
    }
    Some(outcome)
}

#[test]
fn every_way_to_name_files_hashes_all() {
    let Some(outcome) = in_view(
        r#"
        "$BC" hash v | same
        "$BC" hash v/A v/B | same
        "$BC" hash v/B v/A | same
        "$BC" hash v v/A | same
        "$BC" hash v v/B/d | same
        "$BC" hash v/A/d v | same
        "$BC" hash v/A/d/f v | same
        "$BC" hash v/B v/A/x v/A/d/f | same
        xargs "$BC" hash <"$S/list" | same
        "$BC" hash --files-from="$S/list" | same
        "$BC" hash --follow-symlinks v | same
        ln -s v/A a; ln -s v/B b
        "$BC" hash a b | sed 's, a, v/A,;s, b, v/B,' | same
    "#,
    ) else {
        return;
    };
    says(&outcome, &["same"; 12]);
}

/// Linked directories: each is visited once, and a circle ends.
#[test]
fn links_into_the_view_are_told_apart() {
    let Some(outcome) = in_view(
        r#"
        mkdir w; ln -s ../v/A/d w/a; ln -s ../v/B/d w/b; ln -s ../v/A w/c; ln -s ../v/A/d w/e
        "$BC" hash --follow-symlinks w | cut -d' ' -f3
        ln -s .. src/A/d/up
        "$BC" hash --follow-symlinks v/A | cut -d' ' -f3
    "#,
    ) else {
        return;
    };
    says(&outcome, &["w/a/f", "w/b/f", "w/c/x", "v/A/d/f", "v/A/x"]);
}

#[test]
fn damage_on_one_disk_is_found_by_its_line() {
    let Some(outcome) = in_view(
        r#"
        echo "CONTENT B" >src/B/d/f; touch -d 2020-01-01 src/B/d/f
        cp "$S/want" want.sha256
        "$BC" hash check want.sha256 2>/dev/null; echo "exit $?"
        tac "$S/want" >back.sha256
        "$BC" hash check --quiet back.sha256 2>/dev/null; echo "exit $?"
        "$BC" hash check --status want.sha256; echo "exit $?"
        grep v/A/ "$S/want" >A.sha256
        "$BC" hash check --quiet --unlisted A.sha256; echo "exit $?"
        mkdir only; mv A.sha256 only
        "$BC" hash check --quiet --unlisted --base=. only/A.sha256 2>/dev/null | grep v/B
    "#,
    ) else {
        return;
    };
    says(
        &outcome,
        &[
            "v/A/d/f: OK",
            "v/A/x: OK",
            "v/B/d/f: FAILED",
            "v/B/x: OK",
            "exit 1",
            "v/B/d/f: FAILED",
            "exit 1",
            "exit 1",
            "exit 0",
            "./v/B/d/f: UNLISTED",
            "./v/B/x: UNLISTED",
        ],
    );
}

/// The output is left out, and not what shares its numbers.
#[test]
fn the_output_takes_no_other_file_with_it() {
    let Some(outcome) = in_view(
        r#"
        : >src/A/out; echo precious >src/B/other; alike_out() { stat -c %d:%i v/A/out v/B/other | uniq | wc -l; }
        alike_out
        (cd "$S"; cp want want.was)
        sha256sum v/A/d/f v/A/x v/B/d/f v/B/other v/B/x >"$S/want"
        "$BC" hash v >v/A/out; same <v/A/out
        : >v/A/out
        "$BC" hash v >>v/A/out; same <v/A/out
        (cd v/A; : >out; "$BC" hash .. >out; sed 's,\.\./,v/,' out) | same
        find v -type f | "$BC" hash --files-from=- >v/A/out; same <v/A/out
        rm v/A/out; : >v/A/out
        "$BC" integrity manifest v >v/A/out
        grep -o '"path":"[^"]*","kind":"file"' v/A/out | cut -d'"' -f4
        rm v/A/out; "$BC" hash v >v/A/out
        "$BC" hash --output=v/A/out v; same <v/A/out
        rm v/A/out; : >v/A/out
        "$BC" integrity manifest --output=v/A/out v
        grep -o '"path":"[^"]*","kind":"file"' v/A/out | cut -d'"' -f4
        "$BC" integrity verify --quiet v v/A/out; echo "exit $?"
        rm v/B/other
        "$BC" integrity verify --quiet v v/A/out | grep other
    "#,
    ) else {
        return;
    };
    let files = ["A/d/f", "A/x", "B/d/f", "B/other", "B/x"];
    let mut expected = vec!["1", "same", "same", "same", "same"];
    expected.extend(files);
    expected.push("same");
    expected.extend(files);
    expected.extend(["exit 0", "- B/other"]);
    says(&outcome, &expected);
}

/// A file that is reached twice is no duplicate of itself there either.
#[test]
fn a_search_counts_a_file_once() {
    let Some(outcome) = in_view(
        r#"
        "$BC" dup v/A v/A/. v/A/d/f v/A/d/../d/f; echo "exit $?"
        "$BC" dup prune --action=delete --yes --journal="$S/j" v/A v/A/d/f ./v/A/d/f >/dev/null 2>&1
        cat v/A/d/f
    "#,
    ) else {
        return;
    };
    says(&outcome, &["exit 0", "content A"]);
}

/// What a view says of a name in its directory need not be what the name leads to: such a file is
/// read, or it is said that it cannot be opened.
#[test]
fn links_that_a_view_resolves_are_files() {
    for needed in ["mergerfs", "unshare"] {
        if tool(needed).is_none() {
            return left_out(&format!("not installed: {needed}"));
        }
    }
    let t = TestTree::new();
    let script = r#"
        mkdir -p real/sub farm m
        echo one >real/a; echo two >real/sub/b; ln real/a real/c
        ln -s "$PWD/real/a" farm/1; ln -s "$PWD/real/c" farm/2; ln -s "$PWD/real/sub" farm/3
        mergerfs -o follow-symlinks=all farm m 2>/dev/null || { echo cannot; exit; }
        trap 'umount m' EXIT
        [ "$(stat -c %F m/1)" = "regular file" ] || { echo cannot; exit; }
        "$BC" hash m >out 2>&1; grep -o 'm/[123][/b]*' out | sort -u
        "$BC" dup unique m >out 2>&1; grep -o 'm/[123][/b]*' out | sort -u
    "#;
    let Some(outcome) = mounting(&t, script) else {
        return;
    };
    if outcome.text().contains("cannot") {
        return left_out("this mergerfs resolves no links");
    }
    says(&outcome, &["m/1", "m/2", "m/3/b", "m/1", "m/2", "m/3/b"]);
}
