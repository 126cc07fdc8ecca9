//! Text and paths as HTML. A path is bytes from a stranger: it comes out as text that cannot be
//! markup, cannot break the line, hide or turn the reading direction, and from which its bytes can
//! be read back.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter, Write};

use bc_fs::{EscapePiece, escape_pieces};
use bc_manifest::base64;

/// Text between tags or in a quoted attribute.
pub struct Text<'a>(pub &'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
            f.write_str(&rest[..at])?;
            f.write_str(match rest.as_bytes()[at] {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'"' => "&quot;",
                _ => "&#39;",
            })?;
            rest = &rest[at + 1..];
        }
        f.write_str(rest)
    }
}

/// A path as an element: its directory dimmed, its escapes marked, and then the bytes as base64 in
/// `data-b64`.
pub struct Path<'a>(pub &'a [u8]);

/// A path that is shown in more than this many characters gets a box to
/// scroll in.
const LONG: usize = 320;

impl Display for Path<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let shown = shown(self.0);
        let long = if shown.len() > LONG { " long" } else { "" };
        write!(f, "<bdi class=\"p{long}\"")?;
        if shown.as_bytes() != self.0 {
            let mut encoded = Vec::new();
            base64::encode(&mut encoded, self.0);
            write!(f, " data-b64=\"{}\"", String::from_utf8_lossy(&encoded))?;
        }
        f.write_char('>')?;
        let name = self
            .0
            .iter()
            .rposition(|b| *b == b'/')
            .map_or(0, |at| at + 1);
        if name > 0 {
            f.write_str("<span>")?;
            marked(f, &self.0[..name])?;
            f.write_str("</span>")?;
        }
        marked(f, &self.0[name..])?;
        f.write_str("</bdi>")
    }
}

/// Writes escapes in `<i>`, to distinguish them from the same letters in a name.
fn marked(f: &mut Formatter<'_>, path: &[u8]) -> fmt::Result {
    let mut result = Ok(());
    escape_pieces(path, is_unsafe, |piece| {
        result = result.and_then(|()| match piece {
            EscapePiece::Plain(text) => Text(text).fmt(f),
            EscapePiece::Escape(text) => write!(f, "<i>{}</i>", Text(&text)),
        });
    });
    result
}

