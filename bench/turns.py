"""What a Slack turn costs beside model and SSH, next to its own statements and calls made plainly.

Counted is the time from the delivery of a mention to the arrival of the answer at Slack, less the time inside
the model client and inside `Remote.run`. After each turn, what it had said until then is said again: the same
statements with the same values in the same transactions, one after the other through one psycopg connection
to a second database that has seen the same turns, and the same calls to Slack through aiohttp.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import psycopg

from bench.bot import Bot, Transaction, Turn, world
from bench.figures import p50_p99, percentile, table
from storage.embedded import EmbeddedPostgres
from storage.migrate import upgrade
from tests.fakes.slack import Call, FakeSlack

WARM, TURNS = 5, 60


@dataclass
class Bare:
    """The same work without us. Seconds a turn; writes: only what changes rows, with its commits."""

    db: psycopg.Connection[Any]
    http: aiohttp.ClientSession
    slack: FakeSlack
    sql: list[float] = field(default_factory=list)
    writes: list[float] = field(default_factory=list)
    calls: list[float] = field(default_factory=list)
    statements: int = 0
    unlike: int = 0

    async def again(self, turn: Turn) -> None:
        """Timed as far as the answer; the rest keeps the second database in step."""
        said, made = turn.before
        sql, writes = self._say(said)
        self.sql.append(sql)
        self.writes.append(writes)
        self.calls.append(await self._call(made))
        self._say(turn.after[0])

    def _say(self, said: Sequence[Transaction]) -> tuple[float, float]:
        whole = writes = 0.0
        for transaction in said:
            began, inside = time.perf_counter(), 0.0
            for each in transaction.statements:
                at = time.perf_counter()
                rows = self.db.execute(each.text.encode(), each.values or None).rowcount
                inside += (time.perf_counter() - at) if each.writes and each.rows else 0.0
                self.statements += 1
                self.unlike += rows != each.rows
            at = time.perf_counter()
            self.db.commit()
            done = time.perf_counter()
            whole += done - began
            writes += inside + (done - at if transaction.writes else 0.0)
        return whole, writes

    async def _call(self, made: Sequence[Call]) -> float:
        began = time.perf_counter()
        for each in made:
            async with self.http.post(self.slack.api_url + each.method, json=each.args) as response:
                await response.read()
        return time.perf_counter() - began


async def main() -> dict[str, float]:
    """Returns the ratio of a turn's overhead to the bare statements and calls (p50)."""
    with tempfile.TemporaryDirectory(prefix="opsthread-bench-", ignore_cleanup_errors=True) as name:
        async with EmbeddedPostgres(Path(name) / "pg") as postgres:
            await upgrade(postgres.url)
            second = postgres.url.replace("/postgres?", "/second?")
            with psycopg.connect(postgres.url, autocommit=True) as admin:
                admin.execute("CREATE DATABASE second TEMPLATE template0")
            await upgrade(second)
            async with world(Path(name), postgres.url) as around, around.bot() as bot:
                return await _measure(bot, second)


async def _measure(bot: Bot, second: str) -> dict[str, float]:
    token = {"Authorization": f"Bearer {bot.slack.bot_token}"}
    turns: list[Turn] = []
    with psycopg.connect(second, prepare_threshold=None) as db:
        async with aiohttp.ClientSession(headers=token) as http:
            bare = Bare(db, http, bot.slack)
            await bot.quiet()
            bare._say(bot.recording.take())  # what the start wrote
            for _ in range(WARM + TURNS):
                turns.append(await bot.turn())
                bot.slack._echo = False  # the bot must not work while the bare calls are timed
                await bare.again(turns[-1])
                bot.slack._echo = True
    return _told(turns[WARM:], bare)


def _told(turns: Sequence[Turn], bare: Bare) -> dict[str, float]:
    ours = [turn.ours_s for turn in turns]
    sql, writes, http = bare.sql[WARM:], bare.writes[WARM:], bare.calls[WARM:]
    together = [a + b for a, b in zip(sql, http, strict=True)]
    least = [a + b for a, b in zip(writes, http, strict=True)]
    base = percentile(together, 0.5)

    def row(name: str, values: Sequence[float]) -> tuple[str, str, str]:
        return (name, p50_p99(values), f"{percentile(values, 0.5) / base:.2f}")

    count = len(turns)
    said = [each for turn in turns for each in turn.before[0]]
    statements = sum(len(each.statements) for each in said) / count
    made = sum(len(turn.before[1]) for turn in turns) / count
    durable = sum(each.writes for each in said) / count
    changes = sum(each.writes and each.rows > 0 for one in said for each in one.statements) / count
    table(
        f"A Slack turn beside model and SSH, {count} turns",
        [
            ("what", "p50 / p99", "p50 to bare"),
            row("whole turn, mention to answer", [turn.whole_s for turn in turns]),
            row("  of it in the model client", [turn.model_s for turn in turns]),
            row("  of it in Remote.run", [turn.ssh_s for turn in turns]),
            row("the turn less model and SSH", ours),
            row(f"bare: {statements:.0f} statements, {len(said) / count:.0f} transactions, psycopg", sql),
            row(f"  of it {changes:.0f} that change rows, {durable:.0f} durable commits", writes),
            row(f"bare: {made:.0f} calls to Slack, aiohttp", http),
            row("bare together", together),
        ],
    )
    strict = percentile(ours, 0.5) / percentile(least, 0.5)
    print(f"  next to only the statements that change rows, and the calls: {strict:.2f}")
    if bare.unlike:
        print(f"  ({bare.unlike} of {bare.statements} repeated statements touched another number of rows)")
    return {"turn overhead ratio": percentile(ours, 0.5) / base}
