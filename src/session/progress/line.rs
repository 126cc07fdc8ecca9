//! The text of the status line: all known counts, fitted to the terminal's width.

use std::time::Duration;

use crate::session::calls::LongCall;

/// Progress of the work at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgressCounts {
    /// Files finished.
    pub files: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Files to do in all, 0 if that is not known.
    pub files_total: u64,
    /// Bytes to read in all, 0 if that is not known.
    pub bytes_total: u64,
    /// Name of the present phase, where it is not the display's own.
    pub phase: Option<&'static str>,
}

/// Work per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    pub files: f64,
    pub bytes: f64,
}

/// One piece of the line; the piece with the highest `cost` is dropped first where the terminal is
/// too narrow for all.
struct Piece {
    text: String,
    cost: u8,
}

/// Columns of the bar.
const BAR: usize = 16;

/// Returns the line for `counts` after `elapsed` of this phase, in at most `width` columns.
pub fn render(
    phase: &str,
    counts: ProgressCounts,
    rate: Rate,
    waits_for: Option<&LongCall>,
    elapsed: Duration,
    width: usize,
) -> String {
    let mut files = thousands(counts.files);
    if counts.files_total > 0 {
        files += &format!("/{}", thousands(counts.files_total));
    }
    let mut pieces = vec![Piece::new(phase.to_owned(), 0)];
    if let Some(call) = waits_for {
        let room = width.saturating_sub(phase.chars().count() + 1);
        pieces.push(Piece::new(waiting(call, room), 0));
    }
    let share = share(counts);
    if let Some((share, of)) = share {
        pieces.push(Piece::new(bar(share), 3));
        pieces.push(Piece::new(format!("{:>3.0}% of {of}", share * 100.0), 1));
    }
    // Nothing yet is not worth a piece, and has no speed.
    if counts.files > 0 || counts.files_total > 0 {
        pieces.push(Piece::new(format!("{files} files"), 4));
    }
    if counts.bytes > 0 {
        pieces.push(Piece::new(size(counts.bytes), 6));
    }
    if rate.files >= 1.0 {
        let text = format!("{} files/s", thousands(rate.files as u64));
        pieces.push(Piece::new(text, 5));
    }
    if rate.bytes >= 1.0 {
        pieces.push(Piece::new(format!("{}/s", size(rate.bytes as u64)), 2));
    }
    if let Some((share, _)) = share {
        let seconds = elapsed.as_secs_f64();
        // The first moments say little, and a stall says nothing: after many small files there may
        // be a huge one.
        let moves = match counts.bytes_total {
            0 => rate.files > 0.0,
            _ => rate.bytes > 0.0,
        };
        if share > 0.0 && seconds >= 0.5 && moves {
            let left = clock(seconds / share - seconds);
            pieces.push(Piece::new(format!("ETA {left}"), 1));
        }
    }
    fit(pieces, width)
}

impl Piece {
    fn new(text: String, cost: u8) -> Piece {
        Piece { text, cost }
    }
}

/// Returns what is waited for, of whose path the beginning goes where there is too little room.
fn waiting(call: &LongCall, room: usize) -> String {
    let (place, seconds) = (call.place(), call.waited.as_secs());
    let rest = format!("waiting for  ({}) {seconds} s", call.operation);
    let room = room.saturating_sub(rest.len());
    let count = place.chars().count();
    let place = match count > room {
        true => "…"
            .chars()
            .chain(place.chars().skip(count + 1 - room.max(1)))
            .collect(),
        false => place,
    };
    format!("waiting for {place} ({}) {seconds} s", call.operation)
}

fn bar(share: f64) -> String {
    let full = (share * BAR as f64) as usize;
    format!("[{}{}]", "=".repeat(full), " ".repeat(BAR - full.min(BAR)))
}

/// Returns the share of the work that is done, and its unit: bytes where they are known, else
/// files. The two differ much where sizes do.
fn share(counts: ProgressCounts) -> Option<(f64, &'static str)> {
    let of = |done: u64, total: u64, what| {
        (total > 0).then(|| ((done as f64 / total as f64).min(1.0), what))
    };
    of(counts.bytes, counts.bytes_total, "bytes")
        .or_else(|| of(counts.files, counts.files_total, "files"))
}

fn fit(mut pieces: Vec<Piece>, width: usize) -> String {
    loop {
        let texts: Vec<&str> = pieces.iter().map(|p| p.text.as_str()).collect();
        for gap in ["  ", " "] {
            let line = texts.join(gap);
            if line.chars().count() <= width {
                return line;
            }
        }
        let dearest = (1..pieces.len()).max_by_key(|i| pieces[*i].cost);
        match dearest {
            Some(at) => drop(pieces.remove(at)),
            None => return pieces[0].text.chars().take(width).collect(),
        }
    }
}

