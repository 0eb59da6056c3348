"""A whole workspace for the stories: fake Slack and model over the wire, a real SSH host, real bot processes."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bot.demo.host import DemoHost, write_hosts_yml
from storage import commands
from storage.records import Command
from storage.store import Store
from tests.acceptance.processes import Process, started
from tests.fakes.model import FakeModel, call, calls
from tests.fakes.slack import FakeSlack, Message, words

HOST = "web-1"
ACCESS = """
  - {users: [U01ALICE, U02BOB], usergroups: [S01SRE], channels: [C01OPS, dm], hosts: [web-1],
     approvers: [U01ALICE, S01SRE], self_approval: false}
  - {users: [U04DAN], channels: [C01OPS], hosts: [db-1], approvers: []}
"""


@dataclass
class Office:
    """What a story talks to. `serve` starts one more bot process on the same database and data folder."""

    slack: FakeSlack
    model: FakeModel
    store: Store
    env: dict[str, str]
    stack: AsyncExitStack
    bots: list[Process] = field(default_factory=list)

    async def serve(self, *, afresh: bool = False) -> Process:
        before = len(self.slack.sockets.open)
        bot = await self.stack.enter_async_context(started("serve", env=self.env, afresh=afresh))
        self.bots.append(bot)
        await bot.line("serving")
        await self.slack.connected(before + 1)
        return bot

    async def answered(self, root: Message, count: int = 1, *, timeout: float = 80.0) -> list[Message]:
        """The answers posted in a thread, when there are `count`."""

        def found() -> list[Message]:
            answers = [m for m in self.slack.posts("C01OPS", root["ts"]) if is_answer(m)]
            return answers if len(answers) >= count else []

        got: list[Message] = await self.slack.until(found, timeout=timeout, what=f"{count} answers")
        return got

    async def card(self, root: Message) -> Message:
        """The newest approval card of a thread."""

        def found() -> Message | None:
            cards = [m for m in self.slack.posts("C01OPS", root["ts"]) if "Approval needed" in words(m)]
            return cards[-1] if cards else None

        message: Message = await self.slack.until(found, timeout=40, what="an approval card")
        return copy.deepcopy(message)  # with its buttons, as somebody's screen still shows it later

    async def commands(self) -> list[Command]:
        found: list[Command] = []
        async with self.store.begin() as db:
            for session_id in range(1, 10):
                found += await commands.of_session(db, session_id)
        return found

    def sound(self) -> None:
        """Nothing the bot sent was wrong, to Slack or to the model."""
        assert self.slack.violations == []
        assert self.model.violations == []


def is_answer(message: Message) -> bool:
    return str(message.get("metadata", {}).get("event_payload", {}).get("post", "")).startswith("answer:")


def run(command: str, **more: object) -> object:
    return calls([call("run_command", hosts=[HOST], command=command, purpose="test", **more)])


async def until(condition: object, *, timeout_s: float = 80.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not condition():  # type: ignore[operator]
            await asyncio.sleep(0.02)


@pytest.fixture
async def office(database_url: str, store: Store, tmp_path: Path) -> AsyncIterator[Office]:
    async with AsyncExitStack() as stack:
        slack = await stack.enter_async_context(FakeSlack())
        slack.user("U04DAN", "dan")
        slack.user("U05GUEST", "guest", is_restricted=True)
        slack.usergroup("S01SRE", ["U03CAROL"])
        model = await stack.enter_async_context(FakeModel())
        host = DemoHost(tmp_path / "host")
        port = await host.start()
        stack.push_async_callback(host.stop)
        hosts = write_hosts_yml(tmp_path / "host", port)
        text = hosts.read_text().replace("this-machine", HOST)
        first = text.index("  - {name: web-1")
        other = text[first : text.index("\n", first) + 1].replace("name: web-1", "name: db-1")
        mine = tmp_path / "hosts.yml"
        mine.write_text(text[: text.index("targets:")] + other + "access:" + ACCESS)
        known = tmp_path / "host" / "known_hosts"
        line = known.read_text().split(None, 1)[1]
        known.write_text(f"{HOST} {line}db-1 {line}")
        env = {
            **slack.env,
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "made-up",
            "DATABASE_URL": database_url,
            "OPSTHREAD_HOSTS": str(mine),
            "OPSTHREAD_DATA_DIR": str(tmp_path / "data"),
            "OPSTHREAD_LEASE_S": "3",
        }
        yield Office(slack, model, store, env, stack)
