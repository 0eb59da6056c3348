"""awk programs that may never end, or take all the memory of a host, by loops and texts that feed on themselves."""

from __future__ import annotations

import re

from bot.policy.lexer import listed
from bot.policy.spec import NotProved

_LONGEST_RIGHT = 400  # characters of the right side of an assignment
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_SET = re.compile(r"([a-zA-Z_]\w{0,40})(?:\[[^\]=]{0,80}\])? *[-+*/%^]?=(?![=~])")
_SET_FIELD = re.compile(r"\$ {0,4}\w{1,40} {0,4}=(?![=~])")
_STEP = re.compile(r"([a-zA-Z_]\w{0,40}) {0,4}(?:\+\+|--)|(?:\+\+|--) {0,4}([a-zA-Z_]\w{0,40})")
_REPLACES = re.compile(r"\bg?sub\b")
_END = re.compile(r"[;}\n]")
_BETWEEN = re.compile(r"[-+*/%^<>!=&|?:~]|,")
_NAME = re.compile(r"(?<![\w$])[a-zA-Z_]\w*")
_NO_VALUES = frozenset(
    listed(
        "length substr index split match sprintf int log exp sqrt sin cos tolower toupper strftime systime in"
    )
)


def check_growth(program: str, loops: re.Pattern[str]) -> None:
    """Raises NotProved when a counting loop may not end, or a text may grow by its own length again and again.

    loops: the heads of loops that are known; those with a counter name it `n`. Forty doublings of one letter
    are more than any host has, so what is joined with itself, or with another variable, is not let through.
    """
    rest = _TEXT.sub(" ", loops.sub(" ", program))
    counters = {found["n"] for found in loops.finditer(program) if found["n"]}
    sets = list(_SET.finditer(rest))
    stepped = {a or b for a, b in _STEP.findall(rest)}
    if again := counters & ({found[1] for found in sets} | stepped):
        raise NotProved(f"awk: {min(again)} counts a loop and is set elsewhere, so the loop may not end")
    if counters and (_REPLACES.search(rest) or _SET_FIELD.search(rest)):
        raise NotProved("awk: replacing text inside a counting loop may never end, or take all memory")
    for found in sets:
        right = _END.split(rest[found.end() : found.end() + _LONGEST_RIGHT + 1], maxsplit=1)[0]
        if len(right) > _LONGEST_RIGHT:
            raise NotProved(f"awk: what {found[1]} is set to is too long to be proved")
        if grows := _joined(right) & {each[1] for each in sets}:
            raise NotProved(f"awk: {min(grows)}, made of itself and another text, may take all memory")


def _joined(right: str) -> set[str]:
    """The variables that stand side by side with another one, or twice, on the right of an assignment."""
    if "sprintf" in right:
        right = right.replace(",", " ")
    names = [name for name in _NAME.findall(right) if name not in _NO_VALUES]
    twice = {name for name in names if names.count(name) > 1}
    beside: set[str] = set()
    for piece in _BETWEEN.split(right):
        near = {name for name in _NAME.findall(piece) if name not in _NO_VALUES}
        if len(near) > 1:
            beside |= near
    return twice | beside
