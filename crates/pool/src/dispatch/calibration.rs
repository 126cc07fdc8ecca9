//! What was measured on this machine, and its text form: `key = value unit`, one a line,
//! keyed by CPU, microcode and kernel. Any doubt about a stored file means: measure again.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// First line of the text form; a change of meaning changes the number.
const HEADER: &str = "# bit-crafts calibration 1";

/// A stored file is a few hundred bytes; anything larger is not ours.
const MAX_TEXT: u64 = 64 << 10;

/// What the figures depend on.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Machine {
    /// The CPU's name.
    pub cpu: String,
    /// The microcode's revision.
    pub microcode: String,
    /// The kernel's release.
    pub kernel: String,
}

impl Machine {
    /// This machine, as `/proc` describes it; unknown parts are `unknown`.
    pub fn detect() -> Machine {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Machine::parse(&cpuinfo, &release)
    }

    fn parse(cpuinfo: &str, release: &str) -> Machine {
        let field = |name: &str| {
            cpuinfo
                .lines()
                .filter_map(|line| line.split_once(':'))
                .find(|(key, _)| key.trim() == name)
                .map_or("", |(_, value)| value)
        };
        Machine {
            cpu: one_line(field("model name")),
            microcode: one_line(field("microcode")),
            kernel: one_line(release),
        }
    }
}

/// Words separated by single spaces, so that the text form reads back what was written.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.is_empty() {
        "unknown".to_owned()
    } else {
        words.join(" ")
    }
}

/// What one worker costs and achieves on this machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// Seconds to open, read and close one small file, warm.
    pub per_file: f64,
    /// Seconds from wanting a further worker to its first useful work, its thread not yet
    /// spawned.
    pub thread_start: f64,
    /// Bytes per second that one core reads from memory.
    pub memory_bandwidth: f64,
    /// Bytes per second of one core for each algorithm, by its name.
    pub throughput: BTreeMap<String, f64>,
}

impl Default for Calibration {
    /// Figures of a slow virtual machine of 2020 (2.5 GHz Cascade Lake: open, read and close
    /// 5 µs, thread 110 µs, memory 8 GB/s), for use until this machine is measured. They put
    /// the break-even at about 90 small files or 1 MB.
    fn default() -> Calibration {
        Calibration {
            per_file: 5.0e-6,
            thread_start: 250.0e-6,
            memory_bandwidth: 8.0e9,
            throughput: BTreeMap::new(),
        }
    }
}

impl Calibration {
    /// The text form, for the machine it was measured on.
    pub fn format(&self, machine: &Machine) -> String {
        let mut text = format!(
            "{HEADER}\ncpu = {}\nmicrocode = {}\nkernel = {}\n\
             per_file = {:e} s\nthread_start = {:e} s\nmemory_bandwidth = {:e} B/s\n",
            one_line(&machine.cpu),
            one_line(&machine.microcode),
            one_line(&machine.kernel),
            self.per_file,
            self.thread_start,
            self.memory_bandwidth,
        );
        for (name, rate) in &self.throughput {
            text.push_str(&format!("throughput.{name} = {rate:e} B/s\n"));
        }
        text
    }

    /// Reads the text form. `None` on any doubt: another machine, an unknown or repeated
    /// key, another unit, a value that is not a positive number, anything missing.
    ///
    /// ```
    /// use bc_pool::dispatch::{Calibration, Machine};
    ///
    /// let machine = Machine::detect();
    /// let mut measured = Calibration::default();
    /// measured.throughput.insert("sha256".to_owned(), 1.05e9);
    /// let text = measured.format(&machine);
    /// assert_eq!(Calibration::parse(&text, &machine), Some(measured));
    /// assert_eq!(Calibration::parse(&text[..40], &machine), None);
    /// ```
    pub fn parse(text: &str, machine: &Machine) -> Option<Calibration> {
        // A last line without its end may have been cut short.
        let mut lines = text.strip_suffix('\n')?.split('\n');
        if lines.next()? != HEADER {
            return None;
        }
        let mut values = BTreeMap::new();
        for line in lines {
            let (key, value) = line.split_once(" = ")?;
            if values.insert(key, value).is_some() {
                return None;
            }
        }
        let mut known = Machine::default();
        for (key, field) in [
            ("cpu", &mut known.cpu),
            ("microcode", &mut known.microcode),
            ("kernel", &mut known.kernel),
        ] {
            *field = values.remove(key)?.to_owned();
        }
        let expected = Machine {
            cpu: one_line(&machine.cpu),
            microcode: one_line(&machine.microcode),
            kernel: one_line(&machine.kernel),
        };
        if known != expected {
            return None;
        }
        let per_file = quantity(values.remove("per_file")?, "s")?;
        let thread_start = quantity(values.remove("thread_start")?, "s")?;
        let memory_bandwidth = quantity(values.remove("memory_bandwidth")?, "B/s")?;
        let throughput = values
            .into_iter()
            .map(|(key, value)| {
                let name = key.strip_prefix("throughput.").filter(|n| !n.is_empty())?;
                Some((name.to_owned(), quantity(value, "B/s")?))
            })
            .collect::<Option<_>>()?;
        Some(Calibration {
            per_file,
            thread_start,
            memory_bandwidth,
            throughput,
        })
    }

