"""The sentences both terminal views share; pure, so that a terminal and a pipe say the same."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import assert_never

from bot.events import (
    Answered,
    ApprovalAsked,
    ApprovalClosed,
    CommandFinished,
    CommandProgress,
    PlanChanged,
    TurnStarted,
)
from bot.prose import marked
from bot.terminal.safe_text import exact, harmless, one_line
from bot.turns.memories import Told
from storage.records import ApprovalHost, ApprovalState, MilestoneKind, TurnState

OUTPUT_LINES = 8
_SPACES = re.compile(r"  +|^ | $")  # more than one, or at an end of the line
PLAN_MARKS = {"todo": "○", "doing": "…", "done": "✓", "dropped": "–"}


@dataclass(frozen=True, slots=True)
class Head:
    """The first lines of an output, and the line that says what is left out (empty: nothing is)."""

    lines: tuple[str, ...]
    rest: str


def output_head(stdout: str, command_id: int, *, limit: int = OUTPUT_LINES) -> Head:
    """At most `limit` lines of an output; whole lines, shortened only by the view."""
    lines = harmless(stdout).rstrip("\n").split("\n") if stdout.strip() else []
    left = len(lines) - limit
    if left <= 0:
        return Head(tuple(lines), "")
    more = f"… {left} more {'line' if left == 1 else 'lines'}; opsthread sessions output {command_id}"
    return Head(tuple(lines[:limit]), more)


def size(count: int) -> str:
    """Bytes as people read them: 812 B, 18 kB, 3.4 MB."""
    if count < 1_000:
        return f"{count} B"
    if count < 1_000_000:
        return f"{count / 1_000:.0f} kB"
    return f"{count / 1_000_000:.1f} MB"


def duration(seconds: float) -> str:
    """Seconds as people read them: 0.2 s, 41 s, 2 min 5 s."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def mark(event: CommandFinished) -> str:
    """✓ exit 0, ✗ another exit status, ? a signal or an unknown outcome."""
    if event.exit_status is None:
        return "?"
    return "✓" if event.exit_status == 0 else "✗"


def result(event: CommandFinished) -> str:
    """`exit 0 · 0.2 s · 18 kB`. Without an exit status the note behind it says what happened."""
    if event.exit_status is None:
        parts = ["no exit status" if not event.note else "outcome unknown"]
        parts += [duration(event.seconds)] if event.seconds else []
    else:
        parts = [f"exit {event.exit_status}", duration(event.seconds)]
    if event.output_bytes:
        parts.append(size(event.output_bytes))
    if event.approved:
        parts.append("approved")
    return " · ".join(parts)


def progress(event: CommandProgress) -> str:
    return f"still running · {duration(event.seconds)} · {size(event.bytes_so_far)} so far"


def begun(event: TurnStarted) -> str:
    """A turn is taken up again after an approval as well as after a restart: both are just going on."""
    opening = "Going on" if event.resumed else "Looking into it"
    return f"{opening} · session {event.session.id} · at most {event.max_steps} steps"


def milestone_title(kind: MilestoneKind, at: str) -> str:
    return f"{_kind(kind)} · {one_line(at)}"


def _kind(kind: MilestoneKind) -> str:
    match kind:
        case MilestoneKind.FINDING:
            return "Finding"
        case MilestoneKind.ROOT_CAUSE:
            return "Root cause"
        case MilestoneKind.CHANGE:
            return "Change applied"
        case MilestoneKind.RECOVERED:
            return "Recovered"
        case MilestoneKind.BLOCKED:
            return "Blocked"
        case MilestoneKind.CONCLUSION:
            return "Conclusion"
    assert_never(kind)


def approval_title(event: ApprovalAsked) -> str:
    return f"Approval {event.approval.id} needed · session {event.approval.session_id}"


def approval_where(hosts: tuple[ApprovalHost, ...]) -> str:
    """`On app-2 (10.0.0.3:22) as opsbot:`, all hosts named, each with the way to it."""
    return f"On {', '.join(_where(host) for host in hosts)}:"


