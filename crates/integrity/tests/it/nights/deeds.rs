//! Deeds of the day.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::time::{Duration, UNIX_EPOCH};

use bc_testkit::is_root;

use super::{History, Node};
use crate::support::resealed;

impl History {
    /// Returns a path where nothing is.
    pub(super) fn free(&mut self) -> Option<String> {
        let dirs = ["", "d/", "e/"];
        let path = format!("{}n{}", dirs[self.rng.below(3) as usize], self.rng.below(6));
        let taken = self.files.contains_key(&path) || self.others.contains(&path);
        (!taken).then_some(path)
    }

    pub(super) fn any(&mut self, test: impl Fn(&Node) -> bool) -> Option<(String, usize)> {
        let fitting: Vec<(String, usize)> = self
            .files
            .iter()
            .filter(|(_, node)| test(&self.nodes[**node]))
            .map(|(path, node)| (path.clone(), *node))
            .collect();
        let count = fitting.len() as u64;
        (count > 0).then(|| fitting[self.rng.below(count) as usize].clone())
    }

    /// Few sizes, so that files look alike.
    pub(super) fn content(&mut self) -> Vec<u8> {
        self.contents += 1;
        let mut content = format!("{:08}", self.contents).into_bytes();
        content.resize([16, 16, 24][self.rng.below(3) as usize], b'.');
        content
    }

    /// Few times as well, as packages have them; or one of its own.
    pub(super) fn time(&mut self) -> u64 {
        self.clock += 1;
        match self.rng.below(3) {
            0 => self.clock,
            _ => 1_000_000 + self.rng.below(2),
        }
    }

