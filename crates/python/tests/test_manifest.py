"""Records, read entry by entry and as batches of Arrow."""

import base64
import hashlib
import json
import os
import pathlib

import bit_crafts
import pytest


def lines(path: str) -> list[dict]:
    """Returns the entries as the record has them."""
    with open(path, "rb") as file:
        parsed = [json.loads(line) for line in file]
    return [line for line in parsed if line["type"] == "entry"]


def test_entries_are_those_of_the_record(hostile: pathlib.Path) -> None:
    os.symlink(b"\xff target", hostile / "link")
    bit_crafts.manifest(hostile, "record", algorithm="sha256")
    record = bit_crafts.Manifest("record")
    assert record.header.algorithm == "sha256" and record.header.root == os.fspath(hostile)
    expected = lines("record")
    entries = list(record)
    assert len(entries) == len(expected) == 10
    for entry, line in zip(entries, expected):
        base64_path = line.get("path_b64")
        raw = base64.b64decode(base64_path) if base64_path else line["path"].encode()
        assert os.fsencode(entry.path) == raw
        assert (entry.kind, entry.mtime_ns) == (line["kind"], line["mtime_ns"])
        assert (entry.digest.hex() if entry.digest else None) == line.get("digest")
    [link] = [entry for entry in entries if entry.kind == "symlink"]
    assert link.target is not None and os.fsencode(link.target) == b"\xff target"


@pytest.mark.parametrize("rows", [1, 3, 8, 65536])
def test_arrow_has_the_lines_of_the_record(hostile: pathlib.Path, rows: int) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    os.symlink(b"\xff target", hostile / "link")
    bit_crafts.manifest(hostile, "record")
    reader = bit_crafts.read_manifest("record", batch_size=rows)
    batches = list(reader)
    assert [batch.num_rows for batch in batches][:-1] == [rows] * (len(batches) - 1)
    for batch in batches:
        batch.validate(full=True)
    rows_read = [row for batch in batches for row in batch.to_pylist()]
    expected = lines("record")
    assert len(rows_read) == len(expected)
    for row, line in zip(rows_read, expected):
        for name in row:
            if name not in ("mode", "size", "verified_at", "error"):
                assert row[name] == line.get(name), name
    assert [row["size"] for row in rows_read if row["kind"] == "file"] == [
        line["size"] for line in expected if line["kind"] == "file"
    ]


def test_arrow_is_read_by_others(many: pathlib.Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    bit_crafts.manifest(many, "record.zst")
    table = bit_crafts.read_manifest("record.zst", columns=["path", "size"]).read_all()
    assert table.column_names == ["path", "size"] and table.num_rows == 10021
    # What pandas, polars and DuckDB ask for.
    record = bit_crafts.Manifest("record.zst")
    assert pa.RecordBatchReader.from_stream(record).read_all().num_rows == 10021
    with pytest.raises(bit_crafts.UsageError, match="colour"):
        bit_crafts.read_manifest("record.zst", columns=["colour"])
    assert bit_crafts.read_manifest("record.zst", columns="size").read_all().num_columns == 1


def test_a_record_is_a_table_for_polars(many: pathlib.Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    polars = pytest.importorskip("polars", reason="polars is not installed")
    bit_crafts.manifest(many, "record")
    record = bit_crafts.Manifest("record")
    for frame in (polars.DataFrame(record), polars.from_arrow(record.arrow())):
        assert frame.shape == (10021, 17)
    assert polars.DataFrame(bit_crafts.hash(many).files).columns == ["path", "size", "digests"]


def test_a_record_is_a_table_for_duckdb(many: pathlib.Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    bit_crafts.manifest(many, "record")
    record = bit_crafts.Manifest("record")
    # It is read again for each question.
    assert record.header
    for _ in range(2):
        [row] = duckdb.sql("select count(*), sum(size) from record where kind = 'file'").fetchall()
        assert row == (10000, sum(file.size for file in bit_crafts.hash(many)))


def test_a_record_is_a_table_for_pandas(many: pathlib.Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pytest.importorskip("pandas", reason="pandas is not installed")
    bit_crafts.manifest(many, "record")
    frame = bit_crafts.Manifest("record").arrow().read_pandas()
    assert frame[frame.kind == "file"].groupby("digest").size().max() == 10


def test_a_batch_ends_before_it_fills_the_memory() -> None:
    """However many rows it may have; offsets of columns count 2 GiB."""
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    bit_crafts.manifest("photos", "record")
    text = pathlib.Path("record").read_text().splitlines(keepends=True)
    [entry] = [line for line in text if '"path":"a.jpg"' in line]
    # Longer than any path here, as of another system: 80 MiB in all.
    paths = [f"{number:04}" + "a" * (1 << 20) for number in range(80)]
    body = text[:2] + [entry.replace("a.jpg", path) for path in paths]
    trailer = json.loads(text[-1])
    trailer.update(entries=81, files=80, bytes=80 * 7)
    trailer["sha256"] = hashlib.sha256("".join(body).encode()).hexdigest()
    end = json.dumps(trailer, separators=(",", ":"))
    pathlib.Path("long").write_text("".join(body) + end + "\n")
    batches = list(bit_crafts.read_manifest("long", batch_size=1 << 40))
    for batch in batches:
        batch.validate(full=True)
        assert batch.nbytes < 100 << 20
    assert len(batches) > 1
    read = [path for batch in batches for path in batch.column("path").to_pylist()]
    assert read == [".", *paths]


def test_a_record_that_is_none() -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    for read in (bit_crafts.Manifest, bit_crafts.read_manifest):
        with pytest.raises(bit_crafts.ManifestError):
            read("photos/a.jpg")
        with pytest.raises(FileNotFoundError):
            read("gone")
    bit_crafts.manifest("photos", "record")
    with open("record", "rb") as file:
        text = file.read()
    with open("cut", "wb") as out:
        out.write(text[:-200])
    with pytest.raises(bit_crafts.ManifestError):
        list(bit_crafts.Manifest("cut"))
    with pytest.raises(bit_crafts.ManifestError):
        bit_crafts.read_manifest("cut").read_all()
