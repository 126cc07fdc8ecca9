//! The treemap of a page: links laid out by a style sheet of their own, once
//! for wide and once for narrow windows, and the same as a table.

use std::fmt::Write;

use super::dirs::{Amount, Cell, What, parent};
use super::escape::{Path, Text, fragment, shown};
use super::treemap::{Rect, squarify};
use crate::session::progress::{counted, thousands};

/// Cells that fit a screen legibly.
pub const CELLS: usize = 64;

/// Fewer entries than these make a small map, and so do so few cells: there is little to find in it.
const FEW: u64 = 20;
const FEW_CELLS: usize = 6;

/// Width and height that the two layouts are made for, and those of a small map.
const WIDE: [(f64, f64); 2] = [(1160.0, 440.0), (1160.0, 160.0)];
const NARROW: [(f64, f64); 2] = [(370.0, 560.0), (370.0, 240.0)];

/// Words for the amounts of a page.
pub struct Words<'a> {
    /// Heading of the section.
    pub heading: &'a str,
    /// Meaning of an area, in a sentence.
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
    /// Meaning of the colour of these cells, all of that class.
    pub meaning: &'a dyn Fn(&[&Cell]) -> String,
}

/// Returns the section as HTML and the style sheet that places its cells; a sentence where one
/// directory holds all.
pub fn section(root: &Cell, words: &Words<'_>) -> (String, String) {
    if root.parts.is_empty() {
        let (heading, place) = (Text(words.heading), name(&root.path));
        let html = format!("<p class=note>{heading}: all of it in {place}.</p>\n");
        return (html, String::new());
    }
    let mut every = Vec::new();
    leaves_of(root, &mut every);
    let own = |cell: &&Cell| !matches!(cell.what, What::Smaller(_));
    let largest = every
        .iter()
        .copied()
        .filter(own)
        .map(|cell| cell.amount.value);
    let (drawn, lumps) = drawn(root, largest.max().unwrap_or_default());
    let mut leaves = Vec::new();
    leaves_of(&drawn, &mut leaves);
    let small = root.amount.count < FEW || leaves.len() <= FEW_CELLS;
    let mut html = format!(
        "<section aria-labelledby=map-title>\n<h2 id=map-title>{}</h2>\n<p class=note>{}{}{}</p>\n\
         <div class=\"map{}\" id=map role=group aria-labelledby=map-title>\n",
        Text(words.heading),
        Text(words.caption),
        match &root.path[..] {
            b"" => String::new(),
            path => format!(" All of it is in {}.", name(path)),
        },
        left_out(&lumps, words),
        if small { " small" } else { "" },
    );
    areas(&mut html, &leaves, root, words);
    html.push_str("</div>\n");
    legend(&mut html, &leaves, words);
    html.push_str("<p id=map-info class=note aria-hidden=true>&nbsp;</p>\n");
    let style = places(&drawn, leaves.len(), usize::from(small));
    every.sort_by(|a, b| {
        b.amount
            .value
            .cmp(&a.amount.value)
            .then_with(|| a.path.cmp(&b.path))
    });
    table(&mut html, &every, words);
    html.push_str("</section>\n");
    (html, style)
}

/// Returns the map without the lumps of small directories that would be larger than the largest
/// named cell: they would hide the rest. With it, these lumps.
fn drawn(cell: &Cell, largest: u64) -> (Cell, Vec<&Cell>) {
    let mut lumps = Vec::new();
    let mut kept = cell.clone_alone();
    for part in &cell.parts {
        if matches!(part.what, What::Smaller(_)) && part.amount.value >= largest {
            lumps.push(part);
            continue;
        }
        let (part, below) = drawn(part, largest);
        kept.parts.push(part);
        lumps.extend(below);
    }
    if !kept.parts.is_empty() {
        kept.amount.value = kept.parts.iter().map(|part| part.amount.value).sum();
        kept.parts
            .sort_by_key(|part| std::cmp::Reverse(part.amount.value));
    }
    (kept, lumps)
}

/// Lumps that have a sentence of their own.
const LUMPS: usize = 3;

/// Returns the sentences about lumps that are not drawn.
fn left_out(lumps: &[&Cell], words: &Words<'_>) -> String {
    if lumps.len() > LUMPS {
        let mut all = Amount::default();
        let mut dirs = 0;
        for lump in lumps {
            all.add(lump.amount);
            if let What::Smaller(count) = lump.what {
                dirs += count as u64;
            }
        }
        return format!(
            " {} smaller directories of {} are not drawn: {} together.",
            thousands(dirs),
            counted(lumps.len() as u64, "other", "others"),
            Text(&(words.full)(all)),
        );
    }
    let reported = lumps.iter().map(|lump| {
        let What::Smaller(count) = lump.what else {
            return String::new();
        };
        format!(
            " {} smaller directories of {} are not drawn: {} together.",
            thousands(count as u64),
            name(&lump.path),
            Text(&(words.full)(lump.amount)),
        )
    });
    reported.collect()
}

/// Writes the legend of the colours, in the order of the cells.
fn legend(html: &mut String, leaves: &[&Cell], words: &Words<'_>) {
    let mut classes: Vec<(String, Vec<&Cell>)> = Vec::new();
    for cell in leaves {
        let class = (words.class)(cell);
        match classes.iter_mut().find(|(known, _)| *known == class) {
            Some((_, cells)) => cells.push(cell),
            None => classes.push((class, vec![cell])),
        }
    }
    html.push_str("<ul class=legend>\n");
    for (class, cells) in classes {
        let _ = writeln!(
            html,
            "<li><span class=\"dot {class}\"></span>{}",
            (words.meaning)(&cells)
        );
    }
    html.push_str("</ul>\n");
}

