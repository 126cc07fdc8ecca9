//! Reports as one page that needs nothing but itself: skeleton, escaping, table, data and treemap,
//! shared by the commands. What may be long is data, of which the page's script lists as much as is
//! unfolded. Names of files reach a page as escaped text, and the page's policy runs no script and no
//! style but those written here.

pub mod data;
pub mod dirs;
pub mod escape;
pub mod map;
pub mod provenance;
mod treemap;

use std::io::{self, Write};

use bc_digest::Algorithm;

use self::dirs::Dirs;
use self::escape::Text;
use crate::session::progress::thousands;

const STYLE: &str = include_str!("page.css");
/// Chooses the colours before anything is drawn.
const THEME: &str = include_str!("theme.js");
/// What all pages do.
const SCRIPT: &str = include_str!("page.js");
/// Script of a page to decide on duplicates, and the elements that it fills.
pub const DECIDE: &str = include_str!("decide.js");
pub const DECISIONS: &str = include_str!("decide.html");
/// Script of a page of differences, and the elements that it fills.
pub const CHANGES: &str = include_str!("changes.js");
pub const CHANGED: &str = include_str!("changes.html");

/// A page to be written.
#[derive(Default)]
pub struct Page {
    /// Command that made it, such as `dup scan`.
    pub command: &'static str,
    /// Title and heading.
    pub title: String,
    /// Paths that were looked at, HTML.
    pub subject: String,
    /// Style sheet of the treemap.
    pub style: String,
    /// The rest, HTML.
    pub body: String,
    /// Script of its list.
    pub script: Option<&'static str>,
    /// Data that the script lists, as [`data::packed`] returns it.
    pub data: String,
    /// Last words, HTML.
    pub footer: String,
}

/// A figure above the table.
#[derive(Default)]
pub struct Tile {
    /// Label of the figure.
    pub label: &'static str,
    /// The figure.
    pub value: String,
    /// More in small print.
    pub more: String,
    /// Class of its style: `hero`, `bad`, …
    pub class: &'static str,
    /// The class of its colour in the map, of which this is the legend.
    pub color: Option<String>,
    /// Filter of the table that it links to.
    pub link: Option<String>,
}

impl Tile {
    /// Returns a figure that is a count.
    pub fn count(label: &'static str, count: u64, more: impl Into<String>) -> Tile {
        Tile {
            label,
            value: thousands(count),
            more: more.into(),
            ..Tile::default()
        }
    }
}

impl Page {
    /// Adds the map of amounts by directory; nothing where there are none.
    pub fn map(&mut self, dirs: &Dirs, words: &map::Words<'_>) {
        if let Some(whole) = dirs.cells(map::CELLS) {
            let (html, style) = map::section(&whole, words);
            self.body += &html;
            self.style = style;
        }
    }

    /// Writes the page.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let title = Text(&self.title);
        write!(
            out,
            "<!DOCTYPE html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n\
             <meta http-equiv=Content-Security-Policy content=\"{}\">\n\
             <meta name=viewport content=\"width=device-width,initial-scale=1\">\n\
             <meta name=referrer content=no-referrer>\n\
             <meta name=color-scheme content=\"light dark\">\n\
             <meta name=generator content=\"bit-crafts {}\">\n\
             <title>{title}</title>\n<script>{THEME}</script>\n<style>{STYLE}</style>\n",
            self.policy(),
            env!("CARGO_PKG_VERSION"),
        )?;
        if !self.style.is_empty() {
            writeln!(out, "<style>{}</style>", self.style)?;
        }
        write!(
            out,
            "</head>\n<body>\n<header>\n<div>\n<p class=kicker>bc {}</p>\n<h1>{title}</h1>\n{}{}</div>\n\
             <button id=theme type=button hidden>Theme</button>\n</header>\n<main>\n",
            self.command,
            self.subject,
            provenance::made(),
        )?;
        out.write_all(self.body.as_bytes())?;
        write!(
            out,
            "</main>\n<footer>{} Made by bit&#8209;crafts {}.</footer>\n",
            self.footer,
            env!("CARGO_PKG_VERSION"),
        )?;
        if !self.data.is_empty() {
            writeln!(
                out,
                "<script id=data type=text/plain>{}</script>",
                self.data
            )?;
        }
        for script in self.scripts() {
            writeln!(out, "<script>{script}</script>")?;
        }
        out.write_all(b"</body>\n</html>\n")
    }

    /// Returns the scripts at the end of the page, in order.
    fn scripts(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(SCRIPT).chain(self.script)
    }

    /// Returns the page's content security policy: nothing is loaded but pictures that are files of
    /// this machine, where files are decided on; only scripts and styles with these hashes run
    /// (CSP 3); the script cannot make markup of text (Trusted Types).
    fn policy(&self) -> String {
        let mut styles = source(STYLE);
        if !self.style.is_empty() {
            styles = format!("{styles} {}", source(&self.style));
        }
        let scripts = std::iter::once(THEME).chain(self.scripts());
        let scripts: Vec<String> = scripts.map(source).collect();
        let pictures = match self.script {
            Some(DECIDE) => " img-src file:;",
            _ => "",
        };
        format!(
            "default-src 'none'; style-src {styles}; script-src {};{pictures} base-uri 'none'; \
             form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
            scripts.join(" "),
        )
    }
}

