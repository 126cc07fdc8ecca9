//! A manifest that resumes an interrupted one is that of a run that was not interrupted, except for
//! the time of its header and the digest that covers it.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bc_digest::Algorithm;
use bc_fs::place::Place;
use bc_hash::resume::{Beginning, Earlier, JobInputs, Pace, Resume, ResumeOptions};
use bc_integrity::{CreateOptions, TreeOptions, create_recorded};
use bc_pool::Cancel;
use bc_testkit::{Rng, TestTree};
use bc_walk::job::Error;

use crate::support::{manifest_of, with_work};

const FIRST: i64 = 1_600_000_000_000_000_000;

/// A file written just now is old for a run in the future.
fn begin(t: &TestTree) -> (Arc<Resume>, Beginning) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + Duration::from_secs(10);
    let options = ResumeOptions::new(
        Place::find(t.scratch("m.partial")).unwrap(),
        JobInputs::default().with("root", "tree"),
        vec![Algorithm::Sha256],
        now.as_nanos() as i64,
        Box::new(|why| panic!("{why}")),
    )
    .state(Some(t.scratch("state")))
    .earlier(Earlier::GoOn)
    .pace(Pace::default().piece(0));
    let (resume, beginning) = Resume::begin(options, &Cancel::new()).unwrap();
    (Arc::new(resume), beginning)
}

fn recorded<W: Write>(t: &TestTree, resume: &Arc<Resume>, out: W) -> Result<(W, u64), Error> {
    let what = CreateOptions::new(t.path().as_os_str(), Algorithm::Sha256)
        .tree(TreeOptions::default())
        .created_at(FIRST);
    with_work(2, |work| {
        create_recorded(&what, Some(resume), work, out, &mut |_, _| {})
    })
    .map(|(out, created)| (out, created.totals.taken.files))
}

/// Takes some bytes, and no more.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.min(bytes.len()) {
            0 => Err(io::ErrorKind::StorageFull.into()),
            taken => {
                self.0 -= taken;
                Ok(taken)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Without the header's time and the trailer's digest.
fn but_for_the_time(manifest: &[u8]) -> Vec<String> {
    let text = String::from_utf8(manifest.to_vec()).unwrap();
    let lines = text.lines().map(|line| {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        let object = line.as_object_mut().unwrap();
        object.remove("created_at");
        if object["type"] == "trailer" {
            object.remove("sha256");
        }
        line.to_string()
    });
    lines.collect()
}

#[test]
fn whatever_changed_meanwhile_it_is_that_of_the_tree_as_it_is() {
    for seed in 0..6 {
        let mut rng = Rng::new(seed);
        let t = TestTree::new();
        for n in 0..80 {
            let len = rng.below(4000) as usize;
            t.write(format!("d{}/{n:02}", n % 7), rng.bytes(len));
        }
        t.hard_link("d1/01", "name").symlink("d1", "link");
        let (first, beginning) = begin(&t);
        assert!(matches!(beginning, Beginning::New));
        // Full when a part of it is written down.
        assert!(recorded(&t, &first, Full(4000)).is_err());
        let created_at = first.created_at();
        drop(first);
        for n in 0..80 {
            let name = format!("d{}/{n:02}", n % 7);
            match rng.below(10) {
                0 => drop(t.write(&name, rng.bytes(5000))),
                1 => drop(t.remove(&name)),
                2 => drop(t.mode(&name, 0o600)),
                3 => std::fs::rename(t.join(&name), t.join(format!("d0/{n}"))).unwrap(),
                _ => {}
            }
        }
        t.write("added", "new");
        let (second, _) = begin(&t);
        assert_eq!(second.created_at(), created_at);
        let (manifest, taken) = recorded(&t, &second, Vec::new()).unwrap();
        let proves = {
            let dir = std::fs::File::open(t.path()).unwrap();
            let traits = bc_fs::mount::basic_traits(&dir).unwrap();
            traits.identity_proves_content(1)
        };
        assert!(taken > 20 || !proves, "seed {seed}: {taken}");
        let expected = manifest_of(t.path());
        assert_eq!(but_for_the_time(&manifest), but_for_the_time(&expected));
        second.done();
        assert!(!t.scratch("m.partial").exists());
    }
}
