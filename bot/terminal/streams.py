"""Output streams as they really are: of any encoding, with a reader that may go away."""

from __future__ import annotations

import contextlib
import io
import os
from typing import IO


def lenient(stream: IO[str]) -> None:
    """A character the stream's encoding lacks is written as an escape instead of raising."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")


def utf8(stream: IO[str]) -> None:
    """JSON lines are UTF-8 whatever the locale says."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8", newline="\n")


def silence(stream: IO[str]) -> None:
    """Point a broken stream at nothing, so that the flush at exit does not fail.

    A stream without a descriptor is left as it is.
    """
    with contextlib.suppress(OSError, ValueError):
        target = stream.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, target)
        finally:
            os.close(nowhere)
