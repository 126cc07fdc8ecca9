//! The examples of tldr-pages, of the manual pages and of the help of other tools, with our name in
//! place of theirs. Behind the arrow stands the command that the refusal holds; without one it is
//! done. A command of another program is named where nothing else does the job.

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
hash --check --quiet SUMS
hash --ignore-missing --check --quiet SUMS
hash --algorithm 1 f
hash --algorithm 224 f
hash --algorithm 256 f
hash --algorithm 384 f
hash --algorithm 512 f
hash --algorithm 512256 f
hash --algorithm 512224 f => shasum --algorithm 512224 f
# b2sum, cksum
hash -l 256 f => bc hash --type=blake2b-256 f
hash --length=256 f => bc hash --type=blake2b-256 f
hash -l 384 f => b2sum -l 384 f
hash -a blake2b -l 384 f => cksum -a blake2b -l 384 f
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
hash --length 100 f => b3sum --length 100 f
hash --keyed f => b3sum --keyed f
hash --derive-key=context f => b3sum --derive-key=context f
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
hash -H0 f g
hash -H32 f
hash -H64 f
hash -c SUMS known
hash --little-endian f => xxhsum --little-endian f
hash -i3 f => xxhsum -i3 f
hash -b1,2,3 -i10 -B16384 => xxhsum -b1,2,3 -i10 -B16384
# hashdeep
hash -r dir
hash -rl dir
hash -c md5 f
hash -c md5,sha1,sha256 -r dir
hash -r -a -k known dir => bc hash check --unlisted known
hash -rak known dir => bc hash check --unlisted known
hash -a -vv -k known -r dir => bc hash check --unlisted known -v -v
hash -m -k known f g => bc hash --output=now.sha256 f g && cut -d' ' -f1 known | grep -Ff - now.sha256
hash -M -k known f => bc hash --output=now.sha256 f && cut -d' ' -f1 known | grep -Ff - now.sha256
hash -w -m -k known f => bc hash --output=now.sha256 f && cut -d' ' -f1 known | grep -Ff - now.sha256
hash -x -k known -r dir => bc hash --output=now.sha256 dir && cut -d' ' -f1 known | grep -vFf - now.sha256
hash -x -w -k known f => bc hash --output=now.sha256 f && cut -d' ' -f1 known | grep -vFf - now.sha256
hash -a -k known -r dir => bc hash check --unlisted known
hash -m known f => bc hash --output=now.sha256 f && cut -d' ' -f1 known | grep -Ff - now.sha256
hash -wrm known dir => bc hash --output=now.sha256 dir && cut -d' ' -f1 known | grep -Ff - now.sha256
hash -a 900150983cd24fb0d6963f7d28e17f72 f => bc hash --type=md5 f | grep -i 900150983cd24fb0d6963f7d28e17f72
hash -e f => bc hash --progress=always f
hash -l ./f
hash -b ./f
hash -p 1m f => hashdeep -p 1m f
hash -s -r dir
hash -f listed
hash -j4 -r dir
hash -j 4 -r dir
hash -d -r dir => hashdeep -d -r dir
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
hash -C f
hash --sha1 --recursive dir
hash --sha3-256 --message text => printf %s text | bc hash --type=sha3-256
hash --base64 --bsd f => rhash --base64 --bsd f
hash --all f => bc hash --type=md5,sha1,sha256,sha512 f
hash -a f => bc hash --type=md5,sha1,sha256,sha512 f
hash -p %h f => rhash -p %h f
hash --printf=%p f => rhash --printf=%p f
hash --magnet f => rhash --magnet f
hash -W f => rhash -W f
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
dup => bc dup .
dup dir -R orig
dup dir --recurse: orig
dup dir --recurse orig
dup -O dir orig DIR
dup --param-order dir orig DIR
dup -rH dir
dup --recurse --hardlinks dir
dup --recurse --delete --noprompt . => bc dup prune --action=delete --yes .
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
dup group . --rf-over 3 => bc dup --format=json . | jq -r '.groups[] | select((.files | length) > 3).files[].path'
dup group . --rf-under 3 => bc hash . | awk
dup group dir orig DIR
dup group --no-ignore --hidden dir
dup group f g --depth 0
dup group . --name *.jpg *.png
dup group --stdin --depth 0
dup group . -L --path /srv/** => bc dup --follow-symlinks '--include=/srv/**' .
dup group . --exclude /dev/** /proc/**
dup group dir orig --match-links
dup group --cache dir orig
dup group . --threads main:1 => bc dup --threads=1 .
dup group . --threads main:16 ssd:4 hdd:1,1 => bc dup --threads=auto .
dup group . --threads dev:/dev/sda:0,2 => bc dup --threads=auto .
dup group . --name *.jpg -i --transform cat --in-place => fclones group . --name '*.jpg' -i --transform cat --in-place
dup group --stdin
dup remove => bc dup prune --action=delete --from=report.json
dup remove --dry-run => bc dup prune --action=delete --dry-run --from=report.json
dup remove --priority newest => bc dup prune --action=delete --keep=oldest --from=report.json
dup remove --priority oldest => bc dup prune --action=delete --keep=newest --from=report.json
dup remove -n 2 => fclones remove -n 2
dup remove --name *.jpg => bc dup prune --action=delete '--include=*.jpg' --from=report.json
dup remove --path /trash/** => fclones remove --path '/trash/**'
dup remove --keep-path orig/** => bc dup prune --action=delete --reference=orig --from=report.json
dup remove --keep-name *.mov => bc dup prune --action=delete '--exclude=*.mov' --from=report.json
dup link => bc dup prune --action=hardlink --from=report.json
dup link --soft => bc dup prune --action=symlink --from=report.json
dup link -s => bc dup prune --action=symlink --from=report.json
dup link --soft --dry-run => bc dup prune --action=symlink --dry-run --from=report.json
dup dedupe => bc dup prune --action=reflink --from=report.json
dup dedupe . => bc dup prune --action=reflink .
dup move target => bc dup prune --action=move:target --from=report.json
# rmlint
dup dir // orig => bc dup --reference=orig dir
dup dir // orig --keep-all-tagged => bc dup --reference=orig dir
dup -k dir // orig => bc dup --reference=orig dir
dup --keep-all-untagged dir // orig => bc dup --reference=orig dir
dup -s 1MB dir // orig => bc dup --min-size=1MB --reference=orig dir
dup dir // orig -k -m => bc dup --across-roots --reference=orig dir
dup dir // orig --keep-all-tagged --must-match-tagged => bc dup --across-roots --reference=orig dir
dup -g => bc dup --progress=always .
dup -p . => bc dup --verify-bytes .
dup -e => rmlint -e
dup -b dir => rmlint -b dir
dup -
dup -0
dup -s 2GB => bc dup --min-size=2GB .
dup -s 0-2GB => bc dup --min-size=0 --max-size=2GB .
dup --size 20M-1G dir
dup --perms wx => rmlint --perms wx
dup -T df,dd . => rmlint -T df,dd .
dup -D dir => rmlint -D dir
dup -S dl dir => bc dup prune --action=delete --dry-run --keep=shortest-path dir
dup --rank-by m dir => bc dup prune --action=delete --dry-run --keep=oldest dir
dup --replay report.json dir -S MaD => rmlint --replay report.json dir -S MaD
dup --replay a.json // b.json -k => rmlint --replay a.json // b.json -k
dup --equal dir orig DIR => rmlint --equal dir orig DIR
dup --is-reflink f g => rmlint --is-reflink f g
dup --xattr dir
dup -o uniques => bc hash . | sort | uniq --unique --check-chars=64
dup dir -o json -o uniques:once => bc hash dir | sort | uniq --unique --check-chars=64
dup -o sh dir => bc dup --format=script --output=rmlint.sh dir
dup -c sh:link => bc dup prune --action=hardlink .
dup -c sh:link -b dir => rmlint -c sh:link -b dir
dup -c sh:symlink . => bc dup prune --action=symlink .
dup -o sh -c sh:cmd=echo => rmlint -o sh -c sh:cmd=echo
dup -T df dir
dup -g dir
dup -s 1K dir
dup --size 1K dir
dup -pp dir => bc dup --verify-bytes dir
dup -o sh:out.sh dir => bc dup --format=script --output=out.sh dir
dup -O json:out.json dir => bc dup --format=json --output=out.json dir
dup -c sh:hardlink . => bc dup prune --action=hardlink .
dup --algorithm=sha256 dir
dup --merge-directories dir => rmlint --merge-directories dir
# rdfind
dup -dryrun true dir
dup -dryrun true -makehardlinks true . => bc dup prune --dry-run --action=hardlink .
dup -makehardlinks true . => bc dup prune --action=hardlink .
dup -makesymlinks true . => bc dup prune --action=symlink .
dup -deleteduplicates true . => bc dup prune --action=delete .
dup -deleteduplicates true -ignoreempty false . => bc dup prune --action=delete --min-size=0 .
dup -deleteduplicates false .
dup -minsize 1 -checksum sha256 dir
dup -ignoreempty true -makeresultsfile false dir
dup -n true -deleteduplicates true . => bc dup prune --dry-run --action=delete .
# czkawka
dup --directories dir --directories orig
dup dup --directories dir
dup dup -d dir -d orig -f out.txt
dup dup --directories dir --directories orig --file-to-save out.txt
dup dup -d . -D AEN => bc dup prune --action=delete --keep=newest .
dup dup -d . -D AEO => bc dup prune --action=delete --keep=oldest .
dup dup -d . -D HARD => bc dup prune --action=hardlink .
dup dup -d dir -D NONE
dup dup -d dir -D ON => czkawka_cli dup -d dir -D ON
dup dup -d . -e dir -m 25 -x 7z rar -s hash -f out.txt
dup dup -d dir -e orig -m 25 -x 7z rar IMAGE -s hash -f out.txt -D aeo => czkawka_cli dup -d dir -e orig -m 25 -x 7z rar IMAGE -s hash -f out.txt -D aeo
dup empty-folders -d dir orig -f out.txt => find dir orig -type d -empty > out.txt
dup empty-files -d dir orig -e DIR -R -f out.txt => find dir orig -maxdepth 1 -not -path DIR -not -path 'DIR/*' -type f -empty > out.txt
dup image -d dir -s High -f out.txt => czkawka_cli image -d dir -s High -f out.txt
dup big -d dir orig -e DIR -n 25 -J -x VIDEO -f out.txt => czkawka_cli big -d dir orig -e DIR -n 25 -J -x VIDEO -f out.txt
dup temp -d dir -E */.git */tmp* -f out.txt -D => czkawka_cli temp -d dir -E '*/.git' '*/tmp*' -f out.txt -D
dup music -d dir -e orig -z track_artist,year -f out.txt => czkawka_cli music -d dir -e orig
dup symlinks -d dir orig -e DIR -x jpg -f out.txt => czkawka_cli symlinks -d dir orig
dup broken -d dir -e orig -f out.txt => czkawka_cli broken -d dir -e orig
dup video -d dir -f out.txt => czkawka_cli video -d dir
dup ext -d dir -e orig -f out.txt => czkawka_cli ext -d dir -e orig
dup bad-names -d dir -u -j -w -n -f out.txt => czkawka_cli bad-names -d dir -u -j -w -n
dup video-optimizer -d dir transcode -c h264 -f out.txt => czkawka_cli video-optimizer -d dir
dup exif-remover -d dir -x IMAGE -f out.txt => czkawka_cli exif-remover -d dir
# duperemove
dup -r -d --hashfile=hashes --io-threads=2 --cpu-threads=2 . => bc dup prune --action=reflink --cache=hashes --threads=2 .
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
dup image dir => czkawka_cli image dir
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
integrity --config-check => aide --config-check
integrity --dry-init => aide --dry-init
integrity --path-check=f:/etc => aide --path-check=f:/etc
integrity -u => bc integrity update ROOT MANIFEST
integrity -E => bc integrity diff OLD NEW
integrity -c aide.conf => bc integrity verify ROOT MANIFEST
integrity --config rules => bc integrity verify ROOT MANIFEST
integrity --config rules --init => bc integrity manifest --output=MANIFEST ROOT
integrity -l /etc => bc integrity verify ROOT MANIFEST | grep /etc
integrity --limit=/etc => bc integrity verify ROOT MANIFEST | grep /etc
integrity --update --limit /etc => aide --update --limit /etc
integrity -r stdout => bc integrity verify ROOT MANIFEST
integrity --report file:out => bc integrity verify --output=out ROOT MANIFEST
integrity --report url => bc integrity verify ROOT MANIFEST
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
integrity -s 1234 -p dir -f MANIFEST => bc integrity verify dir MANIFEST
integrity -c -K sha256digest -p dir
integrity -c => bc integrity manifest .
integrity -d -u -p dir -f MANIFEST => mtree -d -u -p dir -f MANIFEST
integrity -deU -f MANIFEST -p dir => mtree -deU -f MANIFEST -p dir
integrity -c -d -i -n -k uname,gname,mode,nochange => mtree -c -d -i -n -k uname,gname,mode,nochange
# one name for one thing
integrity manifest --type=md5 dir
integrity manifest -t blake3 -j 2 dir
integrity manifest --algorithm=blake3 dir
integrity import -t sha256 SUMS
";
