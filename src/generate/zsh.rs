//! Completion for zsh: the command is found by the words typed so far that are subcommands; then
//! zsh's own `_arguments` offers its options, their values and files.

use std::fmt::Write;

use super::tree::{self, CompletionOption, quoted};
use crate::names::Names;

pub(super) fn script(names: &Names) -> String {
    let (all, called) = (tree::commands(names), tree::called(names));
    let of: Vec<&str> = called.iter().map(|(name, _)| name.as_str()).collect();
    let mut out = format!(
        "#compdef {}\n# zsh completion for bit-crafts, made by {} --generate=complete-zsh\n\
         local path_=bc word\ncase $service in\n",
        of.join(" "),
        names.program()
    );
    // Writing to a String cannot fail.
    for (name, key) in called.iter().filter(|(_, key)| key != "bc") {
        let _ = writeln!(out, "    {name}) path_={key} ;;");
    }
    out.push_str(
        "esac\nfor word in ${words[2,CURRENT-1]}; do\n    case ${path_}_${word//-/_} in\n",
    );
    for command in all.iter().skip(1) {
        let _ = writeln!(out, "        {0}) path_={0} ;;", command.key());
    }
    out.push_str("    esac\ndone\ncase $path_ in\n");
    for command in &all {
        let _ = writeln!(out, "    {})", command.key());
        let below: Vec<String> = command
            .below()
            .map(|(name, about)| format!("'{name}:{}'", quoted(&about)))
            .collect();
        if !below.is_empty() {
            let _ = writeln!(out, "        local -a commands=({})", below.join(" "));
            out.push_str("        _describe command commands\n");
        }
        out.push_str("        _arguments -S \\\n");
        for option in command.options() {
            let _ = writeln!(out, "            {} \\", line(&option));
        }
        out.push_str("            '*:file:_files' ;;\n");
    }
    out.push_str("esac\n");
    out
}

/// Returns the option's long name and, where it has one, its short.
fn line(option: &CompletionOption) -> String {
    let help = quoted(&option.help)
        .replace(['[', ']'], "")
        .replace(':', "\\:");
    let Some(value) = &option.value else {
        let short = option.short.map(|short| format!(" '*-{short}[{help}]'"));
        return format!("'*--{}[{help}]'{}", option.long, short.unwrap_or_default());
    };
    let value = value.replace(':', " ");
    let values = option.values.join(" ").replace(':', "\\:");
    let action = match (values.is_empty(), option.is_list) {
        (true, _) => "_files".to_owned(),
        (false, true) => format!("_sequence compadd - {values}"),
        (false, false) => format!("({values})"),
    };
    // With `=-` the value cannot be the next word; with two colons there may be none.
    let (equals, colon) = match option.needs_equals {
        true => ("=-", "::"),
        false => ("=", ":"),
    };
    let short = option
        .short
        .map(|short| format!(" '*-{short}+[{help}]:{value}:{action}'"));
    let short = short.unwrap_or_default();
    format!(
        "'*--{}{equals}[{help}]{colon}{value}:{action}'{short}",
        option.long
    )
}
