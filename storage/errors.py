"""The errors of storage. The docstring is the default message.

StorageError
├── DatabaseUnavailable   the server cannot be reached or answered too late; try again
├── LeaseLost             another process works on this session now
├── NotFound              no such row for this caller
├── Conflict              the row is no longer in the state the change needs
├── MemoryRefused         a memory that may not be kept: too long, too many, or the person wants none
└── EmbeddedPostgresError the embedded server could not be started
"""

from __future__ import annotations


class StorageError(Exception):
    """Storage failed."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (self.__doc__ or "").strip())


class DatabaseUnavailable(StorageError):
    """The database cannot be reached; check DATABASE_URL and that Postgres is running."""


class LeaseLost(StorageError):
    """Another process works on this session now."""


class NotFound(StorageError):
    """No such row."""


class Conflict(StorageError):
    """The row has changed meanwhile."""


class MemoryRefused(StorageError):
    """This memory is not kept."""


class EmbeddedPostgresError(StorageError):
    """The embedded Postgres could not be started."""
