"""What happens in a turn, as a front end sees it: the closed set of events a Screen is shown.

Times are seconds, sizes bytes. `run` is the exact text that was executed or would be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from storage.records import Approval, Decision, MilestoneKind, NewPost, Session, Turn, TurnState


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The turn began, or another process took it up (`resumed`)."""

    turn: Turn
    session: Session
    max_steps: int
    resumed: bool


@dataclass(frozen=True, slots=True)
class StepStarted:
    """The model is being asked; step counts from 1."""

    step: int
    max_steps: int


@dataclass(frozen=True, slots=True)
class TextStreamed:
    """A piece of the model's text as it arrives; only for live views, never stored from here."""

    piece: str


@dataclass(frozen=True, slots=True)
class CommandStarted:
    command_id: int
    host: str
    run: str
    purpose: str


@dataclass(frozen=True, slots=True)
class CommandProgress:
    """Every 30 s of a long command."""

    command_id: int
    host: str
    run: str
    seconds: float
    bytes_so_far: int


@dataclass(frozen=True, slots=True)
class CommandFinished:
    """exit_status None: signal, or the outcome is unknown (`note` says why)."""

    command_id: int
    host: str
    run: str
    exit_status: int | None
    note: str
    seconds: float
    output_bytes: int
    stdout: str
    approved: bool


@dataclass(frozen=True, slots=True)
class CommandRefused:
    """The gate or the access rules said no; nothing ran."""

    host: str
    run: str
    reason: str


@dataclass(frozen=True, slots=True)
class PlanChanged:
    steps: tuple[tuple[str, str], ...]  # (text, todo | doing | done | dropped)


@dataclass(frozen=True, slots=True)
class MilestoneReached:
    milestone_id: int
    kind: MilestoneKind
    text: str
    at: str  # HH:MM in the bot's zone


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """`decision` is why it asks; `approvers` are ids of people and groups that may answer."""

    approval: Approval
    approvers: tuple[str, ...]
    decision: Decision


@dataclass(frozen=True, slots=True)
class ApprovalClosed:
    """Approved, denied, expired or revoked; `approval.state` says which, `by` who."""

    approval: Approval
    by: str


@dataclass(frozen=True, slots=True)
class Answered:
    """The turn's last words. failed: they say why it could not be answered. footer: our own evidence line.

    memories: how many of its person's memories the turn was given.
    """

    turn: Turn
    text: str
    footer: str
    state: TurnState
    seconds: float
    memories: int = 0


@dataclass(frozen=True, slots=True)
class Noted:
    """One line of ours to the people in the thread (`went on after a restart`, a refusal)."""

    key: str  # unique in the session: the same note is posted once
    text: str


Event = (
    TurnStarted
    | StepStarted
    | TextStreamed
    | CommandStarted
    | CommandProgress
    | CommandFinished
    | CommandRefused
    | PlanChanged
    | MilestoneReached
    | ApprovalAsked
    | ApprovalClosed
    | Answered
    | Noted
)


class Screen(Protocol):
    """A front end's view of one turn.

    posts: pure; what must be delivered for an event, written in the same transaction as the event itself.
    show: live view, best effort; must not raise and must return at once (throttle in an owned task).
    """

    def posts(self, event: Event) -> tuple[NewPost, ...]: ...

    async def show(self, event: Event) -> None: ...

    async def close(self) -> None: ...
