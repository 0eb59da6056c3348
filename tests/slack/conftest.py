"""A SlackFront on a fresh database against the fake Slack; the desk is the real one, but works on no turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bot.redact import load_redactor
from bot.slack.front import SlackConfig, SlackFront
from bot.ssh.inventory import AccessRule, Host, Inventory
from bot.turns.approval import Approvals
from bot.turns.desk import Desk, DeskParts
from bot.turns.memories import Memories
from storage import outbox, sessions, turns
from storage.records import Front, NewPost, Origin, Session, Turn
from storage.store import Store
from tests.fakes.slack import FakeSlack


def host(name: str) -> Host:
    return Host(name, "10.0.0.1", 22, "opsbot", Path("/nowhere/known_hosts"), ())


def rule(**changes: Any) -> AccessRule:
    given: dict[str, Any] = {
        "users": ("U01ALICE", "U02BOB"),
        "usergroups": ("S01SRE",),
        "channels": None,
        "hosts": ("web-*",),
        "approvers": ("U02BOB",),
        "self_approval": False,
    }
    return AccessRule(**{**given, **changes})


INVENTORY = Inventory(hosts=(host("web-1"), host("web-2")), rules=(rule(),))


@dataclass
class Running:
    """One bot process's Slack half."""

    front: SlackFront
    store: Store
    desk: Desk
    stack: AsyncExitStack

    async def sessions(self) -> list[Session]:
        async with self.store.begin() as db:
            return await sessions.list_(db, limit=100)

    async def turns(self) -> list[Turn]:
        """Every turn there is, in order."""
        async with self.store.begin() as db:
            found = [
                await turns.unfinished(db, session.id) for session in await sessions.list_(db, limit=100)
            ]
        return sorted((turn for part in found for turn in part), key=lambda turn: turn.id)

    async def session(self, channel: str, ts: str) -> Session | None:
        async with self.store.begin() as db:
            return await sessions.find(db, "T01TEAM", Origin.SLACK, key=f"{channel}:{ts}")

    async def post(self, *posts: NewPost) -> None:
        async with self.store.begin() as db:
            await outbox.add(db, team="T01TEAM", session_id=None, posts=posts)

    async def stop(self) -> None:
        await self.stack.aclose()


Start = Callable[..., Awaitable[Running]]


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with FakeSlack(ack_s=2.5) as fake:
        fake.usergroup("S01SRE", ["U03CAROL"])
        yield fake


@pytest.fixture
async def start(store: Store, slack: FakeSlack) -> AsyncIterator[Start]:
    """Starts a front; several are several replicas. Stopped at the end of the test."""
    running: list[Running] = []

    async def unchanged(text: str) -> str:
        return text

    def unused(*_: object) -> Any:
        raise AssertionError("no turn is worked on here")

    async def begin(
        *, inventory: Inventory = INVENTORY, before: int | None = None, config: SlackConfig | None = None
    ) -> Running:
        count = len(slack.sockets.open) if before is None else before
        config = config or SlackConfig(slack.bot_token, slack.app_token, slack.api_url, "/ops", "UTC")
        front = SlackFront(
            config,
            store,
            inventory=lambda _team: inventory,
            redactor=load_redactor(),
            owner=f"test-{len(running)}",
        )
        stack = AsyncExitStack()
        await front.open()
        stack.push_async_callback(front.close)
        parts = DeskParts(
            store=store,
            front=Front.SLACK,
            owner=f"test-{len(running)}",
            lease_s=15,
            clean=unchanged,
            screen=front.screen,
            journal=unused,
            turn_parts=unused,
        )
        desk = Desk(parts)
        approvals = Approvals(
            store=store,
            inventory=lambda _team: inventory,
            actor=front.actor,
            shared=front.shared,
            screen=front.screen,
        )
        stack.push_async_callback(front.stop_intake, grace_s=1.0)
        made = Running(front, store, desk, stack)
        running.append(made)
        await front.start(desk, approvals, Memories(store, load_redactor(), "UTC"))
        await slack.connected(count + 1)
        async with asyncio.timeout(15):
            await front.caught_up.wait()
        return made

    yield begin
    for each in running:
        await each.stop()
