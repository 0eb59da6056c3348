"""Pure: whether two memories say the same, or nearly."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from storage.recall.tokens import tokens
from storage.records import Recalled

NEARLY = 0.85  # of the tokens of both together

# What turns a sentence around although it adds hardly a token: two that differ here are never the same.
_NOT = re.compile(
    r"\b(?:no|not|never|nothing|none|without|stop|cannot|\w+n['’]t|only|except|unless)\b|[不没别无勿非未莫]"
)
_NUMBER = re.compile(r"\d+(?:\.\d+)*")


def plain(text: str | None) -> str:
    """For comparing values: NFKC, lower case, one space between words."""
    return " ".join(unicodedata.normalize("NFKC", text or "").casefold().split())


def alike(one: str, other: str) -> bool:
    """Nearly the same sentence: most tokens in common, the same numbers and the same negations."""
    a, b = plain(one), plain(other)
    if a == b:
        return True
    if sorted(_NOT.findall(a)) != sorted(_NOT.findall(b)) or _NUMBER.findall(a) != _NUMBER.findall(b):
        return False
    first, second = set(tokens(a)), set(tokens(b))
    return len(first & second) >= NEARLY * len(first | second) > 0


def distinct(found: Sequence[Recalled]) -> list[Recalled]:
    """Without those that nearly repeat a better one."""
    kept: list[Recalled] = []
    for one in found:
        if not any(alike(one.memory.text, better.memory.text) for better in kept):
            kept.append(one)
    return kept
