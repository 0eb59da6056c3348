"""Named checkers for programs whose words the table alone cannot judge."""

from __future__ import annotations

from collections.abc import Callable

from bot.policy.lexer import Word
from bot.policy.spec import Given, NotProved, Scene



def _none(words: tuple[Word, ...], scene: Scene) -> tuple[Word, ...]:
    """For entries that never run by themselves."""
    raise NotProved("not known to only read")


WHOLE: dict[str, Callable[[tuple[Word, ...], Scene], tuple[Word, ...]]] = {"none": _none}
AFTER: dict[str, Callable[[Given, Scene], None]] = {}
