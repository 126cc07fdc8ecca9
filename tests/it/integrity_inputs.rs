//! Manifests and digests from devices, pipes that never end, and lines that never do.

use std::os::unix::fs::FileExt;
use std::process::{Child, Stdio};

use bc_testkit::TestTree;
use rustix::process::{Pid, Signal, kill_process};

use crate::common::{BC, Bc};
use crate::integrity_update::{read_by, record};

/// Every command that reads a manifest or what becomes one, with `{}` for it.
const COMMANDS: [&str; 7] = [
    "integrity verify . {}",
    "integrity verify --force . {}",
    "integrity diff {m} {}",
    "integrity diff {} {m}",
    "integrity export --format=gnu {}",
    "integrity update . {}",
    "integrity import {}",
];

#[test]
fn devices_are_refused() {
    let t = TestTree::new();
    t.write("a", "1");
    let m = record(&t);
    for device in ["/dev/zero", "/dev/null", "/dev/full"] {
        for command in COMMANDS {
            let line = command.replace("{}", device).replace("{m}", &m);
            let done = t.bc_line(&line).go();
            done.code(2).stdout_is("");
            let text = done.error_text();
            assert!(
                text.contains("is a device") || text.contains("could be replaced"),
                "{line}: {text}"
            );
        }
    }
}

/// Waits until a child that would never end has read so many bytes, and ends it by a signal.
fn ends(child: Child, read: u64, by: Signal) {
    let mut child = child;
    let pid = Pid::from_child(&child);
    while !handles_signals(&child) || read_by(&child) < read {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::yield_now();
    }
    kill_process(pid, by).unwrap();
    let status = child.wait().unwrap();
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(status.signal(), Some(by.as_raw()));
}

fn handles_signals(child: &Child) -> bool {
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let term = 1 << (Signal::TERM.as_raw() - 1);
    caught.is_some_and(|mask| mask & term != 0)
}

#[test]
fn pipes_that_give_nothing_are_left_on_a_signal() {
    if !bc_testkit::is_heeded(Signal::TERM.as_raw()) {
        return;
    }
    let t = TestTree::new();
    t.write("a", "1");
    let m = record(&t);
    t.fifo("../fifo");
    let fifo = t.join("../fifo");
    let fifo = fifo.to_str().unwrap();
    for command in COMMANDS {
        // With a writer that is silent, and without one.
        for held in [false, true] {
            let line = command.replace("{}", fifo).replace("{m}", &m);
            if command.contains("update") {
                let done = t.bc_line(&line).go();
                done.code(2).stderr_has("could be replaced");
                continue;
            }
            let _writer = held.then(|| {
                std::fs::File::options()
                    .read(true)
                    .write(true)
                    .open(fifo)
                    .unwrap()
            });
            let mut run = t.bc_line(&line).command();
            let child = run
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            ends(child.spawn().unwrap(), 0, Signal::TERM);
        }
    }
    std::fs::remove_file(fifo).unwrap();
}

/// `yes`, `cat /dev/zero`: refused by their first line, or by their size, or ended by a signal.
#[test]
fn pipes_without_end() {
    let t = TestTree::new();
    t.write("a", "1");
    let m = record(&t);
    for source in ["yes", "cat /dev/zero"] {
        for command in [
            "verify . -",
            "diff $M -",
            "export --format=gnu -",
            "import -",
        ] {
            let script = format!("{source} | $BC integrity {command}; echo code $?");
            let done = t
                .run("sh")
                .args(["-c", &script])
                .env("BC", crate::common::BC)
                .env("M", &m)
                .go();
            let text = done.text();
            assert!(
                text.ends_with("code 2\n"),
                "{script}: {text} {}",
                done.error_text()
            );
        }
    }
}

