"""A cache keyed by content: counts the words of files, and reads equal files only once."""

import os
import sys

import bit_crafts


def words(path: str) -> str:
    with open(path, "rb") as file:
        return str(len(file.read().split()))


def main(cache: str, *paths: str) -> int:
    os.makedirs(cache, exist_ok=True)
    # It must be impossible to make another file of the same digest, so it is a cryptographic one.
    hashed = bit_crafts.hash(paths, algorithm="blake3")
    for file in hashed:
        kept = os.path.join(cache, file.hexdigest)
        how = "known"
        if not os.path.exists(kept):
            with open(kept, "w") as new:
                new.write(words(file.path))
            how = "counted"
        with open(kept) as counted:
            print(f"{file.path}: {counted.read()} words, {how}")
    hashed.complete()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
