"""A command through us next to raw asyncssh, on warm connections to the same in-process server."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncssh

from bench.figures import p50_p99, percentile, table
from bot.demo import keys
from bot.demo.host import DemoHost, account, write_hosts_yml
from bot.journal import Journal
from bot.ssh.inventory import Host, load
from bot.ssh.remote import Remote
from bot.tools.execution import Executor
from storage import sessions, turns
from storage.embedded import EmbeddedPostgres
from storage.migrate import upgrade
from storage.records import Front, Origin
from storage.store import Store
from tests.turns.rig import Recorder

RUNS = 200
COMMAND = "'echo' hello"


async def main() -> dict[str, float]:
    """Returns the ratio of Remote.run to raw asyncssh."""
    with tempfile.TemporaryDirectory(prefix="opsthread-bench-", ignore_cleanup_errors=True) as folder:
        demo = DemoHost(Path(folder) / "demo")
        port = await demo.start()
        host = load(write_hosts_yml(Path(folder) / "demo", port)).for_team("local").hosts[0]
        remote = Remote()
        raw = await asyncssh.connect(
            host.address,
            port,
            username=account(),
            client_keys=[str(keys.identity(Path(folder) / "demo"))],
            known_hosts=None,  # a benchmark's own server in its own process
            config=None,
            agent_path=None,
        )
        try:
            plain = await _times(lambda _n: raw.run(COMMAND))
            ours = await _times(lambda _n: remote.run(host, COMMAND, limit_s=30))
            whole = await _with_journal(Path(folder) / "pg", host, remote)
        finally:
            raw.close()
            await remote.close()
            await demo.stop()
    base = percentile(plain, 0.5)
    rows = [("what", "p50 / p99", "p50 to raw")]
    for name, values in (
        ("raw asyncssh run()", plain),
        ("Remote.run: wrapper, markers, limits", ours),
        ("Executor.read: with claim, audit and output committed", whole),
    ):
        rows.append((name, p50_p99(values), f"{percentile(values, 0.5) / base:.2f}"))
    table(f"One warm command, {RUNS} times", rows)
    return {"ssh ratio": percentile(ours, 0.5) / base}


async def _times(call: Callable[[int], Awaitable[Any]]) -> list[float]:
    for n in range(10):
        await call(n)
    times = []
    for n in range(10, 10 + RUNS):
        began = time.perf_counter()
        await call(n)
        times.append(time.perf_counter() - began)
    return times


async def _with_journal(folder: Path, host: Host, remote: Remote) -> list[float]:
    async with EmbeddedPostgres(folder) as postgres:
        await upgrade(postgres.url)
        store = Store(postgres.url)
        async with store.begin() as db:
            session, _ = await sessions.open_session(
                db, team="local", origin=Origin.TERMINAL, key="bench", owner="local", channel="terminal"
            )
            await turns.submit(
                db, team="local", session_id=session.id, front=Front.TERMINAL, person="local:bench",
                person_name="bench", owner="local", channel="terminal", message="go", source_ts=None,
            )  # fmt: skip
        async with store.begin() as db:
            claim = await turns.claim(db, owner="bench", lease_s=600, front=Front.TERMINAL)
        assert claim is not None
        journal = Journal(store=store, screen=Recorder(session.id, []), claim=claim, zone="UTC")
        executor = Executor(remote=remote, journal=journal)
        try:
            return await _times(
                lambda n: executor.read(
                    call_id=f"c{n}", host=host, run=COMMAND, reason="bench", purpose="", limit_s=30
                )
            )
        finally:
            await journal.close()
            await store.close()
