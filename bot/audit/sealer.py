"""Seals the audit log as it grows and vouches for its head: signed, in the sink first, then in the database."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from bot import log
from bot.audit.signing import Signer
from bot.audit.sink import Sink
from storage import audit
from storage.audit import heads
from storage.audit.heads import Head
from storage.audit.sealing import BATCH, alone, hash_at, tip
from storage.errors import StorageError
from storage.store import Db, Store

EVERY_S = 2.0  # between two looks for new rows
HEAD_EVERY_S = 5.0  # between two heads of one process, when there is something new
CLOSE_S = 5.0  # for the last rows and the last head

logger = log.get(__name__)


class Sealer:
    """Several processes may have one: they never wait for each other, and a link is made once.

    signer None: heads are unsigned. sink None: heads are kept in the database only, where whoever cuts the
    chain can cut them too.
    """

    def __init__(
        self,
        store: Store,
        *,
        signer: Signer | None,
        sink: Sink | None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._signer = signer
        self._sink = sink
        self._now = now
        self._told: Head | None = None  # the last head this process knows to be good
        self._due = 0.0  # on the monotonic clock: a step of the wall clock must not hold heads back
        self._said = ""

    @classmethod
    def made(cls, store: Store, *, secret: str | None, sink: Path | None) -> Self:
        """From what the settings name."""
        return cls(store, signer=Signer(secret) if secret else None, sink=Sink(sink) if sink else None)

    async def tick(self) -> None:
        """Seal what is there; give a new head when one is due. Raises StorageError."""
        sealed = await self.seal()
        if sealed is not None and time.monotonic() >= self._due:
            await self.publish()
            self._due = time.monotonic() + HEAD_EVERY_S

    async def close(self) -> None:
        """The last rows and the last head. What cannot be done now, the next process does."""
        try:
            async with asyncio.timeout(CLOSE_S):
                await self.seal()
                await self.publish()
        except (StorageError, TimeoutError) as error:
            logger.warning(
                "audit rows were left unsealed; the next process seals them",
                error=str(error) or "it took too long",
            )

    async def seal(self) -> int | None:
        """Link everything that is committed, in batches; how many rows. None: another process is at it."""
        count = 0
        while True:
            async with self._store.begin() as db:
                done = await audit.seal(db)
            if done is None:
                return None
            count += done
            if done < BATCH:
                return count

    async def publish(self) -> Head | None:
        """Vouch for the tip of the chain, where that is new; None: nothing was written.

        A chain that does not hold what was vouched for before is not vouched for again.
        """
        async with self._store.begin() as db:
            link, hash_ = await tip(db)
            if self._told and self._told.link == link and self._told.hash == hash_.hex():
                return None
            if not await alone(db):
                return None
            link, hash_ = await tip(db)  # again: whoever held the lock may have gone on
            in_database, in_sink = await heads.last(db), await self._last_in_sink()
            known = [head for head in (in_database, in_sink, self._told) if head]
            if not await self._holds(db, known):
                self._say("the audit log does not hold what its last head says; run `opsthread audit verify`")
                return None
            if not link or self._would_unsign(known):
                return None
            head = self._signed(link, hash_.hex())
            sent = (in_sink is not None and in_sink.link == link) or await self._send(head)
            if in_database is None or in_database.link < link:
                await heads.add(db, head)
        if sent:
            self._told, self._said = head, ""
        return head

    @staticmethod
    async def _holds(db: Db, known: list[Head]) -> bool:
        for head in known:
            found = await hash_at(db, head.link)
            if found is None or found.hex() != head.hash:
                return False
        return True

    def _would_unsign(self, known: list[Head]) -> bool:
        """A terminal may lack the key that `serve` has; its rows are vouched for by the next who has it."""
        if self._signer is not None or not any(head.signature for head in known):
            return False
        self._say("the last head is signed, and OPSTHREAD_SECRET_KEY is not set here", serious=False)
        return True

    def _signed(self, link: int, hash_: str) -> Head:
        head = Head(link, hash_, self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
        return self._signer.sign(head) if self._signer else head

    async def _last_in_sink(self) -> Head | None:
        if self._sink is None:
            return None
        try:
            return await asyncio.to_thread(self._sink.last)
        except OSError as error:
            self._say(f"the audit sink cannot be read: {error}")
            return None

    async def _send(self, head: Head) -> bool:
        """To the sink. A sink that fails holds nothing else up, and is tried again."""
        if self._sink is None:
            return True
        try:
            await asyncio.to_thread(self._sink.append, head)
        except OSError as error:
            self._say(f"the audit sink cannot be written: {error}")
            return False
        return True

    def _say(self, fault: str, *, serious: bool = True) -> None:
        """Once, not every few seconds."""
        if fault != self._said:
            (logger.error if serious else logger.warning)("no new audit head", fault=fault)
        self._said = fault
