"""Texts on a pipe, in pieces, so that neither end is busy with a long one at a time.

A piece is four bytes of length and as many bytes; an empty piece ends the text.
"""

from __future__ import annotations

from collections.abc import Iterator

LENGTH = 4  # bytes
_PIECE = 1 << 18  # characters


def frames(text: str) -> Iterator[bytes]:
    """The text as UTF-8 that also holds lone surrogates, as Python's texts may."""
    for start in range(0, len(text), _PIECE):
        data = text[start : start + _PIECE].encode("utf-8", "surrogatepass")
        yield len(data).to_bytes(LENGTH, "big") + data
    yield bytes(LENGTH)


def size(head: bytes) -> int:
    """Bytes that follow these four."""
    return int.from_bytes(head, "big")


def decoded(piece: bytes) -> str:
    """The text of one piece."""
    return piece.decode("utf-8", "surrogatepass")
