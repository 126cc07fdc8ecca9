//! File system over FUSE that shows a directory of its own, and makes its callers wait or fail as
//! servers, disks and unions do: latency, a cap of requests, one decompressor, the arm of a disk,
//! requests that are held, short reads, errors in the middle or at a close, kinds that are not those
//! that are there.

mod dial;
mod server;

use std::path::Path;
use std::sync::Arc;

use fuser::{BackgroundSession, Config, MountOption, SessionACL};
use rustix::mount::UnmountFlags;
use tempfile::TempDir;

use self::dial::Dial;
use self::server::Server;
use crate::loop_disk::apart;

pub use self::dial::{
    Behaviour, DiskArm, DiskLoss, DiskRequest, FAILING, FAILING_FROM, RequestCounts, RequestKind,
    STALLING, UNSTORABLE,
};

/// Requests that are served at the same time. Programs under test have up to 128 in flight.
const THREADS: usize = 160;

/// A file system with a [`Behaviour`], mounted through FUSE; unmounted on drop.
pub struct FuseDisk {
    mount: TempDir,
    shown: TempDir,
    dial: Arc<Dial>,
    // Dropped last: its end unmounts.
    session: Option<BackgroundSession>,
}

impl std::fmt::Debug for FuseDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FuseDisk")
            .field("mount", &self.mount)
            .field("behaviour", &self.dial.behaviour)
            .finish_non_exhaustive()
    }
}

impl FuseDisk {
    /// Returns its mount point.
    pub fn path(&self) -> &Path {
        self.mount.path()
    }

    /// Returns the directory that it shows, where nothing waits or fails.
    pub fn shown(&self) -> &Path {
        self.shown.path()
    }

    /// Returns the counts of requests since the last call.
    pub fn take_counts(&self) -> RequestCounts {
        self.dial.take_counts()
    }

    /// Returns the requests that were [recorded](Behaviour::records) since the last call, in the
    /// order of their arrival.
    pub fn take_record(&self) -> Vec<DiskRequest> {
        self.dial.take_record()
    }

    /// Holds requests of this kind for names that contain [`STALLING`], and for those below them,
    /// until they are [released](Self::release). A thread that waits for one cannot be interrupted.
    pub fn hold(&self, kind: RequestKind) {
        self.dial.hold(kind);
    }

    /// Waits until a request is held; false if that has not come after a very long time.
    pub fn wait_held(&self) -> bool {
        self.dial.wait_held()
    }

    /// Answers the requests that are held, and holds no more.
    pub fn release(&self) {
        self.dial.release();
    }

    /// Has the disk lost when its `nth` request of that kind from now on arrives.
    pub fn lose_at(&self, kind: RequestKind, nth: usize, loss: DiskLoss) {
        self.dial.lose_at(kind, nth, loss);
    }

    /// Has the disk back: the same files at the same mount point. True if it was lost.
    ///
    /// # Errors
    /// The reason why it cannot be mounted again.
    pub fn regain(&mut self) -> Result<bool, String> {
        let lost = self.dial.lost();
        if lost == Some(DiskLoss::Gone) {
            let _ = rustix::mount::unmount(self.mount.path(), UnmountFlags::DETACH);
            if let Some(session) = self.session.take() {
                // A request that is at work would be done on the disk that is back, and a thread that
                // has just seen the loss would unmount that.
                let _ = session.join();
            }
        }
        self.dial.regain();
        if self.session.is_none() {
            self.session = Some(spawn(self.shown.path(), self.mount.path(), &self.dial)?);
        }
        Ok(lost.is_some())
    }

    /// Waits until the record is enough; false if that has not come after a very long time.
    pub fn wait_for(&self, is_enough: impl Fn(&[DiskRequest]) -> bool) -> bool {
        self.dial.wait_for(is_enough)
    }
}

impl Drop for FuseDisk {
    fn drop(&mut self) {
        self.release();
        // Detached even if busy: a mount left behind would outlive the test run.
        let _ = rustix::mount::unmount(self.mount.path(), UnmountFlags::DETACH);
        drop(self.session.take());
    }
}

