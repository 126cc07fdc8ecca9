//! The table: words of other tools, and the commands to type instead.
//!
//! A line is `WORDS => COMMAND :: REASON`; of several that hold the first counts. Of the words `-k` is
//! the word alone, `-k=` has any value, `-k=#` a number, `-k=#-#` two sizes, `-k=ab`, `-k=ab*` and
//! `-k=*ab` one that is, begins or ends so (in any case). The command is what stands in their place,
//! the subcommand first if it is another one, and from ` | ` on what follows the whole command; `{}` is
//! the value (of a pattern the free part of it), `{name}` the word without its dashes. Without a
//! command the reason says it all.

use std::ffi::{OsStr, OsString};

/// A line of the table.
#[derive(Clone, Copy)]
pub struct HintRow {
    typed: &'static str,
    /// Words in its place; `None` if `why` says it all.
    pub command: Option<&'static str>,
    /// Reason; empty if the command says enough.
    pub why: &'static str,
}

impl HintRow {
    /// Returns true if the word stands in this row, with whatever value.
    pub fn has(&self, word: &str) -> bool {
        self.patterns(word).next().is_some()
    }

    /// Returns the patterns of the word's values, each with the `=` in front; an empty one stands
    /// for the word alone.
    pub fn patterns(&self, word: &str) -> impl Iterator<Item = &'static str> {
        let words = self.typed.split(' ');
        words.filter_map(move |typed| {
            let pattern = typed.strip_prefix(word)?;
            (pattern.is_empty() || pattern.starts_with('=')).then_some(pattern)
        })
    }

    fn front(&self) -> &'static str {
        let command = self.command.unwrap_or_default();
        command
            .split_once(" | ")
            .map_or(command, |(front, _)| front)
    }

    /// Returns the subcommand that is meant, if the row names one.
    pub fn subcommand(&self) -> Option<&'static str> {
        let first = self.front().split(' ').next();
        first.filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase()))
    }

    /// Returns options and operands in its place.
    pub fn words(&self, name: &str, value: &OsStr) -> impl Iterator<Item = OsString> {
        let skipped = usize::from(self.subcommand().is_some());
        let words = self.front().split(' ').skip(skipped);
        words.filter(|word| !word.is_empty()).map(move |word| {
            let word = word.replace("{name}", name);
            let mut filled = OsString::new();
            match word.split_once("{}") {
                Some((before, after)) => {
                    filled.push(before);
                    filled.push(value);
                    filled.push(after);
                }
                None => filled.push(word),
            }
            filled
        })
    }

    /// Returns what follows the command.
    pub fn suffix(&self) -> &'static str {
        let command = self.command.unwrap_or_default();
        command.find(" | ").map_or("", |at| &command[at..])
    }
}

/// Returns the free part of a value that fits the pattern: all of it where anything fits.
pub fn matched<'a>(pattern: &str, value: &'a str) -> Option<&'a str> {
    let is = |part: &str, whole: &str| part.eq_ignore_ascii_case(whole);
    match (
        pattern,
        pattern.strip_suffix('*'),
        pattern.strip_prefix('*'),
    ) {
        ("", ..) => Some(value),
        ("#", ..) => value.parse::<u64>().is_ok().then_some(value),
        ("#-#", ..) => {
            let (from, to) = value.split_once('-')?;
            [from, to]
                .map(|size| size.parse::<bc_fs::Size>().is_ok())
                .iter()
                .all(|&is| is)
                .then_some(value)
        }
        (_, Some(start), _) => {
            let part = value.get(..start.len())?;
            is(part, start).then(|| &value[start.len()..])
        }
        (_, _, Some(end)) => value.strip_suffix(end),
        _ => is(pattern, value).then_some(value),
    }
}

/// Returns the rows of an applet.
pub fn rows(applet: &str) -> Vec<HintRow> {
    let table = match applet {
        "hash" => HASH,
        "dup" => DUP,
        "integrity" => INTEGRITY,
        "copy" => COPY,
        "move" => MOVE,
        _ => "",
    };
    let lines = table.lines().filter(|line| line.starts_with(|c| c != '#'));
    lines.map(row).collect()
}

