//! Synthetic trees shaped like real ones: most files small, a few large, some duplicates,
//! some that differ only in one byte.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::Rng;

/// Parameters of a tree. The same values build the same names and bytes on every machine.
#[derive(Clone, Debug)]
pub struct Synth {
    /// Seed from which everything follows.
    pub seed: u64,
    /// Number of regular files.
    pub files: usize,
    /// Their total size in bytes; met exactly, unless too small for the small files' share.
    pub bytes: u64,
    /// Share of files (0.0 to 1.0) that repeat an earlier file's content.
    pub duplicates: f64,
    /// Share of files (0.0 to 1.0) that have an earlier file's size and all its bytes but one.
    pub near: f64,
}

impl Default for Synth {
    /// Returns 1,000 files, 16 MiB, one in five a duplicate, one in twenty a near one.
    fn default() -> Self {
        Synth {
            seed: 1,
            files: 1000,
            bytes: 16 << 20,
            duplicates: 0.2,
            near: 0.05,
        }
    }
}

/// Files and directories that were built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Built {
    /// Paths relative to the root with their sizes in bytes, in the order of creation.
    pub files: Vec<(PathBuf, u64)>,
    /// Total size in bytes.
    pub bytes: u64,
    /// Directories made.
    pub dirs: usize,
    /// Files that repeat an earlier file's content on purpose (tiny ones may do so by chance).
    pub duplicates: usize,
    /// Files that differ from an earlier one in one byte.
    pub near: usize,
}

/// Source of a file's bytes.
#[derive(Clone, Copy)]
struct Content {
    seed: u64,
    len: u64,
    /// Offset of the one byte that is flipped.
    flip: Option<u64>,
}

impl Synth {
    /// Builds the tree inside `root`, which is created if missing.
    ///
    /// # Errors
    /// If a directory or file cannot be written.
    pub fn build(&self, root: &Path) -> io::Result<Built> {
        let mut rng = Rng::new(self.seed);
        let mut contents: Vec<Content> = Vec::with_capacity(self.files);
        let mut built = Built::default();
        for index in 0..self.files {
            let share = rng.unit();
            let earlier = (index > 0).then(|| contents[rng.below(index as u64) as usize]);
            let fresh = Content {
                seed: rng.next_u64(),
                len: size(&mut rng),
                flip: None,
            };
            contents.push(match earlier {
                Some(same) if share < self.duplicates => same,
                Some(same) if share < self.duplicates + self.near && same.len > 0 => Content {
                    flip: Some(rng.below(same.len)),
                    ..same
                },
                _ => fresh,
            });
        }
        self.scale(&mut contents);
        let mut seen = std::collections::HashSet::new();
        for content in &contents {
            built.duplicates += usize::from(!seen.insert((content.seed, content.flip)));
            built.near += usize::from(content.flip.is_some());
        }
        self.write(root, &contents, &mut rng, &mut built)?;
        Ok(built)
    }

    /// Stretches the files over 4 KiB so that the total is `self.bytes`. One source has one length,
    /// so duplicates stay duplicates.
    fn scale(&self, contents: &mut [Content]) {
        let is_large = |c: &Content| c.len > SMALL;
        let total = |c: &[Content]| c.iter().map(|c| c.len).sum::<u64>();
        let small: u64 = contents
            .iter()
            .filter(|c| !is_large(c))
            .map(|c| c.len)
            .sum();
        let large = total(contents) - small;
        let wanted = self.bytes.saturating_sub(small);
        if large > 0 {
            let factor = wanted as f64 / large as f64;
            for content in contents.iter_mut().filter(|c| is_large(c)) {
                content.len = (content.len as f64 * factor) as u64;
                content.flip = content.flip.map(|at| at.min(content.len.saturating_sub(1)));
            }
        }
        // The bytes left by rounding go to a file of its own content.
        let missing = self.bytes.saturating_sub(total(contents));
        let lone = (0..contents.len()).rev().find(|&i| {
            contents
                .iter()
                .filter(|c| c.seed == contents[i].seed)
                .take(2)
                .count()
                == 1
        });
        if let Some(index) = lone {
            contents[index].len += missing;
        }
    }

