"""Trees that tests use."""

import os
import pathlib

import pytest

#: Names that programs get wrong: no text in any encoding, line breaks, quotes, options.
HOSTILE = [b"\xff\xfe", b"a\nb", b"-rf", b" ", b"'\"$(x)", "naïve–日本".encode(), b"\\", b"\x1b[31m"]


@pytest.fixture(autouse=True)
def here(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Every test is in a directory of its own, with the trees of the examples."""
    for name, text in [("a.jpg", "picture"), ("b.jpg", "picture"), ("c.raw", "other")]:
        (tmp_path / "photos").mkdir(exist_ok=True)
        (tmp_path / "photos" / name).write_text(text)
    (tmp_path / "backup").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def hostile(here: pathlib.Path) -> pathlib.Path:
    """A tree of hostile names, each file with its name as its content."""
    tree = here / "hostile"
    tree.mkdir()
    for name in HOSTILE:
        with open(os.path.join(os.fsencode(tree), name), "wb") as file:
            file.write(name)
    return tree


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A tree of 10,000 files, which no test changes."""
    tree = tmp_path_factory.mktemp("trees") / "many"
    for directory in range(20):
        (tree / str(directory)).mkdir(parents=True)
        for number in range(500):
            (tree / str(directory) / str(number)).write_text(f"{directory} {number % 50}")
    return tree
