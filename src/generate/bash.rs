//! Completion for bash: the command is found by the words typed so far that are subcommands; then
//! its options, their values, its subcommands and files are offered.

use std::fmt::Write;

use super::tree::{self, Command, CompletionOption};
use crate::names::Names;

/// Finds the command (`path`), the option whose value is being typed (`option`, with `=` after it
/// where that was typed) and the part of the value typed so far (`cur`).
const START: &str = "\
    local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} option= word head=
    # --name=value is three words where = breaks words, one where it does not.
    if [[ $cur == = ]]; then option=$before= cur=
    elif [[ $before == = ]]; then option=${COMP_WORDS[COMP_CWORD-2]}=
    elif [[ $cur == --*=* ]]; then option=${cur%%=*}= head=${cur%%=*}= cur=${cur#*=}
    elif [[ $before == -* ]]; then option=$before
    fi
    for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do
        case ${path}_${word//-/_} in
";

/// Values may follow others and a comma.
const LIST: &str = "\
_bc_list() {
    if [[ $cur == *,* ]]; then head+=${cur%,*}, cur=${cur##*,}; fi
    COMPREPLY=($(compgen -P \"$head\" -W \"$1\" -- \"$cur\"))
}
";

const END: &str = "    esac
    if [[ ${COMPREPLY[0]-} == *= ]]; then compopt -o nospace; fi
    if [[ $cur != -* ]]; then COMPREPLY+=($(compgen -f -- \"$cur\")); compopt -o filenames; fi
}
";

pub(super) fn script(names: &Names) -> String {
    let (all, called) = (tree::commands(names), tree::called(names));
    let mut out = format!(
        "# bash completion for bit-crafts, made by {} --generate=complete-bash\n{LIST}_bc() {{\n    \
         local path=bc\n    case ${{1##*/}} in\n",
        names.program()
    );
    // Writing to a String cannot fail.
    for (name, key) in called.iter().filter(|(_, key)| key != "bc") {
        let _ = writeln!(out, "        {name}) path={key} ;;");
    }
    let _ = write!(out, "    esac\n{START}");
    for command in all.iter().skip(1) {
        let _ = writeln!(out, "            {0}) path={0} ;;", command.key());
    }
    out.push_str("        esac\n    done\n    case $path:$option in\n");
    for command in &all {
        for option in command.options().filter(|option| option.value.is_some()) {
            let _ = writeln!(
                out,
                "        {}) {}; return ;;",
                patterns(command, &option),
                reply(&option)
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
        let _ = writeln!(
            out,
            "        {}) COMPREPLY=($(compgen -W '{}' -- \"$cur\")) ;;",
            command.key(),
            words.join(" ")
        );
    }
    out.push_str(END);
    let names: Vec<String> = called.into_iter().map(|(name, _)| name).collect();
    let _ = writeln!(out, "complete -F _bc {}", names.join(" "));
    out
}

/// Returns the ways to write an option before its value.
fn patterns(command: &Command, option: &CompletionOption) -> String {
    let key = command.key();
    let mut patterns = format!("{key}:--{}=", option.long);
    if !option.needs_equals {
        let _ = write!(patterns, "|{key}:--{}", option.long);
        if let Some(short) = option.short {
            let _ = write!(patterns, "|{key}:-{short}");
        }
    }
    patterns
}

fn reply(option: &CompletionOption) -> String {
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
