"""Pure: holds an answer against what was run, and writes our own evidence line under it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from storage.records import Command, CommandState

# "I ran `df -h`", "after running `df -h`", "运行了 `df -h`": a claim that something was executed.
_CLAIM = re.compile(
    r"(?:\b(?:ran|executed|after running)\b|运行了|执行了)[^`\n.。;；]{0,40}`([^`\n]{2,200})`", re.IGNORECASE
)
_NOT_A_CLAIM = re.compile(
    r"\b(?:can|could|would|should|will|to|please|not|you may|let me|try|didn't|did not|n't)\b"
    r"|可以|建议|请|没有|未|尚未|需要|应该",
    re.IGNORECASE,
)


def unproved_claims(answer: str, commands: Sequence[Command]) -> tuple[str, ...]:
    """Commands the answer says were run, but that this session never ran."""
    ran = {_plain(command.run) for command in commands}
    out: list[str] = []
    for match in _CLAIM.finditer(answer):
        before = answer[max(0, match.start() - 24) : match.start(1)]
        named = _plain(match.group(1))
        if _NOT_A_CLAIM.search(before) or not named or named in out:
            continue
        if not any(named in text or text in named for text in ran if text):
            out.append(named)
    return tuple(out)


def _plain(text: str) -> str:
    """A command without quotes and doubled spaces: the rendered text and the model's words compare equal."""
    return " ".join(text.replace("'", "").replace('"', "").replace("\\", "").split())


def footer(commands: Sequence[Command], claims: Sequence[str]) -> str:
    """Our evidence line: how many commands stand behind the answer, on which hosts, and what is unproved."""
    done = [c for c in commands if c.state is CommandState.DONE]
    hosts = list(dict.fromkeys(c.host for c in done))
    parts = []
    if done:
        named = ", ".join(hosts[:5]) + (f" and {len(hosts) - 5} more" if len(hosts) > 5 else "")
        parts.append(f"{len(done)} command{'s' if len(done) != 1 else ''} on {named}")
    unknown = [c for c in commands if c.state is CommandState.UNKNOWN]
    if unknown:
        parts.append(f"{len(unknown)} with unknown outcome")
    if claims:
        listed = ", ".join(f"`{claim}`" for claim in claims[:3])
        parts.append(f"named above but not run in this session: {listed}")
    return " · ".join(parts)
