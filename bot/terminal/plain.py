"""Events as lines of plain text for a pipe or a log: no colour, no box, no cursor movement, no wrapping."""

from __future__ import annotations

from datetime import tzinfo
from typing import assert_never

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
    StepStarted,
    TextStreamed,
    TurnStarted,
)
from bot.prose import marked
from bot.terminal import wording
from bot.terminal.safe_text import exact, harmless, one_line

LINE_LIMIT = 400  # characters of an output line; whole output is one command away


def lines(event: Event, zone: tzinfo) -> tuple[str, ...]:
    """What a pipe is told of an event; () for what only a live view shows."""
    match event:
        case TurnStarted():
            return (wording.begun(event),)
        case StepStarted():
            return (f"step {event.step}",)
        case TextStreamed() | CommandStarted():
            return ()
        case CommandProgress():
            return (f"… {_command(event.host, event.run)}  {wording.progress(event)}",)
        case CommandFinished():
            return _finished(event)
        case CommandRefused():
            return (
                f"✗ {_command(event.host, event.run)}  refused, nothing ran",
                f"    {one_line(event.reason)}",
            )
        case PlanChanged():
            return ("plan", *(f"    {line}" for line in wording.plan_lines(event)))
        case MilestoneReached():
            return (f"{wording.milestone_title(event.kind, event.at)} · {marked(one_line(event.text))}",)
        case ApprovalAsked():
            return _asked(event, zone)
        case ApprovalClosed():
            return (wording.closed(event, zone),)
        case Answered():
            return (
                "",
                *marked(harmless(event.text), code=True).strip("\n").split("\n"),
                "",
                wording.ending(event),
            )
        case Noted():
            return (one_line(event.text),)
    assert_never(event)


def _command(host: str, run: str) -> str:
    return f"{one_line(host)}  {exact(run).replace(chr(10), chr(10) + '    ')}"


def _finished(event: CommandFinished) -> tuple[str, ...]:
    head = wording.output_head(event.stdout, event.command_id)
    first = f"{wording.mark(event)} {_command(event.host, event.run)}  {wording.result(event)}"
    note = (f"    {one_line(event.note)}",) if event.note else ()
    rest = (f"    {head.rest}",) if head.rest else ()
    return (first, *note, *(f"    {_cut(line)}".rstrip() for line in head.lines), *rest)


def _asked(event: ApprovalAsked, zone: tzinfo) -> tuple[str, ...]:
    return (
        wording.approval_title(event),
        f"  {wording.approval_where(event.approval.hosts)}",
        *(f"      {line}" for line in wording.approval_text(event)),
        *(f"  {line}" for line in wording.approval_notes(event, zone)),
    )


def _cut(line: str) -> str:
    return line if len(line) <= LINE_LIMIT else line[: LINE_LIMIT - 1] + "…"
