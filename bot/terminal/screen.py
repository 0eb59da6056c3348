"""The terminal's Screen: a live line while a turn works, and everything worth keeping printed above it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, tzinfo
from typing import TextIO

from rich.console import Console, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from bot.events import (
    Answered,
    ApprovalAsked,
    ApprovalClosed,
    CommandFinished,
    CommandStarted,
    Event,
    Screen,
    StepStarted,
    TextStreamed,
    TurnStarted,
)
from bot.terminal import panels, plain, wording
from bot.terminal.safe_text import exact, one_line
from bot.terminal.streams import lenient, silence
from storage.records import NewPost

STREAM_TAIL = 400  # characters of the model's text kept for the live line


def make_console(stream: TextIO, *, width: int | None = None) -> Console:
    """A console that trusts only the stream itself: FORCE_COLOR cannot put colours into a pipe."""
    lenient(stream)
    return _Console(file=stream, force_terminal=stream.isatty(), width=width, highlight=False, emoji=False)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Rich would leave the program here; a turn must not end because its reader went away."""
        self.quiet = True
        silence(self.file)


class TerminalScreen:
    """One turn on a terminal, or as plain lines when the console is none.

    mirror: another front end's screen whose posts are delivered too (a session of a Slack thread
    that is worked on in a terminal). on_approval: told of every approval that opens; must return at once.
    hint: print how to go on with the session after the answer.
    """

    def __init__(
        self,
        console: Console,
        *,
        mirror: Screen | None = None,
        zone: tzinfo = UTC,
        on_approval: Callable[[ApprovalAsked], None] | None = None,
        hint: bool = True,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console
        self._rich = console.is_terminal and not console.is_dumb_terminal
        self._mirror = mirror
        self._zone = zone
        self._on_approval = on_approval
        self._hint = hint
        self._status = _Status(monotonic)
        self._live: Live | None = None
        self._open_approvals: set[int] = set()
        self._session_id: int | None = None
        self._broken = False

    def posts(self, event: Event) -> tuple[NewPost, ...]:
        """A terminal needs no delivery of its own; a mirror's posts pass through."""
        return self._mirror.posts(event) if self._mirror else ()

    async def show(self, event: Event) -> None:
        """Print what stays, change the live line. A closed pipe ends the view, not the turn."""
        self._status.take(event)
        if isinstance(event, TurnStarted):
            self._session_id = event.session.id
        try:
            self._print(event)
        except (OSError, ValueError, RecursionError):
            self._broken = True  # a closed pipe, an encoding that lacks a character, absurd nesting
        if isinstance(event, ApprovalAsked) and self._on_approval:
            self._on_approval(event)

    async def close(self) -> None:
        """Give the cursor back. Safe to call twice."""
        self._rest()
        if self._mirror:
            await self._mirror.close()

    def _print(self, event: Event) -> None:
        if self._broken:
            return
        if isinstance(event, Answered | ApprovalAsked):
            self._rest()
        if self._rich:
            for part in panels.render(event, self._width(), zone=self._zone):
                self._console.print(part, width=self._width())
        else:
            for line in plain.lines(event, self._zone):
                self._plain(line)
        if isinstance(event, Answered) and self._hint and self._session_id is not None:
            self._plain(wording.session_hint(self._session_id))
        self._animate(event)

    def _plain(self, line: str) -> None:
        self._console.print(Text(line), soft_wrap=True)

    def _width(self) -> int:
        return max(20, min(self._console.width, panels.WIDEST))

    def _animate(self, event: Event) -> None:
        """The live line runs from the first step to the answer, except while a person is being asked."""
        match event:
            case ApprovalAsked():
                self._open_approvals.add(event.approval.id)
            case ApprovalClosed():
                self._open_approvals.discard(event.approval.id)
            case _:
                pass
        wanted = self._rich and not self._open_approvals and not isinstance(event, Answered)
        if wanted and self._live is None and isinstance(event, StepStarted | CommandStarted):
            self._live = Live(
                get_renderable=self._status.render,
                console=self._console,
                transient=True,
                refresh_per_second=8,
                redirect_stdout=False,  # only stderr: log lines of this process must not tear the live line
            )
            self._live.start()
        if not wanted:
            self._rest()

    def _rest(self) -> None:
        live, self._live = self._live, None
        if live is None:
            return
        try:
            live.stop()
        except (OSError, ValueError):
            self._broken = True


class _Status:
    """What the live line says: the step, the commands that run, or the end of what the model is writing."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._step = ""
        self._text = ""
        self._running: dict[int, tuple[str, str, float]] = {}
        self._spinner = Spinner("dots", style="cyan")

    def take(self, event: Event) -> None:
        match event:
            case StepStarted():
                self._step = f"Step {event.step} of at most {event.max_steps}"
                self._text = ""
            case TextStreamed():
                self._text = (self._text + event.piece)[-STREAM_TAIL:]
            case CommandStarted():
                self._running[event.command_id] = (event.host, event.run, self._monotonic())
            case CommandFinished():
                self._running.pop(event.command_id, None)
            case _:
                pass

    def render(self) -> RenderableType:
        """One line a running command, else one line for the model; never more than ten lines."""
        lines = [Text(self._step, style="dim")]
        now = self._monotonic()
        for host, run, since in list(self._running.values())[:9]:
            line = f"  … {one_line(host)}  {one_line(exact(run))}  {wording.duration(now - since)}"
            lines.append(Text(line, no_wrap=True, overflow="ellipsis"))
        if not self._running and self._text:
            tail = one_line(self._text)[-60:]
            lines[0].append(f"  {tail}")
            lines[0].no_wrap, lines[0].overflow = True, "ellipsis"
        self._spinner.update(text=Text("\n").join(lines))
        return self._spinner
