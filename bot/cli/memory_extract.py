"""`memory extract`: what the rules would keep of a conversation, without a database."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any

from bot import settings
from bot.cli.printing import json_lines
from bot.errors import UsageError
from bot.memory import Heard
from bot.memory import extract as extracted
from bot.redact import Redactor
from storage.records import Role

_ROLES = ", ".join(role.value for role in Role)


def extract() -> None:
    """Read messages as JSON lines from stdin; print the memories that would stand at the end, one JSON object a line.

    A line in: {"role":"user|assistant|tool","author","text","host","command","exit_status","at"}; role and text
    are needed. A line out: {"kind","subject","attribute","value","text","host","source"}, source being the line
    that it came from, counted from 1.
    """
    redactor = settings.load().redactor()
    heard: list[Heard] = []
    lines: list[int] = []
    for number, line in enumerate(sys.stdin.buffer, 1):
        if line.strip():
            heard.append(_heard(line, number, redactor))
            lines.append(number)
    found = extracted(heard)
    json_lines({**asdict(one), "host": one.host or None, "source": lines[one.source - 1]} for one in found)


def _heard(line: bytes, number: int, redactor: Redactor) -> Heard:
    try:
        data: Any = json.loads(line)
    except (ValueError, RecursionError):
        raise UsageError(f"stdin line {number}: not JSON in UTF-8; each line is one message") from None
    if (
        not isinstance(data, dict)
        or data.get("role") not in set(Role)
        or not isinstance(data.get("text"), str)
    ):
        raise UsageError(f'stdin line {number}: needs "role" (one of {_ROLES}) and "text"')
    for name in ("author", "host", "command"):
        if not isinstance(data.get(name) or "", str):
            raise UsageError(f'stdin line {number}: "{name}" is a text')
    status = data.get("exit_status")
    if status is not None and (isinstance(status, bool) or not isinstance(status, int)):
        raise UsageError(f'stdin line {number}: "exit_status" is a whole number')
    return Heard(
        role=Role(data["role"]),
        text=redactor.text(data["text"]).text,
        author=data.get("author") or "",
        host=data.get("host") or "",
        command=redactor.text(data.get("command") or "").text,
        exit_status=status,
    )
