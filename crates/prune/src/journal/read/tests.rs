//! Journals whole, cut off, damaged, endless and not of our making.

use super::*;
use crate::journal::steps_in as parse;

fn header(schema: u32, roots: &str) -> String {
    format!(
        "{{\"journal\":\"bc dup prune\",\"schema\":{schema},\"action\":\"delete\",\
         \"started_at\":\"2025-01-01T00:00:00Z\"{roots}}}\n"
    )
}

fn file(path: &str, size: u64) -> String {
    format!(
        "{{\"path\":\"{path}\",\"dev\":1,\"ino\":2,\"size\":{size},\"mtime_ns\":0,\"ctime_ns\":0,\
         \"nlink\":1,\"mode\":33188,\"uid\":0,\"gid\":0,\"atime_ns\":0}}"
    )
}

fn step(number: u64, action: &str, path: &str, size: u64) -> String {
    format!(
        "{{\"step\":{number},\"action\":\"{action}\",\"target\":{},\"keeper\":{},\
         \"digest\":\"{:032x}\"}}\n",
        file(path, size),
        file("/a/keep", size),
        1
    )
}

const ROOTS: &str = ",\"roots\":[{\"path\":\"/a\"}]";

#[test]
fn what_is_no_step_of_ours_is_refused() {
    let good = header(2, ROOTS) + &step(1, "delete", "/a/x", 5);
    assert_eq!(parse(good.as_bytes()), Ok(1));
    // Version 1 recorded no roots.
    let old = header(1, "") + &step(1, "delete", "/b/x", 5);
    assert_eq!(parse(old.as_bytes()), Ok(1));
    for (text, message) in [
        (header(SCHEMA + 1, ROOTS), "another program or version"),
        (header(0, ROOTS), "another program or version"),
        (
            header(2, ",\"roots\":[{\"path\":\"a\"}]"),
            "no absolute path",
        ),
        (
            header(2, ROOTS) + &step(1, "chmod", "/a/x", 5),
            "unknown action 'chmod'",
        ),
        (
            header(1, "") + &step(1, "chmod", "/a/x", 5),
            "unknown action 'chmod'",
        ),
        (
            header(2, ROOTS) + &step(1, "delete", "/b/x", 5),
            "/b/x lies outside",
        ),
        (
            header(2, ROOTS) + &step(1, "delete", "/ab/x", 5),
            "lies outside",
        ),
        (
            header(2, ROOTS) + &step(1, "delete", "/a/../b", 5),
            "lies outside",
        ),
        (
            header(2, "") + &step(1, "delete", "/a/x", 5),
            "lies outside",
        ),
        (
            header(2, ROOTS) + &step(1, "delete", "a/x", 5),
            "absolute paths",
        ),
        (
            header(2, ROOTS) + &step(1, "move", "/a/x", 5),
            "absolute paths",
        ),
        (
            header(2, ROOTS) + &step(1, "delete", "/a/x", u64::MAX),
            "no file can have",
        ),
        (
            header(1, "") + &step(1, "delete", "/a/x", u64::MAX),
            "no file can have",
        ),
        (
            header(2, ROOTS) + "{\"step\":1,\"done\":true}\n",
            "has not begun, or has ended",
        ),
        (step(1, "delete", "/a/x", 5), "not a journal"),
        ("notes\n".to_owned(), "not a journal"),
        ("notes".to_owned(), "not a journal"),
        ("{\"journal\":\"bc du\n".to_owned(), "not a journal"),
        ("{\"journal\":\"another".to_owned(), "not a journal"),
        (
            "{\"journal\":\"bc dup prune\",\"schema!".to_owned(),
            "not a journal",
        ),
        ("\n".to_owned(), "not a journal"),
        ("\0\0\0".to_owned(), "not a journal"),
    ] {
        let refused = parse(text.as_bytes()).unwrap_err();
        assert!(
            refused.contains(message),
            "{refused}, not {message}: {text}"
        );
    }
}

