//! The treemap of a page: links laid out by a style sheet of their own, once
//! for wide and once for narrow windows, and the same as a table.

use std::fmt::Write;

use super::dirs::{Amount, Cell, What, parent};
use super::escape::{Path, Text, fragment, shown};
use super::treemap::{Rect, squarify};
use crate::progress::thousands;

/// Cells that fit a screen legibly.
pub const CELLS: usize = 64;

/// Width and height that the two layouts are made for.
const WIDE: (f64, f64) = (1160.0, 440.0);
const NARROW: (f64, f64) = (370.0, 560.0);

/// How the amounts of a page are told.
pub struct Words<'a> {
    /// Heading of the section.
    pub heading: &'a str,
    /// What an area means, in a sentence.
    pub caption: &'a str,
    /// Heading of the column of values; none if the counts are the values.
    pub value: Option<&'a str>,
    /// Heading of the column of counts.
    pub count: &'a str,
    /// An amount with its unit.
    pub full: &'a dyn Fn(Amount) -> String,
    /// An amount for a cell, where room is scarce.
    pub short: &'a dyn Fn(Amount) -> String,
    /// The class of a cell: its colour.
    pub class: &'a dyn Fn(&Cell) -> String,
}

/// The section as HTML and the style sheet that places its cells; a sentence
/// where one directory holds all.
pub fn section(root: &Cell, words: &Words<'_>) -> (String, String) {
    if root.parts.is_empty() {
        let (heading, place) = (Text(words.heading), name(&root.path));
        let html = format!("<p class=note>{heading}: all of it in {place}.</p>\n");
        return (html, String::new());
    }
    let mut leaves = Vec::new();
    leaves_of(root, &mut leaves);
    let mut html = format!(
        "<section aria-labelledby=map-title>\n<h2 id=map-title>{}</h2>\n<p class=note>{}{}</p>\n\
         <div class=map id=map role=group aria-labelledby=map-title>\n",
        Text(words.heading),
        Text(words.caption),
        match &root.path[..] {
            b"" => String::new(),
            path => format!(" All of it is in {}.", name(path)),
        },
    );
    areas(&mut html, &leaves, root, words);
    html.push_str("</div>\n<p id=map-info class=note aria-hidden=true>&nbsp;</p>\n");
    let style = places(root, leaves.len());
    leaves.sort_by(|a, b| {
        b.amount
            .value
            .cmp(&a.amount.value)
            .then_with(|| a.path.cmp(&b.path))
    });
    table(&mut html, &leaves, words);
    html.push_str("</section>\n");
    (html, style)
}

/// The style sheet: where each of the leaves lies on wide and on narrow screens.
fn places(root: &Cell, leaves: usize) -> String {
    let mut style = String::new();
    for (size, start, end) in [(WIDE, "", ""), (NARROW, "@media(max-width:40rem){", "}")] {
        let mut rects = Vec::with_capacity(leaves);
        let area = Rect {
            x: 0.0,
            y: 0.0,
            w: size.0,
            h: size.1,
        };
        place(root, area, &mut rects);
        style.push_str(start);
        for (number, rect) in rects.iter().enumerate() {
            let percent = |part: f64, whole: f64| format!("{:.3}%", part / whole * 100.0);
            // Writing to a String cannot fail.
            let _ = write!(
                style,
                "#m{number}{{left:{};top:{};width:{};height:{}}}",
                percent(rect.x, size.0),
                percent(rect.y, size.1),
                percent(rect.w, size.0),
                percent(rect.h, size.1),
            );
        }
        style.push_str(end);
        style.push('\n');
    }
    style
}

fn areas(html: &mut String, leaves: &[&Cell], root: &Cell, words: &Words<'_>) {
    let whole = root.amount.value as f64;
    for (number, cell) in leaves.iter().enumerate() {
        let key = if cell.what == What::Own {
            "in"
        } else {
            "under"
        };
        let share = cell.amount.value as f64 / whole * 100.0;
        let _ = writeln!(
            html,
            "<a id=m{number} class=\"c {}\" href=\"#{key}={}\" title=\"{}: {} ({share:.1} %)\">\
             <b>{}</b><span>{}</span>{}</a>",
            (words.class)(cell),
            fragment(&cell.path),
            Text(&title(cell)),
            Text(&(words.full)(cell.amount)),
            label(cell),
            Text(&(words.short)(cell.amount)),
            place_of(cell, root),
        );
    }
}

