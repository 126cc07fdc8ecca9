"""A cache keyed by content: counts the words of files, and reads identical files only once, regardless of
their names: content_cache.py CACHE FILE...
"""

import pathlib
import sys

import bit_crafts


def main(cache: str, *paths: str) -> None:
    pathlib.Path(cache).mkdir(parents=True, exist_ok=True)
    # A cryptographic digest: it must be impossible to create another file with the same one.
    hashed = bit_crafts.hash(paths, algorithm="blake3")
    for file in hashed:
        kept = pathlib.Path(cache, file.hexdigest)
        known = kept.exists()
        if not known:
            kept.write_text(words_in(file))
        print(f"{file.path}: {kept.read_text()} words, {'known' if known else 'counted'}")
    hashed.complete()


def words_in(file: bit_crafts.HashedFile) -> str:
    """Counts the words of a file, which still has the digest."""
    text = pathlib.Path(file).read_bytes()
    if bit_crafts.Hasher("blake3", text).digest() != file.digest:
        sys.exit(f"{file.path}: changed meanwhile")
    return str(len(text.split()))


if __name__ == "__main__":
    main(*sys.argv[1:])
