//! Manual pages in man(7).

use std::fmt::Write;
use std::process::Command;
use std::sync::OnceLock;

use super::Node;
use crate::sh;

/// The codes that all applets share.
const EXIT: &[(&str, &str)] = &[
    ("0", "All done; nothing differs."),
    (
        "1",
        "Done, but something differs, failed verification or could not be read.",
    ),
    ("2", "Usage error, unusable input, or a fatal failure."),
    ("3", "integrity verify: damage suspected."),
    ("130, 143", "Ended by SIGINT, SIGTERM, after cleaning up."),
];

/// The page of one command.
pub(super) fn page(node: &Node<'_>) -> String {
    let mut out = String::new();
    let _ = write(&mut out, node);
    out
}

fn write(out: &mut String, node: &Node<'_>) -> std::fmt::Result {
    let name = node.words.join("-");
    out.push_str(&title(&name, 1));
    writeln!(out, ".SH NAME\n{} \\- {}", text(&name), text(node.about))?;
    writeln!(out, ".SH SYNOPSIS\n.B {}", text(&node.words.join(" ")))?;
    if !node.options.is_empty() {
        writeln!(out, "[\\fIOPTION\\fR]...")?;
    }
    if !node.subcommands.is_empty() {
        writeln!(out, "\\fICOMMAND\\fR")?;
    }
    for positional in &node.positionals {
        let name = positional["value_name"]
            .as_str()
            .or(positional["name"].as_str());
        let more = if positional["repeatable"] == true {
            "..."
        } else {
            ""
        };
        let shown = format!("\\fI{}\\fR{more}", text(name.unwrap_or("ARG")));
        let required = positional["required"] == true;
        writeln!(
            out,
            "{}",
            if required {
                shown
            } else {
                format!("[{shown}]")
            }
        )?;
    }
    if !node.subcommands.is_empty() {
        writeln!(out, ".SH COMMANDS")?;
        for (name, about) in &node.subcommands {
            writeln!(out, ".TP\n.B {}\n{}", text(name), text(about))?;
        }
    }
    if !node.positionals.is_empty() {
        writeln!(out, ".SH ARGUMENTS")?;
    }
    for positional in &node.positionals {
        let name = positional["value_name"].as_str().unwrap_or("ARG");
        let help = positional["help"].as_str().unwrap_or("");
        writeln!(out, ".TP\n\\fI{}\\fR\n{}.", text(name), text(help))?;
    }
    if !node.options.is_empty() {
        writeln!(out, ".SH OPTIONS")?;
    }
    for option in &node.options {
        let short = option
            .short
            .map_or_else(String::new, |s| format!("\\-{}, ", text(s)));
        let value = option
            .value
            .map_or_else(String::new, |v| format!("=\\fI{}\\fR", text(v)));
        writeln!(
            out,
            ".TP\n\\fB{short}\\-\\-{}\\fR{value}",
            text(option.long)
        )?;
        let stop = if option.help.ends_with(['.', ')']) {
            ""
        } else {
            "."
        };
        writeln!(out, "{}{stop}", text(option.help))?;
        if !option.allowed.is_empty() {
            writeln!(out, "One of {}.", text(&option.allowed.join(", ")))?;
        }
        if !option.default.is_empty() {
            writeln!(out, "The default is {}.", text(&option.default.join(", ")))?;
        }
    }
    if !node.notes.is_empty() {
        let notes = node.notes.trim_start_matches("Examples:\n");
        let notes = notes.trim_start_matches("Example:\n").trim_end();
        // As it stands, but for blank lines, which make a paragraph.
        let notes = text(notes).replace("\n\n", "\n.sp\n");
        writeln!(out, ".SH EXAMPLES\n.nf\n{notes}\n.fi")?;
    }
    writeln!(out, ".SH EXIT STATUS")?;
    for (code, meaning) in EXIT {
        writeln!(out, ".TP\n.B {code}\n{}", text(meaning))?;
    }
    writeln!(out, ".SH SEE ALSO")?;
    if node.words.len() > 1 {
        let above = node.words[..node.words.len() - 1].join("-");
        writeln!(out, "\\fB{}\\fR(1),", text(&above))?;
    }
    writeln!(out, "\\fBbc\\-guide\\fR(7)")?;
    Ok(())
}

/// The line that every page begins with.
pub(super) fn title(name: &str, section: u8) -> String {
    let manual = match section {
        1 => "User Commands",
        _ => "Miscellaneous",
    };
    format!(
        ".TH {} {section} \"{}\" \"bit-crafts\" \"{manual}\"\n",
        name.to_uppercase(),
        date()
    )
}

/// The day of the present commit; where there is no repository, today.
fn date() -> &'static str {
    static DATE: OnceLock<String> = OnceLock::new();
    DATE.get_or_init(|| {
        let mut commit = Command::new("git");
        commit
            .current_dir(sh::root())
            .args(["log", "-1", "--format=%cs"]);
        let day = sh::stdout(&mut commit).or_else(|_| sh::stdout(Command::new("date").arg("+%F")));
        String::from_utf8_lossy(&day.unwrap_or_default())
            .trim()
            .to_owned()
    })
}

/// Text with what roff would take for its own escaped, one line a line.
pub(super) fn text(plain: &str) -> String {
    let escaped = plain.replace('\\', "\\e").replace('-', "\\-");
    let lines = escaped
        .lines()
        .map(|line| match line.strip_prefix(['.', '\'']) {
            Some(_) => format!("\\&{line}"),
            None => line.to_owned(),
        });
    lines.collect::<Vec<_>>().join("\n")
}
