"""Results: data classes, whose sequences make an item when it is asked for, and items, which are
named tuples. Paths are `str`, from which `os.fsencode` makes the bytes of the name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Optional, TypeVar

from ._errors import Error, IncompleteError

T = TypeVar("T")
R = TypeVar("R", bound="Result")


class Progress(NamedTuple):
    """Progress of a job."""

    #: Files that are done. A search for duplicates may count a file twice, as it reads it twice.
    files: int
    #: Bytes that are done.
    bytes: int
    #: Total number of files, once it is known. It may change while a search determines which files to read.
    files_total: Optional[int]
    #: Total number of bytes, if it is known.
    bytes_total: Optional[int]


class HashedFile(NamedTuple):
    """A file with its digests. It is an `os.PathLike`."""

    path: str
    size: int
    #: Digests, one for each algorithm, in their order.
    digests: tuple[bytes, ...]

    @property
    def digest(self) -> bytes:
        """Digest by the first algorithm."""
        return self.digests[0]

    @property
    def hexdigest(self) -> str:
        """Digest by the first algorithm, in hexadecimal digits."""
        return self.digests[0].hex()

    def __fspath__(self) -> str:
        return self.path

    def __bytes__(self) -> bytes:
        return os.fsencode(self.path)


class CheckedFile(NamedTuple):
    """A file of a list, with its verdict: `ok`, `mismatch` or `unread`."""

    path: str
    verdict: str
    #: Reason, if it could not be read.
    error: Optional[Error]

    def __fspath__(self) -> str:
        return self.path


class EqualFile(NamedTuple):
    """A file of a group of identical files."""

    path: str
    #: Other names of the same file, as far as they were met.
    other_names: tuple[str, ...]
    #: True if it is, or lies in, a reference.
    is_reference: bool
    #: Disk space that removing all these names would free.
    frees: int

    def __fspath__(self) -> str:
        return self.path


class EqualFiles(NamedTuple):
    """A group of identical files; at least two."""

    #: Bytes of each.
    size: int
    digest: bytes
    #: Disk space that removing all but one would free.
    wasted: int
    #: References first, then in order of paths.
    files: tuple[EqualFile, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """One path of each file."""
        return tuple(file.path for file in self.files)


class EqualDirectories(NamedTuple):
    """Directories with equal contents; at least two."""

    paths: tuple[str, ...]
    #: Files below each.
    files: int
    #: Their sizes together.
    bytes: int
    #: Entries below all of them that the filter left out.
    filtered: int
    #: Disk space that removing all but the first would free.
    wasted: int


class Within(NamedTuple):
    """A directory whose contents are all in another one."""

    path: str
    #: The smallest directory that has all of it, under any names.
    within: str
    files: int
    bytes: int
    filtered: int


class Obstacle(NamedTuple):
    """A directory that cannot be compared, nor can those above it."""

    path: str
    reason: str


class UniqueContent(NamedTuple):
    """A content, and where else it is: `nowhere`, `archive`, `manifest`, `another` or `unknown`."""

    size: int
    #: Paths of all its names; at least one.
    paths: tuple[str, ...]
    place: str
    #: The archive or manifest that has it.
    archive: Optional[str]


class NotFile(NamedTuple):
    """An entry without content: a `symlink`, `fifo`, `socket` or `device`."""

    path: str
    kind: str


class Difference(NamedTuple):
    """A field with its value on both sides, as reports show it."""

    field: str
    old: str
    new: str


class Change(NamedTuple):
    """An entry that is not as recorded."""

    #: `added`, `removed`, `moved`, `meta`, `modified`, `damaged`, `unreadable` or `replaced`.
    status: str
    #: Relative to the root; for a move, the old path.
    path: str
    #: New path, for a move.
    to: Optional[str]
    #: Recorded path of a file that is damaged under a name that was taken over.
    was_at: Optional[str]
    #: `file`, `dir`, `symlink` …
    kind: str
    differences: tuple[Difference, ...]
    #: Reason, if there is one.
    reason: Optional[str]
    #: The failure behind that reason.
    error: Optional[Error]


class Entry(NamedTuple):
    """An entry of a manifest. Missing fields are None."""

    #: Relative to the root, whose own is `.`.
    path: str
    #: `file`, `dir`, `symlink`, `fifo`, `socket`, `block` or `char`.
    kind: str
    size: Optional[int]
    digest: Optional[bytes]
    mode: Optional[int]
    uid: Optional[int]
    gid: Optional[int]
    #: Times, in nanoseconds since 1970.
    mtime_ns: Optional[int]
    ctime_ns: Optional[int]
    ino: Optional[int]
    nlink: Optional[int]
    #: Target of a symbolic link.
    target: Optional[str]
    #: Time when the content was last found to have the digest, in nanoseconds since 1970.
    verified_at: Optional[int]
    #: State that an update found in place of the digest: `damaged` or `unreadable`.
    found: Optional[str]
    #: The error of an entry that could not be read.
    error: Optional[str]


class PruneStep(NamedTuple):
    """A duplicate that was to be linked, moved or deleted."""

    #: `hardlink`, `reflink`, `symlink`, `delete`, `move`, `trash`, or `remove` for what a run that
    #: was killed left over.
    action: str
    path: str
    #: The file that stays.
    kept: str
    #: New path, for a move.
    to: Optional[str]
    size: int
    #: `done`, `planned` (in a dry run) or `skipped`.
    outcome: str
    #: Bytes of disk that it freed, or would.
    freed: int
    #: Metadata that was lost.
    lost: tuple[str, ...]
    #: Reason for which it was skipped.
    reason: Optional[str]


class RestoredFile(NamedTuple):
    """A name that is a separate file again, or would be."""

    path: str
    lost: tuple[str, ...]


class CopiedPath(NamedTuple):
    """Outcome of a file, link or special file: `copied`, `replaced` or `skipped`."""

    #: The path at the destination.
    path: str
    outcome: str
    #: Reason for which it was skipped.
    reason: Optional[str]

    def __fspath__(self) -> str:
        return self.path


class RepairedPath(NamedTuple):
    """A path that is as recorded again, or would be."""

    path: str
    #: `damaged`, `removed` or `modified`.
    loss: str
    #: The copy that it came from.
    source: Optional[str]
    #: The other name of the same file that it was linked to.
    linked_to: Optional[str]
    #: The name that the damaged file has now.
    kept_as: Optional[str]


class MissingPath(NamedTuple):
    """A path that is not restored, since no copy has its content."""

    path: str
    loss: str
    reason: str


@dataclass(frozen=True)
class Result:
    """Result of a job. A failure of a single path stops nothing else: it is among the errors."""

    #: Paths that failed, each with the operation and the reason.
    errors: Sequence[Error]
    #: True if it is the partial result of a job that was cancelled.
    cancelled: bool

    @property
    def is_complete(self) -> bool:
        """True if nothing is missing."""
        return self._missing() is None

    def complete(self: R) -> R:
        """Returns the result itself, or raises an `IncompleteError` if something is missing."""
        error = self._missing()
        if error is not None:
            raise error
        return self

    def _missing(self) -> Optional[Error]:
        count = len(self.errors)
        if count:
            first = self.errors[0]
            more = f", and {count - 1} more" if count > 1 else ""
            error = IncompleteError(f"not all could be looked at: {first}{more}")
            error.__cause__ = first
            return error
        if self.cancelled:
            return IncompleteError("cancelled before all was done")
        return None


@dataclass(frozen=True)
class Hashed(Result):
    """Files with their digests, in bytewise order of their paths."""

    files: Sequence[HashedFile]
    #: Bytes read.
    bytes: int

    def __iter__(self) -> Iterator[HashedFile]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)


@dataclass(frozen=True)
class Checked(Result):
    """Files of a checksum file with their verdicts, in order of its lines."""

    files: Sequence[CheckedFile]
    #: Lines that are not checksums.
    improper_lines: int
    #: True if the end of the list is missing, in formats whose lists have one.
    is_cut_short: bool

    @property
    def failed(self) -> Iterator[CheckedFile]:
        """Files with a different checksum, or that could not be read."""
        return (file for file in self.files if file.verdict != "ok")

    @property
    def is_ok(self) -> bool:
        """True if every line is a checksum, and every file matches it."""
        return self.is_complete and next(self.failed, None) is None

    def _missing(self) -> Optional[Error]:
        if self.is_cut_short:
            return IncompleteError("the list is cut short")
        if self.improper_lines:
            return IncompleteError(f"{self.improper_lines} lines are no checksums")
        return super()._missing()


@dataclass(frozen=True)
class Duplicates(Result):
    """Groups of identical files, those that waste most first."""

    groups: Sequence[EqualFiles]
    #: Files that were searched.
    files: int
    #: Disk space that removing all but one file of each group would free.
    wasted: int

    def __iter__(self) -> Iterator[EqualFiles]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)


@dataclass(frozen=True)
class FoundDirectories(Result):
    """Directories that are in more than one place."""

    #: Equal directories, those that waste most first.
    groups: Sequence[EqualDirectories]
    #: Directories whose contents are all in another one, largest first.
    contained: Sequence[Within]
    #: Directories that cannot be compared.
    obstacles: Sequence[Obstacle]


@dataclass(frozen=True)
class FoundUnique(Result):
    """The contents of some trees, and the other place of each."""

    #: Every content but the empty one, in order of its first path.
    contents: Sequence[UniqueContent]
    #: Symbolic links, FIFOs, sockets and devices: they have no content that could be compared.
    not_files: Sequence[NotFile]
    #: Entries that were not examined: left out by the filter, or on other file systems.
    unseen: int
    #: Files of archives that do not count, as they may belong to the trees.
    not_counted: int
    #: Archives inside one of the trees, by mistake.
    own_archives: tuple[str, ...]
    #: Places where something is mounted, which covers files.
    covered: tuple[str, ...]
    #: True if the trees can be removed: they were read completely, and each content is elsewhere.
    all_is_elsewhere: bool

    @property
    def nowhere(self) -> Iterator[UniqueContent]:
        """Contents that are nowhere else."""
        return (content for content in self.contents if content.place == "nowhere")

    def _missing(self) -> Optional[Error]:
        if self.own_archives:
            text = "is inside a PATH: its files are not copies"
            return IncompleteError(text, self.own_archives[0])
        if self.covered:
            text = "something is mounted here; files that it covers cannot be examined"
            return IncompleteError(text, self.covered[0])
        if self.unseen:
            return IncompleteError(f"{self.unseen} entries were not looked at")
        return super()._missing()


@dataclass(frozen=True)
class WrittenManifest(Result):
    """A record that was written."""

    entries: int
    #: Regular files among them.
    files: int
    #: Their sizes together.
    bytes: int


@dataclass(frozen=True)
class Verification:
    """Differences between a tree and its record, or between two records."""

    #: Entries that are not as recorded, in order of paths.
    changes: Sequence[Change]
    #: Number of entries of each status, of those that are `ok` too.
    counts: Mapping[str, int]
    #: Entries that could not be read.
    unread: int
    warnings: tuple[str, ...]
    #: True if everything is as recorded, and could be read.
    is_same: bool
    #: True if a file's content differs although no program wrote to it.
    is_damaged: bool
    #: True if an update had anything to write.
    is_written: bool
    #: Reason for which an update wrote nothing: more changes than `max_changed` allows.
    refused: Optional[str]
    #: Number of files read to their end, and of their bytes.
    read: tuple[int, int]

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    @property
    def is_complete(self) -> bool:
        """True if everything could be read, and an update was not refused."""
        return self.unread == 0 and self.refused is None

    def complete(self) -> Verification:
        """Returns the result itself, or raises an `IncompleteError` if something was not read, or an
        update was refused.
        """
        if self.refused is not None:
            raise IncompleteError(f"the manifest stays as it was: {self.refused}")
        if self.unread:
            raise IncompleteError(f"{self.unread} entries could not be read")
        return self


@dataclass(frozen=True)
class Accepted(Result):
    """Entries that were recorded as they are now, or would be; paths that were not are among the
    errors.
    """

    #: The entries, in order of paths, each with all that changes in its record.
    changes: Sequence[Change]
    #: Further names of accepted files, which keep their records.
    other_names: tuple[str, ...]
    #: True if the manifest was replaced.
    is_written: bool
    #: Number of files read to their end, and of their bytes.
    read: tuple[int, int]

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)


@dataclass(frozen=True)
class Pruned(Result):
    """Duplicates that were linked, moved or deleted, or would be."""

    steps: Sequence[PruneStep]
    #: Groups of identical files that were examined.
    groups: int
    #: Steps done, or that would be.
    changed: int
    #: Bytes of disk that this freed, or would free.
    freed: int
    warnings: tuple[str, ...]
    #: The journal, if anything was to be done.
    journal: Optional[str]
    dry_run: bool


@dataclass(frozen=True)
class Undone(Result):
    """Steps that were undone, or would be."""

    files: Sequence[RestoredFile]
    restored: int
    #: Steps that needed nothing: the name is a file of its own.
    unneeded: int
    #: Line numbers of the journal that are damaged: their steps are not undone.
    damaged_lines: tuple[int, ...]
    dry_run: bool

    def _missing(self) -> Optional[Error]:
        error = super()._missing()
        if error is None and self.damaged_lines:
            line = self.damaged_lines[0]
            return IncompleteError(f"line {line} of the journal is damaged")
        return error


@dataclass(frozen=True)
class CopyReport(Result):
    """Outcome of a copy."""

    #: Entries that were copied without some metadata of their source, such as the owner.
    lacking: Sequence[Error]
    warnings: tuple[str, ...]
    #: Entries that were walked: the sum of the next four.
    walked: int
    #: Copied, by this run or an earlier one of the same copy.
    copied: int
    #: Left out because of an existing file.
    skipped: int
    failed: int
    #: Not started.
    left: int
    #: Regular files among those copied.
    files: int
    #: Copied entries that an earlier run had done.
    before: int
    #: Bytes written by this run.
    bytes: int
    #: Reason why the rest was not started.
    stopped: Optional[str]
    #: Path of the manifest, if one was written.
    manifest: Optional[str]
    #: True if a journal is left, so that the same copy can resume.
    resumable: bool
    #: True if every entry was copied, or left out because of an existing target.
    all_is_copied: bool

    def _missing(self) -> Optional[Error]:
        error = super()._missing()
        if error is None and not self.all_is_copied:
            why = self.stopped or "the copy ended early"
            error = IncompleteError(f"{why}: {self.left + self.failed} entries are missing")
        return error


@dataclass(frozen=True)
class MoveReport(Result):
    """Outcome of a move."""

    #: Entries that were copied without some metadata of their source.
    lacking: Sequence[Error]
    warnings: tuple[str, ...]
    #: Entries: the sum of the next four. A directory that is renamed counts as one.
    walked: int
    #: At the destination, and no longer at the source.
    moved: int
    #: Left at the source, whether they were copied or not.
    kept: int
    failed: int
    #: Not started.
    left: int
    #: Moved entries that were renamed.
    renamed: int
    #: Moved entries that an earlier run had moved, as far as is known.
    before: int
    #: Bytes written by this run.
    bytes: int
    #: Reason why the rest was not started.
    stopped: Optional[str]
    #: Path of the manifest, if one was written.
    manifest: Optional[str]
    #: True if a journal is left, so that the same move can resume.
    resumable: bool
    #: True if everything was moved.
    all_is_moved: bool

    def _missing(self) -> Optional[Error]:
        error = super()._missing()
        if error is None and not self.all_is_moved:
            why = self.stopped or "not everything was moved"
            error = IncompleteError(f"{why}: {self.failed + self.kept + self.left} entries stay")
        return error


@dataclass(frozen=True)
class RestoreReport(Result):
    """Outcome for the files that are not as recorded."""

    repaired: Sequence[RepairedPath]
    missing: Sequence[MissingPath]
    #: Paths that were restored without some recorded metadata.
    lacking: Sequence[Error]
    warnings: tuple[str, ...]
    #: Paths that differ in another way, and were left as they are.
    others: int
    #: Paths not started.
    left: int
    #: Bytes written.
    bytes: int
    dry_run: bool

    def _missing(self) -> Optional[Error]:
        error = super()._missing()
        if error is None and self.missing:
            first = self.missing[0]
            error = IncompleteError(first.reason, first.path)
        if error is None and self.left:
            error = IncompleteError(f"{self.left} paths were not started")
        return error


@dataclass(frozen=True)
class Header:
    """Header of a manifest. Missing fields are None."""

    tool: str
    version: str
    #: Algorithm of the digests.
    algorithm: str
    created_at: Optional[str]
    host: Optional[str]
    machine: Optional[str]
    #: The directory that was recorded.
    root: Optional[str]
    fs_uuid: Optional[str]
