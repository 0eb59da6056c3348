"""A turn as a Slack thread shows it: durable posts through the outbox, and one message edited in place.

The progress message is a post like any other (key `progress:<turn>`), so that after a restart it is found
again by its key. Its edits are best effort and throttled (chat.update is Tier 3: 50 a minute for all
sessions); its last state goes through the outbox.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import assert_never

from bot import log
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
from bot.slack import blocks, cards
from bot.slack.blocks import Line, Message, Progress, duration, size
from storage.records import Command, CommandState, MilestoneKind, NewPost, Session, Turn, TurnState

EVERY_S = 3.0  # seconds between two edits of a progress message
LONG_S = 120.0  # a turn that took longer ends by naming who asked
SHOWN = 8  # commands shown; the earlier ones are counted

# (post key, its content at the moment it is sent) -> done; False: not posted yet, or Slack said no
Edit = Callable[[str, Callable[[], Message]], Awaitable[bool]]
Queue = Callable[[NewPost], Awaitable[None]]
Recall = Callable[[], Awaitable[Sequence[Command]]]


@dataclass(slots=True)
class _State:
    """What is known of the turn, for the progress message."""

    max_steps: int = 0
    step: int = 0
    doing: str = "Looking into it"
    over: bool = False
    dropped: int = 0
    lines: dict[int | str, Line] = field(default_factory=dict)
    hosts: dict[str, None] = field(default_factory=dict)
    plan: tuple[tuple[str, str], ...] = ()

    def put(self, key: int | str, line: Line) -> None:
        self.hosts[line.host] = None
        self.lines[key] = line
        while len(self.lines) > SHOWN:
            self.lines.pop(next(iter(self.lines)))
            self.dropped += 1

    def view(self, stop: str) -> Progress:
        parts = [self.doing]
        if self.step and not self.over:
            parts.append(f"step {self.step} of at most {self.max_steps}")
        if self.hosts and not self.over:
            names = list(self.hosts)
            parts.append(", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else ""))
        return Progress(
            headline=" · ".join(parts),
            lines=tuple(self.lines.values()),
            earlier=self.dropped,
            plan=self.plan,
            stop=None if self.over else stop,
        )


class SlackScreen:
    """Implements Screen for one turn of a thread.

    queue: puts a post on the outbox; edit: changes the message of a delivered post; recall: the commands
    that the turn ran before this process took it up. None of them may raise.
    """

    def __init__(
        self, *, session: Session, turn: Turn, zone: tzinfo, queue: Queue, edit: Edit, recall: Recall
    ) -> None:
        self._session = session
        self._turn = turn
        self._zone = zone
        self._queue = queue
        self._edit = edit
        self._recall = recall
        self._state = _State()
        self._key = f"progress:{turn.id}"
        self._dirty = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None
        self._resumed = False
        self._rendered: Progress | None = None
        self._hurry = asyncio.Event()
        self._log = log.get("slack.screen")

    # ---- durable: pure, written with the event ----

    def posts(self, event: Event) -> tuple[NewPost, ...]:
        match event:
            case TurnStarted():
                return (self._progress_post(),)
            case MilestoneReached():
                return self._milestone(event)
            case ApprovalAsked():
                messages = cards.approval_card(
                    event.approval, event.approvers, zone=self._zone, said=self._turn.text
                )
                key = f"approval:{event.approval.id}"
                return (*self._parts(f"{key}:before", messages[:-1]), self._post(key, messages[-1]))
            case ApprovalClosed():
                return (self._closed(event),)
            case Answered():
                return self._answer(event)
            case Noted():
                return self._parts(f"note:{self._session.id}:{event.key}", blocks.note(event.text))
            case (
                StepStarted()
                | TextStreamed()
                | CommandStarted()
                | CommandProgress()
                | CommandFinished()
                | CommandRefused()
                | PlanChanged()
            ):
                return ()
            case _:
                assert_never(event)

    def _milestone(self, event: MilestoneReached) -> tuple[NewPost, ...]:
        if event.kind is MilestoneKind.CONCLUSION:
            return ()  # the answer is its post
        messages = blocks.milestone(event.kind, event.text, event.at)
        return self._parts(f"milestone:{event.milestone_id}", messages)

    def _closed(self, event: ApprovalClosed) -> NewPost:
        message = cards.approval_closed(event.approval, event.by, zone=self._zone)
        ref = f"approval:{event.approval.id}"
        payload = message.payload("chat.update", ref=ref, otherwise="post")
        return self._new(f"{ref}:{event.approval.state}", payload)

    def _answer(self, event: Answered) -> tuple[NewPost, ...]:
        asker = self._turn.person if event.seconds >= LONG_S else ""
        buttons = [blocks.memories_used(event.turn.id, event.memories)] if event.memories else []
        messages = blocks.prose(event.text, footer=event.footer, asker=asker, buttons=buttons)
        parts = self._parts(f"answer:{self._turn.id}", messages)
        self._finish(event)
        last = blocks.progress(self._view())
        payload = last.payload("chat.update", ref=self._key, otherwise="drop")
        return (*parts, self._new(f"{self._key}:end", payload))

    def _parts(self, key: str, messages: list[Message]) -> tuple[NewPost, ...]:
        return tuple(self._post(f"{key}:{n}", message) for n, message in enumerate(messages, start=1))

    def _post(self, key: str, message: Message) -> NewPost:
        return self._new(key, message.payload())

    def _new(self, key: str, payload: dict[str, object]) -> NewPost:
        return NewPost(key, self._session.channel, self._session.thread_ts, payload)

    def _progress_post(self) -> NewPost:
        return self._post(self._key, blocks.progress(self._view()))

    # ---- live: best effort, returns at once ----

    async def show(self, event: Event) -> None:
        if not self._apply(event):
            return
        self._dirty.set()
        if self._worker is None and not self._hurry.is_set():
            self._worker = asyncio.create_task(self._edits(), name=f"progress of turn {self._turn.id}")

    async def close(self) -> None:
        """The turn left this process. A last edit that is under way is waited for, a few seconds at most."""
        self._hurry.set()
        self._dirty.set()
        if self._worker is not None:
            await asyncio.wait({self._worker}, timeout=10)
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
            self._worker = None

    def _apply(self, event: Event) -> bool:
        """Take an event into the state; whether the view changed."""
        state = self._state
        match event:
            case TurnStarted():
                state.max_steps = event.max_steps
                state.step = event.turn.steps
                state.doing = "Going on" if event.resumed else "Looking into it"
                self._resumed = event.resumed
            case StepStarted():
                state.step, state.max_steps = event.step, event.max_steps
                if state.doing == "Waiting for approval":
                    state.doing = "Looking into it"
            case CommandStarted():
                state.put(event.command_id, Line("…", event.host, event.run))
            case CommandProgress():
                tail = f"{duration(event.seconds)} · {size(event.bytes_so_far)} so far"
                state.put(event.command_id, Line("…", event.host, event.run, tail))
            case CommandFinished():
                state.put(event.command_id, _finished(event))
            case CommandRefused():
                state.put(
                    f"{event.host} {event.run}", Line("–", event.host, event.run, f"refused: {event.reason}")
                )
            case PlanChanged():
                state.plan = event.steps
            case ApprovalAsked():
                state.doing = "Waiting for approval"
            case Answered():
                self._finish(event)
            case TextStreamed() | MilestoneReached() | ApprovalClosed() | Noted():
                return False
            case _:
                assert_never(event)
        return True

    def _finish(self, event: Answered) -> None:
        state = self._state
        if state.over:
            return
        state.over = True
        self._hurry.set()
        steps = max(state.step, event.turn.steps)
        match event.state:
            case TurnState.STOPPED:
                word = "Stopped"
            case TurnState.FAILED:
                word = "Not finished"
            case _:
                word = "Done"
        counted = f"{steps} step{'' if steps == 1 else 's'}"
        state.doing = f"{word} · {counted} · {duration(event.seconds)}"

    async def _edits(self) -> None:
        """Queue the message once, then edit it: at most every EVERY_S, the newest state only."""
        if self._resumed:
            self._remember(await self._recall())
        if not self._over():
            await self._queue(self._progress_post())
        shown: Progress | None = None if self._resumed else self._view()
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            if self._over():
                return  # the last state goes through the outbox, behind the answer
            if (view := self._view()) != shown and await self._edit(self._key, self._render):
                shown = self._rendered
                if self._over():  # our edit may have landed behind the outbox's last one
                    await self._edit(self._key, self._render)
                    return
            if self._hurry.is_set() and self._view() in (view, shown):
                return
            await self._pause()
            if self._view() != shown:
                self._dirty.set()

    async def _pause(self) -> None:
        """EVERY_S, cut short at the end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(EVERY_S):
                await self._hurry.wait()

    def _remember(self, earlier: Sequence[Command]) -> None:
        """Put the commands of the turn's earlier life before those of this one."""
        now, self._state.lines = self._state.lines, {}
        for command in earlier:
            self._state.put(command.id, _recorded(command))
        for key, line in now.items():
            self._state.put(key, line)

    def _over(self) -> bool:
        return self._state.over

    def _render(self) -> Message:
        self._rendered = self._view()
        return blocks.progress(self._rendered)

    def _view(self) -> Progress:
        return self._state.view(str(self._turn.id))