/// Valid lines without an end: memory is bounded, and a signal ends it at once.
#[test]
fn pipes_with_valid_lines_without_end_are_left_on_a_signal() {
    if !bc_testkit::is_heeded(Signal::TERM.as_raw()) {
        return;
    }
    let t = TestTree::new();
    let m = record(&t);
    let header = std::fs::read(&m).unwrap();
    let header = &header[..=header.iter().position(|byte| *byte == b'\n').unwrap()];
    let digest = format!("{}  name\n", crate::common::ABC);
    let empty = b"\n";
    let diff = format!("integrity diff - {m}");
    for (command, first, line) in [
        ("integrity verify . -", header, &b"x\n"[..]),
        (&diff, header, b"x\n"),
        ("integrity import -", digest.as_bytes(), digest.as_bytes()),
        ("integrity import -", empty, empty),
    ] {
        let mut run = t.bc_line(command).command();
        let child = run
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = child.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let (first, line) = (first.to_vec(), line.repeat(1000));
        let writer = std::thread::spawn(move || {
            use std::io::Write;
            let mut written = stdin.write_all(&first);
            while written.is_ok() {
                written = stdin.write_all(&line);
            }
        });
        ends(child, 1 << 20, Signal::TERM);
        writer.join().unwrap();
    }
}

/// A file that is one line of a terabyte, which takes no space: refused by its beginning, or left
/// on a signal.
#[test]
fn files_of_one_endless_line() {
    let t = TestTree::new();
    t.write("a", "1");
    let m = record(&t);
    let huge = t.scratch("huge");
    let make = |start: &[u8]| {
        let file = std::fs::File::create(&huge).unwrap();
        file.write_all_at(start, 0).unwrap();
        file.set_len(1 << 40).is_ok()
    };
    if !make(b"") {
        return bc_testkit::left_out("the file system has no files of a terabyte");
    }
    let huge_name = huge.to_str().unwrap();
    for command in COMMANDS
        .iter()
        .filter(|command| !command.contains("import"))
    {
        let line = command.replace("{}", huge_name).replace("{m}", &m);
        t.bc_line(&line)
            .go()
            .code(2)
            .stderr_has("not an integrity manifest");
    }
    let manifest = std::fs::read(&m).unwrap();
    let header = manifest.iter().position(|byte| *byte == b'\n').unwrap();
    assert!(make(&manifest[..=header]));
    // To an import it is one line of another format.
    for command in COMMANDS
        .iter()
        .filter(|command| !command.contains("import"))
    {
        for threads in ["--threads=1", "--threads=4"] {
            for signal in [Signal::TERM, Signal::INT] {
                if !bc_testkit::is_heeded(signal.as_raw()) {
                    continue;
                }
                let line = command.replace("{}", huge_name).replace("{m}", &m);
                let mut run = t.bc_line(&line).arg(threads).command();
                let child = run
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null());
                ends(child.spawn().unwrap(), 40 << 20, signal);
            }
        }
    }
    std::fs::remove_file(&huge).unwrap();
}

/// What comes through a pipe is as good as the file.
#[test]
fn manifests_through_pipes() {
    let t = TestTree::new();
    t.write("a", "1").write("b/c", "22");
    let m = record(&t);
    for script in [
        "cat $M | $BC integrity verify . -",
        "cat $M | $BC integrity diff $M -",
        "mkfifo $F; cat $M >$F & $BC integrity verify . $F",
        "$BC integrity export --format=gnu - <$M | $BC integrity import - | $BC integrity verify --mode=content --force . - | grep -v '^+'; test $? = 1",
    ] {
        let done = t
            .run("sh")
            .args(["-c", script])
            .env("BC", crate::common::BC)
            .env("M", &m)
            .env("F", t.scratch("pipe"))
            .go();
        assert_eq!(
            (done.text().as_str(), done.error_text().as_str()),
            ("", ""),
            "{script}"
        );
        done.code(0);
    }
}

/// A later version may say more in every line; what the trailer proves is proved all the same.
#[test]
fn keys_of_a_later_version_in_the_trailer() {
    let t = TestTree::new();
    t.write("a", "1");
    let m = record(&t);
    let text = std::fs::read_to_string(&m).unwrap();
    let body = text.strip_suffix("}\n").unwrap();
    for more in [
        ",\"directories\":1}\n",
        ",\"signature\":{\"sha256\":\"00\",\"of\":[null]}}\n",
        ",\"end\":\"\"}\n",
    ] {
        std::fs::write(&m, format!("{body}{more}")).unwrap();
        for line in [
            "verify . {}",
            "diff {} {}",
            "export --format=gnu {}",
            "update . {}",
        ] {
            let line = format!("integrity {}", line.replace("{}", &m));
            t.bc_line(&line).go().code(0);
        }
        let altered = format!("{}{more}", body.replacen("\"mode\":", "\"mode\":1", 1));
        std::fs::write(&m, altered).unwrap();
        t.bc_line(&format!("integrity verify . {m}"))
            .go()
            .code(2)
            .stderr_has("altered");
        let twice = body.rsplit_once(",\"sha256\"").unwrap().1;
        std::fs::write(&m, format!("{body},\"sha256\"{twice}{more}")).unwrap();
        t.bc_line(&format!("integrity verify . {m}")).go().code(2);
    }
}

