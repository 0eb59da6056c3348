"""Pure: what a result of run_command says, read back from its text: command, hosts, how it ended, how much it printed.

The other direction of bot.tools.report. Only lines of ours are read; what a host printed stands behind FRAME.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.outside import FRAME

_HEAD = re.compile(r"### (.+?) · (.+)")
_OUTCOME = re.compile(r"exit \d+|killed by signal \w+|refused|denied|not run yet|not run|unknown")
_LEFT = re.compile(r"… (\d+) bytes left out(?:, full output kept as command (\d+))? …")


@dataclass(frozen=True, slots=True)
class Told:
    """One host's share. printed: bytes, about. kept_as: the number of the stored output, when it was cut."""

    host: str
    headline: str
    printed: int = 0
    kept_as: str = ""

    @property
    def outcome(self) -> str:
        """`exit 0` of `exit 0 · 0.1 s`: words of ours only; why it is so may be told by a host."""
        found = _OUTCOME.match(self.headline)
        return found[0] if found else "ended"


@dataclass(frozen=True, slots=True)
class Reported:
    """A result's command ("" when it names none) and its hosts in order."""

    command: str
    hosts: tuple[Told, ...]


def reported(text: str) -> Reported | None:
    """None: the text is no report. Words of ours may stand before it."""
    command: list[str] = []
    hosts: list[Told] = []
    for line in text.split("\n"):
        if head := _HEAD.fullmatch(line):
            hosts.append(Told(head[1], head[2]))
        elif not hosts:
            if line.startswith("$ ") and not command:
                command = [line[2:]]
            elif line.startswith("> ") and command:
                command.append(line[2:])
        else:
            hosts[-1] = _more(hosts[-1], line)
    return Reported("\n".join(command), tuple(hosts)) if hosts else None


def _more(told: Told, line: str) -> Told:
    if line.startswith(FRAME):
        return Told(told.host, told.headline, told.printed + len(line.encode()) - 1, told.kept_as)
    if left := _LEFT.fullmatch(line):
        return Told(told.host, told.headline, told.printed + int(left[1]), told.kept_as or (left[2] or ""))
    return told
