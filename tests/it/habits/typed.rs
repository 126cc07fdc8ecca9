//! The examples of tldr-pages and of the manual pages of other tools, in our own words for them,
//! with our name in place of theirs. Behind the arrow stands the command that the refusal holds;
//! without one it is done.

/// Of sha256sum, b2sum, cksum, b3sum, xxhsum, hashdeep and rhash.
pub const HASH: &str = "
# sha256sum and its relatives
hash f g
hash --check SUMS
hash -c SUMS
hash -c
hash -c -
hash -c --quiet SUMS
hash -c --status SUMS
hash --check --ignore-missing SUMS
hash --ignore-missing -c SUMS
hash -c --strict -w SUMS
hash -cw SUMS
hash check -c SUMS
hash -b f
hash --binary f
hash --text f
hash -t f => bc hash f
hash -bt f => bc hash f
hash -z f
hash --tag f
hash --zero --tag f
hash -
hash
hash -a 256 f
hash -a 512 -b f
hash -a 256 -c SUMS
# b2sum, cksum
hash -l 256 f => bc hash --type=blake2b-256 f
hash --length=256 f => bc hash --type=blake2b-256 f
hash -l 384 f => bc hash --type=blake2b-256 f
hash -a blake2b -l 256 f
hash -a blake2b f
hash -a sha256 f
hash --algorithm=md5 f
hash --algorithm sm3 f
hash -a sha3 -l 256 f
hash -a sha2 --length 512 f
hash -a sha3 f => bc hash --type=sha3-256 f
hash -a crc f
hash -a bsd f
hash --algorithm=sysv f
hash -a sha256 --untagged f
hash -a sha256 --debug f
hash --check -a sha256 SUMS
hash --raw f => bc hash f | cut -d' ' -f1 | xxd -r -p
hash --base64 f => bc hash f | cut -d' ' -f1 | xxd -r -p | base64
# b3sum
hash --num-threads 1 f
hash --num-threads=4 f
hash --no-mmap f
hash --no-names f => bc hash f | cut -d' ' -f1
hash --length 100 f => bc hash f
hash --keyed f => bc hash --type=blake3 f
# xxhsum
hash -H0 f
hash -H1 f g
hash -H2 f
hash -H128 f
hash -H 64 f
hash -H3 f
hash -H32 -c SUMS
hash --filelist listed
hash --files-from listed
hash --little-endian f => bc hash f
hash -i3 f => time bc hash --type=xxh64 f
# hashdeep
hash -r dir
hash -rl dir
hash -c md5 f
hash -c md5,sha1,sha256 -r dir
hash -r -a -k known dir => bc hash check --unlisted known
hash -rak known dir => bc hash check --unlisted known
hash -a -vv -k known -r dir => bc hash check --unlisted known -v -v
hash -m -k known f => bc hash check --unlisted known
hash -x -k known -r dir => bc hash check --unlisted known
hash -p 1m f => bc hash f
hash -s -r dir
hash -f listed
hash -j4 -r dir
hash -j 4 -r dir
hash -d -r dir => bc hash --format=json dir
# rhash
hash --sha256 f
hash --md5 --sha1 f
hash -M f
hash -H f
hash --sha3-256 f
hash -r --sha256 dir
hash --check --skip-ok SUMS
hash --bsd --sha256 f
hash --simple --sha1 f
hash -C f => bc hash --type=crc32c f
hash --all f => bc hash --type=md5,sha1,sha256,sha512 f
hash -a f => bc hash --type=md5,sha1,sha256,sha512 f
hash -p %h f => bc hash --format=csv f
hash --printf=%p f => bc hash --format=csv f
hash --magnet f => bc hash f
hash -W f => bc hash --type=sha256 f
hash -u SUMS f => bc hash check --unlisted SUMS
hash --maxdepth=1 -r dir
hash --speed f
hash --percents f
# one name for one thing
hash --type=md5 f
hash --algorithm md5 f
hash check --algorithm sha256 SUMS
hash diff -t sha256 known known
hash diff --algorithm=sha256 known known
hash diff dir orig => bc hash --relative --output=old.sha256 dir && bc hash --relative --output=new.sha256 orig && bc hash diff old.sha256 new.sha256
";

