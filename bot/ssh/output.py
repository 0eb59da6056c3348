"""What comes out of a channel: cut to the part between our markers, kept head and tail, never all of it."""

from __future__ import annotations

import re
from typing import Protocol

KEEP_BYTES = 256_000
BORDER_BYTES = 8_192  # of a line that is left out whole where the output is cut
NOISE_BYTES = 4_096  # of what a login prints before the first marker, for the reason of a refusal


class Sink(Protocol):
    """Takes the bytes between the markers."""

    def add(self, data: bytes) -> None: ...


class Kept:
    """The first and the last half of `keep` bytes of a stream of any length, and how long it was."""

    def __init__(self, keep: int = KEEP_BYTES) -> None:
        self._half = keep // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data[-self._half :]
        if len(self._tail) > 2 * self._half:  # trimmed in big steps, not for every packet
            del self._tail[: -self._half]

    @property
    def truncated(self) -> bool:
        return self.total > len(self._head) + min(len(self._tail), self._half)

    def text(self) -> str:
        """Decoded with U+FFFD for what is not UTF-8, and for NUL, which Postgres cannot store."""
        return joined(bytes(self._head), bytes(self._tail[-self._half :]), self.total)


def joined(head: bytes, tail: bytes, total: int) -> str:
    """Head and tail as text; between them, how much was left out.

    They are cut where a line ends: half a secret has no shape that redaction could know.
    """
    if total <= len(head) + len(tail):
        return _decoded(head + tail)
    head = head[: head.rfind(b"\n", -BORDER_BYTES) + 1] or head
    tail = tail[tail.find(b"\n", 0, BORDER_BYTES) + 1 :] or tail
    head = head.removesuffix(b"\n")
    left_out = total - len(head) - len(tail)
    return f"{_decoded(head)}\n[… {left_out:,} bytes left out …]\n{_decoded(tail)}"


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\0", "\ufffd")


class Marked:
    """One stream of a channel, fed in pieces of any size: noise, begin marker, body, end marker, rest."""

    def __init__(self, nonce: str, sink: Sink) -> None:
        self._sink = sink
        self._begin = f"\n@@{nonce}@@\n".encode()
        self._end = re.compile(rb"\n@@" + nonce.encode() + rb" (\d{1,3})@@\n")
        self._longest = len(self._begin) + 4  # of an end marker
        self._held = b""
        self.begun = False
        self.status: int | None = None  # of the command, from the end marker

    @property
    def noise(self) -> str:
        """What came before the begin marker; the whole of it when there was none."""
        return "" if self.begun else _decoded(self._held)

    def feed(self, data: bytes) -> None:
        if self.status is not None:
            return  # a child that escaped may write on; the command is over
        data = self._held + data
        if not self.begun:
            at = data.find(self._begin)
            if at < 0:
                self._held = data[-NOISE_BYTES:]
                return
            self.begun = True
            data = data[at + len(self._begin) :]
        end = self._end.search(data)
        if end:
            self._sink.add(data[: end.start()])
            self.status = int(end[1])
            self._held = b""
            return
        ready = max(0, len(data) - self._longest)
        if ready:
            self._sink.add(data[:ready])
        self._held = data[ready:]

    def finish(self) -> None:
        """The channel is gone: what was held back for half a marker belongs to the body."""
        if self.begun and self.status is None:
            self._sink.add(self._held)
            self._held = b""
