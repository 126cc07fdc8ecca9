//! Export and import, checked by the tools themselves where they are installed.

use std::process::Command;

use bc_digest::Algorithm;
use bc_integrity::fields::CompareMode;
use bc_integrity::{Damaged, Foreign, ImportOptions, ManifestFile, Trust, export, import};
use bc_testkit::{TestTree, left_out, tool};
use bc_walk::job::{Error, ErrorKind};

use crate::support::{
    How, THEN, an_update, create_with, diffed, entry, lines, manifest_of, mode, updated, verified,
};

fn exported(manifest: &[u8], format: Foreign) -> (Vec<u8>, bc_integrity::Exported) {
    exported_but(manifest, format, &mut |_| {})
}

fn exported_but(
    manifest: &[u8],
    format: Foreign,
    inexpressible: &mut dyn FnMut(&[u8]),
) -> (Vec<u8>, bc_integrity::Exported) {
    let file = ManifestFile::from_reader(b"m", manifest).unwrap();
    export(&file, format, Trust::Checked, Vec::new(), inexpressible).unwrap()
}

fn imported(text: &[u8], algorithm: Option<Algorithm>) -> Result<Vec<u8>, Error> {
    let what = ImportOptions::new(b"sums", THEN)
        .algorithm(algorithm)
        .strip_prefix(b"");
    import(&what, text, Vec::new()).map(|(out, _)| out)
}

/// Names that every tool can be expected to cope with, and some that they say
/// they do.
fn sample() -> TestTree {
    let tree = TestTree::new();
    tree.write("a/b/file", "1")
        .write("sp ace", "22")
        .write("#hash", "3")
        .write("-", "dash");
    tree.write("[x]*?", "4")
        .write("e=q,c", "5")
        .write("back\\slash", "6")
        .write("empty", "");
    tree.write("caf\u{e9}", "7")
        .dir("void")
        .mtime("#hash", -5, 250_000_000);
    tree
}

#[test]
fn gnu_lines_satisfy_sha256sum() {
    let tree = sample();
    tree.write_bytes(b"new\nline", "8").symlink("a", "link");
    let (text, done) = exported(&manifest_of(tree.path()), Foreign::Gnu);
    assert_eq!(done.entries, 10);
    let sums = tree.scratch("SHA256SUMS");
    std::fs::write(&sums, &text).unwrap();
    let Some(sha256sum) = tool("sha256sum") else {
        return left_out("sha256sum");
    };
    let check = |code| {
        let mut command = Command::new(&sha256sum);
        let output = command
            .current_dir(tree.path())
            .args(["--strict", "-c"])
            .arg(&sums)
            .output();
        assert_eq!(output.unwrap().status.code(), Some(code));
    };
    check(0);
    tree.write("a/b/file", "2");
    check(1);
}

#[test]
fn hashdeep_audits_its_export() {
    let tree = sample();
    let (text, done) = exported(&manifest_of(tree.path()), Foreign::Hashdeep);
    assert_eq!((done.entries, done.inexpressible), (9, 0));
    let known = tree.scratch("known");
    std::fs::write(&known, &text).unwrap();
    let Some(hashdeep) = tool("hashdeep") else {
        return left_out("hashdeep");
    };
    let audit = |code| {
        let mut command = Command::new(&hashdeep);
        command
            .current_dir(tree.path())
            .args(["-r", "-l", "-a", "-k"])
            .arg(&known)
            .arg(".");
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}");
    };
    audit(0);
    tree.write("a/b/file", "2");
    audit(1);
    // And the other way round: what hashdeep writes can be imported.
    tree.write("a/b/file", "1");
    let output = Command::new(&hashdeep)
        .current_dir(tree.path())
        .args(["-r", "-l", "."])
        .output();
    let manifest = imported(&output.unwrap().stdout, None).unwrap();
    let path = tree.scratch("m");
    std::fs::write(&path, manifest).unwrap();
    let (text, _) = verified(tree.path(), &path, How::default());
    assert_eq!(text, "");
}

