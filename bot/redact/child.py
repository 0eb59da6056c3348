"""The other end of RedactionWorker: `python -m bot.redact.child` redacts what comes in on its stdin.

A frame is eight bytes of length and as many bytes. The first frame is the recipe of the redactor, as JSON; each
further one is a text. The answer to a text is a frame with the names of the rules that hit, as JSON, and, when
there are any, a frame with the redacted text. The process ends when its stdin does, so it never outlives us.
"""

from __future__ import annotations

import json
import sys
from typing import BinaryIO

from bot.redact.rules import load_redactor

LENGTH = 8  # bytes


def encode(text: str) -> bytes:
    """UTF-8 that also holds lone surrogates, as Python's texts may."""
    return text.encode("utf-8", "surrogatepass")


def decode(data: bytes) -> str:
    """The text of `encode`."""
    return data.decode("utf-8", "surrogatepass")


def frame(data: bytes) -> tuple[bytes, bytes]:
    """The length and the bytes themselves, apart so that long ones are not copied."""
    return len(data).to_bytes(LENGTH, "big"), data


def _read(source: BinaryIO) -> bytes | None:
    head = source.read(LENGTH)
    if len(head) < LENGTH:
        return None
    size = int.from_bytes(head, "big")
    data = source.read(size)
    return data if len(data) == size else None


def main() -> None:
    """Serve until stdin ends or nobody reads the answers."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    recipe = _read(source)
    if recipe is None:
        return
    made_from = json.loads(decode(recipe))
    redactor = load_redactor(made_from["values"], made_from["extra"])
    try:
        while (data := _read(source)) is not None:
            done = redactor.text(decode(data))
            sink.writelines(frame(encode(json.dumps(done.found))))
            if done.found:
                sink.writelines(frame(encode(done.text)))
            sink.flush()
    except BrokenPipeError:
        sys.stdout = None  # so that Python does not try to flush it again


if __name__ == "__main__":
    main()
