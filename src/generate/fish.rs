//! Completion for fish: one `complete` for each option and subcommand, which holds where the words
//! typed so far lead to its command.

use std::fmt::Write;

use super::tree::{self, CompletionOption, quoted};
use crate::names::Names;

/// Values may follow others and a comma.
const LIST: &str = "\
function __bc_list
    set -l token (commandline -ct | string replace -r '^-[^=]*=' '')
    set -l head (string match -r '^.*,' -- \"$token\"; or echo)
    printf '%s\\n' \"$head\"$argv
end
";

pub(super) fn script(names: &Names) -> String {
    let (all, called) = (tree::commands(names), tree::called(names));
    let mut out = format!(
        "# fish completion for bit-crafts, made by {} --generate=complete-fish\n{LIST}\
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
        for (name, about) in command.below() {
            let _ = writeln!(out, "{when} -a '{name}' -d '{}'", quoted(&about));
        }
        for option in command.options() {
            let _ = writeln!(out, "{when} {}", line(&option));
        }
    }
    out
}

fn line(option: &CompletionOption) -> String {
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
    format!(
        "-l {}{}{value} -d '{}'",
        option.long,
        short.unwrap_or_default(),
        quoted(&option.help)
    )
}