#[test]
fn hashdeep_has_no_way_to_write_a_newline() {
    let tree = TestTree::new();
    tree.write_bytes(b"new\nline", "8");
    let mut paths = Vec::new();
    let manifest = manifest_of(tree.path());
    let (_, done) = exported_but(&manifest, Foreign::Hashdeep, &mut |path| {
        paths.push(path.to_vec());
    });
    assert_eq!(
        (done.inexpressible, paths),
        (1, vec![b"new\nline".to_vec()])
    );
    let (manifest, _) = create_with(tree.path(), Default::default(), Algorithm::Blake3, 1);
    let file = ManifestFile::from_reader(b"m", &manifest[..]).unwrap();
    for format in [Foreign::Hashdeep, Foreign::Mtree] {
        let error = export(&file, format, Trust::Checked, Vec::new(), &mut |_| {}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
    }
}

/// Names of hashdeep's may end with a carriage return; lines do where a file came from elsewhere.
#[test]
fn returns_belong_to_names_unless_all_lines_have_them() {
    let digest = bc_digest::hash(Algorithm::Sha256, b"8");
    let text = |end: &str| {
        let head = [
            "%%%% HASHDEEP-1.0",
            "%%%% size,sha256,filename",
            "## comment",
        ];
        let files = ["plain", "in\rside", "end\r", "two\r\r"];
        let files = files.map(|name| format!("1,{digest},./{name}"));
        let lines = head.map(String::from).into_iter().chain(files);
        lines.map(|line| line + end).collect::<String>()
    };
    for end in ["\n", "\r\n"] {
        let manifest = imported(text(end).as_bytes(), None).unwrap();
        let paths: Vec<String> = lines(&manifest)
            .iter()
            .filter_map(|line| Some(line["path"].as_str()?.to_owned()))
            .collect();
        assert_eq!(paths, ["end\r", "in\rside", "plain", "two\r\r"], "{end:?}");
    }
}

#[test]
fn mtree_accepts_its_export() {
    let tree = sample();
    tree.write_bytes(b"\x01\x7f\xff\n", "9")
        .symlink("a b/[\n]", "link")
        .fifo("pipe");
    tree.mode("sp ace", 0o4711).hard_link("empty", "void/again");
    for dir in ["a", "a/b", "void", "."] {
        tree.mtime(dir, 100, 5);
    }
    let (spec, _) = exported(&manifest_of(tree.path()), Foreign::Mtree);
    let Some(mtree) = tool("mtree") else {
        return left_out("mtree");
    };
    let path = tree.scratch("spec");
    std::fs::write(&path, &spec).unwrap();
    let check = |code| {
        let mut command = Command::new(&mtree);
        let output = command
            .arg("-p")
            .arg(tree.path())
            .arg("-f")
            .arg(&path)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}");
    };
    check(0);
    tree.write("a/b/file", "2");
    check(2);
}