def _where(host: ApprovalHost) -> str:
    bastions = ", ".join(one_line(each.rpartition(" ")[0]) for each in host.route)
    through = f", through {bastions}" if bastions else ""
    return f"{one_line(host.name)} ({one_line(host.address)}:{host.port}{through}) as {one_line(host.user)}"


def approval_notes(event: ApprovalAsked, zone: tzinfo) -> tuple[str, ...]:
    """What stands under the exact text: why it asks, until when, who may answer, and how."""
    approval = event.approval
    approvers = ", ".join(one_line(a) for a in event.approvers)
    two = (
        (f"Two different people must approve it: {one_line(approval.danger)}",) if approval.needs > 1 else ()
    )
    return (
        *two,
        f"Why it asks: {one_line(approval.reason)} · asked by {one_line(approval.requester)}",
        f"Expires {clock(approval.expires_at, zone)} · stops after {duration(approval.limit_s)}",
        f"Approvers: {approvers}" if approvers else "Approvers: none; nobody can approve this here",
        how_to_answer(approval.id),
    )


def how_to_answer(approval_id: int) -> str:
    return f"To answer: opsthread approve {approval_id}   or: opsthread deny {approval_id}"


def approval_text(event: ApprovalAsked) -> tuple[str, ...]:
    """The exact text, line by line, with nothing invisible in it: also runs of spaces are seen."""
    return tuple(_SPACES.sub(_seen, line) for line in exact(event.approval.run).split("\n"))


def _seen(spaces: re.Match[str]) -> str:
    return "␠" * len(spaces[0])


def closed(event: ApprovalClosed, zone: tzinfo) -> str:
    """The one line a card becomes."""
    approval, by = event.approval, one_line(event.by)
    at = f" at {clock(approval.decided_at, zone)}" if approval.decided_at else ""
    match approval.state:
        case ApprovalState.APPROVED | ApprovalState.USED:
            what = f"approved by {by}{at}"
        case ApprovalState.DENIED:
            what = f"denied by {by}{at}; nothing ran"
        case ApprovalState.EXPIRED:
            what = "expired without an answer; nothing ran"
        case ApprovalState.REVOKED:
            what = f"taken back{f' by {by}' if by else ''}{at}; nothing ran"
        case ApprovalState.OPEN:
            what = "is open"
        case _:
            assert_never(approval.state)
    return f"Approval {approval.id} {what}"


def plan_lines(event: PlanChanged) -> tuple[str, ...]:
    return tuple(f"{PLAN_MARKS.get(state, '·')} {marked(one_line(text))}" for text, state in event.steps)


def ending(event: Answered) -> str:
    """The quiet line under an answer: our own evidence line, and how it ended when it did not end well."""
    words = {TurnState.FAILED: "not answered", TurnState.STOPPED: "stopped"}.get(event.state, "")
    parts = (words, one_line(event.footer), memories_used(event), duration(event.seconds))
    return " · ".join(part for part in parts if part)


def memories_used(event: Answered) -> str:
    """How many memories the turn was given, and how to see which and why."""
    count = event.memories
    word = f"used {count} memor{'y' if count == 1 else 'ies'}"
    return f"{word} (why: opsthread memory used {event.turn.id})" if count else ""


def memory_lines(told: Told) -> list[str]:
    """The answer to a word about memory."""
    lines = [one_line(told.title)]
    for each in told.lines:
        number = f"{each.id:>6}  " if each.id else " " * 8
        lines += [f"{number}{one_line(part)}" for part in each.text.splitlines() if part.strip()]
        lines.append(f"{' ' * 8}{one_line(each.why)}")
    return [*lines, *([one_line(told.hint)] if told.hint else [])]


def session_hint(session_id: int) -> str:
    """The last line of `ask`: how a new process goes on from here."""
    return f'session {session_id} · go on with: opsthread ask --session {session_id} "…"'


def clock(at: datetime, zone: tzinfo) -> str:
    """HH:MM with the zone's name."""
    return f"{at.astimezone(zone):%H:%M %Z}".strip()
