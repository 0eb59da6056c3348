"""The store over a server that is restarted, frozen, busy, absent or too old."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import text

from storage import store as module
from storage.embedded import EmbeddedPostgres
from storage.errors import DatabaseUnavailable, StorageError
from storage.store import Store, check_version, notify
from tests.conftest import FAST


async def _one(store: Store, *, limit_s: float = 30.0) -> int:
    async with store.begin(limit_s=limit_s) as db:
        return int((await db.execute(text("SELECT 1"))).scalar_one())


@pytest.fixture
async def own_server() -> AsyncIterator[EmbeddedPostgres]:
    """A server that a test may maltreat."""
    folder = Path(tempfile.mkdtemp(prefix="opsthread-test-"))
    async with EmbeddedPostgres(folder, settings=FAST) as postgres:
        yield postgres
    shutil.rmtree(folder)


def _pid(url: str) -> int:
    sockets = Path(re.sub(r".*host=", "", url).replace("%2F", "/"))
    return int((sockets.parent / "data" / "postmaster.pid").read_text().split()[0])


async def test_a_block_commits_and_a_failing_block_rolls_back(store: Store) -> None:
    async def note(name: str, *, fail: bool) -> None:
        async with store.begin() as db:
            await db.execute(text("INSERT INTO person (team, id) VALUES ('T', :id)"), {"id": name})
            if fail:
                raise RuntimeError(name)

    await note("kept", fail=False)
    with pytest.raises(RuntimeError):
        await note("lost", fail=True)
    async with store.begin() as db:
        assert [row.id for row in await db.execute(text("SELECT id FROM person"))] == ["kept"]


async def test_a_cancelled_block_rolls_back_and_the_pool_goes_on(store: Store) -> None:
    started = asyncio.Event()

    async def slow(number: int) -> None:
        # A row of its own each: a backend whose cancel request got lost keeps its lock for a while.
        async with store.begin() as db:
            row = {"id": f"lost {number}"}
            await db.execute(text("INSERT INTO person (team, id) VALUES ('T', :id)"), row)
            started.set()
            await db.execute(text("SELECT pg_sleep(30)"))

    for number in range(15):  # more often than the pool has connections
        started.clear()
        task = asyncio.create_task(slow(number))
        async with asyncio.timeout(20):
            await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    async with store.begin() as db:
        assert (await db.execute(text("SELECT count(*) FROM person"))).scalar_one() == 0


async def test_a_restart_between_two_blocks_is_not_noticed(own_server: EmbeddedPostgres) -> None:
    store = Store(own_server.url)
    await asyncio.gather(*(_one(store) for _ in range(5)))
    os.kill(_pid(own_server.url), signal.SIGKILL)
    await own_server.ensure()
    assert await asyncio.gather(*(_one(store) for _ in range(5))) == [1] * 5
    await store.close()


async def test_a_stopped_server_is_one_clear_line_and_comes_back(own_server: EmbeddedPostgres) -> None:
    store = Store(own_server.url)
    await store.open()
    await own_server.stop()
    for _ in range(3):
        with pytest.raises(DatabaseUnavailable) as caught:
            await _one(store)
        assert "check DATABASE_URL and that Postgres is running" in str(caught.value)
        assert "\n" not in str(caught.value)
    await own_server.start()
    assert await _one(store) == 1
    await store.close()


async def test_a_server_that_dies_inside_a_block_is_unavailable(own_server: EmbeddedPostgres) -> None:
    store = Store(own_server.url)

    async def killed() -> None:
        async with store.begin() as db:
            await db.execute(text("SELECT 1"))
            os.kill(_pid(own_server.url), signal.SIGQUIT)
            while True:
                await db.execute(text("SELECT pg_sleep(0.01)"))

    with pytest.raises(DatabaseUnavailable):
        await killed()
    await store.close()


async def test_a_frozen_server_hangs_nothing(
    own_server: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CONNECT_S", 0.5)
    store = Store(own_server.url)
    async with store.begin() as db:
        backend = (await db.execute(text("SELECT pg_backend_pid()"))).scalar_one()
    postmaster = _pid(own_server.url)

    async def frozen_inside() -> None:
        async with store.begin(limit_s=0.5) as db:
            os.kill(backend, signal.SIGSTOP)
            await db.execute(text("SELECT 1"))

    os.kill(postmaster, signal.SIGSTOP)
    try:
        began = time.monotonic()
        with pytest.raises(DatabaseUnavailable):
            await frozen_inside()
        with pytest.raises(DatabaseUnavailable):
            await _one(store)
        assert time.monotonic() - began < 15
    finally:
        os.kill(backend, signal.SIGCONT)
        os.kill(postmaster, signal.SIGCONT)
    assert await _one(store) == 1
    await store.close()


async def test_a_slow_statement_is_cancelled(store: Store) -> None:
    async def slow() -> None:
        async with store.begin(limit_s=0.3) as db:
            await db.execute(text("SELECT pg_sleep(20)"))

    with pytest.raises(DatabaseUnavailable):
        await slow()
    assert await _one(store) == 1


async def test_an_idle_block_does_not_hold_its_connection_for_ever(store: Store) -> None:
    async def idle() -> None:
        async with store.begin(limit_s=0.2) as db:
            await asyncio.sleep(0.5)  # the fault: something slow inside the block
            await db.execute(text("SELECT 1"))

    with pytest.raises(DatabaseUnavailable):
        await idle()
    assert await _one(store) == 1


async def test_a_row_held_by_somebody_else_is_given_up_on(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LOCK_S", 0.2)

    async def lock() -> None:
        async with store.begin() as db:
            await db.execute(text("SELECT pg_advisory_xact_lock(1)"))

    async with store.begin() as db:
        await db.execute(text("SELECT pg_advisory_xact_lock(1)"))
        with pytest.raises(DatabaseUnavailable, match="busy for too long"):
            await lock()


async def test_more_blocks_than_connections_wait_their_turn(store: Store) -> None:
    assert await asyncio.gather(*(_one(store) for _ in range(100))) == [1] * 100


async def test_an_exhausted_pool_says_so(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONNECT_S", 0.1)
    store = Store(database_url, pool_size=1)
    async with store.begin(), store.begin():
        with pytest.raises(DatabaseUnavailable, match="all connections to the database are in use"):
            await _one(store)
    await store.close()


async def test_a_refused_statement_tells_no_values(store: Store) -> None:
    async def twice() -> None:
        async with store.begin() as db:
            for _ in range(2):
                await db.execute(text("INSERT INTO person (team, id) VALUES ('T', :id)"), {"id": "s3cret"})

    with pytest.raises(StorageError) as caught:
        await twice()
    assert "s3cret" not in str(caught.value)


async def test_without_a_schema_the_mend_is_named(empty_database_url: str) -> None:
    store = Store(empty_database_url)

    async def look() -> None:
        async with store.begin() as db:
            await db.execute(text("SELECT * FROM chat_session"))

    with pytest.raises(DatabaseUnavailable, match="opsthread db upgrade"):
        await look()
    await store.close()


async def test_nobody_at_the_address_is_one_line_without_the_password() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: refused
        port = taken.getsockname()[1]
        for scheme in ("postgresql", "postgres", "postgresql+psycopg"):
            store = Store(f"{scheme}://bot:hunter%402@127.0.0.1:{port}/ops")
            with pytest.raises(DatabaseUnavailable) as caught:
                await store.open()
            assert "check DATABASE_URL" in str(caught.value)
            assert "hunter" not in str(caught.value)
            assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["postgresql://u:hunter2@h:port/x", "postgresql://[::1/x?hunter2", "nonsense"]
)
def test_a_url_that_cannot_be_read_is_not_repeated(url: str) -> None:
    with pytest.raises(DatabaseUnavailable, match="DATABASE_URL cannot be read") as caught:
        Store(url)
    assert "hunter2" not in str(caught.value)


def test_a_server_that_is_too_old_is_refused() -> None:
    check_version(150000)
    with pytest.raises(DatabaseUnavailable, match="PostgreSQL 14; opsthread needs 15 or newer"):
        check_version(140012)


async def test_a_listener_hears_what_was_committed_and_survives_a_restart(
    own_server: EmbeddedPostgres,
) -> None:
    store = Store(own_server.url)
    heard: asyncio.Queue[str] = asyncio.Queue()

    async def listen() -> None:
        async for payload in store.listen("a channel"):
            heard.put_nowait(payload)

    async def say_until_heard(word: str) -> None:
        """A notification without a listener is lost, so it is repeated until one has connected."""
        async with asyncio.timeout(20):
            while True:
                async with store.begin() as db:
                    await notify(db, "a channel", word)
                try:
                    while await asyncio.wait_for(heard.get(), 0.2) != word:
                        pass
                except TimeoutError:
                    continue
                return

    task = asyncio.create_task(listen())
    try:
        await say_until_heard("first")
        os.kill(_pid(own_server.url), signal.SIGKILL)
        await own_server.ensure()
        await say_until_heard("after the restart")
        while not heard.empty():
            heard.get_nowait()

        async def undone() -> None:
            async with store.begin() as db:
                await notify(db, "a channel", "never committed")
                raise RuntimeError

        with pytest.raises(RuntimeError):
            await undone()
        async with store.begin() as db:
            await notify(db, "a channel", "磁盘")
        assert await asyncio.wait_for(heard.get(), 5) == "磁盘"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await store.close()
