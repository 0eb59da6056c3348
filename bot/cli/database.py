"""From settings to an open database, for commands that only read or write records."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from bot import settings
from bot.database import database
from storage.store import Store

T = TypeVar("T")


def with_store(work: Callable[[Store], Awaitable[T]]) -> T:
    """Open the store (the embedded Postgres where DATABASE_URL is empty, its schema brought up), work, close."""

    async def opened() -> T:
        async with database(settings.load()) as store:
            return await work(store)

    return asyncio.run(opened())
