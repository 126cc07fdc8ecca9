//! Options that every command understands.

use serde_json::Value;

use super::ground::Ground;

/// A command with a line that works, and how it behaves.
pub struct Command {
    pub name: &'static str,
    line: &'static str,
    /// A line that fails because something is missing.
    wrong: &'static str,
    /// Does it read the files of a tree, with buffers and a status line?
    reads: bool,
    /// A line that says something which --quiet hides.
    chatty: Option<&'static str>,
}

const fn command(name: &'static str, line: &'static str, wrong: &'static str) -> Command {
    Command {
        name,
        line,
        wrong,
        reads: false,
        chatty: None,
    }
}

const fn reading(mut command: Command) -> Command {
    command.reads = true;
    command
}

const fn chatty(mut command: Command, line: &'static str) -> Command {
    command.chatty = Some(line);
    command
}

pub const COMMANDS: &[Command] = &[
    chatty(
        reading(command(
            "copy",
            "copy --on-conflict=skip d to",
            "copy none to",
        )),
        "copy --on-conflict=skip d to",
    ),
    chatty(
        reading(command("move", "move --dry-run d moved", "move none to")),
        "move --dry-run d moved",
    ),
    reading(command("hash hash", "hash hash d", "hash hash none")),
    chatty(
        reading(command("hash check", "hash check sums", "hash check none")),
        "hash check sums",
    ),
    chatty(
        command("hash diff", "hash diff sums sums", "hash diff none sums"),
        "hash diff sums fewer",
    ),
    chatty(
        reading(command("dup scan", "dup scan d", "dup scan none")),
        "dup scan --cache=plain/cache d",
    ),
    chatty(
        reading(command("dup summary", "dup summary d", "dup summary none")),
        "dup summary --cache=plain/cache d",
    ),
    chatty(
        reading(command("dup dirs", "dup dirs d", "dup dirs none")),
        "dup dirs --cache=plain/cache d",
    ),
    chatty(
        reading(command(
            "dup unique",
            "dup unique outside --reference=d",
            "dup unique none",
        )),
        "dup unique outside --reference=d",
    ),
    chatty(
        reading(command(
            "dup prune",
            "dup prune --action=hardlink --dry-run d",
            "dup prune --action=hardlink --dry-run none",
        )),
        "dup prune --action=hardlink --dry-run d",
    ),
    command("dup undo", "dup undo empty.jsonl", "dup undo none"),
    reading(command(
        "integrity manifest",
        "integrity manifest d",
        "integrity manifest none",
    )),
    chatty(
        reading(command(
            "integrity verify",
            "integrity verify d m.jsonl",
            "integrity verify d none",
        )),
        "integrity verify --force outside m.jsonl",
    ),
    chatty(
        command(
            "integrity diff",
            "integrity diff m.jsonl m.jsonl",
            "integrity diff m.jsonl none",
        ),
        "integrity diff m.jsonl other.jsonl",
    ),
    reading(command(
        "integrity update",
        "integrity update --reread=100% d m.jsonl",
        "integrity update d none",
    )),
    chatty(
        reading(command(
            "integrity protect",
            "integrity protect d m.jsonl",
            "integrity protect d none",
        )),
        "integrity protect d m.jsonl",
    ),
    reading(command(
        "integrity accept",
        "integrity accept d m.jsonl a.c",
        "integrity accept d none a.c",
    )),
    reading(command(
        "integrity restore",
        "integrity restore d m.jsonl",
        "integrity restore d none",
    )),
    command(
        "integrity export",
        "integrity export --format=gnu m.jsonl",
        "integrity export --format=gnu none",
    ),
    command(
        "integrity import",
        "integrity import sums",
        "integrity import none",
    ),
    command(
        "integrity merge",
        "integrity merge --check m.jsonl",
        "integrity merge none",
    ),
    command(
        "integrity sql",
        "integrity sql m.jsonl",
        "integrity sql --param=none=1 m.jsonl",
    ),
];

/// A check of one option of any command.
type Check = fn(&Ground, &Command);

pub const CASES: &[(&str, Check)] = &[
    ("threads", threads),
    ("io", io),
    ("memory-budget", memory_budget),
    ("rate", rate),
    ("progress", progress),
    ("color", color),
    ("quiet", quiet),
    ("verbose", verbose),
    ("log-format", log_format),
    ("metrics", metrics),
    ("config", config),
    ("describe", describe),
];

