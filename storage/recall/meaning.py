"""Pure: what keywords found, in the order of keywords and of meaning together. Off unless an embedding is given.

Only texts that share a word with the question are looked at: an embedding reorders, it brings nothing in, so no
vector is stored and the floor of what enters a prompt stays what it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from storage.records import Recalled

# A question and texts -> how near each is to the question, on any scale.
Meaning = Callable[[str, Sequence[str]], Sequence[float]]
SHARE = 0.5  # of meaning beside keywords, both in standard deviations


def mixed(found: Sequence[Recalled], query: str, meaning: Meaning) -> list[Recalled]:
    """The same memories, the best of both first. Their scores compare within this answer only, as before."""
    if len(found) < 2:
        return list(found)
    words = _standard([one.score for one in found])
    near = _standard(meaning(query, [one.memory.text for one in found]))
    scored = [
        replace(one, score=round(word + SHARE * close, 6))
        for one, word, close in zip(found, words, near, strict=True)
    ]
    return sorted(scored, key=lambda one: (-one.score, -one.memory.id))


def _standard(values: Sequence[float]) -> list[float]:
    """In standard deviations from their mean; all 0 where they are equal."""
    mean = sum(values) / len(values)
    spread = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
    return [(value - mean) / spread if spread else 0.0 for value in values]
