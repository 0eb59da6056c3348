"""Events of one turn for the tests of screens."""

from __future__ import annotations

from datetime import UTC, datetime

from bot.events import (
    Answered,
    ApprovalAsked,
    ApprovalClosed,
    CommandFinished,
    MilestoneReached,
    TurnStarted,
)
from storage.records import (
    Approval,
    ApprovalHost,
    ApprovalState,
    Decision,
    Front,
    MilestoneKind,
    Origin,
    Session,
    Turn,
    TurnState,
)

NOW = datetime(2026, 3, 1, 10, 4, tzinfo=UTC)
EXPIRY = datetime(2026, 3, 1, 10, 14, tzinfo=UTC)


def session(session_id: int = 12) -> Session:
    return Session(
        id=session_id,
        team="local",
        origin=Origin.TERMINAL,
        key=f"t{session_id}",
        title="web-1 answers 502",
        owner="local:alice",
        channel="terminal",
        thread_ts=None,
        head_id=None,
        last_seq=0,
        people=(),
        hosts=(),
        archived=False,
        created_at=NOW,
        updated_at=NOW,
    )


def turn(session_id: int = 12, *, state: TurnState = TurnState.RUNNING) -> Turn:
    return Turn(
        id=7,
        team="local",
        session_id=session_id,
        state=state,
        front=Front.TERMINAL,
        person="local:alice",
        person_name="alice",
        owner="local:alice",
        channel="terminal",
        text="why?",
        source_ts=None,
        created_at=NOW,
    )


def started(*, resumed: bool = False) -> TurnStarted:
    return TurnStarted(turn=turn(), session=session(), max_steps=25, resumed=resumed)


def finished(
    stdout: str = "active\n",
    *,
    run: str = "systemctl status nginx --no-pager",
    host: str = "web-1",
    exit_status: int | None = 0,
    note: str = "",
    approved: bool = False,
) -> CommandFinished:
    return CommandFinished(
        command_id=41,
        host=host,
        run=run,
        exit_status=exit_status,
        note=note,
        seconds=0.23,
        output_bytes=len(stdout.encode(errors="replace")),
        stdout=stdout,
        approved=approved,
    )


def milestone(text: str = "nginx cannot reach redis-1") -> MilestoneReached:
    return MilestoneReached(milestone_id=3, kind=MilestoneKind.ROOT_CAUSE, text=text, at="10:03")


def approval(
    run: str = "sudo -n systemctl restart app-workers", *, state: ApprovalState = ApprovalState.OPEN
) -> Approval:
    host = ApprovalHost(name="app-2", address="10.0.0.3", port=22, user="opsbot", fingerprint="SHA256:x")
    return Approval(
        id=5,
        team="local",
        session_id=12,
        turn_id=7,
        call_id="c1",
        token="t",
        hosts=(host,),
        run=run,
        limit_s=30,
        reason="changes state (systemctl restart)",
        purpose="the model's own words: totally harmless",
        requester="bob",
        policy="p1",
        danger="",
        needs=1,
        digest="d",
        state=state,
        expires_at=EXPIRY,
        created_at=NOW,
        decided_by="alice" if state != ApprovalState.OPEN else None,
        decided_at=NOW if state != ApprovalState.OPEN else None,
    )


def asked(run: str = "sudo -n systemctl restart app-workers") -> ApprovalAsked:
    return ApprovalAsked(approval=approval(run), approvers=("alice", "carol"), decision=Decision.ASK)


def closed(state: ApprovalState, *, by: str = "alice") -> ApprovalClosed:
    return ApprovalClosed(approval=approval(state=state), by=by)


def answered(text: str = "It is redis-1.", *, state: TurnState = TurnState.DONE) -> Answered:
    return Answered(turn=turn(state=state), text=text, footer="3 commands on web-1", state=state, seconds=4.1)