fn row(line: &'static str) -> HintRow {
    let (front, why) = line.split_once(" :: ").unwrap_or((line, ""));
    let (typed, command) = match front.split_once(" =>") {
        Some((typed, command)) => (typed, Some(command.strip_prefix(' ').unwrap_or(command))),
        None => (front, None),
    };
    HintRow {
        typed,
        command,
        why,
    }
}

/// First words that are no applet, and the commands that they mean.
pub const FIRST_WORDS: &[(&str, &str)] = &[
    ("version", "bc --version"),
    ("list commands applets", "bc --list"),
    ("describe", "bc --describe"),
    ("help", "bc --help"),
    ("check", "bc hash check"),
    (
        "diff cmp compare",
        "bc integrity diff' for trees or, for lists of checksums, 'bc hash diff",
    ),
    (
        "scan duplicates dedup dedupe fdupes jdupes rdfind rmlint fclones czkawka czkawka_cli duperemove",
        "bc dup",
    ),
    ("summary", "bc dup summary"),
    ("dirs", "bc dup dirs"),
    ("unique", "bc dup unique"),
    ("prune", "bc dup prune"),
    ("undo", "bc dup undo"),
    ("manifest", "bc integrity manifest"),
    ("verify scrub audit", "bc integrity verify"),
    ("update", "bc integrity update"),
    ("accept", "bc integrity accept"),
    ("export", "bc integrity export"),
    ("import", "bc integrity import"),
    ("restore repair heal par2repair", "bc integrity restore"),
    (
        "protect parity par2 par2create snapraid",
        "bc integrity protect",
    ),
    ("merge", "bc integrity merge"),
    ("sql", "bc integrity sql"),
    ("mtree aide chkbit", "bc integrity"),
    ("backup sync cp rsync rclone xcp cpz", "bc copy"),
    ("mv bcmr", "bc move"),
    ("checksum checksums", "bc hash"),
    ("cksum", "bc hash --type=crc"),
    ("sum", "bc hash --type=bsd"),
    ("shasum", "bc hash --type=sha1"),
    ("hashdeep", "bc hash --type=md5,sha256"),
    ("md5deep", "bc hash --type=md5"),
    ("sha1deep", "bc hash --type=sha1"),
    ("sha256deep", "bc hash --type=sha256"),
    ("rhash", "bc hash --type=crc32b"),
    ("b2sum", "bc hash --type=blake2b"),
    ("b3sum", "bc hash --type=blake3"),
    ("xxhsum", "bc hash --type=xxh64"),
];

