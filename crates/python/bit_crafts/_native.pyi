"""The compiled half: functions that start jobs, and what waits for them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Optional, SupportsIndex, TypeVar, Union, final, overload

from typing_extensions import Buffer

from . import _results
from ._jobs import Call, Report
from ._paths import PathArg, PathsArg

_T = TypeVar("_T")
_R = TypeVar("_R")
_Words = Union[str, Iterable[str]]

__version__: str

_Filter = Mapping[str, Any]

@final
class Cancel:
    def __new__(cls) -> Cancel: ...
    def stop(self) -> None: ...
    def is_cancelled(self) -> bool: ...

@final
class Hasher:
    def __new__(
        cls, name: str = "blake3", data: Optional[Buffer] = None, *, usedforsecurity: bool = True
    ) -> Hasher: ...
    def update(self, data: Buffer) -> None: ...
    def digest(self) -> bytes: ...
    def hexdigest(self) -> str: ...
    def copy(self) -> Hasher: ...
    @property
    def name(self) -> str: ...
    @property
    def digest_size(self) -> int: ...

@final
class Job(Generic[_T, _R]):
    def result(self, report: Optional[Report]) -> _R: ...
    def items(self, report: Optional[Report]) -> Optional[list[_T]]: ...
    def leave(self) -> None: ...
    def close(self) -> None: ...

@final
class Items(Sequence[_T]):
    @overload
    def __getitem__(self, at: SupportsIndex, /) -> _T: ...
    @overload
    def __getitem__(self, at: slice, /) -> tuple[_T, ...]: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[_T]: ...
    def index(self, value: Any) -> int: ...  # type: ignore[override]
    def count(self, value: Any) -> int: ...

@final
class ItemsIterator(Iterator[_T]):
    def __next__(self) -> _T: ...
    def __iter__(self) -> ItemsIterator[_T]: ...
    def __length_hint__(self) -> int: ...

def algorithms() -> list[str]: ...
def hash(
    paths: PathsArg, algorithms: Union[str, _Words], filter: _Filter, call: Call
) -> Job[_results.HashedFile, _results.Hashed]: ...
def check(
    file: PathArg, algorithm: Optional[str], base: Optional[PathArg], call: Call
) -> Job[_results.CheckedFile, _results.Checked]: ...
def duplicates(
    paths: PathsArg,
    references: PathsArg,
    algorithm: Optional[str],
    compare_bytes: bool,
    count_hard_links: bool,
    cache: Optional[PathArg],
    filter: _Filter,
    call: Call,
) -> Job[_results.EqualFiles, _results.Duplicates]: ...
def directories(
    paths: PathsArg,
    ignore_names: bool,
    contained: bool,
    min_files: Optional[int],
    filter: _Filter,
    call: Call,
) -> Job[Any, _results.FoundDirectories]: ...
def unique(
    paths: PathsArg,
    archives: PathsArg,
    trust_lists: bool,
    force: bool,
    filter: _Filter,
    call: Call,
) -> Job[Any, _results.FoundUnique]: ...
def manifest(
    root: PathArg,
    file: PathArg,
    algorithm: str,
    xattrs: bool,
    overwrite: bool,
    filter: _Filter,
    call: Call,
) -> Job[Any, _results.WrittenManifest]: ...
def verify(
    root: PathArg,
    manifest: PathArg,
    mode: str,
    ignore: _Words,
    sample: Optional[str],
    force: bool,
    call: Call,
) -> Job[_results.Change, _results.Verification]: ...
def accept(
    root: PathArg, manifest: PathArg, paths: PathsArg, dry_run: bool, force: bool, call: Call
) -> Job[Any, _results.Accepted]: ...
def update(
    root: PathArg,
    manifest: PathArg,
    reread: Optional[str],
    max_changed: Optional[str],
    accept_damaged: bool,
    force: bool,
    call: Call,
) -> Job[_results.Change, _results.Verification]: ...
def diff(
    old: PathArg, new: PathArg, mode: str, ignore: _Words, call: Call
) -> Job[_results.Change, _results.Verification]: ...
def prune(
    paths: PathsArg,
    action: str,
    into: Optional[PathArg],
    keep: PathsArg,
    references: PathsArg,
    journal: Optional[PathArg],
    dry_run: bool,
    ignore_metadata: bool,
    filter: _Filter,
    call: Call,
) -> Job[_results.PruneStep, _results.Pruned]: ...
def undo(journal: PathArg, dry_run: bool, call: Call) -> Job[Any, _results.Undone]: ...
def copy(
    sources: PathsArg,
    destination: PathArg,
    options: dict[str, Any],
    call: Call,
) -> Job[_results.CopiedPath, _results.CopyReport]: ...
def move(
    sources: PathsArg,
    destination: PathArg,
    allow_lossy: bool,
    options: dict[str, Any],
    call: Call,
) -> Job[_results.CopiedPath, _results.MoveReport]: ...
def restore(
    root: PathArg,
    manifest: PathArg,
    copies: PathsArg,
    only: Optional[_Words],
    discard_damaged: bool,
    trust_metadata: bool,
    dry_run: bool,
    state: Optional[PathArg],
    force: bool,
    call: Call,
) -> Job[Any, _results.RestoreReport]: ...
def header(file: PathArg, call: Call) -> Job[Any, _results.Header]: ...
def entries(file: PathArg, call: Call) -> Job[_results.Entry, None]: ...
def columns(
    file: PathArg, rows: int, call: Call
) -> Job[tuple[int, list[tuple[str, tuple[bytes, ...]]]], None]: ...