/// What the lines above want beside the ground.
fn prepare(g: &Ground, command: &Command) {
    if command.name == "dup undo" && g.t.join("empty.jsonl").symlink_metadata().is_err() {
        g.t.write("twins/1", "twin").write("twins/2", "twin");
        g.bc("dup prune --action=hardlink --journal=empty.jsonl twins")
            .code(0);
    }
    if command.name == "integrity diff" && g.t.join("other.jsonl").symlink_metadata().is_err() {
        g.bc("integrity manifest --output=other.jsonl outside")
            .code(0);
    }
}

fn with(line: &str, option: &str) -> String {
    format!("{line} {option}")
}

fn threads(g: &Ground, c: &Command) {
    prepare(g, c);
    g.bc(&with(c.line, "--threads=many"))
        .code(2)
        .stderr_has("many");
    g.bc(&with(c.line, "--threads=1025")).code(2);
    for count in ["auto", "mono", "0", "compute", "io", "3", "1024"] {
        g.bc(&with(c.line, &format!("--threads={count}"))).code(0);
    }
    if c.name == "hash hash" {
        for count in [1, 3] {
            let line = with(c.line, &format!("--threads={count}"));
            assert_eq!(g.metric(&line, "threads"), count);
        }
    }
}

fn rate(g: &Ground, c: &Command) {
    prepare(g, c);
    for (value, reason) in [("fast", "fast"), ("0", "nothing would ever be read")] {
        g.bc(&with(c.line, &format!("--rate={value}")))
            .code(2)
            .stderr_has(reason);
    }
    g.bc(&with(c.line, "--rate=1G")).code(0);
}

fn io(g: &Ground, c: &Command) {
    prepare(g, c);
    g.bc(&with(c.line, "--io=fast"))
        .code(2)
        .stderr_has("[possible values: auto, sync, uring]");
    g.bc(&with(c.line, "--io=sync")).code(0);
    let out = g.bc(&with(c.line, "--io=uring"));
    if out.status.code() == Some(2) {
        out.stderr_has("--io=uring: io_uring_setup: ");
        bc_testkit::left_out("io_uring is refused here");
        return;
    }
    out.code(0);
    if c.name == "hash hash" {
        for reader in ["sync", "uring"] {
            g.bc(&with(c.line, &format!("--io={reader} -v")))
                .stderr_has(match reader {
                    "sync" => "reader sync",
                    _ => "uring",
                });
        }
    }
}

fn memory_budget(g: &Ground, c: &Command) {
    prepare(g, c);
    g.bc(&with(c.line, "--memory-budget=much"))
        .code(2)
        .stderr_has("'much' is no size");
    g.bc(&with(c.line, "--memory-budget=1G")).code(0);
    if c.reads {
        g.bc(&with(c.line, "--memory-budget=1K"))
            .code(2)
            .stderr_has("--memory-budget: 1024 bytes are too few")
            .stderr_has("at least ");
    }
}

fn progress(g: &Ground, c: &Command) {
    prepare(g, c);
    g.bc(&with(c.line, "--progress=yes")).code(2);
    let shows = |when: &str| {
        let out = g.bc(&with(c.line, &format!("--progress={when}")));
        out.code(0).error_text().contains("\x1b[J")
    };
    assert!(!shows("auto") && !shows("never"));
    assert_eq!(shows("always"), c.reads);
}

fn color(g: &Ground, c: &Command) {
    prepare(g, c);
    let colored = |when: &str| {
        let out = g.bc(&with(c.wrong, &format!("--color={when}")));
        assert!(out.status.code() != Some(0), "{out}");
        out.error_text().contains("\x1b[31m")
    };
    assert!(!colored("auto") && !colored("never") && colored("always"));
}

fn quiet(g: &Ground, c: &Command) {
    prepare(g, c);
    // Errors stay.
    let loud = g.bc(c.wrong);
    let silent = g.bc(&with(c.wrong, "--quiet"));
    assert!(silent.error_text().contains("none: "), "{silent}");
    assert_eq!(loud.status.code(), silent.status.code());
    if let Some(line) = c.chatty {
        let run = |line: &str| {
            // A cache that cannot be there is done without, with a warning.
            g.t.write("plain", "no directory");
            g.bc(line)
        };
        let (loud, silent) = (run(line), run(&with(line, "--quiet")));
        assert_eq!(loud.status.code(), silent.status.code(), "{loud}{silent}");
        let said = |out: &bc_testkit::Outcome| out.stdout.len() + out.stderr.len();
        assert!(said(&silent) < said(&loud), "{loud}{silent}");
    }
}

