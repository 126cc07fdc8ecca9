//! Completions for bash, zsh and fish. All three find the command by the words typed so far that
//! are subcommands, then offer its options, their values, its subcommands and files.

use std::fmt::Write;

use super::{Node, Opt};

/// The name of a node's function or key: `bc_hash_check`.
fn key(node: &Node<'_>) -> String {
    node.words.join("_").replace('-', "_")
}

/// The options that may follow a node's words: its own, and those of the subcommand meant where
/// none is named.
fn options<'a, 'b>(nodes: &'b [Node<'a>], node: &'b Node<'a>) -> impl Iterator<Item = &'b Opt<'a>> {
    let meant = node.default.and_then(|default| {
        nodes.iter().find(|other| {
            other.words.len() == node.words.len() + 1
                && other.words.starts_with(&node.words)
                && other.words.ends_with(&[default])
        })
    });
    let meant = meant.into_iter().flat_map(|meant| &meant.options);
    node.options.iter().chain(meant)
}

/// Text inside single quotes of any of the shells.
fn quoted(text: &str) -> String {
    text.lines().next().unwrap_or("").replace('\'', "")
}

/// Words for `compgen -W`: subcommands and options, those with values ending in `=`.
fn words(nodes: &[Node<'_>], node: &Node<'_>) -> String {
    let options = options(nodes, node).map(|o| match o.value {
        Some(_) => format!("--{}=", o.long),
        None => format!("--{}", o.long),
    });
    let below = node.subcommands.iter().map(|(name, _)| (*name).to_owned());
    below.chain(options).collect::<Vec<_>>().join(" ")
}

/// Completion for the names of the whole program, and for those of its applets.
pub(super) fn bash(nodes: &[Node<'_>], names: &[&str]) -> String {
    let mut out = String::from(
        "# bash completion for bc of bit-crafts, made by cargo xtask dist\n\
         _bc() {\n    local cur words cword path=bc word\n    \
         cur=${COMP_WORDS[COMP_CWORD]}\n    \
         case ${1##*/} in bchash) path=bc_hash ;; bcdup) path=bc_dup ;; \
         bcintegrity) path=bc_integrity ;; esac\n    \
         # --name=value is three words where = breaks words\n    \
         if [[ $cur == = ]]; then cur=; fi\n    \
         local option=\n    \
         if [[ ${COMP_WORDS[COMP_CWORD]} == = ]]; then option=${COMP_WORDS[COMP_CWORD-1]}\n    \
         elif [[ ${COMP_WORDS[COMP_CWORD-1]} == = ]]; then option=${COMP_WORDS[COMP_CWORD-2]}\n    \
         fi\n    \
         for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n        \
         case ${path}_${word//-/_} in\n",
    );
    for node in nodes.iter().filter(|n| n.words.len() > 1) {
        let _ = writeln!(out, "            {0}) path={0} ;;", key(node));
    }
    out.push_str("        esac\n    done\n    case $path:$option in\n");
    for node in nodes {
        for option in options(nodes, node).filter(|o| !o.allowed.is_empty()) {
            let _ = writeln!(
                out,
                "        {}:--{}) COMPREPLY=($(compgen -W '{}' -- \"$cur\")); return ;;",
                key(node),
                option.long,
                option.allowed.join(" ")
            );
        }
    }
    out.push_str("        *:--*) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n");
    for node in nodes {
        let _ = writeln!(
            out,
            "        {}:) COMPREPLY=($(compgen -W '{}' -- \"$cur\")) ;;",
            key(node),
            words(nodes, node)
        );
    }
    out.push_str(
        "    esac\n    \
         if [[ ${COMPREPLY[0]-} == *= ]]; then compopt -o nospace; fi\n    \
         if [[ $cur != -* ]]; then COMPREPLY+=($(compgen -f -- \"$cur\")); compopt -o filenames; fi\n\
         }\n",
    );
    let _ = writeln!(out, "complete -F _bc {}", names.join(" "));
    out
}

pub(super) fn zsh(nodes: &[Node<'_>], names: &[&str]) -> String {
    let mut out = format!("#compdef {}\n", names.join(" "));
    out.push_str(
        "# zsh completion for bc of bit-crafts, made by cargo xtask dist\n\
         local path_=bc word\n\
         case $service in bchash) path_=bc_hash ;; bcdup) path_=bc_dup ;; \
         bcintegrity) path_=bc_integrity ;; esac\nfor word in ${words[2,CURRENT-1]}; do\n    \
         case ${path_}_${word//-/_} in\n",
    );
    for node in nodes.iter().filter(|n| n.words.len() > 1) {
        let _ = writeln!(out, "        {0}) path_={0} ;;", key(node));
    }
    out.push_str("    esac\ndone\ncase $path_ in\n");
    for node in nodes {
        let _ = writeln!(out, "    {})", key(node));
        if !node.subcommands.is_empty() {
            let below = node.subcommands.iter();
            let below: Vec<String> = below
                .map(|(name, about)| format!("'{name}:{}'", quoted(about)))
                .collect();
            let _ = writeln!(out, "        local -a commands=({})", below.join(" "));
            out.push_str("        _describe command commands\n");
        }
        out.push_str("        _arguments -S \\\n");
        for option in options(nodes, node) {
            let _ = writeln!(out, "            {} \\", zsh_option(option));
        }
        out.push_str("            '*:file:_files' ;;\n");
    }
    out.push_str("esac\n");
    out
}

fn zsh_option(option: &Opt<'_>) -> String {
    let help = quoted(option.help)
        .replace(['[', ']'], "")
        .replace(':', "\\:");
    let value = match option.value {
        None => return format!("'--{}[{help}]'", option.long),
        Some(value) => value.replace(':', " "),
    };
    let action = match option.allowed.is_empty() {
        true => "_files".to_owned(),
        false => format!("({})", option.allowed.join(" ")),
    };
    format!("'*--{}=[{help}]:{value}:{action}'", option.long)
}

pub(super) fn fish(nodes: &[Node<'_>], names: &[&str]) -> String {
    let mut out = String::from(
        "# fish completion for bc of bit-crafts, made by cargo xtask dist\n\
         function __bc_path\n    set -l path bc\n    \
         switch (basename (commandline -opc)[1])\n    \
         case bchash; set path bc_hash; case bcdup; set path bc_dup\n    \
         case bcintegrity; set path bc_integrity\n    end\n    \
         for word in (commandline -opc)[2..-1]\n        \
         switch $path\"_\"(string replace -a -- - _ $word)\n",
    );
    for node in nodes.iter().filter(|n| n.words.len() > 1) {
        let _ = writeln!(
            out,
            "            case {0}\n                set path {0}",
            key(node)
        );
    }
    out.push_str("        end\n    end\n    test $path = $argv[1]\nend\n");
    let names: Vec<String> = names.iter().map(|name| format!("-c {name}")).collect();
    let names = names.join(" ");
    for node in nodes {
        let when = format!("complete {names} -n '__bc_path {}'", key(node));
        for (name, about) in &node.subcommands {
            let _ = writeln!(out, "{when} -a '{name}' -d '{}'", quoted(about));
        }
        for option in options(nodes, node) {
            let short = option
                .short
                .map_or_else(String::new, |s| format!(" -s {s}"));
            let value = match (option.value, option.allowed.is_empty()) {
                (None, _) => String::new(),
                (Some(_), true) => " -r".to_owned(),
                (Some(_), false) => format!(" -x -a '{}'", option.allowed.join(" ")),
            };
            let _ = writeln!(
                out,
                "{when} -l {}{short}{value} -d '{}'",
                option.long,
                quoted(option.help)
            );
        }
    }
    out
}
