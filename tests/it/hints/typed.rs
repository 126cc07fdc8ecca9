//! The examples of tldr-pages, of the manual pages and of the help of other tools, with our name in
//! place of theirs. Behind the arrow stands the answer with which it is refused; without one it is
//! done.

/// Of sha256sum, b2sum, cksum, b3sum, xxhsum, hashdeep and rhash.
pub const HASH: &str = "
# sha256sum and its relatives
hash f g
hash --check SUMS => bc hash check SUMS
hash -c SUMS => bc hash check SUMS
hash -c => bc hash check
hash -c - => bc hash check -
hash -c --quiet SUMS => bc hash check --quiet SUMS
hash -c --status SUMS => bc hash check --status SUMS
hash --check --ignore-missing SUMS => bc hash check --ignore-missing SUMS
hash --ignore-missing -c SUMS => bc hash check --ignore-missing SUMS
hash -c --strict -w SUMS => bc hash check --strict -w SUMS
hash -cw SUMS => bc hash check -w SUMS
hash check -c SUMS => bc hash check SUMS
hash -b f => bc hash f
hash --binary f => bc hash f
hash --text f => bc hash f
hash -t f => bc hash f
hash -bt f => bc hash f
hash -z f
hash --tag f => bc hash --format=bsd f
hash --zero --tag f => bc hash --format=bsd --zero f
hash -
hash
hash -a 256 f => bc hash --type=sha256 f
hash -a 512 -b f => bc hash --type=sha512 f
hash -a 256 -c SUMS => bc hash check --type=sha256 SUMS
hash --check --quiet SUMS => bc hash check --quiet SUMS
hash --ignore-missing --check --quiet SUMS => bc hash check --ignore-missing --quiet SUMS
hash --algorithm 1 f => bc hash --type=sha1 f
hash --algorithm 224 f => bc hash --type=sha224 f
hash --algorithm 256 f => bc hash --type=sha256 f
hash --algorithm 384 f => bc hash --type=sha384 f
hash --algorithm 512 f => bc hash --type=sha512 f
hash --algorithm 512256 f => bc hash --type=sha512-256 f
hash --algorithm 512224 f => there is no such algorithm here ('bc hash --help' lists them)
# b2sum, cksum
hash -l 256 f => a length is part of the algorithm's name here, as in: bc hash --type=blake2b-256 FILE
hash --length=256 f => a length is part of the algorithm's name here, as in: bc hash --type=blake2b-256 FILE
hash -l 384 f => a length is part of the algorithm's name here, as in: bc hash --type=blake2b-256 FILE
hash -a blake2b -l 384 f => a length is part of the algorithm's name here, as in: bc hash --type=blake2b-256 FILE
hash -a blake2b -l 256 f => a length is part of the algorithm's name here, as in: bc hash --type=blake2b-256 FILE
hash -a blake2b f => bc hash --type=blake2b f
hash -a sha256 f => bc hash --type=sha256 f
hash --algorithm=md5 f
hash --algorithm sm3 f
hash -a sha3 -l 256 f => a length is part of the algorithm's name here, as in: bc hash --type=blake2b-256 FILE
hash -a sha2 --length 512 f => a length is part of the algorithm's name here, as in: bc hash --type=blake2b-256 FILE
hash -a sha3 f => a length is part of the algorithm's name here, as in: bc hash --type=blake2b-256 FILE
hash -a crc f => bc hash --type=crc f
hash -a bsd f => bc hash --type=bsd f
hash --algorithm=sysv f
hash -a sha256 --untagged f => bc hash --type=sha256 f
hash -a sha256 --debug f => bc hash --type=sha256 --verbose f
hash --check -a sha256 SUMS => bc hash check --type=sha256 SUMS
hash --raw f => digests are printed in hexadecimal: bc hash FILE | cut -d' ' -f1 | xxd -r -p
hash --base64 f => digests are printed in hexadecimal: bc hash FILE | cut -d' ' -f1 | xxd -r -p | base64
# b3sum
hash --num-threads 1 f => bc hash --threads=1 f
hash --num-threads=4 f => bc hash --threads=4 f
hash --no-mmap f => bc hash f
hash --no-names f => bc hash f | cut -d' ' -f1
hash --length 100 f => a length is part of the algorithm's name here, as in: bc hash --type=blake2b-256 FILE
hash --keyed f => there are no keyed digests here
hash --derive-key=context f => there are no keyed digests here
# xxhsum
hash -H0 f => bc hash --type=xxh32 f
hash -H1 f g => bc hash --type=xxh64 f g
hash -H2 f => bc hash --type=xxh128 f
hash -H128 f => bc hash --type=xxh128 f
hash -H 64 f => bc hash --type=xxh64 f
hash -H3 f => bc hash --type=xxh3 f
hash -H32 -c SUMS => bc hash check --type=xxh32 SUMS
hash --filelist listed => bc hash --files-from=listed
hash --files-from listed
hash -H0 f g => bc hash --type=xxh32 f g
hash -H32 f => bc hash --type=xxh32 f
hash -H64 f => bc hash --type=xxh64 f
hash -c SUMS known => bc hash check SUMS known
hash --little-endian f => there is no such format here; 'bc hash --help' lists the formats
hash -i3 f => measure the speed with real files: time bc hash FILE
hash -b1,2,3 -i10 -B16384 => measure the speed with real files: time bc hash FILE
# hashdeep
hash -r dir
hash -rl dir => bc hash -r dir
hash -c md5 f => bc hash --type=md5 f
hash -c md5,sha1,sha256 -r dir => bc hash --type=md5,sha1,sha256 -r dir
hash -r -a -k known dir => bc hash check --unlisted known
hash -rak known dir => bc hash check --unlisted known
hash -a -vv -k known -r dir => bc hash check --unlisted known
hash -m -k known f g => bc hash check --unlisted known
hash -M -k known f => bc hash check --unlisted known
hash -w -m -k known f => bc hash check --unlisted known
hash -x -k known -r dir => bc hash check --unlisted known
hash -x -w -k known f => bc hash check --unlisted known
hash -a -k known -r dir => bc hash check --unlisted known
hash -m known f => look up digests with grep: bc hash --output=now DIR && cut -d' ' -f1 MANIFEST | grep -Ff - now
hash -wrm known dir => look up digests with grep: bc hash --output=now DIR && cut -d' ' -f1 MANIFEST | grep -Ff - now
hash -e f => bc hash --progress=always f
hash -l ./f => bc hash ./f
hash -b ./f => bc hash ./f
hash -p 1m f => bc hash FILE
hash -s -r dir => bc hash --quiet -r dir
hash -f listed => bc hash --files-from=listed
hash -j4 -r dir
hash -j 4 -r dir
hash -d -r dir => bc hash --format=json -r dir
# rhash
hash --sha256 f => bc hash --type=sha256 f
hash --md5 --sha1 f => bc hash --type=md5 --type=sha1 f
hash -M f => bc hash --type=md5 f
hash -H f => bc hash --type=sha1 f
hash --sha3-256 f => bc hash --type=sha3-256 f
hash -r --sha256 dir => bc hash --type=sha256 -r dir
hash --check --skip-ok SUMS => bc hash check --quiet SUMS
hash --bsd --sha256 f => bc hash --type=sha256 --format=bsd f
hash --simple --sha1 f => bc hash --type=sha1 --format=gnu f
hash -C f => bc hash --type=crc32b f
hash --sha1 --recursive dir => bc hash --type=sha1 --recursive dir
hash --sha3-256 --message text => the input is a file or a pipe: printf %s text | bc hash
hash --base64 --bsd f => digests are printed in hexadecimal: bc hash FILE | cut -d' ' -f1 | xxd -r -p | base64
hash --all f => bc hash --type=md5,sha1,sha256,sha512 f
hash -a f => bc hash --type=md5,sha1,sha256,sha512 f
hash -p %h f => there are no templates for lines, but formats for programs: bc hash --format=jsonl FILE
hash --printf=%p f => there are no templates for lines, but formats for programs: bc hash --format=jsonl FILE
hash --magnet f => there is no such format here; 'bc hash --help' lists the formats
hash -W f => there is no such algorithm here ('bc hash --help' lists them)
hash -u SUMS f => bc hash check --unlisted SUMS
hash --maxdepth=1 -r dir => bc hash --max-depth=1 -r dir
hash --speed f => bc hash --verbose f
hash --percents f => bc hash --progress=always f
# one name for one thing
hash --type=md5 f
hash --algorithm md5 f
hash check --algorithm sha256 SUMS
hash diff -t sha256 known known
hash diff --algorithm=sha256 known known
hash diff dir orig => bc hash --relative --output=old.sha256 dir && bc hash --relative --output=new.sha256 orig && bc hash diff old.sha256 new.sha256
";