#[test]
fn mtree_gets_the_directories_that_an_import_lacks() {
    let tree = TestTree::new();
    tree.write("a/b/file", "1")
        .write("a-b", "2")
        .write("a/c", "3");
    let (sums, _) = exported(&manifest_of(tree.path()), Foreign::Gnu);
    let (spec, _) = exported(&imported(&sums, None).unwrap(), Foreign::Mtree);
    let Some(mtree) = tool("mtree") else {
        return left_out("mtree");
    };
    let path = tree.scratch("spec");
    std::fs::write(&path, &spec).unwrap();
    let output = Command::new(&mtree)
        .arg("-p")
        .arg(tree.path())
        .arg("-f")
        .arg(&path)
        .output();
    let output = output.unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

#[test]
fn an_import_verifies_and_an_update_completes_it() {
    let tree = sample();
    let (sums, _) = exported(&manifest_of(tree.path()), Foreign::Gnu);
    let manifest = imported(&sums, None).unwrap();
    assert_eq!(lines(&manifest)[1]["error"]["op"], "import");
    let path = tree.scratch("m");
    std::fs::write(&path, &manifest).unwrap();
    for mode_of in [CompareMode::Strict, CompareMode::Content, CompareMode::Meta] {
        let (text, _) = verified(tree.path(), &path, mode(mode_of));
        assert_eq!(text, "", "{mode_of:?}");
    }
    tree.write("sp ace", "xx").write("more", "8");
    let (text, _) = verified(tree.path(), &path, How::default());
    let undecided = "~c sp ace: content differs; an edit cannot be distinguished from damage\n";
    assert_eq!(text, format!("+ more\n{undecided}"));
    let (_, done) = updated(&an_update(tree.path().as_os_str(), &path)).unwrap();
    assert_eq!(done.summary.files_read, 10);
    let now = std::fs::read(&path).unwrap();
    assert!(entry(&now, "#hash")["error"].is_null());
    assert_eq!(entry(&now, "#hash")["mtime_ns"], -4_750_000_000_i64);
    // Possible damage stays as it was imported, until the user accepts it.
    assert_eq!(entry(&now, "sp ace"), entry(&manifest, "sp ace"));
    let what = an_update(tree.path().as_os_str(), &path);
    for damaged in [Damaged::Keep, Damaged::Accept] {
        let (text, done) = updated(&what.damaged(damaged)).unwrap();
        assert_eq!((text.as_str(), done.summary.files_read), (undecided, 1));
    }
    let (text, done) = updated(&what).unwrap();
    assert_eq!((text.as_str(), done.written), ("", None));
}

#[test]
fn tagged_lines_and_several_algorithms() {
    let text = b"MD5 (./b) = 92eb5ffee6ae2fec3ad71c777531578f\n\
        SHA1 (a) = 86f7e437faa5a7fce15d1ddcb9eaeaea377667b8\n\
        MD5 (a) = 0cc175b9c0f1b6a831c399e269772661\n";
    let error = imported(text, None).unwrap_err();
    assert!(error.to_string().contains("line 2"), "{error}");
    let manifest = imported(text, Some(Algorithm::Md5)).unwrap();
    let all = lines(&manifest);
    assert_eq!(all[0]["algorithm"], "md5");
    assert_eq!(
        (&all[1]["path"], &all[2]["path"]),
        (&"a".into(), &"b".into())
    );
    assert_eq!(all.len(), 4);
    let manifest = imported(text, Some(Algorithm::Sha1)).unwrap();
    assert_eq!(lines(&manifest).len(), 3);
}

#[test]
fn lines_that_cannot_be_imported() {
    let hex = "d41d8cd98f00b204e9800998ecf8427e";
    let other = "0cc175b9c0f1b6a831c399e269772661";
    for (text, why) in [
        (format!("{hex}  /etc/passwd\n"), "absolute"),
        (format!("{hex}  ../a\n"), "line 1"),
        (format!("{hex}  a\nnonsense\n"), "line 2"),
        (format!("{hex}  a\n{other}  ./a\n"), "two different digests"),
        (String::new(), "no digest lines"),
        (
            "%%%% HASHDEEP-1.0\n%%%% size,tiger,filename\n".into(),
            "no column",
        ),
        (
            format!("%%%% HASHDEEP-1.0\n0,{hex},a\n"),
            "no line of columns",
        ),
        (
            format!("%%%% HASHDEEP-1.0\n%%%% size,md5,filename\n0,{hex}\n"),
            "line 3",
        ),
    ] {
        let error = imported(text.as_bytes(), None).expect_err(&text);
        assert!(error.to_string().contains(why), "{text}: {error}");
    }
}

/// Whole components only, however the prefix is written; what lies outside of it is refused.
#[test]
fn a_prefix_is_stripped_by_components() {
    let hex = "d41d8cd98f00b204e9800998ecf8427e";
    let stripped = |prefix: &str, path: &str| {
        let what = ImportOptions::new(b"sums", 0).strip_prefix(prefix.as_bytes());
        let text = format!("{hex}  {path}\n{hex}  {path}\n");
        let (manifest, trailer) = import(&what, text.as_bytes(), Vec::new())?;
        assert_eq!(trailer.entries, 1);
        Ok(lines(&manifest)[1]["path"].as_str().unwrap().to_owned())
    };
    for (prefix, path, expected) in [
        ("/srv", "/srv/a", "a"),
        ("/srv/", "/srv/a", "a"),
        ("/srv//", "//srv/./a/b", "a/b"),
        ("/", "/srv/a", "srv/a"),
        ("srv", "srv/srv/a", "srv/a"),
        ("./srv", "srv/a", "a"),
        ("srv", "./srv//a", "a"),
        (".", "srv/a", "srv/a"),
        ("./", "./a", "a"),
        ("", "./a", "a"),
        ("/srv/photo", "/srv/photo/s/1", "s/1"),
    ] {
        assert_eq!(stripped(prefix, path).unwrap(), expected, "{prefix} {path}");
    }
    for (prefix, path) in [
        ("/srv", "/srv2/1"),
        ("/srv/", "/srv2/1"),
        ("/srv/photo", "/srv/photos/1"),
        ("/srv", "/sr"),
        ("/srv", "/srv"),
        ("/srv", "/srv/"),
        ("/srv/", "/srv/."),
        (".", "/srv2/1"),
        ("srv", "/srv2/1"),
        ("srv", "/srv/1"),
        ("srv", "srv2/1"),
        ("/srv", "srv/1"),
        ("/srv", "a"),
        ("/srv", "/srv/../etc/passwd"),
        ("/srv", "/other/../srv/1"),
        ("", "/srv/1"),
    ] {
        let error: Error = stripped(prefix, path).expect_err(path);
        let text = error.to_string();
        assert!(
            text.contains("line 1: ") && text.contains(path),
            "{prefix}: {text}"
        );
    }
}

/// Sizes in hashdeep's file count without any content being read, and turn no possible damage into
/// an edit.
#[test]
fn sizes_of_an_imported_list_are_kept() {
    let tree = sample();
    let (text, _) = exported(&manifest_of(tree.path()), Foreign::Hashdeep);
    let manifest = imported(&text, None).unwrap();
    assert_eq!(entry(&manifest, "sp ace")["size"], 2);
    let bytes: u64 = lines(&manifest)
        .iter()
        .filter_map(|line| line["size"].as_u64())
        .sum();
    assert_eq!(lines(&manifest).last().unwrap()["bytes"], bytes);
    // And come out again as they went in.
    assert_eq!(exported(&manifest, Foreign::Hashdeep).0, text);
    let path = tree.scratch("m");
    std::fs::write(&path, &manifest).unwrap();
    for mode_of in [CompareMode::Strict, CompareMode::Content, CompareMode::Meta] {
        let (text, _) = verified(tree.path(), &path, mode(mode_of));
        assert_eq!(text, "", "{mode_of:?}");
    }
    tree.write("sp ace", "grown");
    let (text, _) = verified(tree.path(), &path, mode(CompareMode::Meta));
    assert_eq!(text, "~c sp ace\n");
    tree.write("#hash", "4");
    let said = updated(&an_update(tree.path().as_os_str(), &path))
        .unwrap()
        .0;
    let undecided = "content differs; an edit cannot be distinguished from damage";
    assert_eq!(
        said,
        format!("~c #hash: {undecided}\n~c sp ace: {undecided}\n")
    );
    let now = std::fs::read(&path).unwrap();
    for kept in ["#hash", "sp ace"] {
        assert_eq!(entry(&now, kept), entry(&manifest, kept));
    }
}

/// Two files with one size and no other metadata: neither is the other one, renamed and damaged.
#[test]
fn sizes_alone_make_no_moves() {
    let list = |name: &str, hex: &str| {
        let text = format!("%%%% HASHDEEP-1.0\n%%%% size,md5,filename\n7,{hex},{name}\n");
        imported(text.as_bytes(), None).unwrap()
    };
    let old = list("a", "d41d8cd98f00b204e9800998ecf8427e");
    let new = list("b", "0cc175b9c0f1b6a831c399e269772661");
    let (text, _) = diffed(&old, &new, Default::default()).unwrap();
    assert_eq!(text, "- a\n+ b\n");
    let new = list("b", "d41d8cd98f00b204e9800998ecf8427e");
    let (text, _) = diffed(&old, &new, Default::default()).unwrap();
    assert_eq!(text, "> a -> b\n");
    let bad = "%%%% HASHDEEP-1.0\n%%%% size,md5,filename\nx,0cc175b9c0f1b6a831c399e269772661,b\n";
    let error = imported(bad.as_bytes(), None).unwrap_err();
    assert!(error.to_string().contains("line 3"), "{error}");
}

/// Lists of other tools have no sizes; their digests are long enough to know a file by.
#[test]
fn moves_between_lists_without_sizes_are_moves() {
    let line = |content: &str, path: &str| {
        let digest = bc_digest::hash(Algorithm::Sha256, content.as_bytes());
        format!("{digest}  {path}\n")
    };
    let old = line("1", "a") + &line("", "empty") + &line("2", "kept");
    let new = line("1", "d/b") + &line("2", "kept") + &line("", "void");
    let [old, new] = [old, new].map(|text| imported(text.as_bytes(), None).unwrap());
    let (text, _) = diffed(&old, &new, Default::default()).unwrap();
    // Files of no bytes all look alike.
    assert_eq!(text, "> a -> d/b\n- empty\n+ void\n");
}
