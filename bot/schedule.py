"""APScheduler ticks: approvals nobody answered, turns a dead process left behind, changes still to be collected."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

from apscheduler.schedulers.asyncio import AsyncIOScheduler

from bot import log

LEAVE_S = 10.0  # for a job at work when the block ends

logger = log.get(__name__)


class Ticks:
    """Jobs by name, every so many seconds, while the block is open. One at a time each; a late one runs once."""

    def __init__(self, jobs: dict[str, tuple[float, Callable[[], Awaitable[Any]]]]) -> None:
        self._scheduler = AsyncIOScheduler(timezone="UTC")
        self._running: set[asyncio.Task[Any]] = set()
        for name, (every_s, job) in jobs.items():
            self._scheduler.add_job(
                self._guarded(name, job), "interval", seconds=every_s, id=name, max_instances=1, coalesce=True
            )

    async def __aenter__(self) -> Self:
        self._scheduler.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scheduler.pause()
        if self._running:  # a job that is cut in the middle would be reported as a crash
            await asyncio.wait(self._running, timeout=LEAVE_S)
        self._scheduler.shutdown(wait=False)

    def _guarded(self, name: str, job: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[None]]:
        async def run() -> None:
            task = asyncio.current_task()
            assert task is not None
            self._running.add(task)
            task.add_done_callback(self._running.discard)
            try:
                await job()
            except Exception as error:  # noqa: BLE001 - a job of the house: the clock must go on
                logger.warning("tick failed; it runs again", tick=name, error=str(error))

        return run
