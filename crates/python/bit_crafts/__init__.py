"""Hash trees, find duplicates, verify integrity and copy with checksums.

>>> import bit_crafts
>>> found = bit_crafts.duplicates("photos")
>>> for group in found:
...     print(group.size, group.paths)
7 ('photos/a.jpg', 'photos/b.jpg')

Functions are jobs. They run on separate threads, as many as pay off, while the interpreter is free for
other code; Ctrl-C ends them. All of them accept:

- `threads`: the maximum number of threads;
- `cancel`: a `Cancel`, whose `stop` ends the job with a `CancelledError`;
- `progress`: a function that is called with a `Progress` ten times a second, or a tqdm bar.

Functions that walk trees accept the keyword arguments of `Filter`, which select files: `include`,
`exclude`, `hidden`, `follow_symlinks`, `one_file_system`, `ignore_files`, `max_depth`, `min_size`,
`max_size`, `newer` and `older`.

Paths are `str`, `bytes` or `os.PathLike`, and `str` in results, which `os.fsencode` converts to the
original bytes. A file that cannot be read does not stop a job: it is in the result's `errors`, and
`complete()` raises an error if there are any. Lists in results create objects when they are accessed, so
that lists of millions of files are small; functions whose names begin with `iter_` keep no list at all.

A job that fails as a whole raises an `Error`. If the system refused something, the error is also an
`OSError`, with its number and path.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, Optional, Union

from . import _native
from ._errors import (
    BusyError,
    CancelledError,
    DeniedError,
    Error,
    ExistsError,
    IncompleteError,
    InternalError,
    IoError,
    IsDirectoryError,
    ManifestError,
    NotDirectoryError,
    NotFoundError,
    RefusedError,
    UsageError,
)
from ._jobs import ProgressArg, ProgressBar, Stream, call, reporter
from ._manifest import Manifest, read_manifest
from ._native import Cancel, Hasher
from ._paths import CopyOptions, Filter, PathArg, PathsArg
from ._results import (
    Accepted,
    Change,
    Checked,
    CheckedFile,
    CopiedPath,
    CopyReport,
    Difference,
    Duplicates,
    Entry,
    EqualDirectories,
    EqualFile,
    EqualFiles,
    FoundDirectories,
    FoundUnique,
    Hashed,
    HashedFile,
    Header,
    MissingPath,
    MoveReport,
    NotFile,
    Obstacle,
    Progress,
    Pruned,
    PruneStep,
    RepairedPath,
    RestoredFile,
    RestoreReport,
    Result,
    Undone,
    UniqueContent,
    Verification,
    Within,
    WrittenManifest,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "Accepted",
    "BusyError",
    "Cancel",
    "CancelledError",
    "Change",
    "Checked",
    "CheckedFile",
    "CopiedPath",
    "CopyOptions",
    "CopyReport",
    "DeniedError",
    "Difference",
    "Duplicates",
    "Entry",
    "EqualDirectories",
    "EqualFile",
    "EqualFiles",
    "Error",
    "ExistsError",
    "Filter",
    "FoundDirectories",
    "FoundUnique",
    "Hashed",
    "HashedFile",
    "Hasher",
    "Header",
    "IncompleteError",
    "InternalError",
    "IoError",
    "IsDirectoryError",
    "Manifest",
    "ManifestError",
    "MissingPath",
    "MoveReport",
    "NotDirectoryError",
    "NotFile",
    "NotFoundError",
    "Obstacle",
    "PathArg",
    "PathsArg",
    "Progress",
    "ProgressArg",
    "ProgressBar",
    "PruneStep",
    "Pruned",
    "RefusedError",
    "RepairedPath",
    "RestoreReport",
    "RestoredFile",
    "Result",
    "Stream",
    "Undone",
    "UniqueContent",
    "UsageError",
    "Verification",
    "Within",
    "WrittenManifest",
    "accept",
    "algorithms_available",
    "check",
    "copy",
    "diff",
    "directories",
    "duplicates",
    "hash",
    "iter_copy",
    "iter_diff",
    "iter_duplicates",
    "iter_hash",
    "iter_move",
    "iter_prune",
    "iter_update",
    "iter_verify",
    "manifest",
    "move",
    "prune",
    "read_manifest",
    "restore",
    "undo",
    "unique",
    "update",
    "verify",
]

for _name in __all__:
    _item = globals().get(_name)
    # Users see them under the name by which they import them.
    if isinstance(_item, type) and _item.__module__.startswith("bit_crafts."):
        _item.__module__ = "bit_crafts"

__version__: str = _native.__version__
# Their type is compiled, and shows in no other way that it is one.
Sequence.register(_native.Items)

#: Names of all algorithms.
algorithms_available: frozenset[str] = frozenset(_native.algorithms())

Action = Literal["hardlink", "reflink", "symlink", "delete", "move", "trash"]
Loss = Literal["damaged", "removed", "modified"]
Mode = Literal["strict", "content", "meta"]


def hash(
    paths: PathsArg,
    *,
    algorithm: Union[str, Sequence[str]] = "blake3",
    threads: Optional[int] = None,
    cancel: Optional[Cancel] = None,
    progress: ProgressArg = None,
    **filter: Unpack[Filter],
) -> Hashed:
    """Hashes files, and all files below directories.

    >>> import bit_crafts
    >>> for file in bit_crafts.hash("photos", algorithm="sha256", include="*.jpg"):
    ...     print(file.path, file.size, file.hexdigest[:8])
    photos/a.jpg 7 2cea274d
    photos/b.jpg 7 2cea274d
    >>> hashed = bit_crafts.hash(["photos/a.jpg"], algorithm=["md5", "crc32c"])
    >>> [digest.hex() for digest in hashed.files[0].digests]
    ['5456fc54c74a297ce994998c2873b370', '4f77ddf7']
    """
    means = call(threads, cancel, progress)
    return _native.hash(paths, algorithm, filter, means).result(reporter(progress))


def iter_hash(
    paths: PathsArg,
    *,
    algorithm: Union[str, Sequence[str]] = "blake3",
    threads: Optional[int] = None,
    cancel: Optional[Cancel] = None,
    progress: ProgressArg = None,
    **filter: Unpack[Filter],
) -> Stream[HashedFile, Hashed]:
    """Hashes files like `hash`, and yields one after the other while later ones are read.

    >>> import bit_crafts
    >>> files = bit_crafts.iter_hash("photos")
    >>> [file.path for file in files]
    ['photos/a.jpg', 'photos/b.jpg', 'photos/c.raw']
    >>> files.result().is_complete
    True
    """
    means = call(threads, cancel, progress, streams=True)
    return Stream(_native.hash(paths, algorithm, filter, means), progress)


def check(
    file: PathArg,
    *,
    algorithm: Optional[str] = None,
    base: Optional[PathArg] = None,
    threads: Optional[int] = None,
    cancel: Optional[Cancel] = None,
    progress: ProgressArg = None,
) -> Checked:
    """Verifies files against a checksum file: the output of `sha256sum`, `md5sum`, `b3sum`, `xxhsum`
    or a similar program. Relative paths start at its directory, or at `base`.

    >>> import bit_crafts
    >>> with open("MD5SUMS", "w") as sums:
    ...     _ = sums.write("d41d8cd98f00b204e9800998ecf8427e  photos/a.jpg\\n")
    >>> checked = bit_crafts.check("MD5SUMS")
    >>> for file in checked.failed:
    ...     print(file.path, file.verdict)
    photos/a.jpg mismatch
    """
    means = call(threads, cancel, progress)
    return _native.check(file, algorithm, base, means).result(reporter(progress))


def duplicates(
    paths: PathsArg,
    *,
    references: PathsArg = (),
    algorithm: Optional[str] = None,
    compare_bytes: bool = False,
    count_hard_links: bool = False,
    cache: Optional[PathArg] = None,
    threads: Optional[int] = None,
    cancel: Optional[Cancel] = None,
    progress: ProgressArg = None,
    **filter: Unpack[Filter],
) -> Duplicates:
    """Finds identical files. Empty files do not count.

    Files of `references` are included as the ones to keep: they come first in each group, and groups
    that consist only of them are not listed. `cache` is a file that keeps digests for the next search.
    Files are compared by digest or, with `compare_bytes`, by all bytes. Several names of one file count
    as one file; with `count_hard_links`, they form a group.

    >>> import bit_crafts
    >>> found = bit_crafts.duplicates(["photos", "backup"])
    >>> [file.path for file in found.groups[0].files[1:]]  # these could go
    ['photos/b.jpg']
    """
    means = call(threads, cancel, progress)
    job = _native.duplicates(
        paths, references, algorithm, compare_bytes, count_hard_links, cache, filter, means
    )
    return job.result(reporter(progress))


def iter_duplicates(
    paths: PathsArg,
    *,
    references: PathsArg = (),
    algorithm: Optional[str] = None,
    compare_bytes: bool = False,
    count_hard_links: bool = False,
    cache: Optional[PathArg] = None,
    threads: Optional[int] = None,
    cancel: Optional[Cancel] = None,
    progress: ProgressArg = None,
    **filter: Unpack[Filter],
) -> Stream[EqualFiles, Duplicates]:
    """Finds identical files like `duplicates`, and yields one group after the other, once all files
    have been compared.

    >>> import bit_crafts
    >>> for group in bit_crafts.iter_duplicates("photos"):
    ...     print(group.wasted > 0, group.paths)
    True ('photos/a.jpg', 'photos/b.jpg')
    """
    means = call(threads, cancel, progress, streams=True)
    job = _native.duplicates(
        paths, references, algorithm, compare_bytes, count_hard_links, cache, filter, means
    )
    return Stream(job, progress)


def directories(
    paths: PathsArg,
    *,
    ignore_names: bool = False,
    contained: bool = True,
    min_files: Optional[int] = None,
    threads: Optional[int] = None,
    cancel: Optional[Cancel] = None,
    progress: ProgressArg = None,
    **filter: Unpack[Filter],
) -> FoundDirectories:
    """Finds directories that have the same files at the same paths as others, and directories whose
    contents are all in another one.

    >>> import bit_crafts, shutil
    >>> _ = shutil.copytree("photos", "old")
    >>> bit_crafts.directories(".").groups[0].paths
    ('./old', './photos')
    """
    means = call(threads, cancel, progress)
    job = _native.directories(paths, ignore_names, contained, min_files, filter, means)
    return job.result(reporter(progress))


def unique(
    paths: PathsArg,
    archives: PathsArg = (),
    *,
    trust_lists: bool = False,
    force: bool = False,
    threads: Optional[int] = None,
    cancel: Optional[Cancel] = None,
    progress: ProgressArg = None,
    **filter: Unpack[Filter],
) -> FoundUnique:
    """Finds the contents of the paths that are in none of the archives: may this card be wiped?

    Archives are directories, or manifests of offline disks. Without archives, it finds contents that
    no other file of the paths has. Contents that are not proven to be elsewhere count as being nowhere
    else.

    >>> import bit_crafts
    >>> found = bit_crafts.unique("photos", "backup")
    >>> [content.paths for content in found.nowhere]
    [('photos/a.jpg', 'photos/b.jpg'), ('photos/c.raw',)]
    >>> found.all_is_elsewhere
    False
    """
    means = call(threads, cancel, progress)
    job = _native.unique(paths, archives, trust_lists, force, filter, means)
    return job.result(reporter(progress))


def manifest(
    root: PathArg,
    file: PathArg,
    *,
    algorithm: str = "blake3",
    xattrs: bool = False,
    overwrite: bool = False,
    threads: Optional[int] = None,
    cancel: Optional[Cancel] = None,
    progress: ProgressArg = None,
    **filter: Unpack[Filter],
) -> WrittenManifest:
    """Records a tree: digests and metadata of all its files, in a file that appears complete or not at
    all. An existing file is replaced only with `overwrite`; `update` updates a record.

    >>> import bit_crafts
    >>> bit_crafts.manifest("photos", "photos.jsonl").complete().files
    3
    """
    means = call(threads, cancel, progress)
    job = _native.manifest(root, file, algorithm, xattrs, overwrite, filter, means)
    return job.result(reporter(progress))


def verify(
    root: PathArg,
    manifest: PathArg,
    *,
    mode: Mode = "strict",
    ignore: Union[str, Iterable[str]] = (),
    sample: Optional[str] = None,
    force: bool = False,
    threads: Optional[int] = None,
    cancel: Optional[Cancel] = None,
    progress: ProgressArg = None,
) -> Verification:
    """Compares a tree with its record. `mode="meta"` reads no content, `"content"` compares nothing
    else; `ignore` lists fields that do not count, such as `mode`. With `sample`, such as `"5%"`, only a
    random part of the files that look unchanged is read, another one in each run. A tree that looks
    like an unmounted disk is refused, unless `force` is True.

    >>> import bit_crafts, os
    >>> _ = bit_crafts.manifest("photos", "photos.jsonl")
    >>> os.rename("photos/c.raw", "photos/d.raw")
    >>> for change in bit_crafts.verify("photos", "photos.jsonl", ignore=["mtime"]):
    ...     if change.kind == "file":
    ...         print(change.status, change.path, change.to)
    moved c.raw d.raw
    """
    means = call(threads, cancel, progress)
    job = _native.verify(root, manifest, mode, ignore, sample, force, means)
    return job.result(reporter(progress))


def iter_verify(
    root: PathArg,
    manifest: PathArg,
    *,
    mode: Mode = "strict",
    ignore: Union[str, Iterable[str]] = (),
    sample: Optional[str] = None,
    force: bool = False,
    threads: Optional[int] = None,
    cancel: Optional[Cancel] = None,
    progress: ProgressArg = None,
) -> Stream[Change, Verification]:
    """Compares like `verify`, and yields changes as they are found.

    >>> import bit_crafts, os
    >>> _ = bit_crafts.manifest("photos", "photos.jsonl")
    >>> os.remove("photos/c.raw")
    >>> changes = bit_crafts.iter_verify("photos", "photos.jsonl", mode="content")
    >>> [(change.status, change.path) for change in changes]
    [('removed', 'c.raw')]
    >>> changes.result().is_damaged
    False
    """
    means = call(threads, cancel, progress, streams=True)
    return Stream(_native.verify(root, manifest, mode, ignore, sample, force, means), progress)


def update(
    root: PathArg,
    manifest: PathArg,
    *,
    reread: Optional[str] = None,
    max_changed: Union[int, str, None] = None,
    accept_damaged: bool = False,
    force: bool = False,
    threads: Optional[int] = None,
    cancel: Optional[Cancel] = None,
    progress: ProgressArg = None,
) -> Verification:
    """Updates the record of a tree, and returns the changes. Files that look unchanged are not read,
    except for the part given by `reread`: `"5%"`, `"20G"`, `"30m"`. If there are more than `max_changed`
    changes (`100`, `"5%"`), nothing is written: the reason is in `refused`, and `complete` raises an
    error. A damaged file keeps its recorded digest, unless the damage is accepted.

    >>> import bit_crafts
    >>> _ = bit_crafts.manifest("photos", "photos.jsonl")
    >>> with open("photos/e.jpg", "w") as file:
    ...     _ = file.write("new")
    >>> updated = bit_crafts.update("photos", "photos.jsonl")
    >>> updated.counts["added"], updated.is_written
    (1, True)
    """
    means = call(threads, cancel, progress)
    limit = None if max_changed is None else str(max_changed)
    job = _native.update(root, manifest, reread, limit, accept_damaged, force, means)
    return job.result(reporter(progress))


def iter_update(
    root: PathArg,
    manifest: PathArg,
    *,
    reread: Optional[str] = None,
    max_changed: Union[int, str, None] = None,
    accept_damaged: bool = False,
    force: bool = False,
    threads: Optional[int] = None,
    cancel: Optional[Cancel] = None,
    progress: ProgressArg = None,
) -> Stream[Change, Verification]:
    """Updates a record like `update`, and yields changes as they are found.

    >>> import bit_crafts, os
    >>> _ = bit_crafts.manifest("photos", "photos.jsonl")
    >>> os.remove("photos/c.raw")
    >>> changes = bit_crafts.iter_update("photos", "photos.jsonl")
    >>> [change.path for change in changes if change.status == "removed"]
    ['c.raw']
    >>> changes.result().is_written
    True
    """
    means = call(threads, cancel, progress, streams=True)
    limit = None if max_changed is None else str(max_changed)
    job = _native.update(root, manifest, reread, limit, accept_damaged, force, means)
    return Stream(job, progress)


def accept(
    root: PathArg,
    manifest: PathArg,
    paths: PathsArg,
    *,
    dry_run: bool = False,
    force: bool = False,
    threads: Optional[int] = None,
    cancel: Optional[Cancel] = None,
    progress: ProgressArg = None,
) -> Accepted:
    """Records files and links as they are now, for example files that `verify` reports as damaged although
    they are correct. `paths` are relative to `root`, as `verify` returns them. All other records stay as
    they are. With `dry_run`, nothing is written. `force` permits a directory or disk other than the
    recorded one.

    >>> import bit_crafts
    >>> _ = bit_crafts.manifest("photos", "photos.jsonl")
    >>> with open("photos/a.jpg", "w") as file:
    ...     _ = file.write("retouched")
    >>> accepted = bit_crafts.accept("photos", "photos.jsonl", ["a.jpg"])
    >>> [change.path for change in accepted], accepted.is_written
    (['a.jpg'], True)
    """
    means = call(threads, cancel, progress)
    job = _native.accept(root, manifest, paths, dry_run, force, means)
    return job.result(reporter(progress))


def diff(
    old: PathArg,
    new: PathArg,
    *,
    mode: Mode = "strict",
    ignore: Union[str, Iterable[str]] = (),
    cancel: Optional[Cancel] = None,
    progress: ProgressArg = None,
) -> Verification:
    """Compares two records.

    >>> import bit_crafts
    >>> for name in ["monday.jsonl", "tuesday.jsonl"]:
    ...     _ = bit_crafts.manifest("photos", name)
    >>> bit_crafts.diff("monday.jsonl", "tuesday.jsonl").is_same
    True
    """
    means = call(None, cancel, progress)
    return _native.diff(old, new, mode, ignore, means).result(reporter(progress))


def iter_diff(
    old: PathArg,
    new: PathArg,
    *,
    mode: Mode = "strict",
    ignore: Union[str, Iterable[str]] = (),
    cancel: Optional[Cancel] = None,
    progress: ProgressArg = None,
) -> Stream[Change, Verification]:
    """Compares like `diff`, and yields changes as they are found.

    >>> import bit_crafts
    >>> for name in ["photos", "backup"]:
    ...     _ = bit_crafts.manifest(name, name + ".jsonl")
    >>> changes = bit_crafts.iter_diff("backup.jsonl", "photos.jsonl", mode="content")
    >>> [(change.status, change.path) for change in changes]
    [('added', 'a.jpg'), ('added', 'b.jpg'), ('added', 'c.raw')]
    """
    means = call(None, cancel, progress, streams=True)
    return Stream(_native.diff(old, new, mode, ignore, means), progress)


def restore(
    root: PathArg,
    manifest: PathArg,
    copies: PathsArg = (),
    *,
    only: Union[Loss, Iterable[Loss], None] = None,
    discard_damaged: bool = False,
    trust_metadata: bool = False,
    dry_run: bool = False,
    state: Optional[PathArg] = None,
    force: bool = False,
    threads: Optional[int] = None,
    cancel: Optional[Cancel] = None,
    progress: ProgressArg = None,
) -> RestoreReport:
    """Restores damaged or missing files of a record from copies: trees or single files that have the
    content at any path. A damaged file stays next to its replacement, and nothing else is removed.
    `state` is a directory for the journal, with which the next run removes leftovers of a killed one.

    >>> import bit_crafts, os
    >>> _ = bit_crafts.manifest("photos", "photos.jsonl")
    >>> _ = bit_crafts.copy("photos", "backup")
    >>> os.remove("photos/c.raw")
    >>> restored = bit_crafts.restore("photos", "photos.jsonl", "backup").complete()
    >>> [path.source for path in restored.repaired]
    ['backup/photos/c.raw']
    """
    means = call(threads, cancel, progress)
    job = _native.restore(
        root,
        manifest,
        copies,
        only,
        discard_damaged,
        trust_metadata,
        dry_run,
        state,
        force,
        means,
    )
    return job.result(reporter(progress))


def prune(
    paths: PathsArg,
    *,
    action: Action,
    into: Optional[PathArg] = None,
    keep: PathsArg = (),
    references: PathsArg = (),
    journal: Optional[PathArg] = None,
    dry_run: bool = True,
    ignore_metadata: bool = False,
    threads: Optional[int] = None,
    cancel: Optional[Cancel] = None,
    progress: ProgressArg = None,
    **filter: Unpack[Filter],
) -> Pruned:
    """Finds identical files, keeps one of each group, and links, moves or deletes the others. Nothing is
    changed unless `dry_run` is False, and then only with a `journal`, with which `undo` reverts it. Right
    before a change, each file is compared byte for byte with the one that stays.

    `keep` has rules for the file that stays, the most important first: `first`, `last`,
    `newest`, `oldest`, `shortest-path`, `longest-path`, `most-links`, `path:GLOB`, `name:GLOB`.
    `into` is the directory for the action `move`, or the home directory that has the trash.

    >>> import bit_crafts
    >>> for step in bit_crafts.prune("photos", action="hardlink").steps:
    ...     print(step.action, step.path, "to", step.kept)
    hardlink photos/b.jpg to photos/a.jpg
    >>> pruned = bit_crafts.prune("photos", action="hardlink", dry_run=False, journal="steps.jsonl")
    >>> pruned.complete().changed
    1
    """
    means = call(threads, cancel, progress)
    job = _native.prune(
        paths,
        action,
        into,
        keep,
        references,
        journal,
        dry_run,
        ignore_metadata,
        filter,
        means,
    )
    return job.result(reporter(progress))


def iter_prune(
    paths: PathsArg,
    *,
    action: Action,
    into: Optional[PathArg] = None,
    keep: PathsArg = (),
    references: PathsArg = (),
    journal: Optional[PathArg] = None,
    dry_run: bool = True,
    ignore_metadata: bool = False,
    threads: Optional[int] = None,
    cancel: Optional[Cancel] = None,
    progress: ProgressArg = None,
    **filter: Unpack[Filter],
) -> Stream[PruneStep, Pruned]:
    """Acts on duplicates like `prune`, and yields one step after the other as they are done.

    >>> import bit_crafts
    >>> steps = bit_crafts.iter_prune("photos", action="delete", keep="last")
    >>> [(step.outcome, step.action, step.path) for step in steps]
    [('planned', 'delete', 'photos/a.jpg')]
    >>> steps.result().dry_run
    True
    """
    means = call(threads, cancel, progress, streams=True)
    job = _native.prune(
        paths,
        action,
        into,
        keep,
        references,
        journal,
        dry_run,
        ignore_metadata,
        filter,
        means,
    )
    return Stream(job, progress)


def undo(
    journal: PathArg,
    *,
    dry_run: bool = False,
    cancel: Optional[Cancel] = None,
    progress: ProgressArg = None,
) -> Undone:
    """Undoes the steps of a journal, the last one first, each only if the file is still as the step left
    it.

    >>> import bit_crafts
    >>> _ = bit_crafts.prune("photos", action="delete", dry_run=False, journal="steps.jsonl")
    >>> bit_crafts.undo("steps.jsonl").complete().restored
    1
    """
    means = call(None, cancel, progress)
    return _native.undo(journal, dry_run, means).result(reporter(progress))


def copy(
    sources: PathsArg,
    destination: PathArg,
    *,
    threads: Optional[int] = None,
    cancel: Optional[Cancel] = None,
    progress: ProgressArg = None,
    **options: Unpack[CopyOptions],
) -> CopyReport:
    """Copies files and trees with all their metadata. A file has a temporary name until it is complete,
    and nothing is replaced unless `on_conflict` says so. Keyword arguments are those of `CopyOptions` and
    `Filter`.

    As with `cp`, the copy goes into the destination if that is a directory; with `exactly`, the
    destination is the copy itself. Digests of the copied files go to a manifest in the destination.

    >>> import bit_crafts
    >>> copied = bit_crafts.copy("photos", "backup", read_back="read").complete()
    >>> copied.files, copied.manifest
    (3, 'backup/.bc-copy-manifest.jsonl')
    """
    means = call(threads, cancel, progress)
    return _native.copy(sources, destination, dict(options), means).result(reporter(progress))


def iter_copy(
    sources: PathsArg,
    destination: PathArg,
    *,
    threads: Optional[int] = None,
    cancel: Optional[Cancel] = None,
    progress: ProgressArg = None,
    **options: Unpack[CopyOptions],
) -> Stream[CopiedPath, CopyReport]:
    """Copies like `copy`, and yields the outcome of each file, in the order of the paths.

    >>> import bit_crafts
    >>> with bit_crafts.iter_copy("photos", "backup") as files:
    ...     for file in files:
    ...         print(file.outcome, file.path)
    ...     report = files.result()
    copied backup/photos/a.jpg
    copied backup/photos/b.jpg
    copied backup/photos/c.raw
    >>> report.files
    3
    """
    means = call(threads, cancel, progress, streams=True)
    return Stream(_native.copy(sources, destination, dict(options), means), progress)


def move(
    sources: PathsArg,
    destination: PathArg,
    *,
    allow_lossy: bool = False,
    threads: Optional[int] = None,
    cancel: Optional[Cancel] = None,
    progress: ProgressArg = None,
    **options: Unpack[CopyOptions],
) -> MoveReport:
    """Moves files and trees. Within a file system, they are renamed; across file systems, they are copied,
    flushed to the disk, read back, and only then removed. A source whose copy lacks metadata stays,
    unless `allow_lossy` is True. Other keyword arguments are those of `copy`.

    >>> import bit_crafts, os
    >>> bit_crafts.move("photos", "backup").complete().renamed
    1
    >>> os.listdir("."), sorted(os.listdir("backup/photos"))
    (['backup'], ['a.jpg', 'b.jpg', 'c.raw'])
    """
    means = call(threads, cancel, progress)
    job = _native.move(sources, destination, allow_lossy, dict(options), means)
    return job.result(reporter(progress))


def iter_move(
    sources: PathsArg,
    destination: PathArg,
    *,
    allow_lossy: bool = False,
    threads: Optional[int] = None,
    cancel: Optional[Cancel] = None,
    progress: ProgressArg = None,
    **options: Unpack[CopyOptions],
) -> Stream[CopiedPath, MoveReport]:
    """Moves like `move`, and yields the outcome of each source: one that is renamed is `copied`, with
    everything in it.

    >>> import bit_crafts
    >>> [file.path for file in bit_crafts.iter_move("photos", "backup")]
    ['backup/photos']
    """
    means = call(threads, cancel, progress, streams=True)
    job = _native.move(sources, destination, allow_lossy, dict(options), means)
    return Stream(job, progress)
