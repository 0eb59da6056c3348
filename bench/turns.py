"""What a Slack turn costs beside model and SSH, next to its own statements and calls made plainly.

One turn: a mention, one command, one answer. Counted is the time from the delivery of the mention to the
answer's arrival in the thread, less the time inside the model client and inside the SSH layer. Next to it
stand, one after the other, the very statements of that turn through psycopg on a copy of the database (same
transactions, same values) and the very calls to Slack through aiohttp.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import psycopg
from psycopg import sql
from sqlalchemy import event

from bench.figures import Clock, p50_p99, percentile, table
from bot import app as root
from bot.demo.host import DemoHost, write_hosts_yml
from bot.model import OpenAIModel
from bot.settings import Settings
from bot.ssh.remote import Remote
from storage.embedded import EmbeddedPostgres
from storage.migrate import upgrade
from storage.store import Store
from tests.fakes.model import FakeModel, call, calls, say
from tests.fakes.slack import Call, FakeSlack, words

WARM, TURNS = 5, 40


@dataclass
class Recording:
    """The transactions of a turn, in the order of their commits: statements with their values."""

    transactions: list[list[tuple[str, Any]]] = field(default_factory=list)
    open: dict[int, list[tuple[str, Any]]] = field(default_factory=dict)

    def listen(self, store: Store) -> None:
        engine = store._engine.sync_engine

        @event.listens_for(engine, "before_cursor_execute")
        def executed(conn: Any, _cursor: Any, statement: str, values: Any, *_: Any) -> None:
            if "set_config" not in statement:  # ours alone; a plain program would not need it
                self.open.setdefault(id(conn), []).append((statement, values))

        @event.listens_for(engine, "commit")
        def committed(conn: Any) -> None:
            done = self.open.pop(id(conn), [])
            if done:
                self.transactions.append(done)

    def take(self) -> list[list[tuple[str, Any]]]:
        taken, self.transactions = self.transactions, []
        return taken


async def main() -> dict[str, float]:
    """Returns the ratio of a turn's overhead to the bare statements and calls (p50)."""
    with tempfile.TemporaryDirectory(prefix="opsthread-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        async with EmbeddedPostgres(folder / "pg") as postgres:
            await upgrade(postgres.url)
            demo = DemoHost(folder / "demo")
            port = await demo.start()
            try:
                return await _measure(folder, postgres.url, port)
            finally:
                await demo.stop()


async def _measure(folder: Path, url: str, port: int) -> dict[str, float]:
    hosts = write_hosts_yml(folder / "demo", port)
    text = hosts.read_text().replace('users: ["local:*"], channels: [terminal]', "users: [U01ALICE]")
    (folder / "hosts.yml").write_text(text)
    model_clock, ssh_clock = Clock(), Clock()
    reply, run_, finger = OpenAIModel.reply, Remote.run, Remote.fingerprint
    OpenAIModel.reply = model_clock.timed(reply)  # type: ignore[method-assign, assignment]
    Remote.run = ssh_clock.timed(run_)  # type: ignore[method-assign, assignment]
    try:
        async with FakeSlack(shared=None) as slack, FakeModel() as model:
            settings = Settings(
                _env_file=None,
                database_url=url,
                openai_base_url=model.base_url,
                hosts=folder / "hosts.yml",
                data_dir=folder / "data",
                slack_bot_token=slack.bot_token,
                slack_app_token=slack.app_token,
                slack_api_url=slack.api_url,
            )
            async with root.slack(settings) as served:
                work = asyncio.create_task(served.app.desk.serve())
                recording = Recording()
                recording.listen(served.app.store)
                overhead, kept = await _turns(slack, model, recording, model_clock, ssh_clock, url)
                await served.stop(work)
            bare_sql = _replay(url, kept)
            bare_http = [await _call_again(slack, made) for _, made in kept]
    finally:
        OpenAIModel.reply, Remote.run, Remote.fingerprint = reply, run_, finger  # type: ignore[method-assign]
    bare = [a + b for a, b in zip(bare_sql, bare_http, strict=True)]
    ratio = percentile(overhead, 0.5) / percentile(bare, 0.5)
    statements = sum(len(t) for tx, _ in kept for t in tx) / len(kept)
    table(
        f"A Slack turn beside model and SSH, {TURNS} turns",
        [
            ("what", "p50 / p99", "p50 to bare"),
            ("turn, from mention to answer, less model and SSH", p50_p99(overhead), f"{ratio:.2f}"),
            (f"bare: {statements:.0f} statements through psycopg", p50_p99(bare_sql), ""),
            (f"bare: {sum(len(m) for _, m in kept) / len(kept):.0f} calls to Slack", p50_p99(bare_http), ""),
            ("bare together", p50_p99(bare), "1.00"),
        ],
    )
    return {"turn overhead ratio": ratio}


Kept = list[tuple[list[list[tuple[str, Any]]], list[Call]]]


async def _turns(
    slack: FakeSlack, model: FakeModel, recording: Recording, model_clock: Clock, ssh_clock: Clock, url: str
) -> tuple[list[float], Kept]:
    await slack.connected()
    overhead: list[float] = []
    kept: Kept = []
    for number in range(WARM + TURNS):
        if number == WARM:
            _copy(url)
        model.push(
            calls([call("run_command", hosts=["this-machine"], command="echo hello")]),
            say(f"answer {number}"),
        )
        for clock in (model_clock, ssh_clock):
            clock.take()
        recording.take()
        before = len(slack.calls)
        began = time.perf_counter()
        message = await slack.mention("U01ALICE", "is everything as it should be?")

        def answered(ts: str = message["ts"], text: str = f"answer {number}") -> bool:
            return any(text in words(post) for post in slack.posts("C01OPS", ts))

        await slack.until(answered)
        took = time.perf_counter() - began
        transactions, made = recording.take(), slack.calls[before:]
        spent = model_clock.take() + ssh_clock.take()
        if number >= WARM:
            overhead.append(took - spent)
            kept.append((transactions, made))
        await asyncio.sleep(0.3)  # what follows the answer (the last progress edit) belongs to no turn
    return overhead, kept


def _copy(url: str) -> None:
    """A copy of the database as it is before the measured turns, for the replay."""
    with psycopg.connect(url.replace("/postgres?", "/template1?"), autocommit=True) as admin:
        admin.execute("CREATE DATABASE replay TEMPLATE template0")
    with psycopg.connect(url.replace("/postgres?", "/replay?")) as target, psycopg.connect(url) as source:
        from storage.migrate import _upgrade

        _upgrade(url.replace("/postgres?", "/replay?"))
        for name in ("person", "chat_session", "turn", "chat_message", "chat_milestone", "command", "output",
                     "audit", "inbox", "outbox", "thread_seen"):  # fmt: skip
            with source.cursor().copy(sql.SQL("COPY {} TO STDOUT").format(sql.Identifier(name))) as out:
                data = [bytes(piece) for piece in out]
            with target.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(name))) as into:
                for piece in data:
                    into.write(piece)
        for name in (
            "chat_session",
            "turn",
            "chat_message",
            "chat_milestone",
            "command",
            "audit",
            "inbox",
            "outbox",
        ):
            target.execute(
                f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), (SELECT coalesce(max(id), 1) FROM {name}))"
            )
        target.commit()


def _replay(url: str, kept: Kept) -> list[float]:
    """The same statements in the same transactions; seconds a turn. What cannot be repeated is counted and told."""
    times, refused = [], 0
    with psycopg.connect(url.replace("/postgres?", "/replay?"), prepare_threshold=None) as db:
        for transactions, _ in kept:
            began = time.perf_counter()
            for statements in transactions:
                try:
                    for statement, values in statements:
                        db.execute(statement.encode(), values or None)
                    db.commit()
                except psycopg.Error:
                    db.rollback()
                    refused += 1
            times.append(time.perf_counter() - began)
    if refused:
        total = sum(len(transactions) for transactions, _ in kept)
        print(f"  ({refused} of {total} transactions could not be repeated on the copy)")
    return times


async def _call_again(slack: FakeSlack, made: list[Call]) -> float:
    headers = {"Authorization": f"Bearer {slack.bot_token}"}
    async with aiohttp.ClientSession(headers=headers) as http:
        began = time.perf_counter()
        for each in made:
            async with http.post(slack.api_url + each.method, json=each.args) as response:
                await response.read()
        return time.perf_counter() - began
