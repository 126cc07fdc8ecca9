//! `bc integrity export` and `import`, held against the tools whose formats they are.

use bc_testkit::{TestTree, left_out, tool};

use crate::common::Bc;

fn recorded() -> TestTree {
    let t = TestTree::new();
    t.write("d/a", "abc")
        .write("d/sub/b", "bbb")
        .write("d/with space", "ccc");
    t.bc_line("integrity manifest --output=m d").go().code(0);
    t
}

const TOOLS: [(&str, &str, &str); 3] = [
    ("gnu", "sha256sum", "-c --quiet ../m.gnu"),
    ("hashdeep", "hashdeep", "-r -l -a -k ../m.hashdeep ."),
    ("mtree", "mtree", "-p . -f ../m.mtree"),
];

#[test]
fn other_tools_accept_the_exports_and_see_an_edit() {
    for (format, program, args) in TOOLS {
        let t = recorded();
        let name = format!("m.{format}");
        t.bc_line("integrity export m --format")
            .args([format, "--output", &name])
            .go()
            .code(0)
            .stderr_is("");
        if tool(program).is_none() {
            left_out(&format!("{program} is not installed"));
            continue;
        }
        let run = || {
            t.run(program)
                .args(args.split(' '))
                .current_dir(t.join("d"))
                .go()
        };
        run().code(0);
        t.write("d/a", "abd");
        assert_ne!(
            run().status.code(),
            Some(0),
            "{program} has to see the edit"
        );
    }
}

#[test]
fn what_was_exported_can_be_imported_and_verified() {
    for format in ["gnu", "hashdeep"] {
        let t = recorded();
        t.bc_line("integrity export m --output=x --format")
            .arg(format)
            .go()
            .code(0);
        t.bc_line("integrity import x --output=i.zst").go().code(0);
        t.bc_line("integrity verify --mode=content d i.zst")
            .go()
            .code(0)
            .stdout_is("");
        t.write("d/a", "abd");
        t.bc_line("integrity verify --mode=content d i.zst")
            .go()
            .code(1)
            .stdout_has(" a");
    }
}

#[test]
fn unusable_input() {
    let t = recorded();
    t.write("x", "what is this\n");
    t.bc_line("integrity import x --output=i")
        .go()
        .code(2)
        .stderr_has("x: ");
    assert!(!t.exists("i"));
    t.bc_line("integrity import missing")
        .go()
        .code(2)
        .stderr_has("missing: open: No such file");
    t.bc_line("integrity export --format=gnu x")
        .go()
        .code(2)
        .stderr_has("x: ");
    t.bc_line("integrity manifest --algorithm=blake3 --output=b d")
        .go()
        .code(0);
    t.bc_line("integrity export --format=mtree b")
        .go()
        .code(2)
        .stderr_has("blake3");
}

/// Digests alone cannot tell an edit from damage: nothing is recorded as right by itself.
#[test]
fn content_that_differs_from_an_import_is_no_edit() {
    const UNDECIDED: &str = "~c a: content differs; an edit cannot be distinguished from damage\n";
    for format in ["gnu", "hashdeep"] {
        let t = recorded();
        t.bc_line("integrity export m --output=x --format")
            .arg(format)
            .go()
            .code(0);
        t.bc_line("integrity import x --output=i").go().code(0);
        t.bc_line("integrity import x --output=j").go().code(0);
        t.write("d/a", "abd");
        t.bc_line("integrity verify d i")
            .go()
            .code(1)
            .stdout_is(UNDECIDED);
        t.bc_line("integrity verify --format=json d i")
            .go()
            .code(1)
            .stdout_has("\"class\":\"modified\",\"path\":\"a\",\"kind\":\"file\",\"reason\":")
            .stdout_has("\"undecided\":1,");
        // The others are completed; this one stays as it was imported.
        for line in ["update", "update --quiet", "update --reread=100%"] {
            t.bc_line(&format!("integrity {line} d i"))
                .go()
                .code(1)
                .stdout_is(UNDECIDED);
        }
        t.bc_line("integrity verify d i")
            .go()
            .code(1)
            .stdout_is(UNDECIDED);
        t.bc_line("integrity update --accept-damaged d i")
            .go()
            .code(0);
        t.bc_line("integrity verify d i").go().code(0).stdout_is("");
        // Put right again it is completed like the others.
        t.write("d/a", "abc");
        t.bc_line("integrity update d j").go().code(0).stdout_is("");
        t.bc_line("integrity verify d j").go().code(0).stdout_is("");
        // From then on there is something to tell by.
        t.write("d/a", "longer");
        t.bc_line("integrity update d j")
            .go()
            .code(0)
            .stdout_is("~c a\n");
    }
}

/// Between manifests it is the same on either side.
#[test]
fn an_import_against_a_manifest() {
    let t = recorded();
    t.bc_line("integrity export m --format=gnu --output=x")
        .go()
        .code(0);
    t.bc_line("integrity import x --output=i").go().code(0);
    t.write("d/a", "abd");
    t.bc_line("integrity manifest --output=n d").go().code(0);
    for line in ["diff i n", "diff n i"] {
        t.bc_line(&format!("integrity {line}"))
            .go()
            .code(1)
            .stdout_has("~c a: content differs; an edit cannot be distinguished from damage");
    }
}
