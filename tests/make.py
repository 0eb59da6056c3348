"""Builds records with sensible defaults; a test names only what it is about."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from storage import sessions, turns
from storage.records import (
    Approval,
    ApprovalHost,
    ApprovalState,
    Claim,
    Command,
    CommandState,
    Decision,
    Front,
    Message,
    Milestone,
    MilestoneKind,
    MilestoneSource,
    NewPost,
    Origin,
    Role,
    Session,
    ToolCall,
    Turn,
    TurnState,
)
from storage.store import Store

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
TEAM = "T1"
ALICE = "U01ALICE"


def call(id_: str = "call_1", name: str = "run_command", arguments: str = '{"hosts": ["web-1"]}') -> ToolCall:
    return ToolCall(id=id_, name=name, arguments=arguments)


def user(text: str = "why is the disk full?", *, author: str = "Alice", **more: Any) -> Message:
    return Message(role=Role.USER, text=text, author=author, **more)


def assistant(text: str = "", *calls: ToolCall, **more: Any) -> Message:
    return Message(role=Role.ASSISTANT, text=text, tool_calls=calls, **more)


def result(text: str = "ok", call_id: str = "call_1", **more: Any) -> Message:
    return Message(role=Role.TOOL, text=text, tool_call_id=call_id, **more)


def session(**more: Any) -> Session:
    plain = Session(
        id=1,
        team=TEAM,
        origin=Origin.SLACK,
        key="C01OPS:1.000100",
        title="why is the disk full?",
        owner=ALICE,
        channel="C01OPS",
        thread_ts="1.000100",
        head_id=None,
        last_seq=0,
        people=(),
        hosts=(),
        archived=False,
        created_at=NOW,
        updated_at=NOW,
    )
    return replace(plain, **more)


def turn(**more: Any) -> Turn:
    plain = Turn(
        id=1,
        team=TEAM,
        session_id=1,
        state=TurnState.RUNNING,
        front=Front.SLACK,
        person=ALICE,
        person_name="Alice",
        owner=ALICE,
        channel="C01OPS",
        text="why is the disk full?",
        source_ts="1.000100",
        created_at=NOW,
    )
    return replace(plain, **more)


def claim(**more: Any) -> Claim:
    return replace(Claim(session=session(), turn=turn(), epoch=1, resumed=False), **more)


def command(**more: Any) -> Command:
    plain = Command(
        id=1,
        session_id=1,
        turn_id=1,
        call_id="call_1",
        host="web-1",
        run="df -h",
        state=CommandState.DONE,
        decision=Decision.ALLOW,
        reason="reads only",
        approval_id=None,
        exit_status=0,
        created_at=NOW,
    )
    return replace(plain, **more)


def approval_host(**more: Any) -> ApprovalHost:
    plain = ApprovalHost(name="web-1", address="10.0.0.11", port=22, user="opsbot", fingerprint="SHA256:abc")
    return replace(plain, **more)


def approval(**more: Any) -> Approval:
    plain = Approval(
        id=1,
        team=TEAM,
        session_id=1,
        turn_id=1,
        call_id="call_1",
        token="0123456789abcdef0123456789abcdef",
        hosts=(approval_host(),),
        run="systemctl restart nginx",
        limit_s=60,
        reason="restarts a service",
        purpose="bring the site back",
        requester=ALICE,
        policy="p1",
        danger="",
        needs=1,
        digest="d" * 64,
        state=ApprovalState.OPEN,
        expires_at=NOW + timedelta(minutes=10),
        created_at=NOW,
    )
    return replace(plain, **more)


def milestone(**more: Any) -> Milestone:
    plain = Milestone(
        id=1,
        session_id=1,
        turn_id=1,
        kind=MilestoneKind.FINDING,
        text="/var is full",
        source=MilestoneSource.TOOL,
        created_at=NOW,
    )
    return replace(plain, **more)


def new_post(key: str = "post-1", **more: Any) -> NewPost:
    plain = NewPost(key=key, channel="C01OPS", thread_ts="1.000100", payload={"text": key})
    return replace(plain, **more)


async def stored_session(store: Store, *messages: Message, **more: Any) -> Session:
    """A session in the database with these messages behind one another."""
    values: dict[str, Any] = {
        "team": TEAM,
        "origin": Origin.TERMINAL,
        "key": "t-1",
        "owner": ALICE,
        "channel": "terminal",
        "title": "why is the disk full?",
    }
    async with store.begin() as db:
        made, _ = await sessions.open_session(db, **{**values, **more})
        await sessions.append(db, made.id, None, messages)
        return await sessions.get(db, made.id)


async def claimed(store: Store, session_id: int, *, owner: str = "process-1", lease_s: float = 60.0) -> Claim:
    """A turn of the session that this process works on."""
    async with store.begin() as db:
        await turns.submit(
            db,
            team=TEAM,
            session_id=session_id,
            front=Front.SLACK,
            person=ALICE,
            person_name="Alice",
            owner=ALICE,
            channel="C01OPS",
            message="why is the disk full?",
            source_ts=None,
        )
        found = await turns.claim(db, owner=owner, lease_s=lease_s, front=Front.SLACK, session_id=session_id)
    assert found is not None
    return found
