"""Work that goes on after Slack had its acknowledgement: every task has an owner here."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from bot import log


class Jobs:
    """The tasks that listeners hand over. What one raises is logged, by the name it was given."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._log = log.get("slack.jobs")

    def start(self, work: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def close(self, *, grace_s: float) -> None:
        """Let what is under way finish for grace_s seconds, then end it."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=grace_s)
        for task in set(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (fault := task.exception()) is not None:
            self._log.error("work not done", work=task.get_name(), exc_info=fault)
