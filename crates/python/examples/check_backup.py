"""Records a tree the first time, and lists changed and damaged files on later runs:
check_backup.py DIR MANIFEST.
"""

import os
import sys

import bit_crafts


def main(root: str, record: str) -> None:
    if not os.path.exists(record):
        written = bit_crafts.manifest(root, record, progress=bar).complete()
        print(f"{written.files} files recorded")
        return
    with bit_crafts.iter_verify(root, record, progress=bar) as changes:
        for change in changes:
            print(f"{change.status}: {change.path!a}")
        verified = changes.result()
    if verified.is_damaged:
        sys.exit("damaged")
    verified.complete()


def bar(now: bit_crafts.Progress) -> None:
    """Draws a bar of forty characters, once the total is known."""
    if now.files_total:
        done = min(40, now.files * 40 // now.files_total)
        print(f"\r[{'#' * done:40}] {now.files}/{now.files_total}", end="", file=sys.stderr)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except bit_crafts.Error as error:
        sys.exit(str(error))
