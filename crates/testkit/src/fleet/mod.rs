//! Manifests of many machines, made up so that the answer to every question about them is known.
//!
//! Each of the machines has a tree that it has recorded twice, and some machines list one tree that
//! they all mount. The change of a file between the two records, and the other places of its
//! content, follow from its number: files come in twelve classes of the same size.

mod answers;
mod lines;

use std::io;
use std::path::Path;

pub use answers::KnownAnswer;

use self::lines::{Entry, manifest};

/// Size of a manifest's first directories: each contains files of all classes.
const CLASSES: u64 = 12;

/// Parameters of a fleet.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// Machines that have recorded a tree of their own twice; an even number.
    pub machines: u64,
    /// Machines that have recorded one tree that they all mount.
    pub sharing: u64,
    /// Files in each manifest, about; a multiple of 12.
    pub files: u64,
    /// Paths and sizes of the files, in any order: those of a real tree, over and over.
    pub shapes: Vec<(String, u64)>,
}

/// Change of a file between the records, and other places of its content.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Class {
    /// Present on all machines.
    Everywhere,
    /// Present on two machines.
    Pair,
    /// Removed since.
    Lost,
    /// Another content, and nothing else is changed.
    Decayed,
    /// Renamed.
    Moved,
    /// A copy of the single file that comes after its class.
    Copy,
    /// Present on this machine alone, and copied.
    Copied,
    /// A second name of the linked file that comes after its class.
    Link,
    /// A file with two names.
    Linked,
    /// Created after the first record: two classes of them.
    New,
    /// Unchanged, on this machine alone.
    Single,
}

impl Class {
    const ALL: [Class; CLASSES as usize] = [
        Class::Everywhere,
        Class::Pair,
        Class::Lost,
        Class::Decayed,
        Class::Moved,
        Class::Copy,
        Class::Copied,
        Class::Link,
        Class::Linked,
        Class::New,
        Class::New,
        Class::Single,
    ];
}

/// One of the two records of a tree.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum When {
    Before,
    Now,
}

impl Fleet {
    /// Returns a small fleet, with names that are no words of SQL, or look like some.
    pub fn small() -> Fleet {
        let names = [
            "a",
            "o'brien",
            "x\"); DROP TABLE entries; --",
            "tab\t\\",
            "d/e.f",
            "\u{e4}/\u{202e}",
        ];
        let shape = |n: u64| (names[n as usize % names.len()].to_owned(), n % 7 * 100 + 1);
        Fleet {
            machines: 4,
            sharing: 3,
            files: 12 * 20,
            shapes: (0..60).map(shape).collect(),
        }
    }

    /// Returns the number of files of one class in one manifest.
    fn each(&self) -> u64 {
        self.files / CLASSES
    }

    /// Writes `*.jsonl` into the folder; `sha256` gives the digest of bytes in hexadecimal.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, dir: &Path, sha256: &dyn Fn(&[u8]) -> String) -> io::Result<()> {
        for machine in 0..self.machines {
            for when in [When::Before, When::Now] {
                let entries = self.entries(machine, when);
                let text = manifest(&self.header(machine, when), entries, sha256);
                let name = format!("{}-{when:?}.jsonl", self.name(machine));
                std::fs::write(dir.join(name.replace('/', "-")), text)?;
            }
        }
        for sharing in 0..self.sharing {
            let header = format!(
                "\"created_at\":\"2026-03-01T0{}:00:00Z\",\"host\":\"client{sharing}\",\
                 \"machine\":\"{:032x}\",\"root\":\"/mnt/all\",\"fs_uuid\":null,\
                 \"mount_source\":\"server:/export\"",
                sharing % 10,
                sharing + 1000,
            );
            let files = (0..self.files).map(|file| self.entry(file, 5 << 60 | file, file, 1));
            let text = manifest(&header, files.collect(), sha256);
            std::fs::write(dir.join(format!("client{sharing}.jsonl")), text)?;
        }
        Ok(())
    }

    /// Returns a host's name; that of the second is chosen with care.
    fn name(&self, machine: u64) -> String {
        match machine {
            1 => "h'); COPY (SELECT 1) TO 'owned.csv'; --".to_owned(),
            machine => format!("host{machine}"),
        }
    }

    fn header(&self, machine: u64, when: When) -> String {
        let month = match when {
            When::Before => "01",
            When::Now => "02",
        };
        format!(
            "\"created_at\":\"2026-{month}-01T00:00:00.5Z\",\"host\":\"{}\",\"machine\":\"{machine:032x}\",\
             \"root\":\"/srv\",\"fs_uuid\":\"00000000-0000-0000-0000-{machine:012}\",\
             \"mount_source\":\"/dev/sda1\"",
            self.name(machine),
        )
    }

    fn entries(&self, machine: u64, when: When) -> Vec<Entry> {
        let files = (0..self.files).filter_map(|file| {
            let class = self.class(file);
            let is_there = match class {
                Class::Lost => when == When::Before,
                Class::New => when == When::Now,
                _ => true,
            };
            is_there.then(|| self.file(machine, when, class, file))
        });
        files.collect()
    }

    fn class(&self, file: u64) -> Class {
        Class::ALL[(file / self.each()) as usize]
    }

    fn file(&self, machine: u64, when: When, class: Class, file: u64) -> Entry {
        let own = 3 << 60 | machine << 40;
        let next = file + self.each();
        let content = match class {
            Class::Everywhere => 1 << 60 | file,
            Class::Pair => 2 << 60 | (machine / 2) << 40 | file,
            Class::Decayed if when == When::Now => 4 << 60 | machine << 40 | file,
            Class::Copy | Class::Link => own | next,
            _ => own | file,
        };
        // A copy is as large as what it is a copy of.
        let (sized, ino, nlink) = match class {
            Class::Copy => (next, file, 1),
            Class::Link => (next, next, 2),
            Class::Linked => (file, file, 2),
            _ => (file, file, 1),
        };
        let mut entry = self.entry(sized, content, ino, nlink);
        entry.path = self.path(file);
        if class == Class::Moved && when == When::Now {
            entry.path.extend_from_slice(b" (moved)");
        }
        entry
    }

    /// Returns an entry for a file of the size that belongs to a number.
    fn entry(&self, sized: u64, content: u64, ino: u64, nlink: u64) -> Entry {
        Entry {
            path: self.path(sized),
            size: self.size(sized),
            ino: ino + 1000,
            nlink,
            mtime_ns: 1_700_000_000_000_000_000 + sized as i64,
            content,
        }
    }

    /// Returns a path for each file alone, in directories that it shares; some are no text.
    fn path(&self, file: u64) -> Vec<u8> {
        let (name, _) = &self.shapes[file as usize % self.shapes.len()];
        let round = file / self.shapes.len() as u64;
        let (dir, name) = name.split_at(name.rfind('/').map_or(0, |slash| slash + 1));
        let mut path = format!("{round}/{dir}{file}-{name}").into_bytes();
        if file.is_multiple_of(17) {
            path.extend_from_slice(b"\xff\xfe");
        }
        path
    }

    fn size(&self, file: u64) -> u64 {
        self.shapes[file as usize % self.shapes.len()].1.max(1)
    }

    /// Returns the files of a class.
    fn of(&self, class: Class) -> impl Iterator<Item = u64> + '_ {
        (0..self.files).filter(move |file| self.class(*file) == class)
    }
}
