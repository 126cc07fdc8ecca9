//! Facts about the machine of a measurement.

use std::path::Path;
use std::process::Command;

use crate::sh;

/// Instruction sets that decide which kernels run.
const FLAGS: &[&str] = &["sse4_1", "avx2", "avx512f", "avx512vl", "sha_ni", "vaes"];

fn cpu_field(key: &str) -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|l| l.starts_with(key));
    line.and_then(|l| l.split_once(':'))
        .map_or_else(String::new, |(_, v)| v.trim().to_owned())
}

/// Returns true if the CPU has an instruction set, by the kernel's name of it.
pub(crate) fn has_flag(flag: &str) -> bool {
    cpu_field("flags").split(' ').any(|f| f == flag)
}

/// Returns the model, such as `AMD EPYC`.
pub(crate) fn cpu() -> String {
    let name = cpu_field("model name");
    if name.is_empty() {
        std::env::consts::ARCH.to_owned()
    } else {
        name
    }
}

pub(crate) fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("").to_owned()
}

fn said(command: &mut Command) -> String {
    let text = sh::stdout(command).unwrap_or_default();
    String::from_utf8_lossy(&text).trim().to_owned()
}

/// Returns the day, as `2026-02-28`.
pub(crate) fn date() -> String {
    said(Command::new("date").args(["-u", "+%F"]))
}

/// Returns the commit that was measured.
pub(crate) fn commit() -> String {
    let git = |words: &[&str]| said(Command::new("git").current_dir(sh::root()).args(words));
    let mut status = vec!["status", "--porcelain", "--untracked-files=no", "--", "."];
    // Files that a benchmark writes are no part of the program that it measures.
    status.extend([":!benches/record", ":!README.md", ":!src/guide/compare.md"]);
    let dirty = git(&status);
    let mark = if dirty.is_empty() {
        ""
    } else {
        ", with changes not committed"
    };
    format!("{}{mark}", git(&["rev-parse", "--short=12", "HEAD"]))
}

fn file_system(tree: &Path) -> String {
    let text = said(Command::new("df").arg("--output=fstype").arg(tree));
    text.lines().last().unwrap_or("").to_owned()
}

/// Facts by name.
pub(crate) fn facts(tree: &Path) -> Vec<(&'static str, String)> {
    let flags: Vec<&str> = FLAGS.iter().copied().filter(|f| has_flag(f)).collect();
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = memory
        .lines()
        .next()
        .and_then(|l| l.split_whitespace().nth(1)?.parse::<u64>().ok());
    let governor = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    let randomised = std::fs::read_to_string("/proc/sys/kernel/randomize_va_space");
    let virtualised = if has_flag("hypervisor") { "yes" } else { "no" };
    let family = format!("{} model {}", cpu_field("cpu family"), cpu_field("model\t"));
    vec![
        (
            "CPU",
            format!("{} (family {family}), {}", cpu(), flags.join(" ")),
        ),
        (
            "CPUs allowed",
            std::thread::available_parallelism()
                .map_or(1, usize::from)
                .to_string(),
        ),
        ("virtual machine", virtualised.to_owned()),
        (
            "memory",
            format!("{} GiB", kib.unwrap_or(0).div_ceil(1 << 20)),
        ),
        ("kernel", said(Command::new("uname").arg("-r"))),
        ("file system", file_system(tree)),
        (
            "governor",
            governor.map_or_else(|_| "none".to_owned(), |g| g.trim().to_owned()),
        ),
        (
            "address randomisation",
            randomised.map_or_else(|_| "unknown".to_owned(), |r| r.trim().to_owned()),
        ),
        ("rustc", said(Command::new("rustc").arg("--version"))),
    ]
}
