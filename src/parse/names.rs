//! Names of the program and its applets for the reader of help, manual pages and examples, which
//! are written for a program named `bc`.

/// The applets that have a name of their own beside the program's.
pub const APPLETS: [&str; 5] = ["hash", "dup", "integrity", "copy", "move"];

/// Command names of the program and of each applet.
#[derive(Clone, Debug)]
pub struct Names {
    program: String,
    /// `bc hash`, or `bchash`, in the order of [`APPLETS`].
    applets: [String; APPLETS.len()],
}

impl Names {
    /// Returns the names for help and messages of a program called `program`: its applets are its
    /// first argument.
    pub fn called(program: &str) -> Names {
        Names {
            program: program.to_owned(),
            applets: APPLETS.map(|applet| format!("{program} {applet}")),
        }
    }

    /// Returns the names where `bc` is the calculator: the program is `program`, the applets are
    /// `bchash` and so on.
    pub fn beside_the_calculator(program: &str) -> Names {
        Names {
            program: program.to_owned(),
            applets: APPLETS.map(|applet| format!("bc{applet}")),
        }
    }

    /// Replaces the name of one applet that was called by a name of its own.
    pub fn with_applet(mut self, applet: &str, called: &str) -> Names {
        if let Some(at) = APPLETS.iter().position(|one| *one == applet) {
            called.clone_into(&mut self.applets[at]);
        }
        self
    }

    /// Returns the program's own name.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Returns the call of a command: `hash check` is `bc hash check`, or `bchash check`.
    pub fn command(&self, words: &[String]) -> String {
        let Some((first, rest)) = words.split_first() else {
            return self.program.clone();
        };
        let called = match APPLETS.iter().position(|one| one == first) {
            Some(at) => self.applets[at].clone(),
            None => format!("{} {first}", self.program),
        };
        let words = std::iter::once(called).chain(rest.iter().cloned());
        words.collect::<Vec<_>>().join(" ")
    }

    /// Returns the name of a command's manual page, without its section: `bc-hash-check`. That of the
    /// program is `bitcrafts` where it is called `bc`: `bc(1)` is the calculator's.
    pub fn page(&self, words: &[String]) -> String {
        if words.is_empty() && self.program == "bc" {
            return "bitcrafts".to_owned();
        }
        self.command(words).replace(' ', "-")
    }

    /// Returns a text that speaks of `bc`, for these names.
    pub fn text(&self, text: &str) -> String {
        if self.program == "bc" {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("bc") {
            let (before, after) = (&rest[..at], &rest[at + 2..]);
            out.push_str(before);
            let behind = if before.is_empty() { &out } else { before };
            // /usr/bin/bc is the calculator, a path that is called with an applet is ours.
            let is_path = behind.ends_with('/') && applet(after).is_some();
            if is_word(behind, after) || is_path {
                rest = self.push_call(&mut out, after);
            } else {
                out.push_str("bc");
                rest = after;
            }
        }
        out + rest
    }

    /// Writes the program's or an applet's name; returns the text after it.
    fn push_call<'a>(&self, out: &mut String, after: &'a str) -> &'a str {
        match applet(after) {
            Some((at, rest)) => {
                out.push_str(&self.applets[at]);
                rest
            }
            None => {
                out.push_str(&self.program);
                after
            }
        }
    }
}

/// Returns the applet that a text after `bc` begins with, and the rest.
fn applet(after: &str) -> Option<(usize, &str)> {
    let text = after.strip_prefix(' ')?;
    let rests = APPLETS.iter().map(|applet| text.strip_prefix(applet));
    let found = rests.enumerate().find_map(|(at, rest)| Some((at, rest?)))?;
    let goes_on = found
        .1
        .starts_with(|c: char| c.is_alphanumeric() || c == '-');
    (!goes_on).then_some(found)
}

/// Returns true if `bc` between these is a word, and no part of a path, a variable or another name.
fn is_word(before: &str, after: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '/' | '-' | '=' | '$');
    let mut behind = after.chars();
    let ends = match behind.next() {
        Some('.') => !behind.next().is_some_and(char::is_alphanumeric),
        Some(c) => !inside(c),
        None => true,
    };
    ends && !before.ends_with(|c: char| inside(c) || c == '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_programs_change_and_nothing_else() {
        let text = "bc hash DIR; 'bc dup prune' (bc). `bc integrity` bc hashes bc-hash \
                    /usr/bin/bc bc.1 $XDG/bc/x BC_IO abc bchash bc install /bin/bc dup";
        let beside = "bchash DIR; 'bcdup prune' (bitcrafts). `bcintegrity` bitcrafts hashes bc-hash \
                      /usr/bin/bc bc.1 $XDG/bc/x BC_IO abc bchash bitcrafts install /bin/bcdup";
        assert_eq!(Names::beside_the_calculator("bitcrafts").text(text), beside);
        assert_eq!(Names::called("bc").text(text), text);
        assert_eq!(
            Names::called("x").text("bc hash a | bc hash hash b"),
            "x hash a | x hash hash b"
        );
        let own = Names::beside_the_calculator("bitcrafts").with_applet("dup", "bcduplicate");
        assert_eq!(own.text("bc dup a; bc hash b"), "bcduplicate a; bchash b");
    }

    #[test]
    fn commands_and_pages() {
        let words = |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
        let (bc, beside) = (
            Names::called("bc"),
            Names::beside_the_calculator("bitcrafts"),
        );
        for (line, called, page, joined) in [
            ("hash", "bc hash", "bc-hash", "bchash"),
            ("dup prune", "bc dup prune", "bc-dup-prune", "bcdup-prune"),
            ("install", "bc install", "bc-install", "bitcrafts-install"),
        ] {
            assert_eq!(bc.command(&words(line)), called);
            assert_eq!(bc.page(&words(line)), page);
            assert_eq!(beside.page(&words(line)), joined);
        }
        assert_eq!(beside.page(&[]), "bitcrafts");
        assert_eq!(bc.page(&[]), "bitcrafts");
        assert_eq!(Names::called("x").page(&[]), "x");
    }
}