/// Of jdupes, fdupes, fclones, rmlint, rdfind and czkawka.
pub const DUP: &str = r#"
# jdupes, fdupes
dup => bc dup .
dup dir -R orig
dup dir --recurse: orig => bc dup dir orig
dup dir --recurse orig
dup -O dir orig DIR => bc dup dir orig DIR
dup --param-order dir orig DIR => bc dup dir orig DIR
dup -rH dir => bc dup --match-hardlinks -r dir
dup --recurse --hardlinks dir => bc dup --match-hardlinks --recurse dir
dup --recurse --delete --noprompt . => bc dup prune --action=delete --yes --recurse .
dup dir
dup dir orig
dup -r dir
dup -R dir orig
dup -r -d . => bc dup prune --action=delete -r .
dup -d . => bc dup prune --action=delete .
dup --delete . => bc dup prune --action=delete .
dup --recurse --delete . => bc dup prune --action=delete --recurse .
dup -rdN . => bc dup prune --action=delete --yes -r .
dup -r -d -N . => bc dup prune --action=delete --yes -r .
dup --delete --noprompt . => bc dup prune --action=delete --yes .
dup scan -d . => bc dup prune --action=delete .
dup -m dir => bc dup summary dir
dup -rm dir => bc dup summary -r dir
dup --summarize dir => bc dup summary dir
dup -S dir => bc dup dir
dup -rSm dir => bc dup summary -r dir
dup --size dir => bc dup dir
dup -A dir => bc dup --no-hidden dir
dup --nohidden dir => bc dup --no-hidden dir
dup -1 dir => bc dup --one-file-system dir
dup --one-file-system dir
dup --sameline dir => bc dup --format=jsonl dir
dup -n dir => bc dup dir
dup -f dir => bc dup --format=json dir | jq -r '.groups[].files[1:][].path'
dup -q dir
dup -L . => bc dup prune --action=hardlink .
dup -r --linkhard . => bc dup prune --action=hardlink -r .
dup -l . => bc dup prune --action=symlink .
dup -B . => bc dup prune --action=reflink .
dup -rB . => bc dup prune --action=reflink -r .
dup -H dir => bc dup --match-hardlinks dir
dup -s dir => bc dup --follow-symlinks dir
dup -z dir => bc dup --min-size=0 dir
dup -j dir => bc dup --format=json dir
dup -rj dir => bc dup --format=json -r dir
dup --json dir => bc dup --format=json dir
dup -j 2 dir
dup -j2 dir
dup -i -O dir => bc dup dir
dup -I dir orig => bc dup --across-roots dir orig
dup --isolate dir orig => bc dup --across-roots dir orig
dup -o name dir
dup --order=time dir => bc dup dir
dup -p dir => bc dup --verify-bytes dir
dup -Q dir => bc dup dir
dup -T dir => bc dup dir
dup -u dir => bc dup unique DIR
dup -M dir => bc dup summary dir
dup -G 1 dir => bc dup --min-size=1 dir
dup --minsize=1 dir => bc dup --min-size=1 dir
dup -X size+:10k dir => --min-size, --max-size, --include and --exclude choose files: bc dup --include='*.jpg' DIR
dup -C 4096 dir => bc dup dir
dup -0 dir => bc dup --format=json dir | jq -j '.groups[].files[].path + "\u0000"'
# fclones
dup group . => bc dup .
dup group . --min 1 => bc dup --min-size=1 .
dup group . -s 1K => bc dup --min-size=1K .
dup group . --format json => bc dup --format=json .
dup group . -f fdupes => bc dup --format=fdupes .
dup group . -f default => bc dup --format=text .
dup group --isolate dir orig => bc dup --across-roots dir orig
dup group . --name *.jpg => bc dup '--include=*.jpg' .
dup group . --hash-fn blake3 => bc dup --algorithm=blake3 .
dup group . --threads 2 --cache=c => bc dup --threads=2 --cache=c .
dup group . --depth 1 => bc dup --max-depth=1 .
dup group . -d 1 => bc dup --max-depth=1 .
dup group . --match-links --follow-links => bc dup --match-hardlinks --follow-symlinks .
dup group . --unique => bc dup unique DIR
dup group . --rf-over 3 => bc dup --format=json . | jq '.groups[] | select((.files | length) > N)'
dup group . --rf-under 3 => bc dup unique DIR
dup group dir orig DIR => bc dup dir orig DIR
dup group --no-ignore --hidden dir => bc dup --hidden dir
dup group f g --depth 0 => bc dup --max-depth=0 f g
dup group . --name *.jpg *.png => bc dup '--include=*.jpg' . '*.png'
dup group --stdin --depth 0 => bc dup --max-depth=0 --files-from=-
dup group . -L --path /srv/** => bc dup prune '--include=/srv/**' --action=hardlink .
dup group . --exclude /dev/** /proc/** => bc dup '--exclude=/dev/**' . '/proc/**'
dup group dir orig --match-links => bc dup --match-hardlinks dir orig
dup group --cache dir orig => bc dup --cache dir orig
dup group . --threads main:1 => bc dup --threads=auto DIR
dup group . --threads main:16 ssd:4 hdd:1,1 => bc dup --threads=auto DIR
dup group . --threads dev:/dev/sda:0,2 => bc dup --threads=auto DIR
dup group . --name *.jpg -i --transform cat --in-place => bc dup DIR
dup group --stdin => bc dup --files-from=-
dup remove => bc dup prune --action=delete PATH
dup remove --dry-run => bc dup prune --action=delete --dry-run PATH
dup remove --priority newest => bc dup prune --action=delete --keep=oldest PATH
dup remove --priority oldest => bc dup prune --action=delete --keep=newest PATH
dup remove -n 2 => one file of each group stays here, and all others go; 'bc dup prune --help' lists the rules
dup remove --name *.jpg => bc dup prune --action=delete '--include=*.jpg' PATH
dup remove --path /trash/** => bc dup prune --action=delete '--include=/trash/**' PATH
dup remove --keep-path orig/** => bc dup prune --action=delete '--exclude=orig/**' PATH
dup remove --keep-name *.mov => bc dup prune --action=delete '--exclude=*.mov' PATH
dup link => bc dup prune --action=hardlink PATH
dup link --soft => bc dup prune --action=symlink PATH
dup link -s => bc dup prune --action=hardlink --follow-symlinks PATH
dup link --soft --dry-run => bc dup prune --action=symlink --dry-run PATH
dup dedupe => bc dup prune --action=reflink PATH
dup dedupe . => bc dup prune --action=reflink .
dup move target => bc dup prune --action=move:TARGET DIR
# rmlint
dup dir // orig => bc dup --reference=ORIGINALS DIR
dup dir // orig --keep-all-tagged => bc dup --reference=ORIGINALS DIR
dup -k dir // orig => bc dup --reference=ORIGINALS DIR
dup --keep-all-untagged dir // orig => bc dup --reference=ORIGINALS DIR
dup -s 1MB dir // orig => bc dup --reference=ORIGINALS DIR
dup dir // orig -k -m => bc dup --reference=ORIGINALS DIR
dup dir // orig --keep-all-tagged --must-match-tagged => bc dup --reference=ORIGINALS DIR
dup -g => bc dup --progress=always PATH
dup -p . => bc dup --verify-bytes .
dup -e => bc dup DIR
dup -b dir => bc dup DIR
dup -
dup -0 => bc dup --format=json PATH | jq -j '.groups[].files[].path + "\u0000"'
dup -s 2GB => bc dup --min-size=2GB PATH
dup -s 0-2GB => bc dup --min-size=SIZE --max-size=SIZE DIR
dup --size 20M-1G dir => bc dup --min-size=SIZE --max-size=SIZE DIR
dup --perms wx => bc dup DIR
dup -T df,dd . => bc dup DIR
dup -D dir => bc dup dirs dir
dup -S dl dir => bc dup prune --action=delete --dry-run --keep=oldest DIR
dup --rank-by m dir => bc dup prune --action=delete --dry-run --keep=oldest DIR
dup --replay report.json dir -S MaD => bc dup prune --from=REPORT.json
dup --replay a.json // b.json -k => bc dup --reference=ORIGINALS DIR
dup --equal dir orig DIR => bc dup DIR
dup --is-reflink f g => bc dup DIR
dup --xattr dir => bc dup --cache dir
dup -o uniques => bc dup .
dup -o sh dir
dup -c sh:link => bc dup prune --action=hardlink PATH
dup -c sh:link -b dir => bc dup DIR
dup -c sh:symlink . => bc dup prune --action=symlink .
dup -o sh -c sh:cmd=echo => bc dup --format=script DIR
dup -T df dir => bc dup DIR
dup -g dir => bc dup --progress=always dir
dup -s 1K dir => bc dup --min-size=1K dir
dup --size 1K dir => bc dup --min-size=1K dir
dup -pp dir => bc dup --verify-bytes dir
dup -o sh:out.sh dir
dup -O json:out.json dir => bc dup --format=json --output=out.json dir
dup -c sh:hardlink . => bc dup prune --action=hardlink .
dup --algorithm=sha256 dir
dup --merge-directories dir => bc dup dirs dir
# rdfind
dup -dryrun true dir => bc dup dir
dup -dryrun true -makehardlinks true . => bc dup prune --action=hardlink --dry-run .
dup -makehardlinks true . => bc dup prune --action=hardlink .
dup -makesymlinks true . => bc dup prune --action=symlink .
dup -deleteduplicates true . => bc dup prune --action=delete .
dup -deleteduplicates true -ignoreempty false . => bc dup prune --action=delete --min-size=0 .
dup -deleteduplicates false . => bc dup .
dup -minsize 1 -checksum sha256 dir => bc dup --algorithm=sha256 --min-size=1 dir
dup -ignoreempty true -makeresultsfile false dir => bc dup dir
dup -n true -deleteduplicates true . => bc dup prune --action=delete --dry-run .
# czkawka
dup --directories dir --directories orig => bc dup dir orig
dup dup --directories dir => bc dup DIR
dup dup -d dir -d orig -f out.txt => bc dup DIR
dup dup --directories dir --directories orig --file-to-save out.txt => bc dup DIR
dup dup -d . -D AEN => bc dup DIR
dup dup -d . -D AEO => bc dup DIR
dup dup -d . -D HARD => bc dup DIR
dup dup -d dir -D NONE => bc dup DIR
dup dup -d dir -D ON => bc dup DIR
dup dup -d . -e dir -m 25 -x 7z rar -s hash -f out.txt => bc dup DIR
dup dup -d dir -e orig -m 25 -x 7z rar IMAGE -s hash -f out.txt -D aeo => bc dup DIR
dup empty-folders -d dir orig -f out.txt => find DIR -type d -empty
dup empty-files -d dir orig -e DIR -R -f out.txt => find DIR -type f -empty
dup image -d dir -s High -f out.txt => bc dup DIR
dup big -d dir orig -e DIR -n 25 -J -x VIDEO -f out.txt => bc dup DIR
dup temp -d dir -E */.git */tmp* -f out.txt -D => bc dup DIR
dup music -d dir -e orig -z track_artist,year -f out.txt => bc dup DIR
dup symlinks -d dir orig -e DIR -x jpg -f out.txt => bc dup DIR
dup broken -d dir -e orig -f out.txt => bc dup DIR
dup video -d dir -f out.txt => bc dup DIR
dup ext -d dir -e orig -f out.txt => bc dup DIR
dup bad-names -d dir -u -j -w -n -f out.txt => bc dup DIR
dup video-optimizer -d dir transcode -c h264 -f out.txt => bc dup DIR
dup exif-remover -d dir -x IMAGE -f out.txt => bc dup DIR
# duperemove
dup -r -d --hashfile=hashes --io-threads=2 --cpu-threads=2 . => bc dup prune --action=reflink --cache=FILE DIR
dup --directories dir -m 25 => bc dup --min-size=25 dir
dup --minimal-file-size 25 dir => bc dup --min-size=25 dir
dup --excluded-directories orig . => bc dup --exclude=orig .
dup -s hash dir => bc dup dir
dup -s name dir => bc dup DIR
dup -D AEO . => bc dup prune --action=delete --keep=oldest .
dup --delete-method aen . => bc dup prune --action=delete --keep=newest .
dup --delete-method HARD . => bc dup prune --action=hardlink .
dup --file-to-save out.txt dir => bc dup --output=out.txt dir
dup --hash-type BLAKE3 dir => bc dup dir
dup image dir => bc dup DIR
dup empty-files dir => find DIR -type f -empty
dup empty-folders dir => find DIR -type d -empty
# one name for one thing
dup --type=sha256 dir
dup --type blake3 dir
dup -t blake3 dir
dup -t 2 dir => bc dup --threads=2 dir
dup --thread-number 2 dir => bc dup --threads=2 dir
"#;

