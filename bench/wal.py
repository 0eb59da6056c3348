"""Rows and WAL of one turn at turn 10, 200 and 1,000 of a session, next to stores that write history again."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg

from bench.figures import table
from storage import sessions, turns
from storage.embedded import EmbeddedPostgres
from storage.history import history
from storage.migrate import upgrade
from storage.records import Front, Message, Role, ToolCall, TurnState
from storage.store import Store
from tests.fakes.model import say
from tests.turns.rig import Rig, open_rig, run

AT = (10, 200, 1_000)
TURNS = 20  # measured at each place
TABLES = ("turn", "chat_message", "chat_milestone", "command", "output", "audit", "outbox", "inbox")
SETTINGS = {"checkpoint_timeout": "1h", "max_wal_size": "8GB", "autovacuum": "off"}  # no checkpoint between


async def main() -> dict[str, float]:
    """Returns bytes a turn by place."""
    with tempfile.TemporaryDirectory(prefix="opsthread-bench-", ignore_cleanup_errors=True) as folder:
        async with EmbeddedPostgres(Path(folder) / "pg", settings=SETTINGS) as postgres:
            await upgrade(postgres.url)
            async with open_rig(postgres.url, Path(folder) / "data") as rig:
                ours = await _ours(rig, postgres.url)
            others = _others(postgres.url)
    rows = [("turn", "rows", "WAL bytes (median of 20)", "ratio to turn 10", "read of history p50")]
    for at, (count, size, read) in ours.items():
        rows.append(
            (str(at), str(count), f"{size:,.0f}", f"{size / ours[AT[0]][1]:.2f}", f"{read * 1000:.1f} ms")
        )
    table("A turn's writes (question, call, result, answer)", rows)
    table("The same four messages in stores that write history again", [("store", *map(str, AT)), *others])
    return {f"wal ratio turn {at}": ours[at][1] / ours[AT[0]][1] for at in AT[1:]}


async def _ours(rig: Rig, url: str) -> dict[int, tuple[int, float, float]]:
    talk = rig.conversation()
    found: dict[int, tuple[int, float, float]] = {}
    done = 0
    with psycopg.connect(url, autocommit=True) as probe:
        for at in AT:
            if talk.session is not None:
                await _grow(rig.store, talk.session.id, at - TURNS // 2 - done)
                done = at - TURNS // 2
            sizes: list[float] = []
            before = _rows(probe)
            while done < at + TURNS // 2:
                rig.model.push(
                    run(f"echo turn {done}"), say("It is as it should be; nothing needs attention.")
                )
                lsn = _lsn(probe)
                assert await talk.say("is everything as it should be?") is TurnState.DONE
                sizes.append(_lsn(probe) - lsn)
                done += 1
            measured = sizes[-TURNS:]
            assert talk.session is not None
            found[at] = (
                round((_rows(probe) - before) / len(sizes)),
                statistics.median(measured),
                await _read(rig.store, talk.session.id),
            )
    return found


async def _grow(store: Store, session_id: int, count: int) -> None:
    """Append turns with the records a turn writes, without running them."""
    for number in range(count):
        async with store.begin() as db:
            turn = await turns.submit(
                db, team="local", session_id=session_id, front=Front.SLACK, person="local:tester",
                person_name="tester", owner="local", channel="terminal", message="again", source_ts=None,
            )  # fmt: skip
            call = ToolCall(
                f"grown{number}", "run_command", '{"hosts": ["this-machine"], "command": "uptime"}'
            )
            await sessions.append(
                db,
                session_id,
                None,
                [
                    Message(Role.USER, "is everything as it should be?", author="tester", turn_id=turn.id),
                    Message(Role.ASSISTANT, "", tool_calls=(call,), turn_id=turn.id),
                    Message(Role.TOOL, "### this-machine · exit 0", tool_call_id=call.id, turn_id=turn.id),
                    Message(Role.ASSISTANT, "It is.", turn_id=turn.id),
                ],
            )
            await _done(db, turn.id)


async def _done(db: Any, turn_id: int) -> None:
    from sqlalchemy import text

    await db.execute(text("UPDATE turn SET state = 'done' WHERE id = :id"), {"id": turn_id})


async def _read(store: Store, session_id: int) -> float:
    times = []
    for _ in range(20):
        async with store.begin() as db:
            began = time.perf_counter()
            await history(db, session_id)
            times.append(time.perf_counter() - began)
    return statistics.median(times)


def _others(url: str) -> list[tuple[str, ...]]:
    """Delete all and insert again on every save, with a window of 20 messages and without one."""
    rows = []
    with psycopg.connect(url) as db:
        db.execute(
            "CREATE TABLE again (id bigserial PRIMARY KEY, n int, role text, content text, calls jsonb)"
        )
        db.commit()
        for name, window in (("delete + insert, window 20", 20), ("delete + insert, whole history", None)):
            cells = [name]
            for at in AT:
                sizes = []
                for turn in range(at, at + 5):
                    total = 4 * turn if window is None else min(window, 4 * turn)
                    lsn = _lsn(db)
                    db.execute("DELETE FROM again")
                    with db.cursor() as cursor:
                        cursor.executemany(
                            "INSERT INTO again (n, role, content, calls) VALUES (%s, %s, %s, %s)",
                            [
                                (n, "user", "is everything as it should be?", json.dumps([]))
                                for n in range(total)
                            ],
                        )
                    db.commit()
                    sizes.append(_lsn(db) - lsn)
                cells.append(f"{statistics.median(sizes):,.0f}")
            rows.append(tuple(cells))
    return rows


def _lsn(db: psycopg.Connection[Any]) -> float:
    row = db.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
    assert row is not None
    return float(row[0])


def _rows(db: psycopg.Connection[Any]) -> int:
    total = 0
    for name in TABLES:
        row = db.execute(f"SELECT count(*) FROM {name}").fetchone()
        assert row is not None
        total += int(row[0])
    return total
