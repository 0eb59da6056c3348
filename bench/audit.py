"""What the audit log costs: adding a row, sealing what a turn leaves, a head in the sink, a backlog, verifying."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from sqlalchemy import text

from bench.figures import p50_p99, table
from bot.audit.sealer import Sealer
from bot.audit.signing import Signer
from bot.audit.sink import Sink
from bot.audit.verify import verify_store
from storage import audit
from storage.embedded import EmbeddedPostgres
from storage.migrate import upgrade
from storage.store import Db, Store

TURNS = 200
BACKLOG = 20_000
DETAIL = {
    "command": 4711,
    "run": "'journalctl' '-u' 'nginx' '-n' '100' '--no-pager'",
    "decision": "allow",
    "reason": "only reads: journalctl",
    "approval": None,
    "host_key": "SHA256:Jq0kVwQy0t3PZgY3m9vJt1m7cG1d1rj0c8Zt0a9aXyE",
}


async def main() -> dict[str, float]:
    """Returns rows sealed a second."""
    with tempfile.TemporaryDirectory(prefix="opsthread-bench-", ignore_cleanup_errors=True) as name:
        async with EmbeddedPostgres(Path(name) / "pg") as postgres:
            await upgrade(postgres.url)
            store = Store(postgres.url)
            signer = Signer("made up")
            sealer = Sealer(store, signer=signer, sink=Sink(Path(name) / "heads.jsonl"))
            await _a_turn_each(store, sealer)
            rate = await _backlog(store, sealer, signer, Path(name) / "heads.jsonl")
            await store.close()
    return {"audit rows sealed a second": rate}


async def _a_turn_each(store: Store, sealer: Sealer) -> None:
    """Two events a turn, each in a transaction that is open anyway; then what the sealer does with them."""
    added, idle, sealed, vouched = [], [], [], []
    for _ in range(TURNS):
        for event in ("command.started", "command.done"):
            async with store.begin() as db:
                await db.execute(text("SELECT 1"))
                added.append(await _time(lambda db=db, event=event: _add(db, event)))  # type: ignore[misc]
        sealed.append(await _time(sealer.seal))
        vouched.append(await _time(sealer.publish))
        idle.append(await _time(sealer.seal))
    rows = [
        ("what", "p50 / p99"),
        ("audit.add, one row (a turn with one command has two)", p50_p99(added)),
        ("sealing the two rows of a turn", p50_p99(sealed)),
        ("a signed head, fsynced to the sink and kept in the database", p50_p99(vouched)),
        ("looking for rows when there are none (every 2 s)", p50_p99(idle)),
    ]
    table(f"The audit log, {TURNS} turns; only the first line is in a turn", rows)


async def _backlog(store: Store, sealer: Sealer, signer: Signer, sink: Path) -> float:
    async with store.begin() as db:
        for _ in range(BACKLOG):
            await _add(db, "command.started")
    seal_s = await _time(sealer.seal)
    await sealer.publish()

    async def verify() -> None:
        report = await verify_store(
            store, keys=frozenset([signer.public]), sink=sink, progress=lambda _: None
        )
        assert report.fault is None
        assert report.rows == BACKLOG + 2 * TURNS

    verify_s = await _time(verify)
    rows = [
        ("what", "rows a second"),
        (f"sealing {BACKLOG:,} rows", f"{BACKLOG / seal_s:,.0f}"),
        (f"verifying them, with {TURNS} heads twice", f"{(BACKLOG + 2 * TURNS) / verify_s:,.0f}"),
    ]
    table("A backlog", rows)
    return BACKLOG / seal_s


async def _add(db: Db, event: str) -> None:
    await audit.add(
        db,
        event,
        team="T01TEAM",
        person="U01ALICE",
        session_id=1,
        turn_id=1,
        host="web-1",
        detail=DETAIL,
    )


async def _time(work: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began
