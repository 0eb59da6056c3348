"""The other end of RedactionWorker: `python -m bot.redact.child` redacts what comes in on its stdin.

The first text is the recipe of the redactor, as JSON. The answer to each further one is the names of the rules
that hit, as JSON, and, when there are any, the redacted text. The process ends when its stdin does, so it never
outlives the one that started it.
"""

from __future__ import annotations

import json
import sys
from typing import BinaryIO

from bot.redact.frames import LENGTH, decoded, frames, size
from bot.redact.rules import load_redactor


def main() -> None:
    """Serve until stdin ends or nobody reads the answers."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    recipe = _read(source)
    if recipe is None:
        return
    made_from = json.loads(recipe)
    redactor = load_redactor(made_from["values"], made_from["extra"])
    while (text := _read(source)) is not None:
        done = redactor.text(text)
        try:
            sink.writelines(frames(json.dumps(done.found)))
            if done.found:
                sink.writelines(frames(done.text))
            sink.flush()
        except BrokenPipeError:
            sys.stdout = None  # so that Python does not try to flush it again
            return


def _read(source: BinaryIO) -> str | None:
    pieces: list[str] = []
    while len(head := source.read(LENGTH)) == LENGTH:
        if not size(head):
            return "".join(pieces)
        pieces.append(decoded(source.read(size(head))))
    return None


if __name__ == "__main__":
    main()