def _finished(event: CommandFinished) -> Line:
    tail = _tail(
        event.exit_status, event.note, event.seconds, bytes_=event.output_bytes, approved=event.approved
    )
    return Line(_mark(event.exit_status), event.host, event.run, tail)


def _recorded(command: Command) -> Line:
    if command.state is CommandState.RUNNING:
        return Line("…", command.host, command.run)
    tail = _tail(
        command.exit_status,
        command.note,
        command.seconds or 0.0,
        bytes_=command.stdout_bytes + command.stderr_bytes,
        approved=command.approval_id is not None,
    )
    return Line(_mark(command.exit_status), command.host, command.run, tail)


def _mark(exit_status: int | None) -> str:
    return "?" if exit_status is None else "✓" if exit_status == 0 else "✗"


def _tail(exit_status: int | None, note: str, seconds: float, *, bytes_: int, approved: bool) -> str:
    parts = [note or "outcome unknown"] if exit_status is None else [f"exit {exit_status}"]
    parts.append(duration(seconds))
    if bytes_:
        parts.append(size(bytes_))
    if approved:
        parts.append("approved")
    return " · ".join(parts)


def posts_only(session: Session, turn: Turn, *, zone: tzinfo) -> SlackScreen:
    """A thread's screen without a live view: a terminal's turn is posted to it, `serve` delivers."""

    async def queue(_post: NewPost) -> None:
        return None

    async def edit(_key: str, _content: Callable[[], Message]) -> bool:
        return False

    async def recall() -> list[Command]:
        return []

    return SlackScreen(session=session, turn=turn, zone=zone, queue=queue, edit=edit, recall=recall)
