"""Records of trees, read entry by entry or as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Optional, Union

from . import _native
from ._errors import UsageError
from ._jobs import Stream, call
from ._paths import PathArg
from ._results import Entry, Header

if TYPE_CHECKING:
    import pyarrow


class Manifest:
    """A record of a tree, which may be compressed.

    >>> import bit_crafts
    >>> _ = bit_crafts.manifest("photos", "photos.jsonl")
    >>> record = bit_crafts.Manifest("photos.jsonl")
    >>> record.header.algorithm
    'blake3'
    >>> [entry.path for entry in record if entry.kind == "file"]
    ['a.jpg', 'b.jpg', 'c.raw']

    polars and DuckDB take it as a table, where pyarrow is there: `polars.DataFrame(record)`, and
    `duckdb.sql("from record")`. pandas takes `record.arrow().read_pandas()`.
    """

    def __init__(self, path: PathArg, *, cancel: Optional[_native.Cancel] = None) -> None:
        self._path, self._cancel = path, cancel
        #: Header of the record.
        self.header: Header = _native.header(path, call(None, cancel, None)).result(None)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries())

    def entries(self) -> Stream[Entry, None]:
        """Returns the entries in order of their paths, the root's first."""
        return Stream(_native.entries(self._path, call(None, self._cancel, None, True)), None)

    def arrow(
        self, *, columns: Union[str, Sequence[str], None] = None, batch_size: int = 65536
    ) -> pyarrow.RecordBatchReader:
        """Returns the entries as Arrow batches; see `read_manifest`."""
        return read_manifest(
            self._path, columns=columns, batch_size=batch_size, cancel=self._cancel
        )

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.arrow().__arrow_c_stream__(requested_schema)


def read_manifest(
    path: PathArg,
    *,
    columns: Union[str, Sequence[str], None] = None,
    batch_size: int = 65536,
    cancel: Optional[_native.Cancel] = None,
) -> pyarrow.RecordBatchReader:
    """Reads a record as Arrow batches, for pandas, polars, DuckDB and Spark. It requires pyarrow.

    Columns are named like the keys of the record's lines. The bytes of a path that is not text are in
    `path_b64`, and `path` has the parts that can be displayed.

    >>> import bit_crafts
    >>> _ = bit_crafts.manifest("photos", "photos.jsonl")
    >>> table = bit_crafts.read_manifest("photos.jsonl", columns=["path", "kind"]).read_all()
    >>> table.to_pydict()
    {'path': ['.', 'a.jpg', 'b.jpg', 'c.raw'], 'kind': ['dir', 'file', 'file', 'file']}
    """
    try:
        import pyarrow as pa
    except ImportError as missing:
        text = "read_manifest wants pyarrow (pip install pyarrow); Manifest does without"
        raise ImportError(text) from missing

    types: dict[str, Any] = {
        "path": pa.string(),
        "path_b64": pa.string(),
        "kind": pa.string(),
        "size": pa.uint64(),
        "digest": pa.string(),
        "mode": pa.uint32(),
        "uid": pa.uint32(),
        "gid": pa.uint32(),
        "mtime_ns": pa.int64(),
        "ctime_ns": pa.int64(),
        "ino": pa.uint64(),
        "nlink": pa.uint64(),
        "target": pa.string(),
        "target_b64": pa.string(),
        "verified_at": pa.int64(),
        "found": pa.string(),
        "error": pa.string(),
    }
    if isinstance(columns, str):
        columns = [columns]
    wanted = list(types) if columns is None else list(columns)
    for name in wanted:
        if name not in types:
            raise UsageError(f"columns: unknown {name!r}; known are {', '.join(types)}")
    if batch_size < 1:
        raise UsageError(f"batch_size: {batch_size} rows are too few")
    schema = pa.schema([(name, types[name]) for name in wanted])
    # A manifest that cannot be read fails here, not at its first batch.
    means = call(None, cancel, None, True)
    _native.header(path, call(None, cancel, None)).result(None)
    parts = Stream(_native.columns(path, batch_size, means), None)

    def batches() -> Iterator[pa.RecordBatch]:
        for rows, buffers in parts:
            by_name = dict(buffers)
            arrays = [
                pa.Array.from_buffers(
                    types[name], rows, [pa.py_buffer(buffer) for buffer in by_name[name]]
                )
                for name in wanted
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())
