"""Records a tree the first time, and lists what changed and what is damaged the next times."""

import os
import sys

import bit_crafts


def bar(now: bit_crafts.Progress) -> None:
    """Draws a bar of forty characters, if the total is known and stderr is a terminal."""
    if now.files_total and sys.stderr.isatty():
        done = now.files * 40 // now.files_total
        print(f"\r[{'#' * done:40}] {now.files}/{now.files_total}", end="", file=sys.stderr)


def main(root: str, record: str) -> int:
    if not os.path.exists(record):
        written = bit_crafts.manifest(root, record, progress=bar)
        print(f"{written.files} files recorded")
        written.complete()
        return 0
    verified = bit_crafts.verify(root, record, progress=bar)
    for change in verified:
        print(f"{change.status}: {change.path}")
    if verified.is_damaged:
        return 3
    return 0 if verified.is_complete else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