/// Returns seconds as `0:07`, `12:03` or `3:00:12`.
fn clock(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{}:{minutes:02}:{seconds:02}", thousands(hours)),
    }
}

/// Returns `1234567` as `1,234,567`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Returns a number with its noun.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    let noun = if number == 1 { one } else { many };
    format!("{} {noun}", thousands(number))
}

/// Returns the counts that are not 0, each with its words.
pub fn nonzero<'w>(counts: impl IntoIterator<Item = (u64, &'w str)>) -> Vec<String> {
    let some = counts.into_iter().filter(|(count, _)| *count > 0);
    some.map(|(count, words)| format!("{} {words}", thousands(count)))
        .collect()
}

/// Returns bytes for people, in binary units.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{bytes} B")
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(size(999), "999 B");
        assert_eq!(size(1_512_785_519), "1.4 GiB");
        assert_eq!(size(1000), "1.0 KiB");
        assert_eq!(size(u64::MAX), "16384.0 PiB");
        assert_eq!(counted(1, "file", "files"), "1 file");
        assert_eq!(counted(1000, "file", "files"), "1,000 files");
        assert_eq!(counted(0, "file", "files"), "0 files");
        let counts = [(0, "failed"), (1200, "left"), (1, "of them")];
        assert_eq!(nonzero(counts), ["1,200 left", "1 of them"]);
        assert_eq!(clock(0.4), "0:00");
        assert_eq!(clock(723.0), "12:03");
        assert_eq!(clock(10_812.0), "3:00:12");
    }

    const RATE: Rate = Rate {
        files: 5.0,
        bytes: 512.0,
    };

    #[test]
    fn eta_appears_once_the_total_is_known() {
        let line = |counts| render("hash", counts, RATE, None, Duration::from_secs(2), 200);
        let mut counts = ProgressCounts {
            files: 10,
            bytes: 1024,
            ..ProgressCounts::default()
        };
        assert_eq!(line(counts), "hash  10 files  1.0 KiB  5 files/s  512 B/s");
        counts.files_total = 40;
        assert_eq!(
            line(counts),
            "hash  [====            ]   25% of files  10/40 files  1.0 KiB  5 files/s  512 B/s  ETA 0:06"
        );
        counts.bytes_total = 2048;
        assert!(line(counts).contains("[========        ]   50% of bytes  10/40 files"));
        assert!(line(counts).ends_with("  ETA 0:02"));
        counts.bytes = 4096; // a file that grew
        assert!(line(counts).contains("[================]  100% of bytes"));
        assert!(line(counts).ends_with("  ETA 0:00"));
        // Work that stands still has no speed.
        let still = render(
            "hash",
            counts,
            Rate::default(),
            None,
            Duration::from_secs(2),
            200,
        );
        assert!(!still.contains("/s"), "{still}");
    }

    #[test]
    fn narrow_terminals_lose_the_least_important_first() {
        let counts = ProgressCounts {
            files: 1256,
            bytes: 5 << 30,
            files_total: 30_002,
            bytes_total: 20 << 30,
            phase: None,
        };
        let rate = Rate {
            files: 1200.0,
            bytes: 512e6,
        };
        for width in 0..120 {
            let line = render("hash", counts, rate, None, Duration::from_secs(60), width);
            assert!(line.chars().count() <= width, "{width}: {line}");
            assert_eq!(line.is_empty(), width == 0);
        }
        let at = |width| render("hash", counts, rate, None, Duration::from_secs(60), width);
        assert_eq!(
            at(79),
            "hash [====            ]  25% of bytes 1,256/30,002 files 488.3 MiB/s ETA 3:00"
        );
        assert_eq!(at(40), "hash  25% of bytes 488.3 MiB/s ETA 3:00");
        assert_eq!(at(19), "hash   25% of bytes");
        assert_eq!(at(3), "has");
    }
    #[test]
    fn what_it_waits_for_is_shown_whole_or_by_its_end() {
        let call = LongCall {
            operation: "read",
            path: Some("/mnt/nas/photos/1\t.jpg".into()),
            waited: Duration::from_millis(7900),
        };
        let counts = ProgressCounts {
            files: 12,
            files_total: 30,
            ..ProgressCounts::default()
        };
        let at = |width| {
            let time = Duration::from_secs(9);
            render("hash", counts, Rate::default(), Some(&call), time, width)
        };
        assert!(
            at(200).starts_with(r"hash  waiting for /mnt/nas/photos/1\t.jpg (read) 7 s  [======")
        );
        assert_eq!(
            at(60),
            r"hash  waiting for /mnt/nas/photos/1\t.jpg (read) 7 s"
        );
        assert_eq!(at(40), r"hash waiting for …tos/1\t.jpg (read) 7 s");
        for width in 0..100 {
            let line = at(width);
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}
