"""From settings to an open database: the one of DATABASE_URL, or the embedded one, kept alive while we run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

from bot import log
from bot.settings import Settings
from storage.embedded import EmbeddedPostgres
from storage.errors import EmbeddedPostgresError
from storage.migrate import upgrade
from storage.store import Store

LOOK_S = 2.0  # between two looks whether the embedded Postgres lives

logger = log.get(__name__)


@asynccontextmanager
async def server(settings: Settings) -> AsyncGenerator[str]:
    """The URL of a Postgres that runs: the one of DATABASE_URL, else the embedded one, kept alive."""
    if settings.database_url is not None:
        yield settings.database_url.get_secret_value()
        return
    async with EmbeddedPostgres(settings.data_dir) as postgres:
        guard = asyncio.create_task(_keep_alive(postgres), name="embedded Postgres")
        try:
            yield postgres.url
        finally:
            guard.cancel()
            await asyncio.gather(guard, return_exceptions=True)


async def _keep_alive(postgres: EmbeddedPostgres) -> None:
    while True:
        await asyncio.sleep(LOOK_S)
        try:
            await postgres.ensure()
        except EmbeddedPostgresError as error:
            logger.error("embedded Postgres does not start", error=str(error))


@asynccontextmanager
async def database(settings: Settings) -> AsyncGenerator[Store]:
    """An open Store with the newest schema; the embedded Postgres where DATABASE_URL is empty."""
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(server(settings))
        await upgrade(url)
        store = Store(url)
        stack.push_async_callback(store.close)
        await store.open()
        yield store
