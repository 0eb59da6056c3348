"""Writes of one turn, in order, retried until they are in; an outage of the database never fails the turn.

(An outage journal on disk, so that nothing is lost when the process dies during an outage, belongs
behind `Writer.put`: it would be written before the database is tried.)
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from bot import log
from bot.events import Event, Screen
from storage.errors import DatabaseUnavailable, LeaseLost, StorageError
from storage.store import Db, Store

# again: the same write was tried before and may have been committed although its answer got lost.
Write = Callable[[Db, bool], Awaitable[Sequence[Event]]]

PATIENCE_S = 3.0  # how long a turn waits for one write before it goes on without it
IN_OUTAGE_S = 0.2  # the same, while earlier writes are still queued
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 5.0

logger = log.get(__name__)


@dataclass(slots=True)
class _Entry:
    write: Write
    done: asyncio.Future[None]
    must: bool  # somebody waits until it is in, for as long as it takes


class Writer:
    """An ordered queue of writes with one task that empties it. Events of a write are shown after its commit."""

    def __init__(self, *, store: Store, screen: Screen, session_id: int) -> None:
        self._store = store
        self._screen = screen
        self._session_id = session_id
        self._queue: deque[_Entry] = deque()
        self._wake = asyncio.Event()
        self._lost: BaseException | None = None
        self._task = asyncio.create_task(self._work(), name=f"writer of session {session_id}")
        self._task.add_done_callback(self._ended)

    async def put(self, write: Write, *, patience_s: float | None = PATIENCE_S) -> bool:
        """Queue a write. True: it is in the database. False: not yet; it stays queued, in order.

        patience_s None waits for as long as it takes, and raises StorageError when the row itself is refused.
        Raises LeaseLost when another process took over, and the fault of ours that ended the writer, if one did.
        """
        if self._lost:
            raise self._lost
        if self._queue and patience_s is not None:
            patience_s = min(patience_s, IN_OUTAGE_S)  # somebody waited for this outage already
        entry = _Entry(write, asyncio.get_running_loop().create_future(), must=patience_s is None)
        self._queue.append(entry)
        self._wake.set()
        try:
            async with asyncio.timeout(patience_s):
                await asyncio.shield(entry.done)
        except TimeoutError:
            entry.done.add_done_callback(_retrieve)
            logger.warning("write is late", session=self._session_id, queued=len(self._queue))
            return False
        return True

    async def close(self) -> None:
        """End the task. What is still queued is lost and counted in the log."""
        if self._queue and not self._lost:
            logger.error("writes lost at close", session=self._session_id, count=len(self._queue))
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _work(self) -> None:
        pause, failures = FIRST_PAUSE_S, 0
        while True:
            if not self._queue:
                self._wake.clear()
                await self._wake.wait()
                continue
            entry = self._queue[0]
            try:
                async with self._store.begin() as db:
                    events = await entry.write(db, failures > 0)
            except DatabaseUnavailable as error:
                failures += 1
                if failures == 1:
                    logger.warning("database unavailable; writes are kept and retried", error=str(error))
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE_S)
                continue
            except LeaseLost as error:
                self._give_up(error)
                return
            except StorageError as error:  # the row itself is refused: waiting would block all that follows
                logger.error("write refused and left out", session=self._session_id, error=str(error))
                events = ()
                if entry.must and not entry.done.done():
                    entry.done.set_exception(error)
                    entry.done.add_done_callback(_retrieve)
            if failures:
                logger.warning("database is back; writes go on", failures=failures, queued=len(self._queue))
            pause, failures = FIRST_PAUSE_S, 0
            self._queue.popleft()
            for event in events:
                await self._screen.show(event)
            if not entry.done.done():
                entry.done.set_result(None)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A fault of ours in a write must not leave those waiting who wait for as long as it takes."""
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("writer ended by a fault", session=self._session_id, exc_info=error)
            self._give_up(error)

    def _give_up(self, error: BaseException) -> None:
        self._lost = error
        while self._queue:
            entry = self._queue.popleft()
            if not entry.done.done():
                entry.done.set_exception(error)
                entry.done.add_done_callback(_retrieve)


def _retrieve(future: asyncio.Future[None]) -> None:
    """Nobody waits for this one any more: mark its error as seen."""
    if not future.cancelled():
        future.exception()
