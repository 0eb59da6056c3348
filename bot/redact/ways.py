"""How many ways a pattern has to try a text that does not match: the measure of a slow regular expression.

Two repeats beside each other multiply their lengths, a repeat in a repeat is a power. A possessive repeat
(`++`) or an atomic group is tried in one way only.

A possessive repeat of more than one sign, such as `(?:ab|c)*+`, is not matched rightly by Python before 3.11.5:
`(?>(?:ab|c)*)` says the same and is.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

# The standard library's own reader of patterns. It has no public name; a text that it cannot tell is refused.
_parser: Any = importlib.import_module("re._parser")

MOST = 20_000
LONG = 1_000  # a repeat without an upper end, in characters
_TOO_MANY = 10**12


class Backward(Exception):
    """The pattern refers back to a group in a way that cannot be measured."""


def ways(pattern: str, flags: int = 0) -> int:
    """Upper bound of the ways to try one place of a text; at most 10**12. Raises re.error."""
    return min(_sequence(_parser.parse(pattern, flags)), _TOO_MANY)


def portable(pattern: str, flags: int = 0) -> bool:
    """Whether every supported Python matches it alike: no possessive repeat of more than one sign."""
    return _portable(_parser.parse(pattern, flags))


def _portable(items: Any) -> bool:
    for op, av in items:
        if str(op) == "POSSESSIVE_REPEAT" and [str(inner) for inner, _ in av[2]][:1] not in _ONE_SIGN:
            return False
        if not all(_portable(inside) for inside in _insides(av)):
            return False
    return True


_ONE_SIGN = [["IN"], ["LITERAL"], ["NOT_LITERAL"], ["ANY"]]


def _insides(av: Any) -> Iterator[Any]:
    """The sequences within an item, wherever they stand in it."""
    if isinstance(av, _parser.SubPattern):
        yield av
    elif isinstance(av, tuple | list):
        for each in av:
            yield from _insides(each)


def _sequence(items: Any) -> int:
    product = 1
    for op, av in items:
        product = min(product * _one(str(op), av), _TOO_MANY)
    return product


def _one(op: str, av: Any) -> int:
    match op:
        case "BRANCH":
            return sum(_sequence(branch) for branch in av[1])
        case "SUBPATTERN":
            return _sequence(av[3])
        case "MAX_REPEAT" | "MIN_REPEAT":
            low, high, inside = av
            return _repeat(int(low), min(int(high), LONG), _sequence(inside))
        case "POSSESSIVE_REPEAT":
            return _kept(_sequence(av[2]))
        case "ATOMIC_GROUP":
            return _kept(_sequence(_repeated(av)))
        case "ASSERT" | "ASSERT_NOT":
            return _kept(_sequence(av[1]))
        case "GROUPREF_EXISTS":
            return _sequence(av[1]) + (_sequence(av[2]) if av[2] else 1)
        case _:
            return 1


def _repeated(items: Any) -> Any:
    """Of an atomic group that is one repeat, what it repeats: each round is kept as soon as the next one begins."""
    if len(items) != 1 or str(items[0][0]) not in ("MAX_REPEAT", "MIN_REPEAT"):
        return items
    return items[0][1][2]


def _kept(inside: int) -> int:
    """What is tried in one way from outside: its own ways count where they are many, and only once."""
    return 1 if inside <= MOST else inside


def _repeat(low: int, high: int, inside: int) -> int:
    if inside == 1:
        return max(high - low + 1, 1)
    total, power = 0, 1
    for times in range(high + 1):
        if times >= low:
            total += power
        power *= inside
        if total > _TOO_MANY or power > _TOO_MANY:
            return _TOO_MANY
    return total