    pub(super) fn put(&mut self, path: &str, content: &[u8], mtime: u64) -> usize {
        fs::write(self.at(path), content).unwrap();
        self.set_time(path, mtime);
        self.nodes.push(Node {
            content: content.to_vec(),
            bad: false,
            known: false,
            recorded: false,
            silent: false,
            was: (content.to_vec(), mtime),
            mtime,
            closed: false,
        });
        self.files.insert(path.to_owned(), self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    pub(super) fn set_time(&self, path: &str, mtime: u64) {
        let time = UNIX_EPOCH + Duration::from_secs(mtime);
        let file = fs::File::options().write(true).open(self.at(path)).unwrap();
        file.set_modified(time).unwrap();
    }

    /// Other content in place, and the time put back.
    pub(super) fn overwrite(&self, path: &str, content: &[u8], mtime: u64) {
        let file = fs::File::options().write(true).open(self.at(path)).unwrap();
        file.write_all_at(content, 0).unwrap();
        file.set_len(content.len() as u64).unwrap();
        self.set_time(path, mtime);
    }

    pub(super) fn create(&mut self) {
        if let Some(path) = self.free() {
            let (content, mtime) = (self.content(), self.time());
            self.note(format!("create {path} {}", content.len()));
            self.put(&path, &content, mtime);
        }
    }

    pub(super) fn step(&mut self) {
        match self.rng.below(18) {
            0 => self.create(),
            1 | 2 => self.edit(),
            3 | 4 => self.rename(),
            5 => self.rename_over(),
            6 | 7 => self.swap(),
            8 => self.link(),
            9 => self.touch(),
            10 | 11 => self.rot(),
            12 => self.delete(),
            13 | 14 => self.create_alike(),
            15 => self.change_kind(),
            16 => match self.rng.below(3) {
                0 => self.heal(),
                1 => self.put_aside(),
                _ => self.copy_known(),
            },
            _ => self.close_or_open(),
        }
    }

    fn edit(&mut self) {
        let Some((path, node)) = self.any(|node| !node.closed) else {
            return;
        };
        let content = self.content();
        self.clock += 1;
        let mtime = self.clock;
        if self.rng.below(2) == 0 {
            self.note(format!("edit {path}"));
            self.overwrite(&path, &content, mtime);
            let node = &mut self.nodes[node];
            (node.content, node.mtime) = (content, mtime);
            (node.bad, node.known, node.recorded) = (false, false, false);
            node.silent = false;
        } else {
            self.note(format!("replace {path}"));
            let spare = self.at("spare");
            fs::write(&spare, &content).unwrap();
            fs::rename(&spare, self.at(&path)).unwrap();
            self.put(&path, &content, mtime);
        }
    }

    fn move_to(&mut self, from: &str, to: &str) {
        fs::rename(self.at(from), self.at(to)).unwrap();
        let node = self.files.remove(from).unwrap();
        self.files.insert(to.to_owned(), node);
    }

    fn rename(&mut self) {
        if let (Some((from, _)), Some(to)) = (self.any(|_| true), self.free()) {
            self.note(format!("mv {from} {to}"));
            self.move_to(&from, &to);
        }
    }

    fn rename_over(&mut self) {
        if let (Some((from, one)), Some((to, other))) = (self.any(|_| true), self.any(|_| true))
            && one != other
        {
            self.note(format!("mv {from} over {to}"));
            self.move_to(&from, &to);
        }
    }

    fn swap(&mut self) {
        if let (Some((a, one)), Some((b, other))) = (self.any(|_| true), self.any(|_| true))
            && one != other
        {
            self.note(format!("swap {a} {b}"));
            self.move_to(&a, "spare");
            self.move_to(&b, &a);
            self.move_to("spare", &b);
        }
    }

    fn link(&mut self) {
        if let (Some((from, node)), Some(to)) = (self.any(|_| true), self.free()) {
            self.note(format!("ln {from} {to}"));
            fs::hard_link(self.at(&from), self.at(&to)).unwrap();
            self.files.insert(to, node);
        }
    }

    /// Damage that is not known looks like an edit from then on.
    fn touch(&mut self) {
        let Some((path, node)) = self.any(|node| !node.closed) else {
            return;
        };
        self.note(format!("touch {path}"));
        self.clock += 1;
        self.set_time(&path, self.clock);
        let node = &mut self.nodes[node];
        (node.mtime, node.recorded) = (self.clock, false);
        node.bad &= node.known;
    }

    fn rotten(&mut self, content: &[u8]) -> Vec<u8> {
        self.contents += 1;
        let mut rotten = content.to_vec();
        rotten[..8].copy_from_slice(format!("{:08}", self.contents).as_bytes());
        rotten[8] = b'!';
        rotten
    }

    fn spoil(&mut self, path: &str, node: usize) {
        let (content, mtime) = (self.nodes[node].content.clone(), self.nodes[node].mtime);
        let rotten = self.rotten(&content);
        self.overwrite(path, &rotten, mtime);
        let node = &mut self.nodes[node];
        node.was = (content, mtime);
        (node.content, node.bad, node.recorded) = (rotten, true, false);
    }

    fn rot(&mut self) {
        if let Some((path, node)) = self.any(|node| node.recorded && !node.closed) {
            self.note(format!("rot {path}"));
            self.spoil(&path, node);
        }
    }

    /// Rots as a disk does: the manifest, changed accordingly, has the ctime of now.
    pub(super) fn rot_silently(&mut self) {
        let found = self.any(|node| node.recorded && !node.closed);
        let Some((path, node)) = found else { return };
        self.note(format!("rot {path}, unseen"));
        self.spoil(&path, node);
        self.nodes[node].silent = true;
        let meta = self.at(&path).metadata().unwrap();
        let ctime = meta.ctime() * 1_000_000_000 + meta.ctime_nsec();
        let bytes = fs::read(&self.manifest).unwrap();
        let names: Vec<&String> = self
            .files
            .iter()
            .filter(|f| *f.1 == node)
            .map(|f| f.0)
            .collect();
        let changed = resealed(&bytes, |lines| {
            for line in lines {
                let mut entry: serde_json::Value = serde_json::from_str(line).unwrap();
                let is = |path: &&&String| entry["path"] == ***path;
                if names.iter().any(|path| is(&path)) {
                    entry["ctime_ns"] = ctime.into();
                    *line = entry.to_string();
                }
            }
        });
        fs::write(&self.manifest, changed).unwrap();
    }

    fn delete(&mut self) {
        if let Some((path, _)) = self.any(|_| true) {
            self.note(format!("rm {path}"));
            fs::remove_file(self.at(&path)).unwrap();
            self.files.remove(&path);
        }
    }

    /// A new file in place of a deleted one, of its size and time and perhaps with its number.
    fn create_alike(&mut self) {
        let (Some((old, node)), Some(path)) = (self.any(|_| true), self.free()) else {
            return;
        };
        let (mtime, size) = (self.nodes[node].mtime, self.nodes[node].content.len());
        let ino = self.at(&old).metadata().unwrap().ino();
        fs::remove_file(self.at(&old)).unwrap();
        self.files.remove(&old);
        let mut content = self.content();
        content.resize(size, b'.');
        self.put(&path, &content, mtime);
        let same = self.at(&path).metadata().unwrap().ino() == ino;
        self.note(format!(
            "rm {old}, create {path} alike, same number: {same}"
        ));
    }

    fn change_kind(&mut self) {
        let other = self.others.iter().next().cloned();
        match other.filter(|_| self.rng.below(2) == 0) {
            Some(path) => {
                self.note(format!("{path} becomes a file"));
                let at = self.at(&path);
                fs::remove_dir(&at)
                    .or_else(|_| fs::remove_file(&at))
                    .unwrap();
                self.others.remove(&path);
                let (content, mtime) = (self.content(), self.time());
                self.put(&path, &content, mtime);
            }
            None => {
                let Some((path, _)) = self.any(|_| true) else {
                    return;
                };
                self.note(format!("{path} becomes another kind"));
                fs::remove_file(self.at(&path)).unwrap();
                self.files.remove(&path);
                match self.rng.below(2) {
                    0 => fs::create_dir(self.at(&path)).unwrap(),
                    _ => std::os::unix::fs::symlink("nowhere", self.at(&path)).unwrap(),
                }
                self.others.insert(path);
            }
        }
    }

    /// The content that was recorded is put back.
    fn heal(&mut self) {
        if let Some((path, node)) = self.any(|node| node.bad && !node.closed) {
            self.note(format!("heal {path}"));
            let (content, mtime) = self.nodes[node].was.clone();
            self.overwrite(&path, &content, mtime);
            let node = &mut self.nodes[node];
            (node.content, node.mtime) = (content, mtime);
            (node.bad, node.known, node.silent) = (false, false, false);
        }
    }

    /// A file that is known to be damaged gets another name, and a good copy its own.
    fn put_aside(&mut self) {
        if let (Some((path, node)), Some(to)) = (self.any(|node| node.known), self.free()) {
            self.note(format!("mv {path} {to}, good copy in its place"));
            self.move_to(&path, &to);
            let (content, mtime) = self.nodes[node].was.clone();
            let mtime = match self.rng.below(2) {
                0 => mtime,
                _ => self.time(),
            };
            self.put(&path, &content, mtime);
        }
    }

    fn copy_known(&mut self) {
        if let (Some((path, node)), Some(to)) = (self.any(|n| n.known && !n.closed), self.free()) {
            self.note(format!("cp {path} {to}"));
            let content = self.nodes[node].content.clone();
            let mtime = self.time();
            let copy = self.put(&to, &content, mtime);
            (self.nodes[copy].bad, self.nodes[copy].known) = (true, true);
            self.nodes[copy].was = self.nodes[node].was.clone();
        }
    }

    fn close_or_open(&mut self) {
        if is_root() {
            return;
        }
        if let Some((path, node)) = self.any(|_| true) {
            let closed = !self.nodes[node].closed;
            self.note(format!("chmod {path} {}", if closed { "0" } else { "644" }));
            let mode = fs::Permissions::from_mode(if closed { 0 } else { 0o644 });
            fs::set_permissions(self.at(&path), mode).unwrap();
            self.nodes[node].closed = closed;
        }
    }
}
