//! Completions for bash, zsh and fish, one script for all names of the program.
//!
//! Not by clap_complete, whose scripts are made for one name each, offer nothing after
//! `--option=` in bash, and nothing after a comma in any shell: `--type=sha256,` is how options are
//! written here, some take their value in no other way, and the links (`bchash`, `bcdup`) are how
//! the program is called where `bc` is the calculator.

use std::fmt::Write;

use super::tree::{self, Command, CompletionOption};
use crate::parse::applet::APPLETS;
use crate::parse::names::Names;

/// Finds the command (`path`), the option whose value is being typed (`option`, with `=` after it
/// where that was typed) and the part of the value typed so far (`cur`).
const BASH_START: &str = "\
    local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} option= word head= files=1
    # --name=value is three words where = breaks words, one where it does not.
    if [[ $cur == = ]]; then option=$before= cur=
    elif [[ $before == = ]]; then option=${COMP_WORDS[COMP_CWORD-2]}=
    elif [[ $cur == --*=* ]]; then option=${cur%%=*}= head=${cur%%=*}= cur=${cur#*=}
    elif [[ $before == -* ]]; then option=$before
    fi
    for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do
        case ${path}_${word//-/_} in
";

/// Function for values that may follow others and a comma.
const BASH_LIST: &str = "\
_bc_list() {
    if [[ $cur == *,* ]]; then head+=${cur%,*}, cur=${cur##*,}; fi
    COMPREPLY=($(compgen -P \"$head\" -W \"$1\" -- \"$cur\"))
}
";

const BASH_END: &str = "    esac
    if [[ ${COMPREPLY[0]-} == *= ]]; then compopt -o nospace; fi
    if [[ $files && $cur != -* ]]; then COMPREPLY+=($(compgen -f -- \"$cur\")); compopt -o filenames; fi
}
";

/// Returns the script for bash: the command is found by the words typed so far that are subcommands;
/// then its options, their values, its subcommands and files are offered.
pub(super) fn bash(names: &Names) -> String {
    let (all, called) = (tree::commands(names), called(names));
    let mut out = format!(
        "# bash completion for bit-crafts, made by {} --generate=complete-bash\n{BASH_LIST}_bc() {{\n    \
         local path=bc\n    case ${{1##*/}} in\n",
        names.program()
    );
    // Writing to a String cannot fail.
    for (name, key) in called.iter().filter(|(_, key)| key != "bc") {
        let _ = writeln!(out, "        {name}) path={key} ;;");
    }
    let _ = write!(out, "    esac\n{BASH_START}");
    for command in all.iter().skip(1) {
        let _ = writeln!(out, "            {0}) path={0} ;;", command.key());
    }
    out.push_str("        esac\n    done\n    case $path:$option in\n");
    for command in &all {
        for option in command.options().filter(|option| option.value.is_some()) {
            let _ = writeln!(
                out,
                "        {}) {}; return ;;",
                bash_patterns(command, &option),
                bash_reply(&option)
            );
        }
    }
    out.push_str("        *:--*=) COMPREPLY=($(compgen -P \"$head\" -f -- \"$cur\")); return ;;\n    esac\n    case $path in\n");
    for command in &all {
        let below = command.below().map(|(name, _)| name.to_owned());
        let options = command.options().map(|option| match option.value {
            Some(_) => format!("--{}=", option.long),
            None => format!("--{}", option.long),
        });
        let words: Vec<String> = below.chain(options).collect();
        let files = if command.has_operands() {
            ""
        } else {
            "; files="
        };
        let _ = writeln!(
            out,
            "        {}) COMPREPLY=($(compgen -W '{}' -- \"$cur\")){files} ;;",
            command.key(),
            words.join(" ")
        );
    }
    out.push_str(BASH_END);
    let names: Vec<String> = called.into_iter().map(|(name, _)| name).collect();
    let _ = writeln!(out, "complete -F _bc {}", names.join(" "));
    out
}

/// Returns the ways to write an option before its value.
fn bash_patterns(command: &Command, option: &CompletionOption) -> String {
    let key = command.key();
    let mut patterns = Vec::new();
    for name in std::iter::once(&option.long).chain(&option.aliases) {
        patterns.push(format!("{key}:--{name}="));
        if !option.needs_equals {
            patterns.push(format!("{key}:--{name}"));
        }
    }
    if let Some(short) = option.short.filter(|_| !option.needs_equals) {
        patterns.push(format!("{key}:-{short}"));
    }
    patterns.join("|")
}

fn bash_reply(option: &CompletionOption) -> String {
    let values = option.values.join(" ");
    if values.is_empty() {
        return "COMPREPLY=($(compgen -P \"$head\" -f -- \"$cur\")); compopt -o filenames"
            .to_owned();
    }
    match option.is_list {
        true => format!("_bc_list '{values}'"),
        false => format!("COMPREPLY=($(compgen -P \"$head\" -W '{values}' -- \"$cur\"))"),
    }
}

/// Returns the script for zsh: the command is found as for bash; then zsh's own `_arguments` offers its
/// options, their values and files.
pub(super) fn zsh(names: &Names) -> String {
    let (all, called) = (tree::commands(names), called(names));
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
            let _ = writeln!(out, "            {} \\", zsh_option(&option));
        }
        // Without the operand nothing but options and subcommands is offered.
        out.push_str(match command.has_operands() {
            true => "            '*:file:_files' ;;\n",
            false => "            && return 0 ;;\n",
        });
    }
    out.push_str("esac\n");
    out
}

/// Returns the option's long name and, where it has one, its short.
fn zsh_option(option: &CompletionOption) -> String {
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
    let names = std::iter::once(("", &option.long));
    // With a `!` in front the name is not offered, its value is.
    let names = names.chain(option.aliases.iter().map(|alias| ("!", alias)));
    let names = names.map(|(hidden, name)| {
        format!("'{hidden}*--{name}{equals}[{help}]{colon}{value}:{action}'")
    });
    names.collect::<Vec<_>>().join(" ") + &short
}

/// Function for values that may follow others and a comma.
const FISH_LIST: &str = "\
function __bc_list
    set -l token (commandline -ct | string replace -r '^-[^=]*=' '')
    set -l head (string match -r '^.*,' -- \"$token\"; or echo)
    printf '%s\\n' \"$head\"$argv
end
";

/// Returns the script for fish: one `complete` for each option and subcommand, which holds where the
/// words typed so far lead to its command.
pub(super) fn fish(names: &Names) -> String {
    let (all, called) = (tree::commands(names), called(names));
    let mut out = format!(
        "# fish completion for bit-crafts, made by {} --generate=complete-fish\n{FISH_LIST}\
         function __bc_path\n    set -l path bc\n    switch (basename (commandline -opc)[1])\n",
        names.program()
    );
    // Writing to a String cannot fail.
    for (name, key) in called.iter().filter(|(_, key)| key != "bc") {
        let _ = writeln!(out, "        case {name}\n            set path {key}");
    }
    out.push_str(
        "    end\n    for word in (commandline -opc)[2..-1]\n        \
         switch $path\"_\"(string replace -a -- - _ $word)\n",
    );
    for command in all.iter().skip(1) {
        let _ = writeln!(
            out,
            "            case {0}\n                set path {0}",
            command.key()
        );
    }
    out.push_str("        end\n    end\n    test $path = $argv[1]\nend\n");
    let of: Vec<String> = called
        .iter()
        .map(|(name, _)| format!("-c {name}"))
        .collect();
    let of = of.join(" ");
    for command in &all {
        let when = format!("complete {of} -n '__bc_path {}'", command.key());
        if !command.has_operands() {
            let _ = writeln!(out, "{when} -f");
        }
        for (name, about) in command.below() {
            let _ = writeln!(out, "{when} -a '{name}' -d '{}'", quoted(&about));
        }
        for option in command.options() {
            let _ = writeln!(out, "{when} {}", fish_option(&option));
        }
    }
    out
}

fn fish_option(option: &CompletionOption) -> String {
    let short = option.short.map(|short| format!(" -s {short}"));
    let values = option.values.join(" ");
    let value = match (option.value.is_some(), values.is_empty()) {
        // Where it needs a `=`, the next word is no value of it.
        (_, true) if option.needs_equals => String::new(),
        (_, false) if option.needs_equals => format!(" -a '{values}'"),
        (false, _) => String::new(),
        (true, true) => " -r".to_owned(),
        (true, false) if option.is_list => format!(" -x -a '(__bc_list {values})'"),
        (true, false) => format!(" -x -a '{values}'"),
    };
    let aliases: String = option
        .aliases
        .iter()
        .map(|name| format!(" -l {name}"))
        .collect();
    format!(
        "-l {}{aliases}{}{value} -d '{}'",
        option.long,
        short.unwrap_or_default(),
        quoted(&option.help)
    )
}

/// Returns the names that are completed, each with the key of the command that it calls.
fn called(names: &Names) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for name in [names.program(), "bitcrafts"] {
        if !all.iter().any(|(known, _)| known == name) {
            all.push((name.to_owned(), "bc".to_owned()));
        }
    }
    for applet in APPLETS {
        let key = format!("bc_{}", applet.name);
        all.extend(
            applet
                .called
                .iter()
                .map(|name| ((*name).to_owned(), key.clone())),
        );
    }
    all
}

/// Returns a text escaped for single quotes of any of the shells.
fn quoted(text: &str) -> String {
    text.replace('\'', "")
}
