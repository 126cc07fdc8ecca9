"""Copies the pictures of a card that the archive does not have, under any name."""

import itertools
import pathlib
import sys

import bit_crafts


def import_picture(picture: pathlib.Path, archive: pathlib.Path) -> None:
    """Copies one picture and reads the copy again; a name that is taken gets a number."""
    target = archive / picture.name
    for number in itertools.count(2):
        if not target.exists():
            break
        target = archive / f"{picture.stem}-{number}{picture.suffix}"
    bit_crafts.copy(picture, target, exactly=True, read_back="read", manifest=False).complete()


def main(card: str, archive: str) -> int:
    pictures = ["*.[jJ][pP][gG]", "*.[rR][aA][wW]"]
    found = bit_crafts.unique(card, archive, include=pictures)
    if found.own_archives:
        print(f"{archive}: lies in {card}", file=sys.stderr)
        return 1
    new = list(found.nowhere)
    known = sum(content.place == "archive" for content in found.contents)
    for content in new:
        import_picture(pathlib.Path(content.paths[0]), pathlib.Path(archive))
    print(f"{len(new)} imported, {known} known")
    for error in found.errors:
        print(error, file=sys.stderr)
    return 1 if found.errors else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
