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
# What makes a program speak of another machine than the one it runs on, or of another program than its name says.
_ELSEWHERE = re.compile(
    r"(?:PGHOST|PGHOSTADDR|PGSERVICE|PGPORT|MYSQL_HOST|MYSQL_TCP_PORT|DOCKER_HOST|DOCKER_CONTEXT|CONTAINER_HOST|PATH|LD_\w{1,20})="
)
_HERE = re.compile(r"localhost|127\.0\.0\.1|::1|\[::1\]|/[\w./-]{1,80}")
_HOST = {
    "redis": re.compile(r"(-h|-u)(.{0,200})"),
    "sql": re.compile(r"(-h|--host(?:$|=))(.{0,200})|.{0,80}(?:://|\bhost(?:addr)?=|\bservice=).*"),
    "packages": re.compile(
        r"(?:--(?:root|installroot|admindir|instdir|dbpath|package|path|target|available|upgrades)|-r|-p)\b.*"
    ),
}
_SPEAKS_OF = {
    "redis-cli": "redis", "valkey-cli": "redis", "psql": "sql", "mysql": "sql", "mariadb": "sql",
    "rpm": "packages", "dpkg": "packages", "dpkg-query": "packages", "yum": "packages", "dnf": "packages",
    "apk": "packages", "pip": "packages", "pip3": "packages",
}  # fmt: skip
_FOREIGN = re.compile(r"(?!/).*/|/(?:tmp|var/tmp|dev|proc|mnt|media|home|root)/")
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
        if _ELSEWHERE.match(words[0]) or _FOREIGN.match(words[0]):
            return None
        if _ASSIGNMENT.match(words[0]):
            words.pop(0)
        elif name in _VALUED and words[1:] not in (["-V"], ["--version"]):
            words.pop(0)
            while words and words[0].startswith("-"):
                words = words[2:] if words[0] in _VALUED[name] else words[1:]
            if name == "timeout":
                words = words[1:]
        else:
            return None if _of_another(name, words[1:]) else (name, *words[1:])
    return None


def _of_another(program: str, words: list[str]) -> bool:
    """Whether a client is told to ask another host, or a package manager to look elsewhere than at what is installed."""
    if not (known := _HOST.get(_SPEAKS_OF.get(program, ""))):
        return False
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if (hit := known.fullmatch(word)) and not (
            hit.lastindex and _HERE.fullmatch(hit[2].lstrip("=") or after)
        ):
            return True
    return False
