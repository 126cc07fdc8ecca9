//! The main table of a page: columns and rows as data, and their one rendering.

use std::borrow::Cow;
use std::fmt::Write;

use super::escape::{Path, Text};
use crate::session::progress::{size, thousands};

/// Names of one cell that are listed, and those of them that are not folded.
pub const NAMES: usize = 100;
const UNFOLDED: usize = 6;

/// The table.
pub struct PageTable {
    /// Heading.
    pub title: &'static str,
    /// Plain words on which entries are listed and which are not, HTML.
    pub status: String,
    /// Example of a filter.
    pub placeholder: &'static str,
    /// Headings; each row has a cell for each.
    pub columns: [PageColumn; 4],
    /// Rows in their first order.
    pub rows: Vec<PageRow>,
    /// Sentence for a filter that finds nothing, HTML.
    pub elsewhere: String,
}

/// A column.
pub struct PageColumn {
    name: &'static str,
    by: By,
    sorted: Option<&'static str>,
}

/// Key by which the cells of a column are sorted.
#[derive(PartialEq, Eq)]
enum By {
    /// The numbers in `data-v`, which the cells show.
    Number,
    /// The numbers in `data-v`, for which the cells show words.
    Rank,
    /// The text.
    Text,
    /// Nothing: the column cannot be sorted.
    Nothing,
}

impl PageColumn {
    /// Returns a column of numbers; `name` is its heading, and its name in `#sort=`.
    pub const fn number(name: &'static str) -> PageColumn {
        PageColumn::by(name, By::Number)
    }

    /// Returns a column of words by whose ranks, smallest first, the table is sorted.
    pub const fn ranks(name: &'static str) -> PageColumn {
        PageColumn {
            sorted: Some("ascending"),
            ..PageColumn::by(name, By::Rank)
        }
    }

    /// Returns a column of text.
    pub const fn text(name: &'static str) -> PageColumn {
        PageColumn::by(name, By::Text)
    }

    /// Returns a column by which nothing is sorted.
    pub const fn unsorted(name: &'static str) -> PageColumn {
        PageColumn::by(name, By::Nothing)
    }

    /// Says that the table is sorted by this column, largest first.
    pub const fn falling(self) -> PageColumn {
        PageColumn {
            sorted: Some("descending"),
            ..self
        }
    }

    const fn by(name: &'static str, by: By) -> PageColumn {
        PageColumn {
            name,
            by,
            sorted: None,
        }
    }
}

/// A row.
pub struct PageRow {
    /// Class by which figures filter the rows, in tables that have classes.
    pub class: Option<&'static str>,
    /// The cells, one for each column.
    pub cells: [PageCell; 4],
}