/// Words of coreutils' sums, b3sum, xxhsum, hashdeep and rhash.
const HASH: &str = r#"
-c= => --type={}
-c --check => check
# hashdeep's known digests.
-m= -x= -X= :: look up digests with grep: bc hash --output=now DIR && cut -d' ' -f1 MANIFEST | grep -Ff - now
-k= -u= --update= :: known files are listed in a manifest here; use: bc hash check --unlisted {}
--message= :: the input is a file or a pipe: printf %s {} | bc hash
# Which algorithm.
-a=512256 --algorithm=512256 => --type=sha512-256
-a=512224 --algorithm=512224 :: there is no such algorithm here ('bc hash --help' lists them)
-a=sha2 --algorithm=sha2 -a=sha3 :: a length is part of the algorithm's name here, as in: bc hash --type=blake2b-256 FILE
--algorithm=sha3 :: a length is part of the algorithm's name here, as in: bc hash --type=blake2b-256 FILE
-a= --algorithm= -t= => --type=sha{}
-a= => --type={}
-a --all => --type=md5,sha1,sha256,sha512 :: list the algorithms
-t => :: -t is --type here, and text and binary are the same
-l=# --length=# :: a length is part of the algorithm's name here, as in: bc hash --type=blake2b-256 FILE
-H=0 -H=32 => --type=xxh32
-H=1 -H=64 => --type=xxh64
-H=2 -H=128 => --type=xxh128
-H=3 => --type=xxh3
-H => --type=sha1
-M => --type=md5
--md5 --sha1 --sha224 --sha256 --sha384 --sha512 --sha3-224 --sha3-256 --sha3-384 --sha3-512 => --type={name}
--blake2b --blake3 --crc32c => --type={name}
-C --crc32 => --type=crc32b
-T --tth --tiger -W --whirlpool -G --gost12-256 :: there is no such algorithm here ('bc hash --help' lists them)
--gost12-512 --gost94 --gost94-cryptopro -E --ed2k :: there is no such algorithm here ('bc hash --help' lists them)
--aich --btih --has160 --snefru128 --snefru256 :: there is no such algorithm here ('bc hash --help' lists them)
--ripemd160 --edonr256 --edonr512 --md4 --blake2s :: there is no such algorithm here ('bc hash --help' lists them)
--sha512-224 :: there is no such algorithm here ('bc hash --help' lists them)
--keyed --derive-key --derive-key= --seek= :: there are no keyed digests here
# How it is printed.
--tag --bsd => --format=bsd
--simple => --format=gnu
--no-names =>  | cut -d' ' -f1
--raw :: digests are printed in hexadecimal: bc hash FILE | cut -d' ' -f1 | xxd -r -p
--base64 :: digests are printed in hexadecimal: bc hash FILE | cut -d' ' -f1 | xxd -r -p | base64
-d => --format=json :: XML is not written
-p=# -p=*k -p=*m -p=*g :: files are hashed completely, not in pieces; use: bc hash FILE
-p= --printf= --template= :: there are no templates for lines, but formats for programs: bc hash --format=jsonl FILE
--sfv --magnet --torrent --embed-crc :: there is no such format here; 'bc hash --help' lists the formats
--uppercase --base32 --little-endian :: there is no such format here; 'bc hash --help' lists the formats
-e -P --percents => --progress=always
--speed --debug => --verbose
-s --skip-ok => --quiet
-i=# -b=# -b=1,* -B=# --benchmark :: measure the speed with real files: time bc hash FILE
# Which files, and how they are read.
-f= --file-list= --filelist= --filesfrom= => --files-from={}
--follow => --follow-symlinks
--maxdepth= => --max-depth={}
--num-threads= => --threads={}
# What is done anyway.
-b --binary --text -l -i --ignore-case --lowercase --no-mmap --untagged --no-ignore =>
"#;

