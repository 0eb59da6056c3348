"""From settings to an open database, for commands that only read or write records."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from bot import app as root
from bot import settings
from storage.embedded import EmbeddedPostgres
from storage.store import Store

T = TypeVar("T")


def with_store(work: Callable[[Store], Awaitable[T]]) -> T:
    """Open the store (the embedded Postgres where DATABASE_URL is empty, its schema brought up), work, close."""

    async def opened() -> T:
        async with root.database(settings.load()) as store:
            return await work(store)

    return asyncio.run(opened())


@asynccontextmanager
async def address() -> AsyncGenerator[str]:
    """The database's URL with a server behind it, its schema left as it is."""
    config = settings.load()
    if config.database_url is not None:
        yield config.database_url.get_secret_value()
        return
    async with EmbeddedPostgres(config.data_dir) as postgres:
        yield postgres.url
