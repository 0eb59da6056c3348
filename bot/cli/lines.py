"""Files that a command reads: UTF-8 text from a path or stdin."""

from __future__ import annotations

import sys
from pathlib import Path

from bot.errors import UsageError


def text_of(name: str) -> str:
    """A file of JSON lines; - is stdin. Raises UsageError."""
    return _read(name, f"{name} cannot be read", "one JSON object a line")


def queries_of(name: str) -> list[str]:
    """A file with one query a line. Raises UsageError."""
    whole = _read(name, f"--queries {name} cannot be read", "one query a line")
    return [line.removesuffix("\r") for line in whole.removesuffix("\n").split("\n")] if whole else []


def _read(name: str, fault: str, shape: str) -> str:
    try:
        return (sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{fault} ({error}); it is UTF-8 text, {shape}") from None
