"""The Screen of `ask --json`: one JSON object a line on stdout and nothing else.

Events: session, step, command, milestone, approval, answer, error. Live pieces, plans and notes are left out.
"""

from __future__ import annotations

import json
import re
from datetime import UTC
from typing import Any, TextIO, assert_never

from bot.events import (
    Answered,
    ApprovalAsked,
    ApprovalClosed,
    CommandFinished,
    CommandProgress,
    CommandRefused,
    CommandStarted,
    Event,
    MilestoneReached,
    Noted,
    PlanChanged,
    Screen,
    StepStarted,
    TextStreamed,
    TurnStarted,
)
from bot.terminal.streams import silence, utf8
from bot.turns.memories import Told
from storage.records import Approval, NewPost, TurnState

# What json leaves raw but a terminal may obey, or what UTF-8 cannot hold; escaped it is the same JSON.
_RAW = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def dumps(record: dict[str, Any]) -> str:
    """One line of UTF-8 JSON."""
    return escaped(json.dumps(record, ensure_ascii=False, separators=(",", ":")))


def escaped(text: str) -> str:
    """The same JSON, without a sign that a terminal may obey or take for the end of a line."""
    return _RAW.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def error_line(text: str) -> str:
    """The line for an error outside a turn."""
    return dumps({"event": "error", "text": text})


def as_record(event: Event) -> dict[str, Any] | None:
    """The object for an event, or None when nothing is printed for it."""
    match event:
        case TurnStarted():
            return {
                "event": "session",
                "session": event.session.id,
                "turn": event.turn.id,
                "resumed": event.resumed,
            }
        case StepStarted():
            return {"event": "step", "step": event.step, "max_steps": event.max_steps}
        case CommandFinished():
            return _finished(event)
        case CommandRefused():
            return {"event": "command", "host": event.host, "run": event.run, "refused": event.reason}
        case MilestoneReached():
            return {
                "event": "milestone",
                "id": event.milestone_id,
                "kind": event.kind.value,
                "text": event.text,
                "at": event.at,
            }
        case ApprovalAsked():
            return _approval(event.approval) | {"approvers": list(event.approvers)}
        case ApprovalClosed():
            return _approval(event.approval) | {"by": event.by}
        case Answered():
            return _answered(event)
        case TextStreamed() | CommandStarted() | CommandProgress() | PlanChanged() | Noted():
            return None
    assert_never(event)


def _finished(event: CommandFinished) -> dict[str, Any]:
    return {
        "event": "command",
        "id": event.command_id,
        "host": event.host,
        "run": event.run,
        "exit_status": event.exit_status,
        "note": event.note,
        "seconds": round(event.seconds, 3),
        "output_bytes": event.output_bytes,
        "stdout": event.stdout,
        "approved": event.approved,
    }


def _approval(approval: Approval) -> dict[str, Any]:
    return {
        "event": "approval",
        "id": approval.id,
        "hosts": [host.name for host in approval.hosts],
        "run": approval.run,
        "reason": approval.reason,
        "expires_at": approval.expires_at.astimezone(UTC).isoformat(),
        "state": approval.state.value,
    }


def _answered(event: Answered) -> dict[str, Any]:
    """A turn that failed has no answer: its words are an error's."""
    name = "error" if event.state == TurnState.FAILED else "answer"
    return {
        "event": name,
        "session": event.turn.session_id,
        "text": event.text,
        "footer": event.footer,
        "memories": event.memories,
        "state": event.state.value,
        "seconds": round(event.seconds, 3),
    }


def memories_record(told: Told) -> dict[str, Any]:
    """The answer to a word about memory, as one line."""
    memories = [{"id": line.id or None, "text": line.text, "why": line.why} for line in told.lines]
    return {"event": "memories", "text": told.title, "memories": memories, "hint": told.hint}


class JsonScreen:
    """Writes each event as it happens. A closed pipe ends the view, not the turn."""

    def __init__(self, stream: TextIO, *, mirror: Screen | None = None) -> None:
        utf8(stream)
        self._stream = stream
        self._mirror = mirror
        self._broken = False

    def posts(self, event: Event) -> tuple[NewPost, ...]:
        """A terminal needs no delivery of its own; a mirror's posts pass through."""
        return self._mirror.posts(event) if self._mirror else ()

    async def show(self, event: Event) -> None:
        record = as_record(event)
        if record is None or self._broken:
            return
        try:
            self._stream.write(dumps(record) + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            self._broken = True
            silence(self._stream)

    async def close(self) -> None:
        if self._mirror:
            await self._mirror.close()
