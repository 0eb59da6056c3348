"""Pure: what the model reads about the commands of a call, host by host, long output cut in the middle."""

from __future__ import annotations

import re
from dataclasses import dataclass

from storage.records import Command, CommandState

SHOWN = 12_000  # characters of output per call that the model is shown; the whole is stored
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")


@dataclass(frozen=True, slots=True)
class Part:
    """One host's share of a result: a headline, and what was printed."""

    host: str
    headline: str
    stdout: str = ""
    stderr: str = ""
    command_id: int | None = None


def ran(command: Command, stdout: str, stderr: str) -> Part:
    """A command that was run, whatever became of it."""
    if command.state is CommandState.RUNNING or command.state is CommandState.UNKNOWN:
        said = command.note or "the bot was interrupted while it ran; I do not know whether it finished"
        headline = f"unknown: {said}. It was not run again."
    elif command.exit_status is None and command.signal is None:
        headline = f"not run: {command.note}"
    else:
        how = (
            f"exit {command.exit_status}" if command.signal is None else f"killed by signal {command.signal}"
        )
        headline = f"{how} · {command.seconds or 0:.1f} s" + (f" · {command.note}" if command.note else "")
        if command.approval_id is not None:
            headline += " · approved by a person"
    return Part(
        host=command.host,
        headline=headline,
        stdout=stdout,
        stderr=stderr,
        command_id=command.id,
    )


def report(run: str | None, parts: list[Part]) -> str:
    """The text of a call's result; each host gets an equal share of the room."""
    share = max(SHOWN // max(len(parts), 1), 600)
    blocks = [_block(part, share) for part in parts]
    head = f"$ {run}\n" if run else ""
    return head + "\n\n".join(blocks)


def _block(part: Part, share: int) -> str:
    lines = [f"### {part.host} · {part.headline}"]
    if part.stdout.strip():
        lines.append(cut(clean(part.stdout).rstrip("\n"), share, part.command_id))
    if part.stderr.strip():
        lines.append("--- stderr")
        lines.append(cut(clean(part.stderr).rstrip("\n"), share // 3, part.command_id))
    if not part.stdout.strip() and not part.stderr.strip() and part.headline.startswith("exit"):
        lines.append("(no output)")
    return "\n".join(lines)


def cut(text: str, room: int, command_id: int | None) -> str:
    """Head and tail on line borders, and how much is left out between."""
    if len(text) <= room:
        return text
    head, tail = text[: room * 2 // 3], text[-(room // 3) :]
    head = head[: head.rfind("\n") + 1] or head
    tail = tail[tail.find("\n") + 1 :] or tail
    left = len(text.encode()) - len(head.encode()) - len(tail.encode())
    kept = f", full output kept as command {command_id}" if command_id else ""
    return f"{head.rstrip()}\n… {left} bytes left out{kept} …\n{tail}"


def clean(text: str) -> str:
    """Without escape sequences and control characters; they are no text and could hide some."""
    out = _ANSI.sub("", text)
    return "".join(c for c in out if c in "\n\t" or (c.isprintable() or ord(c) > 0x9F))
