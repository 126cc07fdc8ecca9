//! The guide's lines for lists and backups of other programs, run as they are written there; only
//! paths are made ones of a temporary tree.

use std::path::Path;
use std::process::Command;

use bc_testkit::TestTree;

use crate::common::BC;

/// Returns the lines of the recipe.
fn lines() -> Vec<String> {
    let guide = include_str!("../../src/guide/recipes.md");
    let text = guide
        .split("## Is the backup identical to the disk?")
        .nth(1);
    let block = text.unwrap().split("```").nth(1).unwrap();
    let lines = block.lines().skip(1).map(str::to_owned);
    lines.filter(|line| !line.is_empty()).collect()
}

/// Makes a command that finds bc, and no settings of the user.
fn shell(t: &TestTree, line: &str) -> Command {
    let bin = Path::new(BC).parent().unwrap().display();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
    let mut command = Command::new("bash");
    command
        .args(["-o", "pipefail", "-c", line])
        .current_dir(t.path())
        .env("PATH", path)
        .env("HOME", t.join("home"))
        .env("BORG_BASE_DIR", t.join("home"))
        .env("RESTIC_REPOSITORY", t.join("restic"))
        .env("RESTIC_PASSWORD", "x")
        .env("RCLONE_CONFIG", t.join("home/rclone.conf"));
    command
}

fn run(t: &TestTree, line: &str) -> (Option<i32>, String) {
    let out = shell(t, line).output().unwrap();
    let text = [out.stdout, out.stderr].concat();
    (
        out.status.code(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

fn is_there(t: &TestTree, program: &str) -> bool {
    let (code, _) = run(t, &format!("command -v {program} && {program} --help"));
    code == Some(0)
}

/// A list with a byte order mark, backslashes and CRLF.
const FROM_WINDOWS: &str = "mkdir mnt && cp -r srv mnt/card && printf '\\357\\273\\277' > MD5SUMS && cd srv && \
                            md5sum a empty sub/* | sed 's|/|\\\\|; s/$/\\r/' >> ../MD5SUMS";

/// A list as MHL 1.1 has it.
const MHL: &str = "mkdir mnt && cp -r srv mnt/card && for f in a empty; do printf '<hash>\\n \
                   <file>%s</file>\\n <md5>%s</md5>\\n</hash>\\n' $f $(md5sum < srv/$f | cut -d' ' -f1); \
                   done > card.mhl";

/// A list as ASC MHL has it: directories have digests of another kind.
const ASC_MHL: &str = "mkdir -p ascmhl mnt && cp -r srv mnt/card && { \
    printf '<roothash>\\n<content><xxh64>0123456789abcdef</xxh64></content>\\n</roothash>\\n'; \
    for f in a empty; do printf '<hash>\\n <path size=\"3\">%s</path>\\n <xxh64 action=\"original\">%s</xxh64>\\n\
    </hash>\\n' $f $(bc hash --type=xxh64 srv/$f | cut -d' ' -f1); done; \
    printf '<directoryhash>\\n<path>sub</path>\\n<content><xxh64>0123456789abcdef</xxh64></content>\\n\
    </directoryhash>\\n'; } > ascmhl/0001_card.mhl";

#[test]
fn lists_of_other_programs_are_checked_as_the_guide_says() {
    let lines = lines();
    assert_eq!(lines.len(), 9);
    for line in lines {
        let t = TestTree::new();
        t.dir("home")
            .write("srv/a", "one")
            .write("srv/sub/b c", "two")
            .write("srv/empty", "");
        let tool = line.split(' ').next().unwrap();
        // What is changed later on: the files that are looked at.
        let mut edited = "srv/a";
        let prepared = match tool {
            "rclone" => "true",
            "borg" => "borg init -e none repo && borg create repo::monday srv",
            "restic" => "restic init && restic backup srv",
            // Lists of a copied card, each as the program of its kind writes it.
            "awk" | "sed" => {
                edited = "mnt/card/a";
                if line.contains("ascmhl") {
                    ASC_MHL
                } else if line.contains(".mhl") {
                    MHL
                } else if line.contains("MD5SUMS") {
                    FROM_WINDOWS
                } else if is_there(&t, "rhash") {
                    "mkdir mnt && cp -r srv mnt/card && cd srv && rhash --sfv -r . | sed 's/$/\\r/' > ../card.sfv"
                } else {
                    bc_testkit::left_out("rhash is not there");
                    continue;
                }
            }
            _ if line.contains("dpkg") => {
                "mkdir -p var/lib/dpkg/info && md5sum srv/a 'srv/sub/b c' > var/lib/dpkg/info/p.md5sums"
            }
            _ => {
                edited = "mnt/backup/srv/a";
                "mkdir -p mnt/backup && cp -r srv mnt/backup"
            }
        };
        if !["bc", "awk", "sed"].contains(&tool) && !is_there(&t, tool) {
            bc_testkit::left_out(&format!("{tool} is not there"));
            continue;
        }
        let (code, said) = run(&t, prepared);
        assert_eq!(code, Some(0), "{prepared}: {said}");
        let root = t.path().display();
        let mut here = line.replace("remote:srv", "srv");
        for from in [" /srv", "=/srv", "=/mnt/", " /repo", " /var/", "=/ "] {
            let (before, path) = from.split_at(1);
            here = here.replace(from, &format!("{before}{root}{path}"));
        }
        let (code, said) = run(&t, &here);
        assert_eq!(code, Some(0), "{here}: {said}");
        // rclone reads the same place here, so its list is the one that was made before.
        if tool == "rclone" {
            let list = here.replace("rclone hashsum sha256 srv", "cat list");
            run(&t, "rclone hashsum sha256 srv > list");
            t.write(edited, "another");
            assert_eq!(run(&t, &list).0, Some(1));
            continue;
        }
        t.write(edited, "another");
        if tool == "restic" {
            std::fs::remove_dir_all(t.join("mnt/new")).unwrap();
        }
        let (code, said) = run(&t, &here);
        assert_eq!(code, Some(1), "{here}: {said}");
        assert!(said.contains("a: FAILED"), "{here}: {said}");
    }
}