/// Words of jdupes, fdupes, fclones, rmlint, rdfind, czkawka and duperemove. None of them changes a
/// file: the command for it is shown.
const DUP: &str = r#"
# fclones' commands.
group dupes =>
remove rm delete => prune --action=delete :: a search deletes nothing (without this word, duplicates are only listed)
link => prune --action=hardlink :: a search changes nothing
dedupe => prune --action=reflink :: a search changes nothing
move :: a search changes nothing; use: bc dup prune --action=move:TARGET DIR
--soft => --action=symlink
--rf-over= => --format=json | jq '.groups[] | select((.files | length) > N)' :: groups cannot be selected by their number of files
--rf-under= :: files without a duplicate are listed by another command; use: bc dup unique DIR
--threads=main:* --threads=dev:* :: one number of threads applies to all devices; use: bc dup --threads=auto DIR
--threads=ssd:* --threads=hdd:* :: one number of threads applies to all devices; use: bc dup --threads=auto DIR
--priority=newest --priority=most-recently-modified => --keep=oldest
--priority=oldest --priority=least-recently-modified => --keep=newest
--keep-name= --keep-path= => --exclude={}
--path= => --include={} :: patterns with / are matched below the root of a search
--name= => --include={}
--skip-content-hash --transform= :: files are compared completely and unchanged; use: bc dup DIR
# czkawka's commands.
dup :: directories are given without an option here; use: bc dup DIR
empty-files :: all empty files are identical; use: find DIR -type f -empty
empty-folders :: only files are compared; use: find DIR -type d -empty
image video music big temp symlinks broken ext :: only identical files and directories are found here; use: bc dup DIR
bad-names video-optimizer exif-remover :: only identical files and directories are found here; use: bc dup DIR
-n=# :: one file of each group stays here, and all others go; 'bc dup prune --help' lists the rules
-D=hard --delete-method=hard => prune --action=hardlink :: a search changes nothing
-D=aen --delete-method=aen => prune --action=delete --keep=newest :: a search deletes nothing (without this word, duplicates are only listed)
-D=aeo --delete-method=aeo => prune --action=delete --keep=oldest :: a search deletes nothing (without this word, duplicates are only listed)
-D=none --delete-method=none =>
--delete-method= :: one file of each group stays here, and all others go; 'bc dup prune --help' lists the rules
--directories= => {}
--reference-directories= => --reference={}
# rmlint.
-D --merge-directories => dirs
--replay= :: reports of other programs cannot be read; use: bc dup prune --from=REPORT.json
--equal --is-reflink --perms -b --match-basename :: only contents are compared; use: bc dup DIR
--match-without-extension --match-with-extension :: only contents are compared; use: bc dup DIR
-T=df -T=df,dd -T=dd -T=dd,df -T=ed -T=ef -T=bi :: only identical files and directories are found here; use: bc dup DIR
-T=bl -T=ns -T=el -T=all -T=duplicates -T=defaults :: only identical files and directories are found here; use: bc dup DIR
-T=minimal --types= :: only identical files and directories are found here; use: bc dup DIR
--xattr => --cache
-c=sh:link -c=sh:hardlink --config=sh:link => prune --action=hardlink :: a search changes nothing
--config=sh:hardlink => prune --action=hardlink :: a search changes nothing
-c=sh:symlink --config=sh:symlink => prune --action=symlink :: a search changes nothing
-c=sh:clone -c=sh:reflink --config=sh:clone => prune --action=reflink :: a search changes nothing
--config=sh:reflink => prune --action=reflink :: a search changes nothing
-c=sh:remove --config=sh:remove => prune --action=delete :: a search deletes nothing (without this word, duplicates are only listed)
-c=sh:* --config=sh:* :: no command can be run per file; use: bc dup --format=script DIR
-O=uniques* :: files without a duplicate are listed by another command; use: bc dup unique DIR
-O=sh:* => --format=script --output={} :: formats are chosen like this
-O=json:* => --format=json --output={} :: formats are chosen like this
-O=csv:* => --format=csv --output={} :: formats are chosen like this
-S=dl -S=ld -S=mad -S=pOma --rank-by= :: the file that stays is chosen by the command that removes the others; use: bc dup prune --action=delete --dry-run --keep=oldest DIR
--sort-by= :: the file that stays is chosen by the command that removes the others; use: bc dup prune --action=delete --dry-run --keep=oldest DIR
--gui :: there is no graphical interface, but a web page; use: bc dup --format=html --output=DUP.html DIR
# Actions on duplicates.
-d=# --depth= --maxdepth= => --max-depth={}
-d -deleteduplicates=true --delete => prune --action=delete :: a search deletes nothing (without this word, duplicates are only listed)
--immediate => prune --action=delete :: a search deletes nothing (without this word, duplicates are only listed)
-N --noprompt --no-prompt => --yes
-L -makehardlinks=true --linkhard --link-hard => prune --action=hardlink :: a search changes nothing
-l -makesymlinks=true --linksoft --link-soft => prune --action=symlink :: a search changes nothing
-B --dedupe => prune --action=reflink :: a search changes nothing
-dryrun=true -n=true => --dry-run
# Conditions for duplicates.
-H --hardlinks --hard-links --match-links => --match-hardlinks
--isolate --must-match-tagged => --across-roots
-I => --across-roots :: -I has two meanings elsewhere, one of which deletes
-p --permissions --paranoid => --verify-bytes :: only contents count; bytes can be compared, too
-t= -T= --thread-number= => --threads={}
-T --partial-only -Z => :: only complete files are compared
--hash-fn= --hash-type= -checksum= => --algorithm={}
--hash-fn= --hash-type= -checksum= =>
-s=hash --search-method=hash =>
-s=name -s=size -s=size_name --search-method= :: only contents are compared; use: bc dup DIR
# Output.
-m= => --min-size={}
-m -M --summarize --printwithsummary => summary
-j => --format=json :: -j is --threads here
--json => --format=json
-0 --print-null --printnull => --format=json | jq -j '.groups[].files[].path + "\u0000"' :: -0 is for --files-from here
-1 => --one-file-system :: -1 has two meanings elsewhere (--format=jsonl prints one line per group)
--sameline => --format=jsonl :: several names on one line are JSON here
-u --unique --printunique --print-unique :: files without a duplicate are listed by another command; use: bc dup unique DIR
-f=fdupes -f=json -f=csv => --format={}
-f=default --format=default => --format=text
-f --omitfirst --omit-first => --format=json | jq -r '.groups[].files[1:][].path' :: the first file of a group is the one that would stay
--order= --sort= => :: groups are sorted by wasted space, files by path
-outputname= --file-to-save= => --output={}
-g => --progress=always
--debug => --verbose
# Which files.
-s=#-# --size=#-# :: the smallest and the largest size are separate options; use: bc dup --min-size=SIZE --max-size=SIZE DIR
-A --nohidden => --no-hidden
-s= -G= --size= --min= --minsize= -minsize= --minimal-file-size= => --min-size={}
--max= --maxsize= -maxsize= --maximal-file-size= => --max-size={}
-z --zeromatch --zero-match -ignoreempty=false => --min-size=0
-s --symlinks --follow-links --followlinks -followsymlinks=true => --follow-symlinks
-X= --extfilter= --ext-filter= :: --min-size, --max-size, --include and --exclude choose files: bc dup --include='*.jpg' DIR
-e= --excluded-directories= --excluded-items= => --exclude={} :: --exclude takes names and patterns
-e :: only contents are compared; use: bc dup DIR
--stdin => --files-from=-
# How they are read.
-y= --hash-db= => --cache={} :: a file of digests is a cache here
--hashfile= --io-threads= --cpu-threads= :: a search changes nothing; use: bc dup prune --action=reflink --cache=FILE DIR
# What is done anyway.
-n=true -n=false -dryrun= -makehardlinks= -makesymlinks= -deleteduplicates= =>
-ignoreempty= -followsymlinks= -makeresultsfile= -removeidentinode= -deterministic= -progress= =>
-C= --chunk-size= -sleep= --recurse: =>
-n --noempty -Q --quick -O --param-order -S --size -i --reverse -k --keep-all-tagged --keep-all-untagged --no-lock =>
-t --no-change-check --no-ignore =>
"#;

