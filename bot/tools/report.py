"""Pure: what the model reads about the commands of a call, host by host, long output cut in the middle."""

from __future__ import annotations

from dataclasses import dataclass

from bot.outside import FRAME, clean, framed, line
from storage.records import Command, CommandState

SHOWN = 12_000  # characters of output per call that the model is shown; the whole is stored


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
    """The text of a call's result; each host gets an equal share of the room.

    Lines of ours begin with `$`, `>`, `###`, `---`, `…` or `(`; every line that a host printed begins with FRAME.
    """
    share = max(SHOWN // max(len(parts), 1), 600)
    blocks = [_block(part, share) for part in parts]
    head = "$ " + "\n> ".join(clean(run).split("\n")) + "\n" if run else ""
    return head + "\n\n".join(blocks)


def _block(part: Part, share: int) -> str:
    lines = [f"### {part.host} · {line(part.headline)}"]
    if part.stdout.strip():
        lines.append(cut(framed(part.stdout), share, part.command_id))
    if part.stderr.strip():
        lines.append("--- stderr")
        lines.append(cut(framed(part.stderr), share // 3, part.command_id))
    if not part.stdout.strip() and not part.stderr.strip() and part.headline.startswith("exit"):
        lines.append("(no output)")
    return "\n".join(lines)


def cut(text: str, room: int, command_id: int | None) -> str:
    """Head and tail of a framed text on line borders, and how much is left out between."""
    if len(text) <= room:
        return text
    head, tail = text[: room * 2 // 3], text[-(room // 3) :]
    head = head[: head.rfind("\n")] if "\n" in head else head
    tail = tail[tail.find("\n") + 1 :] if "\n" in tail else FRAME + tail
    left = _bytes(text) - _bytes(head) - _bytes(tail)
    kept = f", full output kept as command {command_id}" if command_id else ""
    return f"{head.rstrip()}\n… {left} bytes left out{kept} …\n{tail}"


def _bytes(text: str) -> int:
    """Of a framed text, without its frame."""
    return len(text.encode()) - len(FRAME) * (text.count("\n") + 1)