/// What is compressed stays so, and what is not does not become it, whatever the name.
#[test]
fn an_update_keeps_the_form_and_not_the_name() {
    let t = TestTree::new();
    t.write("a", "1");
    for (written, renamed, compressed) in [
        ("m.zst", "m.jsonl", true),
        ("m.zst", "m.zst", true),
        ("m.jsonl", "m.zst", false),
        ("m.jsonl", "m.jsonl", false),
    ] {
        let [from, to] = [written, renamed].map(|name| t.scratch(name));
        t.bc()
            .args(["integrity", "manifest", ".", "--output"])
            .arg(&from)
            .go()
            .code(0);
        std::fs::rename(&from, &to).unwrap();
        t.write("a", format!("{written} {renamed}"));
        let update = || t.bc().args(["integrity", "update", "."]).arg(&to).go();
        update().code(0).stdout_has("~c a");
        let bytes = std::fs::read(&to).unwrap();
        let magic = [0x28, 0xb5, 0x2f, 0xfd];
        assert_eq!(bytes.starts_with(&magic), compressed, "{written} {renamed}");
        update().code(0).stdout_is("");
        std::fs::remove_file(&to).unwrap();
    }
}

#[test]
fn standard_input_is_one_manifest() {
    let t = TestTree::new();
    t.write("a", "1");
    let m = record(&t);
    for sides in ["- -", "- /dev/stdin", "/proc/self/fd/0 -"] {
        t.run("sh")
            .args(["-c", &format!("\"$BC\" integrity diff {sides} < \"$M\"")])
            .env("BC", BC)
            .env("M", &m)
            .go()
            .code(2)
            .stdout_is("")
            .stderr_has("both manifests are standard input");
    }
}

#[test]
fn a_manifest_whose_pipe_broke_is_not_believed() {
    let t = TestTree::new();
    t.write("a", "1").write("b", "2");
    let m = record(&t);
    let whole = std::fs::read(&m).unwrap();
    let sh = |length: usize, command: &str| {
        let script = format!("head -c {length} \"$M\" | \"$BC\" {command}");
        let run = t.run("sh").args(["-c", &script]);
        run.env("BC", BC).env("M", &m).go()
    };
    let commands = [
        "integrity verify . -",
        "integrity diff - \"$M\"",
        "integrity diff \"$M\" -",
        "dup unique . --reference=-",
    ];
    let line_ends = (1..=whole.len()).filter(|at| whole[at - 1] == b'\n');
    let cuts: Vec<usize> = line_ends.flat_map(|end| [end - 10, end]).collect();
    for command in commands {
        for &length in cuts.iter().filter(|length| **length < whole.len()) {
            let run = sh(length, command);
            assert_eq!(run.code(2).text(), "", "{command}: {length} bytes");
        }
    }
    sh(whole.len(), commands[0]).code(0);
    sh(whole.len(), commands[1]).code(0);
}

#[test]
fn a_bare_number_to_reread_is_a_slip() {
    let t = TestTree::new();
    t.write("a", "1");
    let m = record(&t);
    let before = std::fs::read(&m).unwrap();
    for few in ["20", "5", "100"] {
        t.bc_line(&format!("integrity update --reread={few} . {m}"))
            .go()
            .code(2)
            .stdout_is("")
            .stderr_has(format!("{few}%"))
            .stderr_has(format!("{few}B"));
    }
    for nothing in ["0", "0%", "0B", "0s"] {
        t.bc_line(&format!("integrity update --reread={nothing} . {m}"))
            .go()
            .code(2)
            .stderr_has("nothing would be read again");
    }
    assert_eq!(std::fs::read(&m).unwrap(), before);
    for good in ["20%", "20B", "4096", "0.2"] {
        t.bc_line(&format!("integrity update --reread={good} . {m}"))
            .go()
            .code(0);
    }
}
