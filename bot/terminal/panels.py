"""Events as rich renderables for a real terminal: rows for commands, panels for milestones and approvals."""

from __future__ import annotations

from datetime import tzinfo
from typing import assert_never

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Group, RenderableType
from rich.markdown import Markdown
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

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
from storage.records import ApprovalState, MilestoneKind, TurnState

NARROW = 70  # below this width a command's result stands under it, not beside it
WIDEST = 110  # longer lines are tiring to read
MARK_STYLES = {"✓": "green", "✗": "red", "?": "yellow", "…": "cyan"}


def render(event: Event, width: int, *, zone: tzinfo) -> tuple[RenderableType, ...]:
    """What stays on the terminal of an event; () for what only the live line shows. width: columns."""
    match event:
        case TurnStarted():
            return (_dim(wording.begun(event)),)
        case StepStarted() | TextStreamed() | CommandStarted():
            return ()
        case CommandProgress():
            return (_row("…", event.host, event.run, result=wording.progress(event), width=width),)
        case CommandFinished():
            return _finished(event, width)
        case CommandRefused():
            row = _row("✗", event.host, event.run, result="refused", width=width)
            return (row, _indented(Text(one_line(event.reason), style="yellow")))
        case PlanChanged():
            return (Text("Plan", style="bold"), _indented(Text("\n".join(wording.plan_lines(event)))))
        case MilestoneReached():
            return (_milestone(event),)
        case ApprovalAsked():
            return (_asked(event, zone),)
        case ApprovalClosed():
            good = event.approval.state in (ApprovalState.APPROVED, ApprovalState.USED)
            return (Text(wording.closed(event, zone), style="green" if good else "yellow"),)
        case Answered():
            return _answer(event)
        case Noted():
            return (Text(one_line(event.text), style="yellow"),)
    assert_never(event)


def _row(mark: str, host: str, run: str, *, result: str, width: int) -> RenderableType:
    """Mark, host and the exact command; the result at the right, or under it on a narrow terminal."""
    wide = width >= NARROW
    grid = Table.grid(padding=(0, 2, 0, 0), expand=wide)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold", max_width=max(8, width // 4))
    grid.add_column(overflow="fold", ratio=1 if wide else None)
    cells = [
        Text(mark, style=MARK_STYLES.get(mark, "")),
        Text(one_line(host), style="bold"),
        Text(exact(run)),
    ]
    if wide:
        grid.add_column(no_wrap=True, justify="right")
        grid.add_row(*cells, Text(result, style="dim"))
        return grid
    grid.add_row(*cells)
    return Group(grid, _indented(Text(result, style="dim")))


def _finished(event: CommandFinished, width: int) -> tuple[RenderableType, ...]:
    mark = wording.mark(event)
    parts = [_row(mark, event.host, event.run, result=wording.result(event), width=width)]
    if event.note:
        parts.append(_indented(Text(one_line(event.note), style="yellow")))
    head = wording.output_head(event.stdout, event.command_id)
    parts += [_indented(Text(line, style="dim", no_wrap=True, overflow="ellipsis")) for line in head.lines]
    if head.rest:
        parts.append(_indented(_dim(head.rest)))
    return tuple(parts)


def _milestone(event: MilestoneReached) -> RenderableType:
    styles = {
        MilestoneKind.RECOVERED: "green",
        MilestoneKind.CONCLUSION: "green",
        MilestoneKind.BLOCKED: "red",
        MilestoneKind.CHANGE: "yellow",
    }
    title = Text(wording.milestone_title(event.kind, event.at))
    body = Text(marked(one_line(event.text)), overflow="fold")
    return Panel(body, title=title, title_align="left", border_style=styles.get(event.kind, "cyan"))


def _asked(event: ApprovalAsked, zone: tzinfo) -> RenderableType:
    """Our words and the exact text only: nothing the model wrote stands in this panel."""
    command = Text("\n".join(wording.approval_text(event)), style="bold", overflow="fold")
    notes = Text("\n".join(wording.approval_notes(event, zone)), overflow="fold")
    body = Group(Text(wording.approval_where(event.approval.hosts)), Padding(command, (0, 0, 0, 4)), notes)
    title = Text(wording.approval_title(event))
    return Panel(body, title=title, title_align="left", border_style="yellow")


def _answer(event: Answered) -> tuple[RenderableType, ...]:
    text = marked(harmless(event.text), code=True)
    body: RenderableType = markdown(text) if event.state == TurnState.DONE else Text(text, style="yellow")
    return (Text(""), body, Text(""), _dim(wording.ending(event)))


def markdown(text: str) -> Markdown:
    """Markdown that loses nothing: `<pid>` is text, a line end stays one, links show their address."""
    view = Markdown(text, code_theme="ansi_dark", hyperlinks=False)
    parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
    view.parsed = parser.parse(text)
    _keep_line_ends(view.parsed)
    return view


def _keep_line_ends(tokens: list[Token]) -> None:
    for token in tokens:
        for child in token.children or ():
            if child.type == "softbreak":
                child.type = "hardbreak"


def _indented(text: Text) -> RenderableType:
    return Padding(text, (0, 0, 0, 4))


def _dim(text: str) -> Text:
    return Text(text, style="dim")