/// Returns an inline text as a source of the policy.
fn source(text: &str) -> String {
    let digest = bc_digest::hash(Algorithm::Sha256, text.as_bytes());
    let mut encoded = Vec::new();
    bc_manifest::base64::encode(&mut encoded, digest.as_bytes());
    format!("'sha256-{}'", String::from_utf8_lossy(&encoded))
}

/// Returns the figures.
pub fn tiles(tiles: &[Tile]) -> String {
    let mut html = String::from("<ul class=tiles>\n");
    for tile in tiles {
        let (open, close) = match &tile.link {
            Some(link) => (format!("<a href=\"#{}\">", Text(link)), "</a>"),
            None => ("<div>".to_owned(), "</div>"),
        };
        html += &format!(
            "<li class=\"tile {}\">{open}<span class=label>{}{}</span> <strong>{}</strong>",
            tile.class,
            match &tile.color {
                Some(class) => format!("<span class=\"dot {}\"></span>", Text(class)),
                None => String::new(),
            },
            Text(tile.label),
            Text(&tile.value),
        );
        if !tile.more.is_empty() {
            html += &format!(" <span class=more>{}</span>", Text(&tile.more));
        }
        html += close;
        html.push('\n');
    }
    html + "</ul>\n"
}

/// Lines of a list at most.
const LINES: usize = 200;

/// Returns a section with a list of lines, as HTML, which standard error has too; nothing if there
/// are none.
pub fn notes(title: &str, class: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let shown = lines.iter().take(LINES);
    let mut items: String = shown.map(|line| format!("<li>{line}\n")).collect();
    if lines.len() > LINES {
        items += &format!(
            "<li>{} more are not on this page; all were printed on standard error\n",
            thousands((lines.len() - LINES) as u64)
        );
    }
    format!(
        "<section class={class}>\n<h2>{}</h2>\n<ul class=lines>\n{items}</ul>\n</section>\n",
        Text(title)
    )
}

/// Returns the section of a page that has nothing to list, as HTML.
pub fn nothing(title: &str, words: &str) -> String {
    format!(
        "<section class=empty>\n<h2>{}</h2>\n<p class=note>{}</p>\n</section>\n",
        Text(title),
        Text(words)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> String {
        let page = Page {
            command: "dup scan",
            title: "a <b> & \"c\"".into(),
            style: "#m0{left:0%}".into(),
            body: "<p>body</p>".into(),
            script: Some(DECIDE),
            data: data::packed(&"</script>".into()),
            ..Page::default()
        };
        let mut out = Vec::new();
        page.write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn assets_cannot_end_their_element() {
        for text in [STYLE, THEME, SCRIPT, DECIDE, CHANGES] {
            assert!(text.is_ascii() && !text.contains("</") && !text.contains("<!--"));
            assert!(!text.contains("http") && !text.contains("url(") && !text.contains("@import"));
        }
        // Ways of making markup or code of text, or of leaving the page.
        for bad in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "eval",
            "Function(",
            "fetch",
            "setAttribute('on",
        ] {
            for script in [THEME, SCRIPT, DECIDE, CHANGES] {
                assert!(!script.contains(bad), "{bad}");
            }
        }
    }

    #[test]
    fn the_policy_names_what_is_inline_and_nothing_else() {
        let page = page();
        let policy = page
            .split("content=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"));
        assert!(!policy.contains("unsafe") && !policy.contains('*'));
        let mut inline = Vec::new();
        for (start, end) in [("<style>", "</style>"), ("<script>", "</script>")] {
            for part in page.split(start).skip(1) {
                inline.push(source(part.split(end).next().unwrap()));
            }
        }
        assert_eq!(inline.len(), 5);
        assert!(inline.iter().all(|hash| policy.contains(hash)), "{policy}");
        assert_eq!(policy.matches("sha256-").count(), 5);
        assert_eq!(page.matches("</script>").count(), 4);
        // A hash computed elsewhere: `printf 'alert(1)' | openssl sha256 -binary | base64`.
        assert_eq!(
            source("alert(1)"),
            "'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='"
        );
        assert!(page.contains("<title>a &lt;b&gt; &amp; &quot;c&quot;</title>"));
        assert!(page.contains("<h1>a &lt;b&gt;"));
    }
}