/// Returns the path as the text of its element. Different paths never look the same, and
/// `shown(a + "/" + b)` is `shown(a) + "/" + shown(b)`.
pub fn shown(path: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(path)
        && !text.chars().any(|c| c == '\\' || is_unsafe(c))
    {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    escape_pieces(path, is_unsafe, |piece| match piece {
        EscapePiece::Plain(text) => out.push_str(text),
        EscapePiece::Escape(text) => out.push_str(&text),
    });
    Cow::Owned(out)
}

/// Returns the path as a value in a URL's fragment: its shown form, percent-encoded.
pub fn fragment(path: &[u8]) -> String {
    let mut out = String::new();
    for byte in shown(path).bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Returns true for control characters, characters that a reader cannot see (Unicode's
/// Default_Ignorable_Code_Point) and those that turn the direction of their neighbours (UAX #9).
/// Joiners and variation selectors stay: scripts and emoji need them, and they only touch the
/// letter before them.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}'
            | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use bc_testkit::{Rng, hostile};

    /// Returns an element as a browser renders it: its text without tags and entities.
    fn text_of(html: &str) -> String {
        let mut text = String::new();
        let mut rest = html;
        while let Some(at) = rest.find('<') {
            text.push_str(&rest[..at]);
            rest = &rest[at + rest[at..].find('>').unwrap() + 1..];
        }
        text.push_str(rest);
        for (entity, c) in [
            ("&lt;", "<"),
            ("&gt;", ">"),
            ("&quot;", "\""),
            ("&#39;", "'"),
        ] {
            text = text.replace(entity, c);
        }
        text.replace("&amp;", "&")
    }

    /// Returns the tags of an element, without the text between them.
    fn tags_of(html: &str) -> Vec<&str> {
        html.split('<')
            .skip(1)
            .map(|tag| tag.split_once('>').unwrap().0)
            .collect()
    }

    /// Returns the bytes that shown text stands for.
    fn bytes_of(shown: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let mut rest = shown;
        while let Some(at) = rest.find('\\') {
            out.extend_from_slice(&rest.as_bytes()[..at]);
            let escape = &rest[at + 1..];
            let used = match escape.as_bytes()[0] {
                b'n' => (b"\n".to_vec(), 1),
                b'r' => (b"\r".to_vec(), 1),
                b't' => (b"\t".to_vec(), 1),
                b'\\' => (b"\\".to_vec(), 1),
                b'x' => (vec![u8::from_str_radix(&escape[1..3], 16).unwrap()], 3),
                b'u' => {
                    let end = escape.find('}').unwrap();
                    let code = u32::from_str_radix(&escape[2..end], 16).unwrap();
                    (
                        char::from_u32(code).unwrap().to_string().into_bytes(),
                        end + 1,
                    )
                }
                other => panic!("unknown escape {other}"),
            };
            out.extend(used.0);
            rest = &escape[used.1..];
        }
        out.extend_from_slice(rest.as_bytes());
        out
    }

    fn check(path: &[u8]) {
        let shown = shown(path);
        assert!(
            !shown.chars().any(|c| c != '\\' && is_unsafe(c)),
            "{shown:?}"
        );
        assert_eq!(bytes_of(&shown), path);
        let html = Path(path).to_string();
        assert_eq!(text_of(&html), *shown, "{html}");
        for tag in tags_of(&html) {
            let known = ["span", "/span", "i", "/i", "/bdi"].contains(&tag);
            assert!(known || tag.starts_with("bdi class=\"p"), "{html}");
        }
        match html.split_once("data-b64=\"") {
            None => assert_eq!(shown.as_bytes(), path),
            Some((_, rest)) => {
                let encoded = rest.split('"').next().unwrap();
                assert_eq!(base64::decode(encoded.as_bytes()).unwrap(), path);
            }
        }
        let fragment = fragment(path);
        assert!(!fragment.contains(['"', '\'', '<', '>', '&', '+', ' ', '#']));
    }

    #[test]
    fn hostile_names_become_text() {
        for name in hostile::NAMES {
            check(name);
            check(&[b"some dir/", *name, b"/", *name].concat());
        }
        for name in [
            &b"</script><script>alert(1)</script>"[..],
            b"\" onmouseover=\"alert(1)",
            b"' onfocus='alert(1)",
            b"&lt;b&gt; &amp; &#x41;",
            b"--><!-- ]]>",
            "a\u{200b}b\u{feff}c\u{2066}d\u{e0041}".as_bytes(),
            "flag \u{1f3f3}\u{fe0f}\u{200d}\u{1f308}".as_bytes(),
            b"",
            b"/",
        ] {
            check(name);
        }
    }

    #[test]
    fn any_bytes_can_be_told_from_the_page() {
        let mut rng = Rng::new(1);
        let pieces: [&[u8]; 12] = [
            b"a",
            b"/",
            b"\\",
            b"<",
            b"&",
            b"\"",
            b"\n",
            b"\xff",
            b"\xe2\x80",
            "é".as_bytes(),
            "\u{202e}".as_bytes(),
            b"\\x0a",
        ];
        for _ in 0..3000 {
            let len = rng.below(9);
            let path: Vec<u8> = (0..len)
                .flat_map(|_| pieces[rng.below(12) as usize])
                .copied()
                .collect();
            check(&path);
        }
    }

    #[test]
    fn a_path_is_shown_as_its_parts() {
        let (a, b) = (&b"\xe2\x80"[..], &b"\xa8<"[..]);
        let joined = [a, b"/", b].concat();
        assert_eq!(shown(&joined), format!("{}/{}", shown(a), shown(b)));
        assert_eq!(
            Path(b"a\n/<b").to_string(),
            "<bdi class=\"p\" data-b64=\"YQovPGI=\"><span>a<i>\\n</i>/</span>&lt;b</bdi>"
        );
        assert_eq!(Path(b"plain").to_string(), "<bdi class=\"p\">plain</bdi>");
        assert!(Path(&[b'x'; 400]).to_string().contains("class=\"p long\""));
        assert_eq!(fragment(b"a b/\xff+&"), "a%20b/%5Cxff%2B%26");
    }
}
