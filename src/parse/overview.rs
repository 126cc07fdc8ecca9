//! What the program itself says of its use: what people want, with the command for it, the commands,
//! exit codes, and where to read on.

use clap::Command;

use crate::parse::applet::APPLETS;
use crate::parse::names::Names;

/// What people want, each with the commands for it; behind three blanks stands an explanation.
const TASKS: &str = "
Tasks:
  Are these two folders the same?
      bc integrity diff DIR1 DIR2
  Which files are only on this card?
      bc dup unique CARD --reference=ARCHIVE
  Is my backup good?
      bc integrity diff DIR BACKUP                  compared with its source
      bc integrity manifest --output=FILE BACKUP    record it while it is good
      bc integrity verify BACKUP FILE               and verify it later
  My disk is full
      bc dup summary DIR                            space that duplicates take
      bc dup dirs DIR                               folders that are copies
      bc dup prune --action=hardlink --dry-run DIR  what would be freed
  Copy and verify
      bc copy --verify=media SOURCE... DESTINATION
  Move safely
      bc move SOURCE... DESTINATION
  Check an archive for bitrot, and repair it
      bc integrity manifest --output=FILE DIR       once
      bc integrity update --reread=5% DIR FILE      every night
      bc integrity restore --from=BACKUP DIR FILE   after damage
  Create and check checksum files
      bc hash --output=SHA256SUMS DIR
      bc hash check SHA256SUMS
";

const ALSO: &str = "
Also:
  install     Make links named bchash, bcdup and so on; with --gnu,
              sha256sum and similar names
  --list      List of commands
  --version   Version, CPU features, readers
  --describe  The complete command tree as JSON
  --generate=WHAT
              Manual pages (man) or completions (complete-bash, -zsh, -fish)
";

const EXIT_CODES: &str = "
Exit codes:
  0           Success, and nothing differs
  1           Something differs, failed verification or could not be read
  2           Usage error, or the request could not be carried out
  3           bc integrity: damage suspected
  130, 143    Ended by SIGINT (Ctrl-C) or SIGTERM
";

/// Returns the page of `--help`, under the name that the program was called by.
pub fn long(called: &str) -> String {
    let names = Names::called(called);
    let below = |command: Command| {
        let names = command.get_subcommands().filter(|one| !one.is_hide_set());
        name_lines(names.map(Command::get_name))
    };
    let text = format!(
        "{}{TASKS}{}{ALSO}{EXIT_CODES}\nOptions can go anywhere: 'bc -v hash DIR' means 'bc hash -v DIR'.\n\
         'bc hash --help' explains a command and gives examples.\n",
        head(),
        commands(below),
    );
    let guide = format!("{}-guide", names.program());
    names.text(&text) + &format!("The guide: 'man {guide}', or https://docs.rs/bit-crafts\n")
}

/// Returns the page of `-h`.
pub fn short(called: &str) -> String {
    let text = format!(
        "{}{}{ALSO}\n'bc --help' lists common tasks; 'bc hash --help' explains a command.\n",
        head(),
        commands(|_| String::new()),
    );
    Names::called(called).text(&text)
}

/// Returns names in lines of fewer than 80 columns, in the column of the descriptions.
fn name_lines<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut lines: Vec<String> = Vec::new();
    for name in names {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + name.len() < 80 => {
                line.push(' ');
                line.push_str(name);
            }
            _ => lines.push(format!("{:14}{name}", "")),
        }
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

fn head() -> &'static str {
    "bit-crafts: fast and safe file inspection\n\nUsage: bc COMMAND [SUBCOMMAND] [OPTIONS] PATH...\n"
}

/// Returns the list of the commands, each with what stands `below` it.
fn commands(below: impl Fn(Command) -> String) -> String {
    let rows = APPLETS.iter().map(|applet| {
        let rest = below((applet.command)());
        format!("  {:<12}{}\n{rest}", applet.name, applet.about)
    });
    "\nCommands:\n".to_owned() + &rows.collect::<String>()
}