fn verbose(g: &Ground, c: &Command) {
    prepare(g, c);
    let plain = g.bc(c.line);
    let more = g.bc(&with(c.line, "-v"));
    more.code(0);
    assert!(more.stderr.len() > plain.stderr.len(), "{plain}{more}");
    // Not one line of it is lost, and there is more.
    let most = g.bc(&with(c.line, "-vv"));
    most.code(0);
    let kinds = |out: &bc_testkit::Outcome| -> Vec<String> {
        // Times and counts of two runs need not be the same.
        let text = out.error_text();
        let word = |line: &str| line.chars().take_while(|c| !c.is_ascii_digit()).collect();
        text.lines().map(word).collect()
    };
    let (more, most) = (kinds(&more), kinds(&most));
    assert!(
        more.iter().all(|line| most.contains(line)),
        "{more:?}{most:?}"
    );
    assert!(most.len() > more.len(), "{more:?}{most:?}");
    for kind in ["settings: ", "processor: ", "reader: ", "in all: "] {
        assert!(
            most.iter().any(|line| line.contains(kind)),
            "{kind}{most:?}"
        );
    }
}

fn log_format(g: &Ground, c: &Command) {
    prepare(g, c);
    g.bc(&with(c.line, "--log-format=xml")).code(2);
    let mut levels = Vec::new();
    // A failure, a success that tells all, and arguments that cannot be.
    for line in [
        with(c.wrong, "-v --log-format=json"),
        with(c.line, "-vv --log-format=json"),
        with(c.line, "--log-format=json --memory-budget=much"),
        with(c.line, "--log-format json --config=none"),
    ] {
        let out = g.bc(&line);
        assert!(!out.stderr.is_empty(), "{out}");
        for text in out.error_lines() {
            let object: Value = serde_json::from_slice(text).unwrap_or_else(|e| panic!("{e}{out}"));
            assert!(object["message"].is_string() && object["time"].is_string());
            levels.push(object["level"].as_str().unwrap().to_owned());
        }
    }
    assert!(levels.iter().filter(|level| *level == "error").count() >= 3);
    assert!(levels.iter().any(|level| level == "info"), "{levels:?}");
}

fn metrics(g: &Ground, c: &Command) {
    prepare(g, c);
    let words: Vec<&str> = c.name.split(' ').collect();
    g.bc(&with(c.line, "--metrics=run.json")).code(0);
    let run: Value = serde_json::from_str(&g.text("run.json")).unwrap();
    assert_eq!(
        (&run["applet"], &run["command"]),
        (&words[0].into(), &words[words.len() - 1].into())
    );
    assert_eq!(run["exit_code"], 0);
    g.bc(&with(c.line, "--metrics=run.prom")).code(0);
    let text = g.text("run.prom");
    let samples = bc_testkit::exposition::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let names: Vec<&str> = samples.iter().map(|s| s.name.as_str()).collect();
    for name in [
        "bc_exit_code",
        "bc_duration_seconds",
        "bc_finished_timestamp_seconds",
    ] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
    for sample in &samples {
        assert_eq!(sample.labels["applet"], words[0]);
        assert_eq!(sample.labels["command"], words[words.len() - 1]);
        assert!(text.contains(&format!("# HELP {} ", sample.name)), "{text}");
        assert!(
            text.contains(&format!("# TYPE {} gauge\n", sample.name)),
            "{text}"
        );
    }
}

fn config(g: &Ground, c: &Command) {
    prepare(g, c);
    g.t.write(
        "good.toml",
        "threads = \"mono\"\n\n[dup]\nmin-size = \"1K\"\n",
    );
    g.bc(&with(c.line, "--config=good.toml")).code(0);
    g.t.write("bad.toml", "threads = 1\nnonsense = 1\n");
    g.bc(&with(c.line, "--config=bad.toml"))
        .code(2)
        .stderr_has("bad.toml:2: unknown key 'nonsense'");
    g.t.write("bad.toml", "threads = \"many\"\n");
    g.bc(&with(c.line, "--config=bad.toml"))
        .code(2)
        .stderr_has("many");
}

fn describe(g: &Ground, c: &Command) {
    let out = g.bc(&with(c.line, "--describe"));
    let tree: Value = serde_json::from_slice(&out.code(0).stdout).unwrap();
    assert_eq!(tree["schema"], 1);
    let Some(name) = c.name.split(' ').nth(1) else {
        let own = tree["arguments"].as_array().unwrap();
        return assert!(own.iter().any(|argument| argument["long"] == "dry-run"));
    };
    let below = tree["subcommands"].as_array().unwrap();
    assert!(below.iter().any(|command| command["name"] == name));
}