/// Returns the innermost directory that all of these cells are in, HTML.
pub fn common(cells: &[&Cell]) -> String {
    let mut paths = cells.iter().map(|cell| &cell.path[..]);
    let mut common = paths.next().unwrap_or_default();
    for path in paths {
        while !common.is_empty()
            && !(path.starts_with(common)
                && (path.len() == common.len() || common == b"/" || path[common.len()] == b'/'))
        {
            common = match parent(common) {
                above if above == common => b"",
                above => above,
            };
        }
    }
    name(common)
}

/// Returns the style sheet: the places of the leaves on wide and on narrow screens.
fn places(root: &Cell, leaves: usize, small: usize) -> String {
    let mut style = String::new();
    let narrow = "@media(max-width:40rem){";
    for (size, start, end) in [(WIDE[small], "", ""), (NARROW[small], narrow, "}")] {
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
             <b{}>{}</b><span>{}</span>{}</a>",
            (words.class)(cell),
            fragment(&cell.path),
            Text(&title(cell)),
            Text(&(words.full)(cell.amount)),
            match cell.what {
                // A number that is cut would be another.
                What::Smaller(_) => " class=n",
                _ => "",
            },
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

/// Returns the last component, which distinguishes a cell from its neighbours.
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

/// Returns the path of a cell below the root, in small print.
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
            meaning: &common,
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
        // Eight entries are few.
        assert!(html.contains("<div class=\"map small\" id=map"));
        let legend = "<ul class=legend>\n<li><span class=\"dot h0\"></span>";
        assert!(html.contains(legend), "{html}");
        assert_eq!(html.matches("class=\"dot ").count(), 4);
    }

    /// A tile without a name of its own is never the one that catches the eye.
    #[test]
    fn a_lump_is_never_the_largest_tile() {
        let amount = |value| Amount {
            value,
            count: 1,
            mark: 0,
        };
        for (many, own) in [(1000, 1), (1000, 30), (200, 0), (100_000, 500)] {
            let mut dirs = Dirs::default();
            for number in 0..many {
                dirs.add(format!("d/{number:06}/x").as_bytes(), amount(1));
                dirs.add(format!("e/f/{number:06}").as_bytes(), amount(2));
            }
            if own > 0 {
                dirs.add(b"d", amount(own));
            }
            let words = Words {
                heading: "Where",
                caption: "Why.",
                value: None,
                count: "Count",
                full: &|amount| format!("{} bytes", amount.value),
                short: &|amount| amount.value.to_string(),
                class: &|_| "h0".to_owned(),
                meaning: &common,
            };
            let root = dirs.cells(CELLS).unwrap();
            let mut every = Vec::new();
            leaves_of(&root, &mut every);
            let own = every
                .iter()
                .filter(|cell| !matches!(cell.what, What::Smaller(_)));
            let largest = own.map(|cell| cell.amount.value).max().unwrap();
            let (kept, lumps) = drawn(&root, largest);
            let mut leaves = Vec::new();
            leaves_of(&kept, &mut leaves);
            let top = leaves.iter().max_by_key(|cell| cell.amount.value).unwrap();
            assert!(!matches!(top.what, What::Smaller(_)));
            let sum = |cells: &[&Cell]| cells.iter().map(|cell| cell.amount.value).sum::<u64>();
            assert_eq!(sum(&leaves) + sum(&lumps), root.amount.value);
            assert_eq!(kept.amount.value, sum(&leaves));
            let (html, _) = section(&root, &words);
            assert_eq!(html.matches(" are not drawn: ").count(), lumps.len());
            assert!(!lumps.is_empty());
            assert!(html.contains("<div class=\"map\" id=map"));
        }
    }

    #[test]
    fn many_lumps_are_one_sentence() {
        let mut dirs = Dirs::default();
        for number in 0..2000 {
            let amount = Amount {
                value: 1,
                count: 1,
                mark: 0,
            };
            dirs.add(format!("d/{}/{number:04}", number % 20).as_bytes(), amount);
        }
        let words = Words {
            heading: "Where",
            caption: "Why.",
            value: None,
            count: "Count",
            full: &|amount| format!("{} bytes", amount.value),
            short: &|amount| amount.value.to_string(),
            class: &|_| "h0".to_owned(),
            meaning: &common,
        };
        let (html, _) = section(&dirs.cells(CELLS).unwrap(), &words);
        assert_eq!(html.matches(" are not drawn: ").count(), 1, "{html}");
        let before = html.split(" are not drawn: ").next().unwrap();
        assert!(before.ends_with(" others"), "{html:.2000}");
    }

    #[test]
    fn cells_of_a_colour_have_a_directory_in_common() {
        let cell = |path: &str| Cell {
            path: path.into(),
            what: What::Whole,
            amount: Amount::default(),
            group: 0,
            parts: Vec::new(),
        };
        for (paths, expected) in [
            (&["a/b", "a/c"][..], ">a<"),
            (&["/a/b"], ">b<"),
            (&["/a", "/b"], ">/<"),
            (&["ab", "a"], ">.<"),
            (&["a/b", "a"], ">a<"),
        ] {
            let cells: Vec<Cell> = paths.iter().map(|path| cell(path)).collect();
            let cells: Vec<&Cell> = cells.iter().collect();
            assert!(
                common(&cells).contains(expected),
                "{paths:?}: {}",
                common(&cells)
            );
        }
    }
}
