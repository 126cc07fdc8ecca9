"""Examples in the documentation, types, and the programs in `examples`."""

import doctest
import os
import pathlib
import shutil
import subprocess
import sys

import bit_crafts
import bit_crafts._manifest
import pytest

PACKAGE = pathlib.Path(__file__).parent.parent
DOCUMENTED = [
    bit_crafts,
    bit_crafts.Cancel,
    bit_crafts.Hasher,
    bit_crafts.Manifest,
    *(getattr(bit_crafts, name) for name in bit_crafts.__all__ if name.islower()),
]


@pytest.mark.parametrize("item", DOCUMENTED, ids=lambda item: getattr(item, "__name__", "set"))
def test_examples_of_the_documentation(item: object) -> None:
    if not callable(item) and item is not bit_crafts:
        pytest.skip("a value, without an example")
    if item in (bit_crafts.read_manifest, bit_crafts.Manifest):
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    text = getattr(item, "__doc__")
    assert text and ">>>" in text, "no example"
    name = getattr(item, "__name__")
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    shown: list[str] = []
    failed = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=shown.append)
    assert failed.failed == 0, "".join(shown)


def python(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *map(os.fspath, arguments)], capture_output=True, text=True
    )


def test_types_are_strict() -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    for checked in ([PACKAGE / "bit_crafts"], sorted((PACKAGE / "examples").glob("*.py"))):
        settings = PACKAGE / "pyproject.toml"
        done = python("-m", "mypy", "--strict", "--config-file", settings, *checked)
        assert done.returncode == 0, done.stdout + done.stderr


#: What a caller writes, and what it gets; each mistake is one.
TYPED = """
import pathlib

import bit_crafts
from typing_extensions import assert_type

hashed = bit_crafts.hash([pathlib.Path("a"), b"b"], algorithm=["md5"], include="*.jpg", min_size=1)
assert_type(hashed.complete(), bit_crafts.Hashed)
for file in hashed:
    assert_type(file, bit_crafts.HashedFile)
    assert_type(open(file).read(), str)
with bit_crafts.iter_copy("a", "b", on_conflict="skip", exclude=["*.o"]) as copied:
    for path in copied:
        assert_type(path, bit_crafts.CopiedPath)
    assert_type(copied.result(), bit_crafts.CopyReport)
assert_type(bit_crafts.verify("a", "b").changes[0].to, str | None)
assert_type(bit_crafts.Hasher("md5", bytearray(3)).digest(), bytes)
bit_crafts.hash("a", progress=lambda now: print(now.files))
bit_crafts.hash(1)  # type: ignore[arg-type]
bit_crafts.hash("a", colour="red")  # type: ignore[call-arg]
bit_crafts.copy("a", "b", on_conflict="ask")  # type: ignore[arg-type]
bit_crafts.hash("a", progress=1)  # type: ignore[arg-type]
"""


def test_types_of_a_caller() -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    pathlib.Path("caller.py").write_text(TYPED)
    path = {**os.environ, "MYPYPATH": os.fspath(PACKAGE)}
    command = [sys.executable, "-m", "mypy", "--strict", "--python-version=3.11", "caller.py"]
    settings = ["--config-file", os.fspath(PACKAGE / "pyproject.toml")]
    done = subprocess.run([*command, *settings], env=path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_types_are_those_of_the_compiled_half() -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    # A debug build has a function more.
    options = ("--ignore-missing-stub", "--mypy-config-file", PACKAGE / "pyproject.toml")
    done = python("-m", "mypy.stubtest", "bit_crafts._native", *options)
    assert done.returncode == 0, done.stdout + done.stderr


def test_programs_are_short() -> None:
    programs = sorted((PACKAGE / "examples").glob("*.py"))
    assert len(programs) == 4
    for program in programs:
        assert len(program.read_text().splitlines()) <= 40, program


GUIDE = PACKAGE.parent.parent / "src" / "guide" / "program.md"


@pytest.mark.skipif(not GUIDE.exists(), reason="no guide beside the package")
def test_the_guide_shows_them() -> None:
    blocks = [block.split("```")[0] for block in GUIDE.read_text().split("```python\n")[1:]]
    programs = {program.read_text() for program in (PACKAGE / "examples").glob("*.py")}
    assert set(blocks[1:]) == programs
    first = doctest.DocTestParser().get_doctest(blocks[0], {}, "guide", None, 0)
    assert doctest.DocTestRunner().run(first).failed == 0


def example(name: str, *arguments: str) -> subprocess.CompletedProcess:
    return python(PACKAGE / "examples" / name, *arguments)


def test_the_photo_importer() -> None:
    shutil.copy("photos/c.raw", "backup/known.raw")
    done = example("import_photos.py", "photos", "backup", "monday")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1 imported, 1 known\n"
    assert "a.jpg" in os.listdir("backup/monday")
    assert example("import_photos.py", "photos", "backup", "tuesday").stdout == (
        "0 imported, 2 known\n"
    )
    done = example("import_photos.py", "gone", "backup", "monday")
    assert (done.returncode, done.stderr) == (1, "gone: stat: No such file or directory (os error 2)\n")


def test_the_verifier() -> None:
    assert example("check_backup.py", "photos", "record").stdout == "3 files recorded\n"
    assert example("check_backup.py", "photos", "record").returncode == 0
    stat = os.stat("photos/a.jpg")
    pathlib.Path("photos/a.jpg").write_text("PICTURE")
    os.utime("photos/a.jpg", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    done = example("check_backup.py", "photos", "record")
    assert done.returncode == 1 and done.stderr.endswith("damaged\n")
    assert "damaged: 'a.jpg'\n" in done.stdout


def test_the_cache() -> None:
    done = example("content_cache.py", "cache", "photos/a.jpg", "photos/b.jpg")
    assert done.stdout == "photos/a.jpg: 1 words, counted\nphotos/b.jpg: 1 words, known\n"


def test_the_service(many: pathlib.Path) -> None:
    service = subprocess.Popen(
        [sys.executable, PACKAGE / "examples" / "hash_service.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    lines = f"photos\ngone\n{many}\nstop\n"
    answers, _ = service.communicate(lines)
    assert service.returncode == 0
    assert "  photos/c.raw\n" in answers and "photos: 19 bytes\n" in answers
    assert "photos: done, 0 errors\n" in answers
    assert "gone: stat: No such file or directory (os error 2)\n" in answers
    # It may have been done before the word came.
    assert answers.endswith((f"{many}: stopped\n", f"{many}: done, 0 errors\n"))
