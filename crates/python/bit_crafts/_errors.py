"""Exceptions: of jobs as a whole, and of single paths, which results list."""

from __future__ import annotations

import errno as _errno
import os
from typing import Any, Optional


class Error(Exception):
    """A job that failed as a whole, or a path that failed, in the `errors` of a result.

    If the system refused something, it is also an `OSError`, with its number and the path:
    `except PermissionError` catches a `DeniedError`.
    """

    #: The message without path and operation.
    reason: str
    #: The path that it is about.
    path: Optional[str] = None
    #: The operation that failed: `open`, `stat`, `write` …
    operation: Optional[str] = None
    #: The system's error number, if it refused something.
    errno: Optional[int]
    #: The argument with which the job continues nonetheless.
    setting: Optional[str] = None
    #: The partial result of a cancelled job, if it is useful.
    partial: Any = None

    def __init__(
        self,
        reason: str,
        path: Optional[str] = None,
        operation: Optional[str] = None,
    ) -> None:
        super().__init__(reason, path, operation)
        self.reason, self.path, self.operation = reason, path, operation
        self.errno = None

    def __str__(self) -> str:
        parts = [_shown(self.path) if self.path is not None else None, self.operation, self.reason]
        return ": ".join(part for part in parts if part)


class UsageError(Error, ValueError):
    """A request that makes no sense."""


class ManifestError(Error, ValueError):
    """A file that is not a manifest or checksum file, or is truncated, altered, or of an unknown kind."""


class RefusedError(Error):
    """Continuing could do harm or give a wrong answer; `setting` is the argument that permits it, if any."""


class BusyError(Error):
    """Another run of the same job is at work."""


class CancelledError(Error):
    """The job was cancelled before it was done: see `partial`."""


class IncompleteError(Error):
    """A result lacks something: see its `complete`."""


class InternalError(Error, RuntimeError):
    """A panic: a defect of this package."""


class IoError(Error, OSError):
    """The system refused something: `errno`, `strerror` and `filename` are set."""

    def __init__(
        self,
        number: Optional[int],
        reason: str,
        path: Optional[str] = None,
        operation: Optional[str] = None,
    ) -> None:
        OSError.__init__(self, number, reason, path)
        self.reason, self.path, self.operation = reason, path, operation

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (self.errno, self.reason, self.path, self.operation)
        return (type(self), parts, self.__dict__)


class NotFoundError(IoError, FileNotFoundError):
    """A path that does not exist."""


class DeniedError(IoError, PermissionError):
    """A path that this user may not read or change."""


class ExistsError(IoError, FileExistsError):
    """A path that already exists."""


class NotDirectoryError(IoError, NotADirectoryError):
    """A path that is not a directory, or leads through a file."""


class IsDirectoryError(IoError, IsADirectoryError):
    """A path that is a directory."""


_BY_NUMBER: dict[int, type[IoError]] = {
    _errno.ENOENT: NotFoundError,
    _errno.EACCES: DeniedError,
    _errno.EPERM: DeniedError,
    _errno.EEXIST: ExistsError,
    _errno.ENOTDIR: NotDirectoryError,
    _errno.EISDIR: IsDirectoryError,
}

_BY_KIND: dict[str, type[Error]] = {
    "usage": UsageError,
    "manifest": ManifestError,
    "refused": RefusedError,
    "busy": BusyError,
    "cancelled": CancelledError,
    "incomplete": IncompleteError,
    "panic": InternalError,
}


def _shown(path: str) -> str:
    """Returns the path on one line; bytes that are not text appear as Python escapes."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def of_job(
    kind: str,
    reason: str,
    path: Optional[str],
    operation: Optional[str],
    number: Optional[int],
    setting: Optional[str],
    partial: Any,
) -> Error:
    """Makes the exception of a job."""
    error = _made(kind, number, reason, path, operation)
    error.setting, error.partial = setting, partial
    return error


def of_path(path: str, operation: str, number: Optional[int], reason: str) -> Error:
    """Makes the exception of one path."""
    kind = "refused" if number is None else "io"
    return _made(kind, number, reason, path, operation)


def _made(
    kind: str,
    number: Optional[int],
    reason: str,
    path: Optional[str],
    operation: Optional[str],
) -> Error:
    if kind == "not-found" and number is None:
        number = _errno.ENOENT
    if kind in ("io", "not-found"):
        by_number = _BY_NUMBER.get(number, IoError) if number is not None else IoError
        return by_number(number, reason, path, operation)
    error = _BY_KIND[kind](reason, path, operation)
    error.errno = number
    return error