/// Of jdupes, fdupes, fclones, rmlint, rdfind and czkawka.
pub const DUP: &str = "
# jdupes, fdupes
dup dir
dup dir orig
dup -r dir
dup -R dir orig
dup -r -d . => bc dup prune --action=delete .
dup -d . => bc dup prune --action=delete .
dup --delete . => bc dup prune --action=delete .
dup --recurse --delete . => bc dup prune --action=delete .
dup -rdN . => bc dup prune --action=delete --yes .
dup -r -d -N . => bc dup prune --action=delete --yes .
dup --delete --noprompt . => bc dup prune --action=delete --yes .
dup scan -d . => bc dup prune --action=delete .
dup -m dir
dup -rm dir
dup --summarize dir
dup -S dir
dup -rSm dir
dup --size dir
dup -A dir
dup --nohidden dir
dup -1 dir => bc dup --one-file-system dir
dup --one-file-system dir
dup --sameline dir => bc dup --format=jsonl dir
dup -n dir
dup -f dir => bc dup --format=json dir | jq -r '.groups[].files[1:][].path'
dup -q dir
dup -L . => bc dup prune --action=hardlink .
dup -r --linkhard . => bc dup prune --action=hardlink .
dup -l . => bc dup prune --action=symlink .
dup -B . => bc dup prune --action=reflink .
dup -rB . => bc dup prune --action=reflink .
dup -H dir
dup -s dir
dup -z dir
dup -j dir => bc dup --format=json dir
dup -rj dir => bc dup --format=json dir
dup --json dir
dup -j 2 dir
dup -j2 dir
dup -i -O dir
dup -I dir orig => bc dup --across-roots dir orig
dup --isolate dir orig
dup -o name dir => bc dup dir
dup --order=time dir => bc dup dir
dup -p dir => bc dup --verify-bytes dir
dup -Q dir
dup -T dir => bc dup dir
dup -u dir => bc dup unique dir
dup -M dir
dup -G 1 dir
dup --minsize=1 dir
dup -X size+:10k dir => bc dup '--include=*' dir
dup -C 4096 dir
dup -0 dir => bc dup --format=json dir
# fclones
dup group .
dup group . --min 1
dup group . -s 1K
dup group . --format json
dup group . -f fdupes
dup group . -f default
dup group --isolate dir orig
dup group . --name *.jpg
dup group . --hash-fn blake3
dup group . --threads 2 --cache=c
dup group . --depth 1
dup group . -d 1
dup group . --match-links --follow-links
dup group . --unique => bc dup unique .
dup group . --transform cat => bc dup . cat
dup group --stdin
dup remove => bc dup prune --action=delete --from=report.json
dup remove --dry-run => bc dup prune --action=delete --dry-run --from=report.json
dup remove --priority newest => bc dup prune --action=delete --keep=oldest --from=report.json
dup remove --keep-path orig/** => bc dup prune --action=delete '--keep=path:orig/**' --from=report.json
dup link => bc dup prune --action=hardlink --from=report.json
dup link --soft => bc dup prune --action=symlink --from=report.json
dup dedupe => bc dup prune --action=reflink --from=report.json
dup dedupe . => bc dup prune --action=reflink .
dup move DIR => bc dup prune --action=move:DIR --from=report.json
# rmlint
dup dir // orig => bc dup --reference=orig dir
dup dir // orig --keep-all-tagged => bc dup --reference=orig dir
dup -T df dir
dup -g dir
dup -s 1K dir
dup --size 1K dir
dup -pp dir => bc dup --verify-bytes dir
dup -o sh:out.sh dir => bc dup --format=script --output=out.sh dir
dup -O json:out.json dir => bc dup --format=json --output=out.json dir
dup -c sh:hardlink . => bc dup prune --action=hardlink .
dup --algorithm=sha256 dir
dup --merge-directories dir => bc dup dir
# rdfind
dup -dryrun true dir
dup -dryrun true -makehardlinks true . => bc dup prune --dry-run --action=hardlink .
dup -makehardlinks true . => bc dup prune --action=hardlink .
dup -makesymlinks true . => bc dup prune --action=symlink .
dup -deleteduplicates true . => bc dup prune --action=delete .
dup -deleteduplicates false .
dup -minsize 1 -checksum sha256 dir
dup -ignoreempty true -makeresultsfile false dir
dup -n true -deleteduplicates true . => bc dup prune --dry-run --action=delete .
# czkawka
dup --directories dir --directories orig
dup dup --directories dir
dup --directories dir -m 25
dup --minimal-file-size 25 dir
dup --excluded-directories orig . => bc dup --exclude=orig .
dup -s hash dir
dup -s name dir => bc dup dir
dup -D AEO . => bc dup prune --action=delete --keep=oldest .
dup --delete-method aen . => bc dup prune --action=delete --keep=newest .
dup --delete-method HARD . => bc dup prune --action=hardlink .
dup --file-to-save out.txt dir
dup --hash-type BLAKE3 dir
dup image dir => bc dup dir
dup empty-files dir => find dir -type f -empty
dup empty-folders dir => find dir -type d -empty
# one name for one thing
dup --type=sha256 dir
dup --type blake3 dir
dup -t blake3 dir
dup -t 2 dir
dup --thread-number 2 dir
";

/// Of AIDE and mtree.
pub const INTEGRITY: &str = "
integrity dir => bc integrity manifest --output=MANIFEST dir
integrity dir MANIFEST => bc integrity verify dir MANIFEST
integrity init => bc integrity manifest --output=MANIFEST ROOT
integrity init dir => bc integrity manifest --output=MANIFEST dir
integrity add dir => bc integrity manifest --output=MANIFEST dir
integrity check => bc integrity verify ROOT MANIFEST
integrity check dir => bc integrity verify dir MANIFEST
integrity check dir MANIFEST
integrity audit dir MANIFEST
integrity status dir MANIFEST
integrity scrub dir MANIFEST => bc integrity update --reread=100% dir MANIFEST
integrity compare MANIFEST MANIFEST
# AIDE
integrity --init => bc integrity manifest --output=MANIFEST ROOT
integrity -i => bc integrity manifest --output=MANIFEST ROOT
integrity --config=aide.conf --init => bc integrity manifest --output=MANIFEST ROOT
integrity -c aide.conf --check => bc integrity verify ROOT MANIFEST
integrity --check => bc integrity verify ROOT MANIFEST
integrity -C => bc integrity verify ROOT MANIFEST
integrity --update => bc integrity update ROOT MANIFEST
integrity --compare => bc integrity diff OLD NEW
integrity --config-check => bc integrity manifest --describe ROOT
integrity --check --limit /etc => bc integrity verify ROOT MANIFEST
# mtree
integrity -c -p dir
integrity -c -k sha256digest -p dir
integrity -cp dir
integrity -p dir -f MANIFEST
integrity -f MANIFEST -p dir
integrity -p dir => bc integrity verify dir MANIFEST
integrity -f MANIFEST -f MANIFEST
integrity -e -p dir -f MANIFEST
integrity -u -p dir -f MANIFEST => bc integrity update dir MANIFEST
# one name for one thing
integrity manifest --type=md5 dir
integrity manifest -t blake3 -j 2 dir
integrity manifest --algorithm=blake3 dir
integrity import -t sha256 SUMS
";
