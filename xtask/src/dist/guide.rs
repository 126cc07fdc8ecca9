//! The guide as one page, `bc-guide(7)`: Markdown turned into man(7).

use std::process::Command;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::sh;

/// Pages in reading order. The promises are for those who run the tests.
const PAGES: &[&str] = &[
    include_str!("../../../src/guide/recipes.md"),
    include_str!("../../../src/guide/disks.md"),
    include_str!("../../../src/guide/rules.md"),
    include_str!("../../../src/guide/hash.md"),
    include_str!("../../../src/guide/names.md"),
    include_str!("../../../src/guide/dup.md"),
    include_str!("../../../src/guide/copy.md"),
    include_str!("../../../src/guide/move.md"),
    include_str!("../../../src/guide/integrity.md"),
    include_str!("../../../src/guide/parity.md"),
    include_str!("../../../src/guide/fleet.md"),
    include_str!("../../../src/guide/program.md"),
    include_str!("../../../src/guide/compare.md"),
    include_str!("../../../src/guide/seeds.md"),
];

const ABOUT: &str = "recipes, rules and limits of hashing trees, duplicates, copies and manifests";

/// Returns the page, named after the program: `bc`, or its name beside the calculator.
pub(super) fn page(program: &str) -> String {
    let mut out = format!(
        ".TH {}-GUIDE 7 \"{}\" \"bit-crafts\" \"Miscellaneous\"\n\
         .SH NAME\n{program}\\-guide \\- {ABOUT}\n",
        program.to_uppercase(),
        date()
    );
    for page in PAGES {
        match program {
            "bc" => out.push_str(&roff(page)),
            _ => out.push_str(&roff(&renamed(page, program))),
        }
    }
    out.push_str(&format!(".SH SEE ALSO\n\\fB{program}\\fR(1)\n"));
    out
}

/// Returns the page for a system where `bc` is the calculator and the applets have names of their
/// own.
fn renamed(page: &str, program: &str) -> String {
    let mut text = page.replace("bc-guide(7)", &format!("{program}-guide(7)"));
    for applet in ["hash", "dup", "integrity", "copy"] {
        text = text.replace(&format!("bc {applet}"), &format!("bc{applet}"));
    }
    // All others are the program itself, where `bc` is no end of a path.
    for (before, after) in [(' ', ' '), ('`', ' '), ('`', '`'), ('\n', ' '), (' ', '.')] {
        let own = format!("{before}bc{after}");
        text = text.replace(&own, &format!("{before}{program}{after}"));
    }
    text
}

/// State of the text being written.
#[derive(Default)]
struct Writer {
    out: String,
    /// The words since the last break, escaped.
    line: String,
    verbatim: bool,
    /// Cells of a table's row before the present one.
    cells: usize,
    in_head: bool,
}

/// Turns a page into roff. Its sections are those of its headings; its title is a heading, too.
fn roff(markdown: &str) -> String {
    let mut writer = Writer::default();
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        writer.event(event);
    }
    writer.flush();
    writer.out
}