/// Of AIDE and mtree.
pub const INTEGRITY: &str = "
integrity dir => bc integrity manifest --output=MANIFEST dir
integrity dir MANIFEST => bc integrity verify dir MANIFEST
integrity init => bc integrity manifest --output=MANIFEST ROOT
integrity init dir => bc integrity manifest --output=MANIFEST dir
integrity add dir => bc integrity manifest --output=MANIFEST dir
integrity check => bc integrity verify ROOT MANIFEST
integrity check dir => bc integrity verify dir MANIFEST
integrity check dir MANIFEST => bc integrity verify dir MANIFEST
integrity audit dir MANIFEST => bc integrity verify dir MANIFEST
integrity status dir MANIFEST => bc integrity verify --mode=meta dir MANIFEST
integrity scrub dir MANIFEST => bc integrity update --reread=100% dir MANIFEST
integrity compare MANIFEST MANIFEST => bc integrity diff MANIFEST MANIFEST
# AIDE
integrity --init => bc integrity manifest --output=MANIFEST ROOT
integrity -i => bc integrity manifest --output=MANIFEST ROOT
integrity --config=aide.conf --init => bc integrity verify ROOT MANIFEST
integrity -c aide.conf --check => bc integrity verify ROOT MANIFEST
integrity --check => bc integrity verify ROOT MANIFEST
integrity -C => bc integrity verify ROOT MANIFEST
integrity --update => bc integrity update ROOT MANIFEST
integrity --compare => bc integrity diff OLD NEW
integrity --config-check => bc integrity verify ROOT MANIFEST
integrity --dry-init => bc integrity verify ROOT MANIFEST
integrity --path-check=f:/etc => bc integrity verify ROOT MANIFEST
integrity -u => bc integrity update ROOT MANIFEST
integrity -E => bc integrity diff OLD NEW
integrity -c aide.conf => bc integrity verify ROOT MANIFEST
integrity --config rules => bc integrity verify ROOT MANIFEST
integrity --config rules --init => bc integrity verify ROOT MANIFEST
integrity -l /etc => bc integrity verify ROOT MANIFEST | grep /etc
integrity --limit=/etc => bc integrity verify ROOT MANIFEST | grep /etc
integrity --update --limit /etc => bc integrity verify ROOT MANIFEST | grep /etc
integrity -r stdout => bc integrity verify ROOT MANIFEST
integrity --report file:out => bc integrity verify --output=out ROOT MANIFEST
integrity --report url => bc integrity verify ROOT MANIFEST
integrity --check --limit /etc => bc integrity verify ROOT MANIFEST | grep /etc
# mtree
integrity -c -p dir => bc integrity manifest dir
integrity -c -k sha256digest -p dir => bc integrity manifest dir
integrity -cp dir => bc integrity manifest dir
integrity -p dir -f MANIFEST => bc integrity verify dir MANIFEST
integrity -f MANIFEST -p dir => bc integrity verify dir MANIFEST
integrity -p dir => bc integrity verify dir MANIFEST
integrity -e -p dir -f MANIFEST => bc integrity verify dir MANIFEST
integrity -u -p dir -f MANIFEST => bc integrity update dir MANIFEST
integrity -s 1234 -p dir -f MANIFEST => bc integrity verify dir MANIFEST
integrity -c -K sha256digest -p dir => bc integrity manifest dir
integrity -c => bc integrity manifest ROOT
integrity -d -u -p dir -f MANIFEST => bc integrity update dir MANIFEST
integrity -deU -f MANIFEST -p dir => bc integrity update dir MANIFEST
integrity -c -d -i -n -k uname,gname,mode,nochange => bc integrity verify ROOT MANIFEST
# one name for one thing
integrity manifest --type=md5 dir
integrity manifest -t blake3 -j 2 dir
integrity manifest --algorithm=blake3 dir
integrity import -t sha256 SUMS
";

