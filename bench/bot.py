"""The Slack bot as `serve` builds it, in this process, between a fake Slack, a scripted model and an SSH server.

Everything it says to the database is recorded: transactions in the order of their commits, statements with
their values and the rows they touched.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import event

from bench.figures import Clock
from bot import app as root
from bot.demo.host import NAME, DemoHost, write_hosts_yml
from bot.model import OpenAIModel
from bot.settings import Settings
from bot.ssh.remote import Remote
from bot.turns.learning import Learner
from storage.recall import messages
from storage.store import Store
from tests.fakes.model import FakeModel, call, calls, say
from tests.fakes.slack import Call, FakeSlack

CHANNEL, PERSON = "C01OPS", "U01ALICE"
QUESTION = "is everything as it should be?"
COMMAND = "echo hello"
ANSWER = "It is as it should be; nothing needs attention."


@dataclass(frozen=True, slots=True)
class Statement:
    """As it was sent. rows: as the server counted them."""

    text: str
    values: Any
    rows: int

    @property
    def writes(self) -> bool:
        words = self.text.split(None, 1)[0].upper()
        return words in ("INSERT", "UPDATE", "DELETE") or (words == "WITH" and "UPDATE outbox" in self.text)


@dataclass(frozen=True, slots=True)
class Transaction:
    statements: tuple[Statement, ...]
    at: float  # time.time() of its commit

    @property
    def writes(self) -> bool:
        """Whether it left anything behind: only such a commit has to reach the disk."""
        return any(each.writes and each.rows for each in self.statements)


class Recording:
    """What one store says to the database. `set_config` is left out: a plain program would not need it."""

    def __init__(self) -> None:
        self._open: dict[int, list[Statement]] = {}
        self._done: list[Transaction] = []

    def listen(self, store: Store) -> None:
        engine = store._engine.sync_engine

        @event.listens_for(engine, "after_cursor_execute")
        def executed(conn: Any, cursor: Any, statement: str, values: Any, *_: Any) -> None:
            if "set_config" not in statement:
                said = Statement(statement, values, cursor.rowcount)
                self._open.setdefault(id(conn), []).append(said)

        @event.listens_for(engine, "commit")
        def committed(conn: Any) -> None:
            if said := self._open.pop(id(conn), []):
                self._done.append(Transaction(tuple(said), time.time()))

        @event.listens_for(engine, "rollback")
        def rolled_back(conn: Any) -> None:
            self._open.pop(id(conn), None)

    def take(self) -> list[Transaction]:
        taken, self._done = self._done, []
        return taken


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn, from the delivery of the question to the arrival of the answer (seconds), and what it took.

    before: transactions committed and calls to Slack made by then; after: what followed until all was done.
    """

    whole_s: float
    model_s: float
    ssh_s: float
    before: tuple[list[Transaction], list[Call]]
    after: tuple[list[Transaction], list[Call]]
    ts: str

    @property
    def ours_s(self) -> float:
        return self.whole_s - self.model_s - self.ssh_s


@dataclass
class Bot:
    """One life of the bot's process."""

    slack: FakeSlack
    model: FakeModel
    served: root.Served
    probe: psycopg.Connection[Any]  # on the same database, to see when all is done
    model_clock: Clock
    ssh_clock: Clock
    recording: Recording = field(default_factory=Recording)

    async def turn(self, *, thread_ts: str | None = None) -> Turn:
        """A question, one command, one answer; waits until nothing of it is left to do."""
        self.model.push(calls([call("run_command", hosts=[NAME], command=COMMAND)]), say(ANSWER))
        self.model_clock.take()
        self.ssh_clock.take()
        self.recording.take()
        before = len(self.slack.calls)
        began = time.time()
        if thread_ts is None:
            message = await self.slack.mention(PERSON, QUESTION)
        else:
            message = await self.slack.reply(PERSON, QUESTION, thread_ts=thread_ts)

        def answered() -> Call | None:
            return next((each for each in self.slack.calls[before:] if _is_answer(each)), None)

        answer: Call = await self.slack.until(answered, timeout=60)
        model_s, ssh_s = self.model_clock.take(), self.ssh_clock.take()
        await self.quiet()
        said, made = self.recording.take(), self.slack.calls[before:]
        return Turn(
            answer.at - began,
            model_s,
            ssh_s,
            ([t for t in said if t.at <= answer.at], [c for c in made if c.at <= answer.at]),
            ([t for t in said if t.at > answer.at], [c for c in made if c.at > answer.at]),
            message["ts"],
        )

    async def quiet(self) -> None:
        """Until every turn is over, every post delivered, and done what ticks would do a little later."""
        store = self.served.app.store
        async with asyncio.timeout(60):
            while self.probe.execute(_UNDONE).fetchone() != (0,):
                await asyncio.sleep(0.02)
            await Learner(store).tick()
            await messages.catch_up(store)


_UNDONE = """
SELECT (SELECT count(*) FROM turn WHERE state IN ('queued', 'running', 'waiting', 'ready'))
     + (SELECT count(*) FROM outbox WHERE state IN ('new', 'sending'))
"""


def _is_answer(made: Call) -> bool:
    metadata = made.args.get("metadata") or {}
    return str((metadata.get("event_payload") or {}).get("post", "")).startswith("answer:")


@dataclass
class World:
    """Everything around the bot; outlives its restarts."""

    folder: Path
    url: str
    slack: FakeSlack
    model: FakeModel

    @asynccontextmanager
    async def bot(self) -> AsyncGenerator[Bot]:
        """Start the bot and stop it in order."""
        settings = Settings(
            _env_file=None,
            database_url=self.url,
            openai_base_url=self.model.base_url,
            hosts=self.folder / "hosts.yml",
            data_dir=self.folder / "data",
            slack_bot_token=self.slack.bot_token,
            slack_app_token=self.slack.app_token,
            slack_api_url=self.slack.api_url,
        )
        model_clock, ssh_clock = Clock(), Clock()
        with (
            model_clock.on((OpenAIModel, "reply")),
            ssh_clock.on((Remote, "run")),
            psycopg.connect(self.url, autocommit=True) as probe,
        ):
            async with root.slack(settings) as served:
                made = Bot(self.slack, self.model, served, probe, model_clock, ssh_clock)
                made.recording.listen(served.app.store)
                work = asyncio.create_task(served.app.desk.serve())
                await self.slack.connected()
                try:
                    yield made
                finally:
                    await served.stop(work)


@asynccontextmanager
async def world(folder: Path, url: str) -> AsyncGenerator[World]:
    """The parts around the bot. The fake Slack checks no schemas here, which would cost more than the bot."""
    async with AsyncExitStack() as stack:
        demo = DemoHost(folder / "demo")
        port = await demo.start()
        stack.push_async_callback(demo.stop)
        text = write_hosts_yml(folder / "demo", port).read_text(encoding="utf-8")
        text = text.replace('users: ["local:*"], channels: [terminal]', f"users: [{PERSON}]")
        (folder / "hosts.yml").write_text(text, encoding="utf-8")
        slack = await stack.enter_async_context(FakeSlack(shared=None))
        model = await stack.enter_async_context(FakeModel())
        yield World(folder, url, slack, model)
