//! Text in the language of manual pages.

/// Returns text with roff's own characters escaped, one line a line.
pub(super) fn text(plain: &str) -> String {
    let escaped = plain.replace('\\', "\\e").replace('-', "\\-");
    let lines = escaped.lines().map(|line| match line {
        "" => ".sp".to_owned(),
        line if line.starts_with(['.', '\'']) => format!("\\&{line}"),
        line => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}