    fn write(
        &self,
        root: &Path,
        contents: &[Content],
        rng: &mut Rng,
        built: &mut Built,
    ) -> io::Result<()> {
        fs::create_dir_all(root)?;
        let mut dirs = vec![PathBuf::new()];
        let mut buffer = Vec::new();
        for (index, content) in contents.iter().enumerate() {
            // About 40 files a directory; new ones grow anywhere, so depth varies.
            if index % 40 == 39 {
                let parent = &dirs[rng.below(dirs.len() as u64) as usize];
                let dir = parent.join(format!("{}-{}", WORDS[rng.below(16) as usize], dirs.len()));
                fs::create_dir(root.join(&dir))?;
                dirs.push(dir);
            }
            let word = WORDS[rng.below(16) as usize];
            let dir = &dirs[rng.below(dirs.len() as u64) as usize];
            let path = dir.join(format!(
                "{word}{index}.{}",
                EXTENSIONS[rng.below(4) as usize]
            ));
            write_content(&root.join(&path), *content, &mut buffer)?;
            built.bytes += content.len;
            built.files.push((path, content.len));
        }
        built.dirs = dirs.len() - 1;
        Ok(())
    }
}

const SMALL: u64 = 4 << 10;
const WORDS: [&str; 16] = [
    "report", "image", "notes", "draft", "backup", "index", "module", "data", "scan", "mail",
    "song", "video", "cache", "build", "paper", "table",
];
const EXTENSIONS: [&str; 4] = ["txt", "bin", "log", "dat"];

/// Returns a size: two thirds under 4 KiB, most others up to 128 KiB, one in fifty up to 4 MiB
/// before scaling.
fn size(rng: &mut Rng) -> u64 {
    let (low, high) = match rng.below(150) {
        0 => return 0,
        1..100 => (0.0, 12.0),
        100..147 => (12.01, 17.0),
        _ => (17.0, 22.0),
    };
    2f64.powf(low + (high - low) * rng.unit()) as u64
}

fn write_content(path: &Path, content: Content, buffer: &mut Vec<u8>) -> io::Result<()> {
    const CHUNK: u64 = 1 << 20;
    let mut rng = Rng::new(content.seed);
    let mut file = File::create_new(path)?;
    let mut at = 0;
    while at < content.len {
        let len = CHUNK.min(content.len - at);
        buffer.resize(len as usize, 0);
        rng.fill(buffer);
        if let Some(flip) = content.flip.filter(|flip| (at..at + len).contains(flip)) {
            buffer[(flip - at) as usize] ^= 1;
        }
        file.write_all(buffer)?;
        at += len;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TestTree, reference};

    #[test]
    fn same_seed_same_tree_of_the_asked_shape() {
        let (one, two) = (TestTree::new(), TestTree::new());
        let synth = Synth {
            files: 300,
            bytes: 8 << 20,
            ..Synth::default()
        };
        let built = synth.build(one.path()).unwrap();
        assert_eq!(built, synth.build(two.path()).unwrap());
        assert_eq!((built.files.len(), built.bytes), (300, 8 << 20));
        let small = built.files.iter().filter(|(_, len)| *len <= SMALL).count();
        assert!((170..230).contains(&small), "{small}");
        for (path, len) in &built.files {
            let content = fs::read(one.join(path)).unwrap();
            assert_eq!(content.len() as u64, *len);
            assert!(content == fs::read(two.join(path)).unwrap());
        }
        let other = Synth { seed: 2, ..synth }
            .build(&one.join("other"))
            .unwrap();
        assert_ne!(built, other);
    }

    #[test]
    fn duplicates_are_really_there() {
        let tree = TestTree::new();
        let built = Synth {
            files: 200,
            bytes: 2 << 20,
            ..Synth::default()
        }
        .build(tree.path())
        .unwrap();
        assert!(built.duplicates > 15 && built.near > 3, "{built:?}");
        let groups = reference::duplicates(tree.path(), reference::LinkCounting::Together).unwrap();
        let found: usize = groups.iter().map(|group| group.len() - 1).sum();
        // Some duplicates repeat an empty file; a tiny near one may equal another by chance.
        assert!(
            found + 8 >= built.duplicates && found <= built.duplicates + 8,
            "{found} {built:?}"
        );
    }
}