/// Mounts such a file system where the calling thread and the programs that it starts from then on
/// can see it, and no others.
///
/// # Errors
/// The reason why this machine cannot: not root, or no FUSE.
pub fn fuse_disk(behaviour: Behaviour) -> Result<FuseDisk, String> {
    if !crate::is_root() {
        return Err("mounting through FUSE needs root".to_owned());
    }
    if !Path::new("/dev/fuse").exists() {
        return Err("there is no /dev/fuse".to_owned());
    }
    apart()?;
    let temporary = || TempDir::new().map_err(|e| format!("temporary directory: {e}"));
    let (mount, shown) = (temporary()?, temporary()?);
    let dial = Arc::new(Dial::new(behaviour));
    let session = spawn(shown.path(), mount.path(), &dial)?;
    Ok(FuseDisk {
        mount,
        shown,
        dial,
        session: Some(session),
    })
}

fn spawn(shown: &Path, mount: &Path, dial: &Arc<Dial>) -> Result<BackgroundSession, String> {
    let server = Server::new(shown, mount, dial);
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("bc-testkit".to_owned()),
        MountOption::DefaultPermissions,
    ];
    config.acl = SessionACL::All;
    config.n_threads = Some(THREADS);
    let session = fuser::spawn_mount(server, mount, &config);
    session.map_err(|e| format!("mount through FUSE: {e}"))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::unix::fs::{FileExt, MetadataExt};
    use std::time::{Duration, Instant, UNIX_EPOCH};

    use rustix::fs::{CWD, Mode};
    use rustix::io::Errno;

    use super::*;

    fn disk(behaviour: Behaviour) -> Option<FuseDisk> {
        fuse_disk(behaviour)
            .inspect_err(|reason| crate::left_out(reason))
            .ok()
    }

    #[test]
    fn a_close_says_what_no_write_said() {
        let Some(disk) = disk(Behaviour {
            close_error: Some(Errno::DQUOT),
            ..Behaviour::default()
        }) else {
            return;
        };
        let at = |name: &str| disk.path().join(name);
        std::fs::create_dir(at("d")).unwrap();
        std::fs::write(at("d/good"), "stored").unwrap();
        std::fs::rename(at("d/good"), at("kept")).unwrap();
        let bad = File::create(at("d/bad")).unwrap();
        let second = bad.try_clone().unwrap();
        (&bad).write_all(UNSTORABLE.as_bytes()).unwrap();
        bad.sync_all().unwrap();
        drop((bad, second));
        assert_eq!(std::fs::read(at("kept")).unwrap(), b"stored");
        assert_eq!(std::fs::read(at("d/bad")).unwrap(), b"");
        let names: Vec<_> = std::fs::read_dir(at("d")).unwrap().flatten().collect();
        assert_eq!(names.len(), 1);
        std::fs::remove_file(at("d/bad")).unwrap();
        std::fs::remove_dir(at("d")).unwrap();
        assert!(!at("d").exists());
    }

    #[test]
    fn kinds_that_are_listed_are_not_those_that_are_there() {
        let Some(disk) = disk(Behaviour {
            lists_all_as_files: true,
            ..Behaviour::default()
        }) else {
            return;
        };
        let mode = Mode::from_raw_mode(0o600);
        let pipe = disk.path().join("pipe");
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let listed = std::fs::read_dir(disk.path())
            .unwrap()
            .next()
            .unwrap()
            .unwrap();
        assert!(listed.file_type().unwrap().is_file());
        assert!(!pipe.symlink_metadata().unwrap().is_file());
    }

    #[test]
    fn it_keeps_what_a_file_system_keeps() {
        let Some(disk) = disk(Behaviour::default()) else {
            return;
        };
        let at = |name: &str| disk.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::write(at("a/b/one"), "1").unwrap();
        std::fs::hard_link(at("a/b/one"), at("two")).unwrap();
        std::fs::rename(at("a"), at("moved")).unwrap();
        assert_eq!(at("two").metadata().unwrap().nlink(), 2);
        std::fs::remove_file(at("moved/b/one")).unwrap();
        assert_eq!(std::fs::read(at("two")).unwrap(), b"1");
        std::fs::write(at("x"), "x").unwrap();
        let flags = rustix::fs::RenameFlags::EXCHANGE;
        rustix::fs::renameat_with(CWD, at("x"), CWD, at("two"), flags).unwrap();
        assert_eq!(std::fs::read(at("two")).unwrap(), b"x");
        assert_eq!(std::fs::read(at("x")).unwrap(), b"1");
        let flags = rustix::fs::RenameFlags::NOREPLACE;
        let taken = rustix::fs::renameat_with(CWD, at("x"), CWD, at("two"), flags);
        assert_eq!(taken, Err(Errno::EXIST));
        let open = File::options()
            .read(true)
            .write(true)
            .open(at("x"))
            .unwrap();
        std::fs::remove_file(at("x")).unwrap();
        open.write_all_at(b"still", 0).unwrap();
        assert_eq!(open.metadata().unwrap().len(), 5);
        open.set_len(2).unwrap();
        assert_eq!(open.metadata().unwrap().len(), 2);
        // Before 1970 the crate takes parts of a second for parts to the other side.
        let then = UNIX_EPOCH - Duration::from_secs(2);
        let two = File::options().write(true).open(at("two")).unwrap();
        two.set_modified(then).unwrap();
        assert_eq!(at("two").metadata().unwrap().modified().unwrap(), then);
        std::os::unix::fs::symlink("two", at("link")).unwrap();
        assert_eq!(std::fs::read_link(at("link")).unwrap(), Path::new("two"));
    }

    #[test]
    fn what_waits_is_counted_and_reads_may_be_short() {
        let Some(disk) = disk(Behaviour {
            latency: Duration::from_millis(5),
            short_reads: Some(3),
            ..Behaviour::default()
        }) else {
            return;
        };
        for name in 0..8 {
            std::fs::write(disk.shown().join(name.to_string()), "longer than three").unwrap();
        }
        disk.take_counts();
        let started = Instant::now();
        std::thread::scope(|scope| {
            for name in 0..8 {
                let path = disk.path().join(name.to_string());
                scope.spawn(move || {
                    let file = File::open(path).unwrap();
                    let mut bytes = [0; 100];
                    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), 3);
                });
            }
        });
        let counts = disk.take_counts();
        // Name, open, read and close of each.
        assert!(counts.requests >= 32, "{counts:?}");
        assert!(counts.most_in_flight > 1, "{counts:?}");
        assert!(started.elapsed() >= Duration::from_millis(20));
    }

    #[test]
    fn requests_are_recorded_in_order_and_held_until_they_are_released() {
        let Some(disk) = disk(Behaviour {
            records: true,
            ..Behaviour::default()
        }) else {
            return;
        };
        for name in ["a", "b", STALLING] {
            std::fs::write(disk.shown().join(name), name).unwrap();
        }
        let read = |name: &str| std::fs::read(disk.path().join(name)).unwrap();
        read("b");
        read("a");
        let reads = |record: &[DiskRequest]| -> Vec<String> {
            let reads = record.iter().filter(|one| one.kind == RequestKind::Read);
            reads.map(|one| one.path.display().to_string()).collect()
        };
        assert_eq!(reads(&disk.take_record()), ["b", "a"]);
        disk.hold(RequestKind::Read);
        std::thread::scope(|scope| {
            let held = scope.spawn(|| read(STALLING));
            assert!(disk.wait_held());
            assert_eq!(read("a"), b"a");
            assert!(!held.is_finished());
            let closed = DiskRequest {
                kind: RequestKind::Close,
                path: "a".into(),
            };
            assert!(disk.wait_for(|record| record.contains(&closed)));
            disk.release();
            assert_eq!(held.join().unwrap(), STALLING.as_bytes());
        });
        assert_eq!(read(STALLING), STALLING.as_bytes());
    }

    #[test]
    fn a_file_and_a_directory_fail_in_the_middle() {
        let Some(disk) = disk(Behaviour {
            read_error: Some(Errno::IO),
            ..Behaviour::default()
        }) else {
            return;
        };
        let name = format!("{FAILING}-x");
        let content = vec![7; 2 * FAILING_FROM as usize];
        std::fs::write(disk.shown().join(&name), &content).unwrap();
        std::fs::write(disk.shown().join("whole"), &content).unwrap();
        assert_eq!(std::fs::read(disk.path().join("whole")).unwrap(), content);
        let mut read = Vec::new();
        let mut file = File::open(disk.path().join(&name)).unwrap();
        let failed = file.read_to_end(&mut read).unwrap_err();
        assert_eq!(failed.raw_os_error(), Some(Errno::IO.raw_os_error()));
        assert!(!read.is_empty() && read.len() as u64 <= FAILING_FROM);
        let dir = format!("{FAILING}-dir");
        std::fs::create_dir(disk.shown().join(&dir)).unwrap();
        for nth in 0..10 {
            std::fs::write(disk.shown().join(&dir).join(nth.to_string()), "").unwrap();
        }
        let listed: Vec<_> = disk.path().join(&dir).read_dir().unwrap().collect();
        assert_eq!(listed.iter().filter(|entry| entry.is_ok()).count(), 4);
        assert!(listed.last().unwrap().is_err());
    }

    #[test]
    fn a_disk_that_is_lost_answers_nothing_until_it_is_back() {
        for (loss, errors) in [
            (DiskLoss::Errors(Errno::IO), [Errno::IO; 2]),
            (DiskLoss::Gone, [Errno::NOTCONN, Errno::CONNABORTED]),
        ] {
            let Some(mut disk) = disk(Behaviour::default()) else {
                return;
            };
            let at = |disk: &FuseDisk, name: &str| disk.path().join(name);
            std::fs::write(at(&disk, "one"), "1").unwrap();
            let open = File::open(at(&disk, "one")).unwrap();
            disk.lose_at(RequestKind::Change, 1, loss);
            assert_eq!(std::fs::read(at(&disk, "one")).unwrap(), b"1");
            let refused = [
                std::fs::remove_file(at(&disk, "one")).unwrap_err(),
                std::fs::metadata(at(&disk, "one")).unwrap_err(),
                std::fs::read_dir(disk.path()).unwrap_err(),
                open.sync_all().unwrap_err(),
            ];
            for error in refused {
                let error = Errno::from_io_error(&error).unwrap();
                assert!(errors.contains(&error), "{loss:?}: {error}");
            }
            assert!(disk.regain().unwrap());
            assert_eq!(std::fs::read(at(&disk, "one")).unwrap(), b"1", "{loss:?}");
            std::fs::remove_file(at(&disk, "one")).unwrap();
            assert!(!disk.regain().unwrap());
        }
    }

    #[test]
    fn the_arm_of_a_disk_travels_as_reads_go() {
        let Some(disk) = disk(Behaviour {
            arm: Some(DiskArm::default()),
            ..Behaviour::default()
        }) else {
            return;
        };
        let mut by_inode: Vec<(u64, String)> = (0..20)
            .map(|nth| {
                let name = format!("{nth:02}");
                let path = disk.shown().join(&name);
                std::fs::write(&path, &name).unwrap();
                (path.metadata().unwrap().ino(), name)
            })
            .collect();
        by_inode.sort();
        let first = by_inode.remove(0);
        let travel = |order: &[(u64, String)]| {
            let dropped = |name: &str| {
                let file = File::open(disk.path().join(name)).unwrap();
                rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
                file
            };
            dropped(&first.1).read_exact(&mut [0; 2]).unwrap();
            disk.take_counts();
            for (_, name) in order {
                dropped(name).read_exact(&mut [0; 2]).unwrap();
            }
            disk.take_counts().travel
        };
        let ordered = travel(&by_inode);
        let span = by_inode.last().unwrap().0 - first.0;
        assert_eq!(ordered, span);
        let mixed: Vec<_> = (0..19).map(|nth| by_inode[nth * 7 % 19].clone()).collect();
        assert!(travel(&mixed) > ordered);
    }
}