/// A cell.
pub enum PageCell {
    /// A number of bytes; the leading one is what the row is listed for.
    Bytes {
        label: &'static str,
        bytes: u64,
        leads: bool,
    },
    /// A number.
    Count { label: &'static str, count: u64 },
    /// The row's class and its rank.
    Class { name: &'static str, rank: usize },
    /// Names, most of them folded where they are many.
    Names(NameList),
    /// Text.
    Text(&'static str),
    /// Several pieces, HTML, which take half of the width.
    Half(String),
}

/// Names of one cell.
pub struct NameList {
    /// The first [`NAMES`].
    pub listed: Vec<TaggedName>,
    /// Number of all.
    pub count: usize,
    /// Command that lists all, HTML.
    pub all: &'static str,
}

/// A name of a cell.
pub struct TaggedName {
    /// Remark before it.
    pub tag: Option<NameTag>,
    /// The path.
    pub path: Vec<u8>,
}

/// A remark on a name.
pub enum NameTag {
    /// On the one that stays, or that the row is about.
    Kept(Cow<'static, str>),
    /// On another one.
    Other(&'static str),
}

impl PageTable {
    /// Returns the table, HTML.
    pub fn html(&self) -> String {
        let mut html = format!(
            "<section aria-labelledby=list-title>\n<h2 id=list-title>{}</h2>\n\
             <p class=note>{}</p>\n\
             <div class=bar id=bar hidden><label>Filter <input id=filter type=search autocomplete=off \
             spellcheck=false placeholder=\"{}\"></label>\
             <button id=place type=button hidden></button><span id=status role=status></span></div>\n\
             <table id=list>\n<thead><tr>",
            Text(self.title),
            self.status,
            Text(self.placeholder),
        );
        for column in &self.columns {
            column.write(&mut html);
        }
        html += "</thead>\n<tbody>\n";
        for row in &self.rows {
            row.write(&mut html);
        }
        html + &format!(
            "</tbody></table>\n<p id=none class=note hidden>Nothing that is listed here matches. \
             {}</p>\n</section>\n",
            self.elsewhere
        )
    }
}

// Writing to a String cannot fail.

impl PageColumn {
    fn write(&self, html: &mut String) {
        if self.by == By::Nothing {
            let _ = write!(html, "<th scope=col>{}", Text(self.name));
            return;
        }
        let sorted = self.sorted.map(|order| format!(" aria-sort={order}"));
        let _ = write!(
            html,
            "<th scope=col{}{}><button type=button disabled data-sort={} data-by={}>{}</button>",
            if self.by == By::Number {
                " class=num"
            } else {
                ""
            },
            sorted.unwrap_or_default(),
            self.name.to_lowercase(),
            if self.by == By::Text {
                "text"
            } else {
                "number"
            },
            Text(self.name),
        );
    }
}

impl PageRow {
    fn write(&self, html: &mut String) {
        let _ = match self.class {
            Some(class) => write!(html, "<tr class=k-row-{class} data-class={class}>"),
            None => write!(html, "<tr>"),
        };
        for cell in &self.cells {
            cell.write(html);
        }
        html.push('\n');
    }
}

impl PageCell {
    fn write(&self, html: &mut String) {
        let _ = match self {
            PageCell::Bytes {
                label,
                bytes,
                leads,
            } => write!(
                html,
                "<td class=\"num{}\" data-v={bytes} data-label={label} title=\"{} bytes\">{}",
                if *leads { " lead" } else { "" },
                thousands(*bytes),
                size(*bytes)
            ),
            PageCell::Count { label, count } => write!(
                html,
                "<td class=num data-v={count} data-label={label}>{}",
                thousands(*count)
            ),
            PageCell::Class { name, rank } => write!(
                html,
                "<td data-v={rank}><span class=\"class k-{name}\">{name}</span>"
            ),
            PageCell::Names(names) => {
                names.write(html);
                Ok(())
            }
            PageCell::Text(text) => write!(html, "<td>{}", Text(text)),
            PageCell::Half(pieces) => write!(html, "<td class=half>{pieces}"),
        };
    }
}

impl NameList {
    fn write(&self, html: &mut String) {
        // One more line is no longer than the line that would hide it.
        let unfolded = match self.count {
            count if count == UNFOLDED + 1 => count,
            _ => UNFOLDED,
        };
        html.push_str("<td class=wide><ul class=files>");
        for (nth, TaggedName { tag, path }) in self.listed.iter().enumerate() {
            if nth == unfolded {
                let more = thousands((self.count - unfolded) as u64);
                let _ = write!(
                    html,
                    "<li><details><summary>{more} more</summary><ul class=files>"
                );
            }
            html.push_str("<li>");
            let _ = match tag {
                None => Ok(()),
                Some(NameTag::Kept(text)) => write!(html, "<span class=tag>{}</span>", Text(text)),
                Some(NameTag::Other(text)) => {
                    write!(html, "<span class=\"tag same\">{}</span>", Text(text))
                }
            };
            let _ = write!(html, "{}", Path(path));
        }
        if self.count > self.listed.len() {
            let more = thousands((self.count - self.listed.len()) as u64);
            let _ = write!(
                html,
                "<li>{more} more are not on this page; {} lists all",
                self.all
            );
        }
        html.push_str(match self.count > unfolded {
            true => "</ul></details></ul>",
            false => "</ul>",
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(count: usize) -> String {
        let name = |nth: usize| TaggedName {
            tag: match nth {
                0 => Some(NameTag::Kept("kept <b>".into())),
                1 => Some(NameTag::Other("same file")),
                _ => None,
            },
            path: format!("<i>{nth}").into_bytes(),
        };
        let names = NameList {
            listed: (0..count.min(NAMES)).map(name).collect(),
            count,
            all: "<code>all</code>",
        };
        let row = PageRow {
            class: Some("added"),
            cells: [
                PageCell::Class {
                    name: "added",
                    rank: 5,
                },
                PageCell::Bytes {
                    label: "each",
                    bytes: 50_000,
                    leads: true,
                },
                PageCell::Count {
                    label: "copies",
                    count: 1000,
                },
                PageCell::Names(names),
            ],
        };
        PageTable {
            title: "Entries",
            status: "All.".to_owned(),
            placeholder: "part of a path",
            columns: [
                PageColumn::ranks("Class"),
                PageColumn::number("Size").falling(),
                PageColumn::number("Copies"),
                PageColumn::unsorted("Names"),
            ],
            rows: vec![row],
            elsewhere: String::new(),
        }
        .html()
    }

    #[test]
    fn columns_say_how_they_are_sorted_and_cells_by_what() {
        let html = table(2);
        for part in [
            "<th scope=col aria-sort=ascending><button type=button disabled data-sort=class data-by=number>",
            "<th scope=col class=num aria-sort=descending><button type=button disabled data-sort=size ",
            "<th scope=col>Names</thead>",
            "<tr class=k-row-added data-class=added><td data-v=5><span class=\"class k-added\">added</span>",
            "<td class=\"num lead\" data-v=50000 data-label=each title=\"50,000 bytes\">48.8 KiB",
            "<td class=num data-v=1000 data-label=copies>1,000",
            "<li><span class=tag>kept &lt;b&gt;</span><bdi class=\"p\">&lt;i&gt;0</bdi>",
            "<li><span class=\"tag same\">same file</span><bdi",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(!html.contains("<details>"));
    }

    #[test]
    fn many_names_are_folded_and_what_is_left_out_is_counted() {
        assert!(!table(UNFOLDED + 1).contains("<details>"));
        let html = table(UNFOLDED + 2);
        assert!(html.contains("<summary>2 more</summary>"), "{html}");
        assert!(html.contains("</ul></details></ul>\n"), "{html}");
        let html = table(NAMES + 50);
        let left_out = "<li>50 more are not on this page; <code>all</code> lists all</ul>";
        assert!(html.contains(left_out), "{html}");
        assert_eq!(html.matches("<bdi").count(), NAMES);
    }
}