fn table(html: &mut String, leaves: &[&Cell], words: &Words<'_>) {
    html.push_str(
        "<details><summary>The same as a table</summary>\n<table class=dirs>\n<thead><tr>",
    );
    for heading in words.value.iter().chain([&words.count]) {
        let _ = write!(html, "<th scope=col class=num>{}", Text(heading));
    }
    html.push_str("<th scope=col>Directory</thead>\n<tbody>\n");
    for cell in leaves {
        html.push_str("<tr>");
        if words.value.is_some() {
            let _ = write!(html, "<td class=num>{}", Text(&(words.short)(cell.amount)));
        }
        let _ = writeln!(
            html,
            "<td class=num>{}<td>{}{}",
            thousands(cell.amount.count),
            name(&cell.path),
            Text(&suffix(cell.what)),
        );
    }
    html.push_str("</table></details>\n");
}

fn leaves_of<'a>(cell: &'a Cell, out: &mut Vec<&'a Cell>) {
    if cell.parts.is_empty() {
        out.push(cell);
    }
    cell.parts.iter().for_each(|part| leaves_of(part, out));
}

/// Rectangles of the leaves, in their order.
fn place(cell: &Cell, area: Rect, out: &mut Vec<Rect>) {
    if cell.parts.is_empty() {
        out.push(area);
        return;
    }
    let values: Vec<f64> = cell
        .parts
        .iter()
        .map(|part| part.amount.value as f64)
        .collect();
    for (part, rect) in cell.parts.iter().zip(squarify(&values, area)) {
        place(part, rect, out);
    }
}

fn name(path: &[u8]) -> String {
    Path(if path.is_empty() { b"." } else { path }).to_string()
}

/// The last component: what tells a cell from its neighbours.
fn label(cell: &Cell) -> String {
    let last = match cell.path.iter().rposition(|byte| *byte == b'/') {
        Some(at) if at + 1 < cell.path.len() => &cell.path[at + 1..],
        _ if cell.path.is_empty() => b".",
        _ => &cell.path[..],
    };
    let last = shown(last);
    match cell.what {
        What::Whole => Text(&last).to_string(),
        What::Own => format!("{}/*", Text(&last)),
        What::Smaller(count) => {
            format!("+{}<em> smaller directories</em>", thousands(count as u64))
        }
    }
}

/// Where a cell lies below the root, in small print.
fn place_of(cell: &Cell, root: &Cell) -> String {
    let above = match cell.what {
        What::Whole => parent(&cell.path),
        _ => &cell.path[..],
    };
    match above.strip_prefix(&root.path[..]) {
        Some(below) if !below.is_empty() => {
            let below = below.strip_prefix(b"/").unwrap_or(below);
            let text = Text(&shown(below)).to_string();
            format!("<small>{}</small>", text.replace('/', "/<wbr>"))
        }
        _ => String::new(),
    }
}

fn title(cell: &Cell) -> String {
    let path = if cell.path.is_empty() {
        b"."
    } else {
        &cell.path[..]
    };
    format!("{}{}", shown(path), suffix(cell.what))
}

fn suffix(what: What) -> String {
    match what {
        What::Whole => String::new(),
        What::Own => ", directly in it".to_owned(),
        What::Smaller(count) => format!(", its {} smaller directories", thousands(count as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::dirs::Dirs;
    use super::*;

    #[test]
    fn every_cell_is_placed_twice_and_listed() {
        let mut dirs = Dirs::default();
        for (dir, value) in [("a/x", 30), ("a/y", 20), ("a/<b>\n", 10), ("a", 5)] {
            dirs.add(
                dir.as_bytes(),
                Amount {
                    value,
                    count: 2,
                    mark: 0,
                },
            );
        }
        let words = Words {
            heading: "Where",
            caption: "Why.",
            value: Some("Value"),
            count: "Count",
            full: &|amount| format!("{} bytes", amount.value),
            short: &|amount| amount.value.to_string(),
            class: &|cell| format!("h{}", cell.group),
        };
        let (html, style) = section(&dirs.cells(CELLS).unwrap(), &words);
        assert_eq!(
            style.matches("#m0{left:0.000%;top:0.000%;").count(),
            2,
            "{style}"
        );
        assert_eq!(style.matches("#m3{").count(), 2);
        assert!(!style.contains("#m4"));
        assert!(
            html.contains("href=\"#under=a/x\" title=\"a/x: 30 bytes (46.2 %)\"><b>x</b>"),
            "{html}"
        );
        assert!(
            html.contains("href=\"#under=a/%3Cb%3E%5Cn\" title=\"a/&lt;b&gt;\\n: "),
            "{html}"
        );
        assert!(
            html.contains("href=\"#in=a\" title=\"a, directly in it: 5 bytes (7.7 %)\"><b>a/*</b>")
        );
        assert_eq!(html.matches("<tr><td").count(), 4);
    }
}
