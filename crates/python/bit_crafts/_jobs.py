"""Jobs as their callers see them: progress, and items that come one by one."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, Generic, Optional, Protocol, TypeVar, Union, cast

from . import _native
from ._errors import Error, UsageError
from ._results import Progress

if TYPE_CHECKING:
    from types import TracebackType

T = TypeVar("T")
R = TypeVar("R")


class ProgressBar(Protocol):
    """A bar such as those of tqdm."""

    n: Any
    total: Any

    def update(self, n: Any = 1) -> Any:
        """Adds to the bar."""


#: A function that is called with a `Progress` ten times a second and at the end, or a tqdm bar.
#: A bar with `unit="B"` counts bytes, any other files; it may count several jobs. It is called by the
#: thread that waits for the result. An exception in it ends the job.
ProgressArg = Union[Callable[[Progress], object], ProgressBar, None]

Report = Callable[[int, int, Optional[int], Optional[int]], object]
Call = tuple[Optional[int], Optional[_native.Cancel], bool, bool]


def reporter(progress: ProgressArg) -> Optional[Report]:
    """Makes of `progress` what a job calls."""
    if progress is None:
        return None
    if hasattr(progress, "update") and hasattr(progress, "total"):
        return _of_bar(cast(ProgressBar, progress))
    if isinstance(progress, type) and hasattr(progress, "update"):
        raise TypeError(f"progress: expected a bar, not the class {progress.__name__} itself")
    if callable(progress):
        call = progress
        return lambda *now: call(Progress(*now))
    kind = type(progress).__name__
    raise TypeError(f"progress: expected a callable or a bar of tqdm, not {kind}")


def _of_bar(bar: ProgressBar) -> Report:
    counts_bytes = getattr(bar, "unit", None) == "B"
    # It may count several jobs, one after the other, and its total may be that of all of them.
    before, whole, counted = bar.n, bar.total, 0

    def report(files: int, bytes: int, files_total: Optional[int], total: Optional[int]) -> None:
        nonlocal counted
        done, all = (bytes, total) if counts_bytes else (files, files_total)
        if all is not None:
            bar.total = max(before + all, whole or 0)
        step, counted = done - counted, done
        bar.update(step)

    return report


def call(
    threads: Optional[int],
    cancel: Optional[_native.Cancel],
    progress: ProgressArg,
    streams: bool = False,
) -> Call:
    """Puts the means of a job together."""
    if threads is not None:
        threads = operator.index(threads)
        if threads < 1:
            raise UsageError(f"threads: {threads} are too few")
    if cancel is not None and not isinstance(cancel, _native.Cancel):
        raise TypeError(f"cancel: expected a Cancel, not {type(cancel).__name__}")
    reporter(progress)  # Refuses what is none, before a job begins.
    return (threads, cancel, streams, progress is not None)


class Stream(Generic[T, R]):
    """Items of a job, one by one, while it is running: an iterator, and a context manager that ends
    the job early. The job waits while thousands of items are not taken, and ends once nothing holds
    the stream nor an iterator over it. One thread takes items at a time.

    After an exception there are no more items, as with a generator: a loop that continues ends at once.
    `result` distinguishes the two cases, as it raises the exception of a failed job again.
    """

    def __init__(self, job: _native.Job[T, R], progress: ProgressArg) -> None:
        self._job = job
        self._end: list[Union[Error, tuple[R]]] = []
        # It must not hold the stream: only a garbage collection would end an abandoned job.
        self._items = _items(job, reporter(progress), self._end)

    def __iter__(self) -> Iterator[T]:
        return self._items

    def __next__(self) -> T:
        return next(self._items)

    def result(self) -> R:
        """Returns the result without its items. Items that were not taken are skipped."""
        for _ in self._items:
            pass
        if not self._end:
            raise UsageError("the job was ended early, and has no result")
        [end] = self._end
        if isinstance(end, Error):
            raise copy.copy(end)
        return end[0]

    def close(self) -> None:
        """Ends the job if it is running, and waits for its end."""
        try:
            self._job.close()
        finally:
            try:
                self._items.close()
            except ValueError:
                pass  # Another thread waits for an item, and gets a `CancelledError`.

    def __enter__(self) -> Stream[T, R]:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()


def _items(
    job: _native.Job[T, R], report: Optional[Report], end: list[Union[Error, tuple[R]]]
) -> Generator[T, None, None]:
    """Yields the items of a job; at its end `end` gets its result, or its error."""
    try:
        while True:
            items = job.items(report)
            if items is None:
                break
            yield from items
    except BaseException:
        # A signal may raise its exception here, behind any call: nobody takes further items.
        job.leave()
        raise
    try:
        end.append((job.result(report),))
    except Error as error:
        # The error itself has a traceback, and with it the frames that hold the stream.
        end.append(copy.copy(error))
        raise