    /// Loads what was saved for this machine. `None` on any doubt, also when there is no
    /// such file or it cannot be read.
    pub fn load(path: &Path, machine: &Machine) -> Option<Calibration> {
        // Whatever lies there, it is not waited for.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
            .open(path)
            .ok()?;
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let mut text = String::new();
        file.take(MAX_TEXT).read_to_string(&mut text).ok()?;
        Calibration::parse(&text, machine)
    }
}

/// `VALUE UNIT` with a positive, finite value.
fn quantity(text: &str, unit: &str) -> Option<f64> {
    let (value, found) = text.split_once(' ')?;
    let value: f64 = value.parse().ok()?;
    (found == unit && value.is_finite() && value > 0.0).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        Machine {
            cpu: "Some CPU @ 2.50GHz".to_owned(),
            microcode: "0x5003604".to_owned(),
            kernel: "6.12.1".to_owned(),
        }
    }

    fn measured() -> Calibration {
        Calibration {
            per_file: 4.2e-6,
            thread_start: 1.1e-4,
            memory_bandwidth: 1.2e10,
            throughput: [("sha256", 1.05e9), ("xxh3", 2.8e10), ("sha512-256", 7e8)]
                .map(|(name, rate)| (name.to_owned(), rate))
                .into(),
        }
    }

    #[test]
    fn round_trip() {
        let text = measured().format(&machine());
        assert_eq!(Calibration::parse(&text, &machine()), Some(measured()));
        assert!(text.contains("throughput.sha256 = 1.05e9 B/s\n"), "{text}");
    }

    #[test]
    fn any_cut_is_doubt() {
        let text = measured().format(&machine());
        let whole_lines: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
        for end in 0..text.len() {
            let parsed = Calibration::parse(&text[..end], &machine());
            // Cut between the throughputs, what is left is complete in itself.
            let complete = whole_lines.contains(&end) && text[..end].contains("memory_bandwidth");
            assert_eq!(parsed.is_some(), complete, "cut at {end}");
        }
    }

    #[test]
    fn any_oddity_is_doubt() {
        let text = measured().format(&machine());
        for (from, to) in [
            ("calibration 1", "calibration 2"),
            ("4.2e-6 s", "4.2e-6 ms"),
            ("4.2e-6 s", "4.2e-6"),
            ("4.2e-6", "-4.2e-6"),
            ("4.2e-6", "0"),
            ("4.2e-6", "NaN"),
            ("4.2e-6", "inf"),
            ("4.2e-6", "1e999"),
            ("4.2e-6", ""),
            ("per_file", "per_fil"),
            ("per_file", "thread_start"),
            ("throughput.xxh3", "throughput."),
            ("throughput.xxh3", "throughput.sha256"),
            ("0x5003604", "0x5003605"),
            ("6.12.1", "6.12.2"),
            ("2.50GHz", "2.60GHz"),
            ("\n", "\r\n"),
            ("\n", "\n\n"),
        ] {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text);
            assert_eq!(
                Calibration::parse(&changed, &machine()),
                None,
                "{from} -> {to}"
            );
        }
    }

    #[test]
    fn cpuinfo() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Some  CPU @ 2.50GHz\nmicrocode\t: 0x5003604\n\
                       processor\t: 1\nmodel name\t: Other\n";
        assert_eq!(Machine::parse(cpuinfo, "6.12.1\n"), machine());
        assert_eq!(Machine::parse("", "").cpu, "unknown");
    }

    #[test]
    fn only_a_whole_file_of_ours_is_loaded() {
        let directory = std::env::temp_dir().join(format!("bc-pool-cal-{}", std::process::id()));
        let path = directory.join("throughput.txt");
        assert_eq!(Calibration::load(&path, &machine()), None);
        fs::create_dir_all(&directory).unwrap();
        fs::write(&path, measured().format(&machine())).unwrap();
        assert_eq!(Calibration::load(&path, &machine()), Some(measured()));
        assert_eq!(Calibration::load(&directory, &machine()), None);
        assert_eq!(Calibration::load(Path::new("/dev/zero"), &machine()), None);
        fs::write(&path, [0xff; 10]).unwrap();
        assert_eq!(Calibration::load(&path, &machine()), None);
        fs::remove_file(&path).unwrap();
        let fifo = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(fifo.unwrap().success());
        assert_eq!(Calibration::load(&path, &machine()), None);
        fs::remove_dir_all(&directory).unwrap();
    }
}
