//! What workers write for each file in memory that others write as well: a lock or a counter that
//! two share costs little, and is what sixty-four wait for. Every instruction that locks a line of
//! the cache (`lock`, and `xchg` with memory) is counted, in the program and in its libraries.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bc_testkit::{TestTree, left_out, tool};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

use crate::common::{BC, has_measured_allocator};

/// The bytes of a program or library, and where its code lies in them.
struct Code {
    bytes: Vec<u8>,
    /// Address, offset and length of each part that is loaded.
    parts: Vec<[usize; 3]>,
}

impl Code {
    fn read(path: &Path) -> Code {
        let bytes = fs::read(path).unwrap_or_default();
        let number = |at: usize, len: usize| {
            let mut number = [0; 8];
            number[..len].copy_from_slice(&bytes[at..at + len]);
            u64::from_le_bytes(number) as usize
        };
        let is_elf = bytes.starts_with(b"\x7fELF\x02\x01");
        let headers = if is_elf { number(56, 2) } else { 0 };
        let part = |nth: usize| {
            let at = number(32, 8) + nth * number(54, 2);
            let is_loaded = number(at, 4) == 1;
            is_loaded.then(|| [number(at + 16, 8), number(at + 8, 8), number(at + 32, 8)])
        };
        let parts = (0..headers).filter_map(part).collect();
        Code { bytes, parts }
    }

    /// Whether the instruction at an address locks what it writes to.
    fn locks(&self, address: usize) -> bool {
        let part = self.parts.iter().find_map(|[start, offset, len]| {
            let at = address.checked_sub(*start).filter(|at| at < len)?;
            self.bytes.get(offset + at..)
        });
        let mut code = part.unwrap_or_default().iter().copied();
        // Prefixes of width come before that of the lock or after it, and REX comes last.
        let first = code.find(|byte| !matches!(byte, 0x66 | 0xf2 | 0xf3));
        let opcode = match first {
            Some(0x40..=0x4f) => code.next(),
            first => first,
        };
        let operand_is_memory = code.next().is_some_and(|modrm| modrm < 0xc0);
        opcode == Some(0xf0) || matches!(opcode, Some(0x86 | 0x87)) && operand_is_memory
    }
}

/// How often each function runs instructions that lock.
type Locked = BTreeMap<String, u64>;

/// Where the kernel has put its functions valgrind does not know, and a program that asks the kernel
/// itself for that (`PR_GET_AUXV`, Linux 6.4) looks for them in vain: from here on it is refused.
fn hide_the_kernels_functions() {
    const PR_GET_AUXV: u64 = 0x4155_5856;
    let asks = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, PR_GET_AUXV);
    let rule = SeccompRule::new(vec![asks.unwrap()]).unwrap();
    let filter = SeccompFilter::new(
        BTreeMap::from([(libc::SYS_prctl, vec![rule])]),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EINVAL as u32),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    let program: BpfProgram = filter.unwrap().try_into().unwrap();
    apply_filter(&program).unwrap();
}

/// Runs `bc` with these words and counts. `None` where nothing can be counted.
fn locked(valgrind: &Path, words: &str, path: PathBuf) -> Option<Locked> {
    let t = TestTree::new();
    let log = t.scratch("counts");
    let run = || {
        hide_the_kernels_functions();
        t.run(valgrind)
            .args(["--tool=callgrind", "--dump-instr=yes", "--dump-line=no"])
            .args(["--compress-strings=no", "--compress-pos=no"])
            .arg(format!("--callgrind-out-file={}", log.display()))
            .arg(BC)
            .args(words.split_whitespace())
            .arg(path)
            .go()
    };
    // The filter is the thread's, and that of what it starts.
    let counted = std::thread::scope(|scope| scope.spawn(run).join().unwrap());
    let Ok(counts) = fs::read_to_string(&log) else {
        left_out(&format!(
            "valgrind cannot run here: {}",
            counted.error_text()
        ));
        return None;
    };
    counted.code(0);
    let mut codes = BTreeMap::<String, Code>::new();
    let mut found = Locked::new();
    let (mut object, mut function) = ("", "");
    let mut lines = counts.lines();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("ob=") {
            object = name;
        } else if let Some(name) = line.strip_prefix("fn=") {
            function = name;
        } else if line.starts_with("calls=") {
            // What the callee cost stands in the next line.
            lines.next();
        } else if let Some((address, count)) = line.split_once(' ')
            && let Some(address) = address.strip_prefix("0x")
        {
            let address = usize::from_str_radix(address, 16).unwrap();
            let code = codes.entry(object.to_owned());
            let code = code.or_insert_with(|| Code::read(Path::new(object)));
            if code.locks(address) {
                *found.entry(function.to_owned()).or_default() += count.parse::<u64>().unwrap();
            }
        }
    }
    Some(found)
}

/// Files of so many bytes, all different, in five directories.
fn tree(files: usize, bytes: usize) -> TestTree {
    let t = TestTree::new();
    for i in 0..files {
        let mut content = vec![b'x'; bytes];
        content[..4].copy_from_slice(&(i as u32).to_le_bytes());
        t.write(format!("tree/{}/{i:05}", i % 5), content);
    }
    t
}

/// Looks whether each of so many `files`, which are in one of the trees and not in the other, costs
/// no more than that. Whoever waits by the clock locks as often as it looks, which is more often in
/// a run that is held up: of a few runs the one with the least says what the files cost.
fn check(valgrind: &Path, words: &str, [few, more]: [&TestTree; 2], files: u64, most: f64) -> bool {
    let mut least = (f64::INFINITY, Vec::new());
    for _ in 0..5 {
        let counts = [few, more].map(|tree| locked(valgrind, words, tree.join("tree")));
        let [Some(few), Some(more)] = counts else {
            return false;
        };
        assert!(
            more.values().sum::<u64>() > 0,
            "{words}: nothing was counted"
        );
        let each = more.into_iter().map(|(function, count)| {
            let before = few.get(&function).copied().unwrap_or(0);
            (function, (count as f64 - before as f64) / files as f64)
        });
        let mut each: Vec<_> = each.collect();
        let all: f64 = each.iter().map(|(_, count)| count).sum();
        if all <= most {
            return true;
        }
        if all < least.0 {
            each.sort_by(|a, b| b.1.total_cmp(&a.1));
            each.truncate(8);
            least = (all, each);
        }
    }
    let (all, named) = least;
    panic!("{words}: {all:.2} locked instructions a file, {most} at most; {named:#?}");
}

#[test]
fn a_small_file_writes_nothing_that_workers_share() {
    if !has_measured_allocator() {
        return;
    }
    let Some(valgrind) = tool("valgrind") else {
        return left_out("valgrind is not installed");
    };
    let trees = [600, 1800].map(|files| tree(files, 700));
    let trees = [&trees[0], &trees[1]];
    // What is shared out in batches costs a little. A search looks at one file in eight beforehand,
    // and keeps those in a table with a lock; whoever writes a manifest waits for the readers, now
    // and then by the clock. A counter for each file would be 1, a lock that is taken and given back 2.
    for (job, most) in [
        ("hash -t xxh128", 0.5),
        ("hash -t sha256", 0.5),
        ("dup", 0.75),
        ("integrity manifest -o sums", 0.75),
    ] {
        let words = format!("{job} --threads=2 --io=sync");
        if !check(&valgrind, &words, trees, 1200, most) {
            return;
        }
    }
}
