"""How a known command's output becomes facts: a shape of the command, and what is read from its lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from storage.records import MemoryKind

LONGEST_LINE = 500  # characters of a line that are looked at
MOST_LINES = 3_000
VERSION = r"[0-9]{1,8}(?:[._][0-9]{1,8}){0,5}(?:[a-z]|(?:p|rc|beta|alpha|b|u)[0-9]{1,5})?(?![0-9A-Za-z])"
KUBERNETES = r"[0-9]{1,3}\.[0-9]{1,4}\.[0-9]{1,4}(?:[-+][0-9A-Za-z][0-9A-Za-z.+-]{0,40})?"  # with the distribution's own part
# Commands that print one file: no second name may stand before the path that follows.
OF_FILE = (
    r"(?:(?:cat|head|tail|less|more)(?: -[\w-]{1,12}| [0-9]{1,6}){0,6}"
    r"|e?grep(?: -[ABCEFPeinorvw0-9]{1,6}| --color=\w{1,8}){0,6} (?!-)(?:(?! -\w{0,8}h| --no)[^/]){1,120})"
)
LOOSE = r"[0-9]{1,8}(?:[._][0-9]{1,8}){0,5}"  # also where a word goes on behind it


@dataclass(frozen=True, slots=True)
class Reading:
    """One captured field. says: what it means, to stand after "On HOST, "."""

    kind: MemoryKind
    attribute: str
    value: str
    says: str


Read = Callable[[list[str], re.Match[str]], Iterable[Reading]]


@dataclass(frozen=True, slots=True)
class Source:
    """A command whose output is known. bare: its lines carry no name, so it must have printed them alone."""

    command: re.Pattern[str]
    read: Read
    bare: bool = False


def lines_of(text: str) -> list[str]:
    """The lines that are looked at: not too many, none too long, carriage returns gone."""
    lines = text[: LONGEST_LINE * MOST_LINES].split("\n", MOST_LINES)[:MOST_LINES]
    return [line[:LONGEST_LINE].rstrip("\r ") for line in lines]


def software(program: str, version: str, package: str = "") -> Reading:
    """A program's version. package: its name and version as the package manager writes them."""
    more = f" (package {package})" if package else ""
    return Reading(
        MemoryKind.SOFTWARE_FACT, f"{program} version", version, f"{program} is version {version}{more}"
    )


def environment(attribute: str, value: str, says: str = "") -> Reading:
    """A fact of the host; by default "the ATTRIBUTE is VALUE"."""
    return Reading(MemoryKind.ENVIRONMENT_FACT, attribute, value, says or f"the {attribute} is {value}")


def by_line(*rows: tuple[str, str, str], flags: int = 0) -> Read:
    """Rows of (attribute, pattern of a line with one group, what it says with {} for the value or empty)."""
    known = [(attribute, re.compile(pattern, flags), says) for attribute, pattern, says in rows]

    def read(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
        for line in lines:
            for attribute, pattern, says in known:
                if (hit := pattern.match(line)) and (value := hit[1].strip()):
                    yield environment(attribute, value, says.format(value))

    return read


def source(command: str, read: Read, *, bare: bool = False) -> Source:
    """A source by the pattern of its whole command line."""
    return Source(re.compile(command), read, bare)
