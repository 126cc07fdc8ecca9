"""Types of the arguments that are paths, and of those that select files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Literal, Optional, TypedDict, Union

#: A path as a `str`, `bytes` or any `os.PathLike`.
PathArg = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]

#: One path, or any number of them.
PathsArg = Union[PathArg, Iterable[PathArg]]


class Filter(TypedDict, total=False):
    """Keyword arguments that select files of a tree."""

    #: Patterns: if there are any, only files that match one of them.
    include: Union[str, bytes, Iterable[Union[str, bytes]], None]
    #: Patterns of files and directories to leave out. Overrides `include`.
    exclude: Union[str, bytes, Iterable[Union[str, bytes]], None]
    #: False leaves out names that start with a dot.
    hidden: bool
    #: True follows symbolic links below the paths.
    follow_symlinks: bool
    #: True stays on the file systems of the paths.
    one_file_system: bool
    #: True leaves out what `.gitignore` and `.ignore` files list.
    ignore_files: bool
    #: Levels below a path: 1 means entries directly in it.
    max_depth: Optional[int]
    #: Smallest and largest size of a file, in bytes.
    min_size: int
    max_size: Optional[int]
    #: Times that files were modified after and before, in nanoseconds since 1970, as `st_mtime_ns`.
    newer: Optional[int]
    older: Optional[int]


class CopyOptions(Filter, total=False):
    """Keyword arguments of copies and moves."""

    #: True: the destination is the copy, even if it is a directory.
    exactly: bool
    #: Paths below the source; only these are copied.
    paths: Optional[PathsArg]
    #: Treatment of a file whose name already exists: it fails, unless this says otherwise. `update`
    #: replaces older files, `verify` those with other content.
    on_conflict: Literal["fail", "skip", "replace", "update", "verify"]
    #: Reading back of each copy before it gets its name.
    read_back: Literal["none", "read", "media"]
    #: Data to flush to the disk, and when.
    durability: Literal["none", "end", "batch", "file"]
    #: Metadata to preserve: `all`, `none`, or some of `mode`, `owner`, `times`, `xattrs` and `links`, with
    #: commas between them or as a list.
    preserve: Union[str, Iterable[str]]
    #: Use of shared blocks, and of holes.
    reflink: Literal["auto", "always", "never"]
    sparse: Literal["auto", "always", "never"]
    #: Algorithm of the digests, BLAKE3 by default; None for none.
    algorithm: Optional[str]
    #: Place of the manifest: True for the destination, False for none, or a file.
    manifest: Union[bool, PathArg]
    #: True replaces another file in the place of the manifest.
    replace_manifest: bool
    #: True: a file whose metadata cannot all be set fails.
    strict: bool
    #: True: the work of an interrupted run is done again.
    restart: bool
    #: True: nothing is written, only reported.
    dry_run: bool
    #: Directory of journals, by which the same copy resumes after an interruption; one of the
    #: program's own serves for all copies.
    state: Optional[PathArg]