/// Of cp, rsync and bcmr.
pub const COPY: &str = "
copy -a -r dir to-a
copy -R dir to-b
copy --recursive dir to-c
copy --reflink=disable dir to-d
copy --sync dir to-e
copy --jobs=2 --type=sha256 dir to-f
copy -r --sync dir to-g
copy -r --sync --jobs 4 dir to-h
copy --reflink=disable --jobs 32 f to-i
copy -r -V -C dir to => bc copy --verify=read -r dir to
copy --resume --strict --append f to => bc copy f to
copy -V dir to => bc copy --verify=read dir to
copy -C dir to => bc copy dir to
copy --resume dir to => bc copy dir to
copy --strict dir to => bc copy dir to
copy --append dir to => bc copy dir to
copy -a --delete dir to => bc copy -a dir to
copy -n dir to => bc copy --on-conflict=skip dir to
copy -u dir to => bc copy --on-conflict=update dir to
copy -i dir to => bc copy dir to
copy -b dir to => bc copy dir to
copy -l dir to => blocks can be shared, but no links are made: bc copy --reflink=always SOURCE... DESTINATION, or 'bc dup prune --action=hardlink' afterwards
copy -s dir to => ln -s SOURCE NAME
copy -L dir to => bc copy SOURCE... DESTINATION
copy -anv dir to => bc copy --on-conflict=skip -a -v dir to
copy --checksum dir to => bc copy --on-conflict=verify dir to
copy --reflink dir to => bc copy --reflink=always dir to
copy --sync batch dir to => bc copy --sync=batch SOURCE... DESTINATION
copy --target-directory=orig f => bc copy f orig
copy --remove-source-files dir to => bc move SOURCE... DESTINATION
move -n dir to => bc move --on-conflict=skip dir to
move --target-directory=orig f => bc move f orig
";
