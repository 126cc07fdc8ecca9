//! Texts of `cargo xtask` about its commands: all of them, or the lines of one.

/// Usage of all commands.
pub(crate) const ALL: &str = "\
cargo xtask COMMAND

  datasets linux|synth|hostile|copies [--dir D] [--files N] [--seed S] [--copies N]
      lay a dataset under target/datasets (linux: Debian's linux-source-6.12, or kernel.org;
      copies: N copies of the linux dataset, or of --dir D); XTASK_DATASETS names another folder
  correctness [hash|dup|integrity|move|all] [--bc FILE] [TREE...]
      compare the release binary with the installed reference tools on directories or datasets
      (synth, hostile and, if laid, linux); exit 1 on any difference
  bench [hash|dup|integrity|copy|shapes|waiting|all] [--runs N] [--dir D] [--copies D] [--only WORD] [--no-record]
      [--record D] [--resume] [--large] [--scratch D]
      time bc against its peers and against the floor program, in pairs; all writes
      benches/record, README's chart and the guide's table. --record: a trial, written to D.
      --resume: continues an interrupted run of the same day. --large: the large dataset's memory,
      too. --scratch: where the shapes of work are laid, one at a time (1.4 GB; 5 GB for copies)
  bench draw RECORD.json
      a record's Markdown and charts, README's chart and the guide's table again from its figures
  bench scale [--files N,N,...] [--layout tree|flat|deep] [--dir D] [--only WORD] [--bc FILE]
      [--record FILE]
      time and peak memory of every job over trees of very many tiny files, made below --dir
  bench parity [--dir D] [--tree D] [--only WORD] [--runs N] [--bc FILE]
      protect, protect again and restore from parity, beside par2, over trees made below --dir and
      the linux dataset (or --tree): seconds and peak memory as Markdown
  filesystems [--quick] [--only NAME,...] [--list] [--json] [--scratch D] [--bc FILE]
      as root: every promise on every file system that can be mounted here (images, overlays,
      FUSE, a server on 127.0.0.1), in a mount namespace of its own; exit 1 on any difference
  filesystems --measure [--corpus D] [--files N] [--runs N] [--only NAME,...] [--against FILE]
      bc hash and bc dup on each of them, warm and cold, beside the installed peers: Markdown.
      --against: every job beside another build of bc, in 31 alternating pairs
  fleet [duckdb|spark|cluster|all] (--small | --like MANIFEST [--files N]) [--bc FILE] [--dir D]
      every query of bc integrity sql in the engines themselves (pip installs them below target),
      over 20 manifests of 500,000 entries like those of a real tree, made so that each answer is
      known: seconds and peak memory; and one tree read by a Spark cluster of two workers, of which
      one is killed. --small: 11 manifests of 240 entries; exit 1 on any difference
  tidy
      licences (ours, and whether those of others go with them), layout, dependency direction,
      circles, file length, unsafe, leftovers
  circles
      the files of a package that lean on each other in a circle, with the lines that close it
  sanitize [address|thread]
      the tests of the crates with unsafe code under AddressSanitizer, of those with threads under
      ThreadSanitizer (nightly toolchain with rust-src)
  gnu [--source D] [--bc FILE] [--only WORD] [--verbose]
      coreutils' own tests of its checksum programs, with the release binary under their names; the
      source is downloaded if no folder that holds it is named
  isa [x86_64|aarch64] [--bc FILE] [--quick]
      bc-digest's tests and bc hash under qemu-x86_64 on CPUs this machine is not (--bc: another
      build); and for aarch64 under qemu-aarch64, on CPUs with and without the instructions for SHA
      and CRCs: the tests of nearly all crates, every digest beside Python's, and the instructions
      that kernels take. --quick: of these only bc-digest's
  perf-mode apply|restore
      governor, boost and address randomisation for steady timings
  dist [--dir D] [--static] [--symbols] [--target TARGET] [--tag vN.N.N]
      what a release is made of: the program, manual pages and completions; a tarball, and the
      files that `cargo deb --no-build --no-strip` makes the Debian package of; and the notices of
      the crates in it, which wheels of crates/python carry from then on.
      --target aarch64-unknown-linux-gnu: for that machine, by a cross compiler and qemu-aarch64
      (then also `cargo deb --target`);
      --static: build the tarball's program even where a plain build is not static;
      --symbols: tables of lines in a file of their own; --tag: fail if it is not the version's, or
      a changelog has no date for it
  api [--write] [--baseline REV]
      the libraries' public API: as it is recorded in xtask/api (--write records it), what is
      promised apart from what is internal; no types of other crates, none that is internal in
      what is promised, all of that reached by examples, each name in one of ours
      (cargo-public-api); compared with that of a commit (cargo-semver-checks)
  package [--no-test] [--allow-dirty] [PACKAGE...]
      packs every crate and builds and tests the packages, or those named, outside the workspace

programs that bench and correctness start themselves:
  floor read|dup|link ROOT LIST THREADS | floor walk|statx ROOT THREADS
  floor lanes ALGORITHM BYTES THREADS | floor peak FILE COMMAND...
  walk names|stat ROOT THREADS
";

/// Returns true if the words after a command ask for its usage. `floor` starts other programs: the
/// words after its first are theirs.
pub(crate) fn is_asked(command: &str, words: &[String]) -> bool {
    let own = match command {
        "floor" => words.len().min(1),
        _ => words.len(),
    };
    words[..own].iter().any(|w| w == "--help" || w == "-h")
}

/// Returns the usage of one command: its lines of the whole, with the words to type.
pub(crate) fn of(command: &str) -> String {
    let mut text = String::new();
    let mut is_its = false;
    for line in ALL.lines() {
        let usage = line.strip_prefix("  ").filter(|l| !l.starts_with(' '));
        if let Some(usage) = usage {
            is_its = usage.split(' ').next() == Some(command);
            if is_its {
                text.push_str(&format!("cargo xtask {usage}\n"));
            }
        } else if line.is_empty() {
            is_its = false;
        } else if is_its {
            text.push_str(&format!("{line}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_says_how_it_is_used() {
        for (name, _) in crate::COMMANDS {
            let usage = of(name);
            assert!(usage.starts_with(&format!("cargo xtask {name}")), "{name}");
        }
        let bench = of("bench");
        for part in [
            "bench draw",
            "bench scale",
            "--no-record",
            "interrupted run",
        ] {
            assert!(bench.contains(part), "{part}");
        }
        assert!(!bench.contains("filesystems"));
    }

    #[test]
    fn help_is_heard_wherever_it_stands() {
        let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
        assert!(is_asked("bench", &words("scale --help")));
        assert!(is_asked("tidy", &words("-h")));
        assert!(!is_asked("tidy", &words("help")));
        assert!(is_asked("floor", &words("--help")));
        assert!(!is_asked("floor", &words("peak file bc --help")));
    }
}
