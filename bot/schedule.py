"""APScheduler ticks: approvals nobody answered, turns a dead process left behind, changes still to be collected."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

from apscheduler.schedulers.asyncio import AsyncIOScheduler

from bot import log

logger = log.get(__name__)


class Ticks:
    """Jobs by name, every so many seconds, while the block is open. One at a time each; a late one runs once."""

    def __init__(self, jobs: dict[str, tuple[float, Callable[[], Awaitable[Any]]]]) -> None:
        self._scheduler = AsyncIOScheduler(timezone="UTC")
        for name, (every_s, job) in jobs.items():
            self._scheduler.add_job(
                _guarded(name, job), "interval", seconds=every_s, id=name, max_instances=1, coalesce=True
            )

    async def __aenter__(self) -> Self:
        self._scheduler.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scheduler.shutdown(wait=False)


def _guarded(name: str, job: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[None]]:
    async def run() -> None:
        try:
            await job()
        except Exception as error:
            logger.warning("tick failed; it runs again", tick=name, error=str(error))

    return run