#[test]
fn what_cannot_be_read_is_the_end_or_a_damaged_line() {
    let read = |text: &str| {
        let index = scan(text.as_bytes(), &Cancel::new()).ok().unwrap();
        let took_effect = index.places.iter().map(|place| place.took_effect);
        let took_effect: Vec<_> = took_effect.collect();
        (index.complete, index.damaged, took_effect)
    };
    let whole = header(2, ROOTS) + &step(1, "delete", "/a/1", 5);
    let end = |number: u64| format!("{{\"step\":{number},\"done\":true}}\n");
    let next = step(2, "delete", "/a/2", 5);
    let cut = &next[..next.len() / 2];
    for (damaged, torn, lines) in [
        (String::new(), cut, vec![]),
        (format!("{cut}\n"), "", vec![3]),
        (format!("{cut}\n\0\0\n{{\n"), "\0", vec![3, 4, 5]),
    ] {
        let complete = format!("{whole}{damaged}");
        let expected = (complete.len() as u64, lines, vec![None]);
        assert_eq!(read(&format!("{complete}{torn}")), expected, "{damaged}");
    }
    // The end of a step that cannot be read belongs to none.
    let text = format!(
        "{whole}{cut}\n{}{}{}",
        end(2),
        step(3, "delete", "/a/3", 5),
        end(3)
    );
    let expected = (text.len() as u64, vec![3], vec![None, Some(true)]);
    assert_eq!(read(&text), expected);
    let text = format!("{whole}x\ny\n{next}{}", end(2));
    assert_eq!(read(&text).1, [3, 4]);
    // A readable line is not damaged, but wrong: where no line is missing, every step has one.
    assert!(parse(format!("{whole}{next}{}", end(3)).as_bytes()).is_err());
    assert!(parse(format!("{whole}{next}{0}{0}", end(1)).as_bytes()).is_err());
}

#[test]
fn steps_of_several_threads_end_in_any_order() {
    let end = |number: u64, done: bool| format!("{{\"step\":{number},\"done\":{done}}}\n");
    let begin = |number: u64| step(number, "delete", &format!("/a/{number}"), 5);
    let text = header(SCHEMA, ROOTS)
        + &[begin(2), begin(1), begin(4), end(1, true), begin(3)].concat()
        + &[end(4, false), end(2, true)].concat();
    let index = scan(text.as_bytes(), &Cancel::new()).ok().unwrap();
    let took_effect: Vec<_> = index.places.iter().map(|at| at.took_effect).collect();
    assert_eq!(took_effect, [Some(true), Some(true), Some(false), None]);
    // Each run counts on its own.
    let text = text.clone() + &header(SCHEMA, ROOTS) + &begin(1) + &end(1, false);
    let index = scan(text.as_bytes(), &Cancel::new()).ok().unwrap();
    assert_eq!(index.places[1].took_effect, Some(true));
    assert_eq!(index.places[4].took_effect, Some(false));
    assert!(parse((text + &end(3, true)).as_bytes()).is_err());
}

#[test]
fn a_first_line_that_was_cut_off_is_a_run_that_did_nothing() {
    let whole = header(SCHEMA, ROOTS);
    for length in 0..whole.len() {
        assert_eq!(parse(&whole.as_bytes()[..length]), Ok(0), "{length}");
    }
    // As the writer makes it, whatever the order of its fields.
    let made = serde_json::to_string(&RunHeader {
        journal: MAGIC.to_owned(),
        schema: SCHEMA,
        action: "delete".to_owned(),
        started_at: String::new(),
        roots: Vec::new(),
    });
    assert!(made.unwrap().starts_with(HEADER) && HEADER.starts_with(NAME));
}

/// Counts the bytes read, and asks for the end after so many.
struct Counting<'a> {
    text: &'a [u8],
    read: &'a std::cell::Cell<usize>,
    cancel_at: usize,
    cancel: &'a Cancel,
}

impl Read for Counting<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.text.read(buffer)?;
        self.read.set(self.read.get() + read);
        if self.read.get() >= self.cancel_at {
            self.cancel.cancel(15);
        }
        Ok(read)
    }
}

fn long() -> String {
    let mut text = header(2, ROOTS);
    for number in 1..=20_000 {
        text += &step(number, "delete", &format!("/a/{number}"), 5);
        text += &format!("{{\"step\":{number},\"done\":true}}\n");
    }
    text
}

#[test]
fn every_byte_is_read_once() {
    let text = long();
    let (read, cancel) = (std::cell::Cell::new(0), Cancel::new());
    let input = Counting {
        text: text.as_bytes(),
        read: &read,
        cancel_at: usize::MAX,
        cancel: &cancel,
    };
    let index = scan(input, &cancel).ok().unwrap();
    assert_eq!(index.places.len(), 20_000);
    assert!(
        index
            .places
            .iter()
            .all(|place| place.took_effect == Some(true))
    );
    assert_eq!(read.get(), text.len());
}

#[test]
fn a_signal_ends_the_reading_at_once() {
    let text = long();
    let (read, cancel) = (std::cell::Cell::new(0), Cancel::new());
    let input = Counting {
        text: text.as_bytes(),
        read: &read,
        cancel_at: 1,
        cancel: &cancel,
    };
    assert!(matches!(scan(input, &cancel), Err(ReadEnd::Cancelled)));
    assert!(read.get() <= 256 << 10, "{}", read.get());
}

#[test]
fn a_line_without_end_is_refused_before_it_fills_the_memory() {
    let endless = io::repeat(b'x');
    assert!(matches!(
        scan(endless, &Cancel::new()),
        Err(ReadEnd::Refused(_))
    ));
}
