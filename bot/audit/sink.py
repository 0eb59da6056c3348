"""The sink: a file outside the database where heads are appended, one JSON object a line, each fsynced."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from storage.audit.heads import Head

_TAIL = 4096  # bytes; a line has about 300


class Sink:
    """Opened anew for every line, so that a rotated or replaced file is followed.

    Within one file the links only grow: heads are written by whoever holds the sealing lock.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def last(self) -> Head | None:
        """The last head that can be read; None: there is no file yet, or no head in its end. Raises OSError."""
        try:
            with self.path.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
                lines = file.read().splitlines()
        except FileNotFoundError:
            return None
        return next((head for line in reversed(lines) if (head := parse(line))), None)

    def append(self, head: Head) -> None:
        """Write a head and see it on the disk. Raises OSError."""
        new = not self.path.exists()
        handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            line = (json.dumps(asdict(head)) + "\n").encode()
            size = os.fstat(handle).st_size
            if size and os.pread(handle, 1, size - 1) != b"\n":  # a line that was cut by a full disk
                line = b"\n" + line
            if os.write(handle, line) != len(line):
                raise OSError(f"{self.path} took only a part of a line")
            os.fsync(handle)
        finally:
            os.close(handle)
        if new:
            _sync_folder(self.path.parent)


def read(path: Path) -> Iterator[Head | None]:
    """Every head up to what is the end now, in the order of the file; None for a line that cannot be read.

    Lines that come while it is read are left out: the chain may not have been read as far. Raises OSError.
    """
    with path.open("rb") as file:
        left = os.fstat(file.fileno()).st_size
        for line in file:
            left -= len(line)
            if left < 0:
                return
            if line.strip():
                yield parse(line)


def parse(line: bytes | str) -> Head | None:
    """A head from its line; None when it is none."""
    try:
        return from_json(json.loads(line))
    except (ValueError, RecursionError):
        return None


def from_json(value: Any) -> Head | None:
    """A head from its JSON object; None when it is none."""
    match value:
        case {
            "link": int(link),
            "hash": str(hash_),
            "at": str(at),
            "key": str(key),
            "signature": str(signature),
        } if not isinstance(link, bool):
            return Head(link, hash_, at, key, signature)
    return None


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
