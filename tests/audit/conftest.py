"""An audit log with rows in it, its sealer, and a superuser who tampers with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from bot.audit.sealer import Sealer
from bot.audit.signing import Signer
from bot.audit.sink import Sink
from bot.audit.verify import Report, verify_store
from bot.audit.walk import Fault
from storage import audit
from storage.store import Store
from tests import make

SECRET = "made-up-secret-of-the-tests"
Tamper = Callable[[str], None]


@pytest.fixture
def sink(tmp_path: Path) -> Sink:
    return Sink(tmp_path / "heads.jsonl")


@pytest.fixture(scope="session")
def signer() -> Signer:
    return Signer(SECRET)


@pytest.fixture
def sealer(store: Store, signer: Signer, sink: Sink) -> Sealer:
    return Sealer(store, signer=signer, sink=sink)


@pytest.fixture
def tamper(database_url: str) -> Tamper:
    """Runs statements as the owner of the server, with every trigger off and the index of links gone."""

    def run(statements: str) -> None:
        with psycopg.connect(database_url) as admin:
            admin.execute("ALTER TABLE audit DISABLE TRIGGER ALL")
            admin.execute("ALTER TABLE audit_head DISABLE TRIGGER ALL")
            admin.execute("DROP INDEX IF EXISTS audit_link")
            admin.execute(statements)

    return run


async def filled(store: Store, count: int, **more: Any) -> None:
    """So many events, a transaction each."""
    for number in range(count):
        async with store.begin() as db:
            values = {"team": make.TEAM, "person": make.ALICE, "host": "web-1", **more}
            await audit.add(db, "command.started", detail={"run": f"df -h /{number}", "n": 1.5}, **values)


Verified = Callable[[], Awaitable[Report]]


@pytest.fixture
def verified(store: Store, signer: Signer, sink: Sink) -> Verified:
    """Verifies the database with the key and the sink."""

    async def run() -> Report:
        return await verify_store(
            store, keys=frozenset([signer.public]), sink=sink.path, progress=lambda _: None
        )

    return run


async def chain_fault(store: Store) -> Fault | None:
    """What is wrong with the chain alone, without key and sink."""
    return (await verify_store(store, keys=frozenset(), sink=None, progress=lambda _: None)).fault