/// Words of mtree, AIDE, chkbit and their like.
const INTEGRITY: &str = r#"
init create add record -i --init => manifest --output=MANIFEST :: specify the directory to record and the file to write
check audit -C --check => verify
status => verify --mode=meta
compare -E --compare => diff
scrub => update --reread=100% :: re-reading everything records the time in the manifest
-c=*.conf --config= -n -D --config-check :: there is no rules file: the entire tree is recorded; use: bc integrity verify ROOT MANIFEST
--dry-init --path-check --path-check= :: there is no rules file: the entire tree is recorded; use: bc integrity verify ROOT MANIFEST
-u -U --update => update :: a manifest is changed, never the tree
-l= --limit= :: a tree is always verified completely; use: bc integrity verify ROOT MANIFEST | grep {}
-r=file:* --report=file:* => verify --output={}
-r= --report= => verify :: a report goes to stdout, or to --output=FILE
-c => manifest
-p= => verify {}
-f= => verify {}
-s= => :: a manifest ends with a checksum of itself
-X= => :: manifest --exclude=GLOB leaves files out
-k= -K= =>
-d -e -b -P -w -S -r -R --recursive =>
"#;

/// Words of cp, rsync, rclone, xcp and bcmr.
const COPY: &str = r#"
-V --verify --verify=true => --verify=read
-C --resume --append --append-verify --partial --inplace => :: the same command resumes by itself, from verified data
--continue => :: the same command resumes by itself, from verified data
--strict => :: a copy always verifies the data that it resumes from (--strict-metadata is for owner, mode and times)
--delete --delete-before --delete-during --delete-after => :: nothing is ever removed from a destination
--delete-excluded => :: nothing is ever removed from a destination
--remove-source-files :: a copy removes nothing; use: bc move SOURCE... DESTINATION
-n --no-clobber --ignore-existing => --on-conflict=skip
-u --update --update=older => --on-conflict=update
-c --checksum => --on-conflict=verify
-i --interactive -b --backup --backup= --suffix= => :: nothing is replaced unless --on-conflict says so
-l --link :: blocks can be shared, but no links are made: bc copy --reflink=always SOURCE... DESTINATION, or 'bc dup prune --action=hardlink' afterwards
-s --symbolic-link :: links are not made here; use: ln -s SOURCE NAME
-L --dereference -H :: links are copied as links; use: bc copy SOURCE... DESTINATION
-t= --target-directory= => {}
--reflink => --reflink=always
-P -A --acls -X --xattrs --times --perms --owner => :: all metadata is preserved unless --preserve says otherwise
--group --links --hard-links => :: all metadata is preserved unless --preserve says otherwise
-w= --workers= --transfers= --checkers= => --threads={}
-z --compress -W --whole-file -h --human-readable =>
"#;

