"""A command through us next to raw asyncssh, in turn, on warm connections to the same in-process server."""

from __future__ import annotations

import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh

from bench.figures import Clock, p50_p99, percentile, table
from bot.demo import keys
from bot.demo.host import DemoHost, account, write_hosts_yml
from bot.journal import Door, Journal, Ledger, Wanted
from bot.redact import RedactionWorker, load_redactor
from bot.ssh.inventory import load
from bot.ssh.remote import Remote
from bot.tools.execution import Executor
from storage import sessions, turns
from storage.embedded import EmbeddedPostgres
from storage.migrate import upgrade
from storage.records import Front, Origin
from storage.store import Store
from tests.turns.rig import Recorder

WARM, RUNS = 10, 200
COMMAND = "'echo' hello"


async def main() -> dict[str, float]:
    """Returns the ratios of the executor, its commits apart, and of Remote.run to raw asyncssh (p50)."""
    with tempfile.TemporaryDirectory(prefix="opsthread-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        demo, remote = DemoHost(folder / "demo"), Remote()
        port = await demo.start()
        raw = await asyncssh.connect(
            "127.0.0.1",
            port,
            username=account(),
            client_keys=[str(keys.identity(folder / "demo"))],
            known_hosts=None,  # a benchmark's own server in its own process
            config=None,
            agent_path=None,
        )
        try:
            async with _journal(folder / "pg") as journal:
                return await _measure(folder, port, raw=raw, remote=remote, journal=journal)
        finally:
            raw.close()
            await remote.close()
            await demo.stop()


async def _measure(
    folder: Path, port: int, *, raw: asyncssh.SSHClientConnection, remote: Remote, journal: Journal
) -> dict[str, float]:
    host = load(write_hosts_yml(folder / "demo", port)).for_team("local").hosts[0]
    executor = Executor(remote=remote, journal=journal)
    commits = Clock()
    plain: list[float] = []
    ours: list[float] = []
    whole: list[float] = []
    apart: list[float] = []
    with commits.on((Ledger, "started"), (Ledger, "finished")):
        for n in range(WARM + RUNS):
            began = time.perf_counter()
            await raw.run(COMMAND)
            plain.append(time.perf_counter() - began)
            began = time.perf_counter()
            await remote.run(host, COMMAND, limit_s=30)
            ours.append(time.perf_counter() - began)
            began = time.perf_counter()
            wanted = Wanted(
                f"c{n}", host.name, "", "", COMMAND, reason="bench", purpose="", policy="", limit_s=30
            )
            await executor.read(host, wanted)
            whole.append(time.perf_counter() - began)
            apart.append(commits.take())
    exec_only = [a - b for a, b in zip(whole, apart, strict=True)]
    base = percentile(plain[WARM:], 0.5)
    rows = [("what", "p50 / p99", "p50 to raw")]
    for title, values in (
        ("raw asyncssh run()", plain[WARM:]),
        ("Remote.run: wrapper, markers, limits", ours[WARM:]),
        ("Executor.read, the journal's two commits apart", exec_only[WARM:]),
        ("  the two commits: claim with audit, output with audit", apart[WARM:]),
        ("Executor.read with them", whole[WARM:]),
    ):
        rows.append((title, p50_p99(values), f"{percentile(values, 0.5) / base:.2f}"))
    table(f"One warm command, {RUNS} times", rows)
    return {
        "ssh ratio": percentile(exec_only[WARM:], 0.5) / base,
        "ssh ratio of Remote.run": percentile(ours[WARM:], 0.5) / base,
    }


@asynccontextmanager
async def _journal(folder: Path) -> AsyncGenerator[Journal]:
    """The journal of one claimed turn, on a durable database."""
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
        door = Door(
            store=store,
            screen=Recorder(session.id, []),
            claim=claim,
            redaction=RedactionWorker(load_redactor()),
            per_minute=1_000_000,
        )
        journal = Journal(door, zone="UTC")
        try:
            yield journal
        finally:
            await journal.close()
            await store.close()
