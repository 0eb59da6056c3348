"""Reads the text of a command that ran: which programs, with which words, through which filters.

The text is the gate's own rendering (`'nginx' -v 2>&1`, `'sudo' -n ss -ltnp`), or what a person approved as it
stood. Only plain pipelines are understood; of anything else nothing is learnt.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST = 2_000  # characters of a command that is looked at
_JOINTS = {";", "&&", "||", "&"}
_PASSING = {"grep", "egrep", "fgrep", "head", "tail", "sort", "uniq", "cat", "less", "column"}
_VALUED = {
    "sudo": {"-u", "-g", "-h", "-C", "-p"},
    "nice": {"-n"},
    "ionice": {"-c", "-n"},
    "env": {"-u"},
    "timeout": {"-k", "-s"},
    "stdbuf": set[str](),
    "command": set[str](),
    "nohup": set[str](),
}
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,60}=")
_REDIRECTION = re.compile(r"[0-9]?(?:>{1,2}|<)&?|&>")


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One pipeline: its first program and words, and whether what it printed came through unfiltered."""

    words: tuple[str, ...]
    whole: bool

    @property
    def line(self) -> str:
        """The program without its folder, and its words, joined by spaces."""
        return " ".join(self.words)


def pipelines(command: str) -> tuple[Pipeline, ...] | None:
    """The pipelines of a command whose output reaches us; None when it is not plainly readable."""
    if len(command) > LONGEST or "\n" in command or "$(" in command or "`" in command:
        return None
    lexer = shlex.shlex(command, posix=True, punctuation_chars=";|&<>")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        tokens = list(lexer)
    except ValueError:
        return None
    found = []
    for tokens_of_one in _split(tokens, _JOINTS):
        steps = [_plain(step) for step in _split(tokens_of_one, {"|", "|&"})]
        if not steps or any(not step for step in steps):
            return None
        first, *filters = [step for step in steps if step is not None]
        if len(filters) + 1 < len(steps) or any(step[0] not in _PASSING for step in filters):
            return None
        whole = all(step[0] in ("cat", "head", "tail") for step in filters)
        found.append(Pipeline(first, whole))
    return tuple(found)


def _split(tokens: list[str], at: set[str]) -> Iterator[list[str]]:
    part: list[str] = []
    for token in tokens:
        if token in at:
            yield part
            part = []
        else:
            part.append(token)
    if part:
        yield part


def _plain(tokens: list[str]) -> tuple[str, ...] | None:
    """A step without redirections, assignments and programs that only start another; None if it prints elsewhere."""
    words: list[str] = []
    skip = False
    for at, token in enumerate(tokens):
        if skip:
            skip = False
            continue
        if _REDIRECTION.fullmatch(token):
            to = tokens[at + 1] if at + 1 < len(tokens) else ""
            if to not in ("1", "2", "/dev/null") or (to == "/dev/null" and "2" not in tokens[at - 1 : at]):
                return None
            if words and words[-1] in ("1", "2"):
                words.pop()
            skip = True
            continue
        words.append(token)
    while words:
        name = words[0].rsplit("/", 1)[-1]
        if _ASSIGNMENT.match(words[0]):
            words.pop(0)
        elif name in _VALUED:
            words.pop(0)
            while words and words[0].startswith("-"):
                words = words[2:] if words[0] in _VALUED[name] else words[1:]
            if name == "timeout":
                words = words[1:]
        else:
            return (name, *words[1:])
    return None