/// Options of mv, of rsync and of rclone that mean something else here, or nothing.
const MOVE: &str = r#"
-V --verify --verify=true => --verify=read
-n --no-clobber --ignore-existing => --on-conflict=skip
-u --update --update=older => --on-conflict=update
-c --checksum => --on-conflict=verify
-i --interactive -b --backup --backup= --suffix= => :: nothing is replaced unless --on-conflict says so
-t= --target-directory= => {}
--remove-source-files --delete-empty-src-dirs =>
-C --resume --append --append-verify --partial --inplace --continue => :: the same command resumes by itself, from verified data
-L --dereference -H :: links are moved as links; use: bc move SOURCE... DESTINATION
--reflink => --reflink=always
-P -A --acls -X --xattrs --times --perms --owner => :: all metadata is preserved unless --preserve says otherwise
--group --links --hard-links => :: all metadata is preserved unless --preserve says otherwise
-w= --workers= --transfers= --checkers= => --threads={}
-z --compress -W --whole-file -h --human-readable =>
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_understood() {
        for applet in ["hash", "dup", "integrity", "copy", "move"] {
            for row in rows(applet) {
                assert!(
                    row.command.is_some() || !row.why.is_empty(),
                    "{}",
                    row.typed
                );
                assert!(
                    !row.typed.contains("  ") && !row.why.contains("=>"),
                    "{}",
                    row.typed
                );
            }
        }
        let row = row("-a -b= => check --x={} | y :: why");
        let value = OsStr::new("v");
        assert_eq!(row.subcommand(), Some("check"));
        assert_eq!(row.words("b", value).collect::<Vec<_>>(), ["--x=v"]);
        assert_eq!((row.suffix(), row.why), (" | y", "why"));
        assert!(row.has("-b") && !row.has("-c"));
    }

    #[test]
    fn patterns_of_values() {
        for (pattern, value, part) in [
            ("", "any", Some("any")),
            ("#", "12", Some("12")),
            ("#", "dir", None),
            ("aen", "AEN", Some("AEN")),
            ("sh:*", "sh:out", Some("out")),
            ("sh:*", "s", None),
            ("*.conf", "aide.conf", Some("aide")),
            ("hard", "soft", None),
            ("#-#", "20M-1G", Some("20M-1G")),
            ("#-#", "a-b", None),
        ] {
            assert_eq!(matched(pattern, value), part, "{pattern} {value}");
        }
    }
}
