"""Statements are prepared on a server's own connection, and never through a pooler, which may change servers."""

from __future__ import annotations

import asyncio
import re
import tempfile
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from sqlalchemy import text

from storage.store import Store

_SOCKET = ".s.PGSQL.5432"
_KEY = re.compile(rb"(K\x00\x00\x00.)....", re.DOTALL)  # BackendKeyData: its length, the process number


@asynccontextmanager
async def _pooler(url: str) -> AsyncIterator[str]:
    """Passes everything on between a client and the server, but answers with a process number of its own."""
    behind = Path(re.sub(r".*host=", "", url).replace("%2F", "/")) / _SOCKET
    serving: set[asyncio.Task[None]] = set()

    async def passed(reader: StreamReader, writer: StreamWriter, *, answers: bool) -> None:
        named = not answers
        try:
            while data := await reader.read(65_536):
                if not named:
                    data, count = _KEY.subn(lambda found: found[1] + b"\0\0\0\1", data, count=1)
                    named = count == 1
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        from_server, to_server = await asyncio.open_unix_connection(behind)
        for task in (
            asyncio.create_task(passed(reader, to_server, answers=False)),
            asyncio.create_task(passed(from_server, writer, answers=True)),
        ):
            serving.add(task)

    with tempfile.TemporaryDirectory(prefix="opsthread-test-") as folder:
        server = await asyncio.start_unix_server(serve, Path(folder) / _SOCKET)
        try:
            yield re.sub(r"host=.*", "host=" + folder.replace("/", "%2F"), url)
        finally:
            server.close()
            await asyncio.gather(*serving)  # they end with the client's connection


async def _prepared(url: str) -> int:
    """How many statements are prepared after one was sent often."""
    store = Store(url, pool_size=1)
    for _ in range(10):
        async with store.begin() as db:
            await db.execute(text("SELECT CAST(:number AS bigint)"), {"number": 1})
    async with store.begin() as db:
        count = (await db.execute(text("SELECT count(*) FROM pg_prepared_statements"))).scalar_one()
    await store.close()
    return int(count)


async def test_what_comes_again_is_prepared_on_a_connection_to_the_server(database_url: str) -> None:
    assert await _prepared(database_url) > 0


async def test_nothing_is_prepared_through_a_pooler(database_url: str) -> None:
    async with _pooler(database_url) as url:
        assert await _prepared(url) == 0