impl Writer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(&tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.verbatim => self.out.push_str(&verbatim(&text)),
            Event::Text(text) => self.line.push_str(&inline(&text)),
            Event::Code(text) => self.line.push_str(&format!("\\fB{}\\fR", inline(&text))),
            Event::SoftBreak | Event::HardBreak => self.line.push('\n'),
            _ => {}
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.flush();
                self.line.push_str(match level {
                    HeadingLevel::H1 => ".SH ",
                    _ => ".SS ",
                });
            }
            Tag::Paragraph => self.macro_line(".PP"),
            Tag::CodeBlock(_) => {
                self.macro_line(".PP\n.RS 4\n.nf");
                self.verbatim = true;
            }
            Tag::Item => self.macro_line(".IP \\(bu 2"),
            Tag::TableHead => self.in_head = true,
            Tag::TableRow => {
                self.macro_line(".TP");
                self.cells = 0;
            }
            Tag::Strong | Tag::Emphasis => self.line.push_str("\\fI"),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) | TagEnd::Paragraph | TagEnd::Item | TagEnd::TableRow => {
                self.flush();
            }
            TagEnd::CodeBlock => {
                if !self.out.ends_with('\n') {
                    self.out.push('\n');
                }
                self.out.push_str(".fi\n.RE\n");
                self.verbatim = false;
            }
            // A row is its first cell, and below it the others; the text says what they are.
            TagEnd::TableHead => {
                self.line.clear();
                self.in_head = false;
            }
            TagEnd::TableCell if !self.in_head => {
                self.flush();
                self.cells += 1;
            }
            TagEnd::Strong | TagEnd::Emphasis => self.line.push_str("\\fR"),
            _ => {}
        }
    }

    fn macro_line(&mut self, text: &str) {
        self.flush();
        // A paragraph that begins an item belongs to it, and a heading has made room already.
        let last = self.out.lines().next_back().unwrap_or_default();
        let begun = last.starts_with(".IP ") || last.starts_with(".S");
        let text = match text.strip_prefix(".PP") {
            Some(rest) if begun => rest.trim_start(),
            _ => text,
        };
        if !text.is_empty() {
            self.out.push_str(text);
            self.out.push('\n');
        }
    }

    fn flush(&mut self) {
        let line = std::mem::take(&mut self.line);
        for line in line.lines().filter(|line| !line.is_empty()) {
            // A line of text that begins with a dot is no request.
            let is_heading = line.starts_with(".SH ") || line.starts_with(".SS ");
            if line.starts_with(['.', '\'']) && !is_heading {
                self.out.push_str("\\&");
            }
            self.out.push_str(line);
            self.out.push('\n');
        }
    }
}

/// Returns the text of a line: an apostrophe or a dot in front is escaped when the line is written.
fn inline(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    // Characters beyond ASCII by their code points (groff_char(7)); the letter itself is in no
    // encoding that all formatters read.
    text.chars().fold(String::new(), |mut out, character| {
        match character.is_ascii() {
            true => out.push(character),
            false => out.push_str(&format!("\\[u{:04X}]", u32::from(character))),
        }
        out
    })
}

/// Returns lines as they are.
fn verbatim(text: &str) -> String {
    let escaped = inline(text);
    let lines = escaped
        .lines()
        .map(|line| match line.strip_prefix(['.', '\'']) {
            Some(_) => format!("\\&{line}"),
            None => line.to_owned(),
        });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the day of the present commit.
fn date() -> String {
    let mut date = Command::new("date");
    date.args(["-u", "+%F", "-d"])
        .arg(format!("@{}", super::epoch()));
    let day = sh::stdout(&mut date).unwrap_or_default();
    String::from_utf8_lossy(&day).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_markdown_says_is_there() {
        let page = "# One\n\nText of `a-b` and\n.dots in *it*.\n\n## Two\n\n- an item\n  of two lines\n\n\
                    ```sh\nls -l \\\n.x\n```\n\n| h | i |\n|---|---|\n| `c` | means |\n";
        assert_eq!(
            roff(page),
            ".SH One\nText of \\fBa\\-b\\fR and\n\\&.dots in \\fIit\\fR.\n.SS Two\n\
             .IP \\(bu 2\nan item\nof two lines\n.PP\n.RS 4\n.nf\nls \\-l \\e\n\\&.x\n.fi\n.RE\n\
             .TP\n\\fBc\\fR\nmeans\n"
        );
    }

    #[test]
    fn all_pages_are_in_it() {
        let page = page("bitcrafts");
        assert!(page.starts_with(".TH BITCRAFTS-GUIDE 7 "));
        for part in ["Recipes", "Exit codes", "What prune promises", "Verdicts"] {
            assert!(
                page.contains(&format!(
                    ".S{} {part}",
                    if part == "Recipes" { 'H' } else { 'S' }
                )),
                "{part}"
            );
        }
    }
}
