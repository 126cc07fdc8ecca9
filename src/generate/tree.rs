//! The commands as pages and completions need them.

use crate::parse::applet::APPLETS;
use crate::parse::describe::Values;
use crate::parse::help;
use crate::parse::names::Names;

/// A command with the words that lead to it.
pub(super) struct Command {
    /// `hash check`; none for the program itself.
    pub words: Vec<String>,
    /// Command as help shows it.
    pub clap: clap::Command,
}

/// An option as completions offer it.
pub(super) struct CompletionOption {
    /// Name without its dashes.
    pub long: String,
    /// Other long names of it, which are not offered.
    pub aliases: Vec<String>,
    /// Letter without its dash.
    pub short: Option<char>,
    /// The name of its value, if it takes one.
    pub value: Option<String>,
    /// Words for the value; empty where it is a file, a number or a text.
    pub values: Vec<String>,
    /// Several values may be given, with a comma between them.
    pub is_list: bool,
    /// The value can only follow a `=`.
    pub needs_equals: bool,
    /// Help in one line.
    pub help: String,
}

impl Command {
    /// Returns a word for shell functions: `bc_hash_check`.
    pub fn key(&self) -> String {
        let words = std::iter::once("bc").chain(self.words.iter().map(String::as_str));
        words.collect::<Vec<_>>().join("_").replace('-', "_")
    }

    /// Returns the names and purposes of the commands below.
    pub fn below(&self) -> impl Iterator<Item = (&str, String)> {
        let below = self.clap.get_subcommands();
        below
            .filter(|command| command.get_name() != "help" && !command.is_hide_set())
            .map(|c| (c.get_name(), c.get_about().map(ToString::to_string)))
            .map(|(name, about)| (name, about.unwrap_or_default()))
    }

    /// Returns true if the command takes paths or other words, beside its subcommands.
    pub fn has_operands(&self) -> bool {
        self.clap.get_positionals().next().is_some()
    }

    /// Returns the options that are not hidden.
    pub fn options(&self) -> impl Iterator<Item = CompletionOption> {
        let all = self.clap.get_arguments();
        all.filter(|arg| !arg.is_hide_set()).filter_map(choice)
    }
}

fn choice(arg: &clap::Arg) -> Option<CompletionOption> {
    let takes = arg.get_action().takes_values();
    let name = arg.get_value_names().and_then(|names| names.first());
    let name = name.map_or("VALUE".to_owned(), ToString::to_string);
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    Some(CompletionOption {
        long: arg.get_long()?.to_owned(),
        aliases: arg.get_all_aliases().map_or(Vec::new(), |names| {
            names.iter().map(|name| (*name).to_owned()).collect()
        }),
        short: arg.get_short(),
        value: takes.then_some(name),
        values: Values::of(arg).all(),
        is_list: arg.get_value_delimiter() == Some(','),
        needs_equals: arg.is_require_equals_set(),
        help: help.lines().next().unwrap_or_default().to_owned(),
    })
}

/// Returns the program and all commands below it, each before those below it.
pub(super) fn commands(names: &Names) -> Vec<Command> {
    let mut whole = crate::parse::commands::whole();
    for applet in APPLETS {
        let called = names.command(&[applet.name.to_owned()]);
        whole = whole.mut_subcommand(applet.name, |command| {
            help::front_page(command, applet, &called)
        });
    }
    let mut whole = help::renamed(whole, names).disable_help_subcommand(true);
    whole.build();
    let mut found = Vec::new();
    collect(&whole, &mut Vec::new(), names, &mut found);
    found
}

fn collect(
    command: &clap::Command,
    words: &mut Vec<String>,
    names: &Names,
    found: &mut Vec<Command>,
) {
    found.push(Command {
        words: words.clone(),
        clap: command
            .clone()
            .display_name(names.page(words))
            .bin_name(names.command(words)),
    });
    for below in command.get_subcommands() {
        if below.get_name() != "help" && !below.is_hide_set() {
            words.push(below.get_name().to_owned());
            collect(below, words, names, found);
            words.pop();
        }
    }
}
