"""Real Postgres for the tests: one embedded server a worker, one copied database a test."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import hypothesis
import psycopg
import pytest
import structlog
from psycopg import sql

from storage.embedded import EmbeddedPostgres
from storage.migrate import upgrade
from storage.store import Store

# Nothing in a test outlives the machine, so nothing needs to reach the disk.
FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "autovacuum": "off"}
_numbers = itertools.count(1)
# Examples are not kept between runs: a checkout may be read-only, and hypothesis would warn.
hypothesis.settings.register_profile("here", database=None)
hypothesis.settings.load_profile("here")
# The default renderer prints the locals of every frame of an exception, which takes seconds.
structlog.configure(
    processors=[
        structlog.processors.add_log_level,
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ]
)


def named(url: str, database: str) -> str:
    """The same server's URL for another database."""
    return url.replace("/postgres?", f"/{database}?")


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    """A Postgres server of this worker with a migrated database `template` in it."""
    folder = Path(tempfile.mkdtemp(prefix="opsthread-test-", dir=_memory()))
    postgres = EmbeddedPostgres(folder, settings=FAST)
    try:
        url = asyncio.run(postgres.start())
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("CREATE DATABASE template")
        asyncio.run(upgrade(named(url, "template")))
        yield url
    finally:
        asyncio.run(postgres.stop())
        shutil.rmtree(folder, ignore_errors=True)


def _memory() -> str | None:
    """A folder in memory with room for the tests' databases, which are made and dropped by the hundred; None: on disk."""
    try:
        room = os.statvfs("/dev/shm")
    except OSError:
        return None
    return "/dev/shm" if room.f_bavail * room.f_frsize > 4 << 30 and os.access("/dev/shm", os.W_OK) else None


@pytest.fixture
def empty_database_url(server_url: str) -> Iterator[str]:
    """The URL of a fresh database without any schema."""
    yield from _database(server_url, template="template0")


@pytest.fixture
def database_url(server_url: str) -> Iterator[str]:
    """The URL of a fresh database with the newest schema."""
    yield from _database(server_url, template="template")


def _database(server_url: str, *, template: str) -> Iterator[str]:
    name = f"test_{next(_numbers)}"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}" + (" STRATEGY FILE_COPY" if _memory() else "")).format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
    yield named(server_url, name)
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[Store]:
    """An open Store on a fresh database."""
    opened = Store(database_url)
    await opened.open()
    yield opened
    await opened.close()
