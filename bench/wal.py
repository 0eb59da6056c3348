"""Rows and WAL of a Slack turn at turn 10, 200 and 1,000 of one session, next to stores that write history again.

At each place TURNS whole turns run through the product. The turns between the places are written while the
bot is stopped, every row that a turn leaves, by the same functions; nothing is run on a host or posted.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import text

from bench.bot import ANSWER, CHANNEL, COMMAND, PERSON, QUESTION, Bot, Turn, World, world
from bench.figures import table
from bot.demo.host import NAME
from storage import audit, commands, history, inbox, learning, milestones, outbox, sessions, turns
from storage.embedded import EmbeddedPostgres
from storage.migrate import upgrade
from storage.records import (
    CommandState,
    Decision,
    Ended,
    Front,
    Message,
    MilestoneKind,
    MilestoneSource,
    NewPost,
    Origin,
    Role,
    Session,
    ToolCall,
)
from storage.store import Db, Store

AT = (10, 200, 1_000)
TURNS = 20  # measured around each place
REPEATS = 5
TEAM = "T01TEAM"
SETTINGS = {"checkpoint_timeout": "1h", "max_wal_size": "8GB"}  # no checkpoint, so no full pages, between


@dataclass
class Place:
    """What was seen around one place, a figure a turn."""

    wal: list[float] = field(default_factory=list)
    inserted: list[int] = field(default_factory=list)
    updated: list[int] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)  # of this process, the fakes included
    read_50_s: float = 0.0
    read_400_s: float = 0.0
    history_wal: float = 0.0  # of a turn's four messages alone


async def main() -> dict[str, float]:
    """Returns the ratios of bytes a turn to those at the first place."""
    with tempfile.TemporaryDirectory(prefix="opsthread-bench-", ignore_cleanup_errors=True) as name:
        async with EmbeddedPostgres(Path(name) / "pg", settings=SETTINGS) as postgres:
            await upgrade(postgres.url)
            async with world(Path(name), postgres.url) as around:
                places = await _places(around)
            others = _others(postgres.url, places)
    first = statistics.median(places[AT[0]].wal)
    rows = [("turn", "rows new / changed", "WAL bytes", "to turn 10", "CPU", "read 50", "read 400")]
    rows += [
        (
            f"{at:,}",
            f"{statistics.median(p.inserted):.0f} / {statistics.median(p.updated):.0f}",
            f"{statistics.median(p.wal):,.0f}",
            f"{statistics.median(p.wal) / first:.2f}",
            f"{statistics.median(p.cpu_s) * 1000:.0f} ms",
            f"{p.read_50_s * 1000:.1f} ms",
            f"{p.read_400_s * 1000:.1f} ms",
        )
        for at, p in places.items()
    ]
    table(f"A Slack turn's writes, median of {TURNS} (question, command, answer)", rows)
    print("  CPU: of this process, with the fakes in it; read: history() of at most so many messages")
    table("WAL bytes for the four messages of a turn alone", [("store", *(f"{at:,}" for at in AT)), *others])
    return {f"wal ratio turn {at}": statistics.median(places[at].wal) / first for at in AT[1:]}


async def _places(around: World) -> dict[int, Place]:
    places = {at: Place() for at in AT}
    thread, done = "", 0
    with psycopg.connect(around.url, autocommit=True) as probe:
        async with around.bot() as bot:  # pages, catalogs and pools are warm before the first place
            for _ in range(REPEATS):
                await bot.turn()
        for at, place in places.items():
            if thread:
                await _grow(around.url, thread, at - TURNS // 2 - done)
                done = at - TURNS // 2
            async with around.bot() as bot:
                while done < at + TURNS // 2:
                    turn = await _measured(bot, probe, place, thread)
                    thread = thread or turn.ts
                    done += 1
                done += await _read_and_append(around.url, probe, thread, place)
    return places


async def _measured(bot: Bot, probe: psycopg.Connection[Any], place: Place, thread: str) -> Turn:
    before, began = _lsn(probe), time.process_time()
    turn = await bot.turn(thread_ts=thread or None)
    place.cpu_s.append(time.process_time() - began)
    place.wal.append(_lsn(probe) - before)
    said = [s for t in (*turn.before[0], *turn.after[0]) for s in t.statements if s.writes]
    place.inserted.append(sum(s.rows for s in said if s.text.split(None, 1)[0] == "INSERT"))
    place.updated.append(sum(s.rows for s in said if s.text.split(None, 1)[0] != "INSERT"))
    return turn


def _messages(call_id: str) -> tuple[Message, ...]:
    """What a turn adds to the history."""
    arguments = f'{{"hosts": ["{NAME}"], "command": "{COMMAND}"}}'
    result = f"$ {COMMAND}\n### {NAME} · exit 0 · 0.0 s\nhello"
    return (
        Message(Role.USER, QUESTION, author="alice"),
        Message(Role.ASSISTANT, "", tool_calls=(ToolCall(call_id, "run_command", arguments),)),
        Message(Role.TOOL, result, tool_call_id=call_id),
        Message(Role.ASSISTANT, ANSWER),
    )


async def _grow(url: str, thread: str, count: int) -> None:
    """So many turns more, one transaction each, without fsync: WAL is not measured here."""
    with _hasty(url):
        store = Store(url)
        async with store.begin() as db:
            session = await sessions.find(db, TEAM, Origin.SLACK, key=f"{CHANNEL}:{thread}")
        assert session is not None
        for _ in range(count):
            async with store.begin() as db:
                await _turn_of_records(db, session)
        await store.close()


async def _turn_of_records(db: Db, session: Session) -> None:
    """Every row that a turn leaves behind, by the functions that write them in a turn."""
    turn = await turns.submit(
        db, team=TEAM, session_id=session.id, front=Front.SLACK, person=PERSON, person_name="alice",
        owner=PERSON, channel=CHANNEL, message=QUESTION, source_ts=None,
    )  # fmt: skip
    ts = f"{(session.thread_ts or '').split('.')[0]}.{400_000 + turn.id:06d}"
    await inbox.add(
        db, team=TEAM, event_key=f"EvGrown{turn.id}", message_key=f"{TEAM}:{CHANNEL}:{ts}", channel=CHANNEL,
        thread_ts=session.thread_ts or "", ts=ts, author=PERSON, author_name="alice", text=QUESTION,
        session_id=session.id, turn_id=turn.id,
    )  # fmt: skip
    call_id = f"grown{turn.id}"
    await sessions.append(db, session.id, None, [replace(m, turn_id=turn.id) for m in _messages(call_id)])
    command = await commands.claim(
        db, team=TEAM, session_id=session.id, turn_id=turn.id, call_id=call_id, host=NAME, run="'echo' hello",
        decision=Decision.ALLOW, reason="only reads: echo", approval_id=None,
    )  # fmt: skip
    assert command is not None
    await commands.finish(
        db,
        command_id=command.id,
        team=TEAM,
        ended=Ended(CommandState.DONE, exit_status=0, seconds=0.01, stdout="hello\n", stdout_bytes=6),
    )
    for event in ("command.started", "command.done"):
        await audit.add(
            db, event, team=TEAM, person=PERSON, session_id=session.id, turn_id=turn.id, host=NAME,
            detail={"command": command.id, "run": "'echo' hello", "decision": "allow"},
        )  # fmt: skip
    await milestones.add(
        db, team=TEAM, session_id=session.id, turn_id=turn.id, kind=MilestoneKind.CONCLUSION, content=ANSWER,
        source=MilestoneSource.RULE,
    )  # fmt: skip
    keys = (f"progress:{turn.id}", f"answer:{turn.id}:1", f"progress:{turn.id}:end")
    posts = [NewPost(key, CHANNEL, session.thread_ts, {"text": ANSWER}) for key in keys]
    await outbox.add(db, team=TEAM, session_id=session.id, posts=posts)
    await db.execute(
        text("UPDATE outbox SET state = 'sent', external_ts = :ts WHERE state = 'new'"), {"ts": ts}
    )
    await db.execute(
        text("UPDATE turn SET state = 'done', steps = 2, finished_at = now() WHERE id = :id"), {"id": turn.id}
    )
    await learning.claim(db, learning.Due(turn, words=True, findings=True))


@contextmanager
def _hasty(url: str) -> Any:
    """Commits that do not wait for the disk; only while the session grows."""
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("ALTER SYSTEM SET synchronous_commit = off")
        admin.execute("SELECT pg_reload_conf()")
        try:
            yield
        finally:
            admin.execute("ALTER SYSTEM RESET synchronous_commit")
            admin.execute("SELECT pg_reload_conf()")


async def _read_and_append(url: str, probe: psycopg.Connection[Any], thread: str, place: Place) -> int:
    """Time the reads of the history, then append the messages of a few more turns; answers how many."""
    store = Store(url)
    async with store.begin() as db:
        session = await sessions.find(db, TEAM, Origin.SLACK, key=f"{CHANNEL}:{thread}")
    assert session is not None
    place.read_50_s = await _time(store, lambda db: history.history(db, session.id, limit=50))
    place.read_400_s = await _time(store, lambda db: history.history(db, session.id, limit=400))
    sizes = []
    for number in range(REPEATS):
        before = _lsn(probe)
        for message in _messages(f"alone{session.last_seq}-{number}"):
            async with store.begin() as db:
                await sessions.append(db, session.id, None, [replace(message)])
        sizes.append(_lsn(probe) - before)
    place.history_wal = statistics.median(sizes)
    await store.close()
    return REPEATS


async def _time(store: Store, read: Callable[[Any], Awaitable[Sequence[Message]]]) -> float:
    times = []
    for _ in range(TURNS):
        async with store.begin() as db:
            began = time.perf_counter()
            await read(db)
            times.append(time.perf_counter() - began)
    return statistics.median(times)


_AGAIN = """INSERT INTO again OVERRIDING SYSTEM VALUE SELECT m.* FROM (
  SELECT * FROM chat_message WHERE session_id = (SELECT max(session_id) FROM chat_message) AND seq <= %(seq)s
  ORDER BY seq DESC LIMIT %(window)s) m ORDER BY m.seq"""


def _others(url: str, places: dict[int, Place]) -> list[tuple[str, ...]]:
    """The same session in a table of the same shape, deleted and inserted again at every save."""
    rows = [
        ("append (ours), each message in its own commit", *(f"{places[at].history_wal:,.0f}" for at in AT))
    ]
    with psycopg.connect(url) as db:
        db.execute("CREATE TABLE again (LIKE chat_message INCLUDING ALL)")
        db.commit()
        for name, window in (
            ("delete + insert, window 20", 20),
            ("delete + insert, whole history", 1_000_000),
        ):
            cells = [name]
            for at in AT:
                sizes = []
                for turn in range(at, at + REPEATS + 1):
                    before = _lsn(db)
                    db.execute("DELETE FROM again")
                    db.execute(_AGAIN, {"seq": 4 * turn, "window": window})
                    db.commit()
                    sizes.append(_lsn(db) - before)
                cells.append(f"{statistics.median(sizes[1:]):,.0f}")  # the first only fills the table
            rows.append(tuple(cells))
    return rows


def _lsn(db: psycopg.Connection[Any]) -> float:
    row = db.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
    assert row is not None
    return float(row[0])
