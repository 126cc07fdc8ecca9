"""Copies those photos of a card that an archive does not have under any name to a new folder of it, and
reads the copies back: import_photos.py CARD ARCHIVE FOLDER.
"""

import os
import sys

import bit_crafts


def main(card: str, archive: str, folder: str) -> None:
    # Patterns are case-sensitive, and cameras write capitals.
    pictures = ["*.[jJ][pP][gG]", "*.[rR][aA][wW]"]
    # If the card is missing, this is an error, not an answer.
    found = bit_crafts.unique(card, archive, include=pictures)
    if found.errors:
        raise found.errors[0]
    new = [os.path.relpath(content.paths[0], card) for content in found.nowhere]
    target = os.path.join(archive, folder)
    copied = bit_crafts.copy(card, target, paths=new, read_back="read").complete()
    print(f"{copied.files} imported, {len(found.contents) - len(new)} known")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except bit_crafts.Error as error:
        sys.exit(str(error))
