"""Which regular expressions of an operator are sure to be quick over any command of 2,000 characters.

Python's engine backtracks, so `(a+)+` or `.*x.*y.*z` over a text made for it takes seconds or for ever, and the
text is the model's. Accepted is what needs at most about length² steps.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

from bot.errors import SettingsError

_parser: Any = importlib.import_module("re._parser")
_FEW = 16  # a repeat of at most so many is no endless one
_SPACES = (ord(" "),)


def quick_pattern(text: Any, where: str) -> re.Pattern[str]:
    """The compiled pattern. Raises SettingsError for what is no regular expression or may take long."""
    if not isinstance(text, str):
        raise SettingsError(f"{where}: {text!r} is not a text; put the pattern in quotes")
    try:
        tree = _parser.parse(text)
        compiled = re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise SettingsError(f"{where}: {text} is not a regular expression: {error}") from None
    if reason := _slow(tree):
        raise SettingsError(f"{where}: {text} may take very long over a text made for it: {reason}")
    return compiled


def _slow(tree: Any) -> str | None:
    try:
        wide = _wide(tree)
    except _Slow as slow:
        return str(slow)
    return "more than one open-ended repeat such as .*; split it into several patterns" if wide > 1 else None


class _Slow(Exception):
    """Why a pattern may take long."""


def _wide(items: Any) -> int:
    """How many open-ended repeats of anything but a space lie on one path."""
    count, before_repeats = 0, False
    for op, value in items:
        name, repeats = str(op), False
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            _, most, inner = value
            repeats = most > _FEW
            if repeats:
                single = len(inner) == 1 and str(inner[0][0]) in (
                    "LITERAL",
                    "NOT_LITERAL",
                    "IN",
                    "ANY",
                    "CATEGORY",
                )
                if not single:
                    raise _Slow("a repeat of a group; repeat single characters only")
                if before_repeats:
                    raise _Slow("two repeats side by side")
                count += not (str(inner[0][0]) == "LITERAL" and inner[0][1] in _SPACES)
            else:
                count += _wide(inner) * max(most, 1)
        elif name in ("GROUPREF", "GROUPREF_EXISTS"):
            raise _Slow("a back reference")
        elif name == "BRANCH":
            count += max(_wide(branch) for branch in value[1])
        elif name in ("SUBPATTERN", "ASSERT", "ASSERT_NOT", "ATOMIC_GROUP"):
            inner = value if name == "ATOMIC_GROUP" else value[-1]
            count += _wide(inner)
        before_repeats = repeats
    return count
