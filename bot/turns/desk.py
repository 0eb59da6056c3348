"""The desk: takes arrivals in, hands each session's turns out one at a time, watches over those at work."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from bot import log
from bot.errors import Refused
from bot.events import Screen
from bot.journal import Journal
from bot.turns.arrival import Arrival, Receipt
from bot.turns.turn import MOST_RESUMED, TurnParts, fail_turn, run_turn, stop_turn
from storage import audit, inbox, people, sessions, turns
from storage.audit import AuditEvent
from storage.errors import LeaseLost, StorageError
from storage.records import Claim, Front, Session, Turn, TurnState
from storage.store import Db, Store

POLL_S = 1.0  # NOTIFY wakes the desk at once; the poll is for notifications that got lost
HAND_OVER_S = 3.0  # for the writes of a turn that is handed over
LONGEST_MESSAGE = 40_000  # characters; Slack itself cuts there
TITLE = 80

logger = log.get(__name__)


@dataclass(frozen=True, slots=True)
class DeskParts:
    """What the composition root gives a desk. screen and turn_parts are called once a claim."""

    store: Store
    front: Front
    owner: str  # unique name of this process
    lease_s: float
    clean: Callable[[str], Awaitable[str]]  # takes the secrets out of what people say
    screen: Callable[[Session, Turn], Screen]
    journal: Callable[[Claim, Screen], Journal]
    turn_parts: Callable[[Claim, Journal], TurnParts]
    at_once: int = 50  # turns this process works on at a time
    turns_per_person: int = 20  # a person's unfinished turns
    team: str | None = None  # work on the turns of this team only


@dataclass(slots=True)
class _Work:
    """A turn at work in this process, and why it was cancelled, if it was."""

    claim: Claim
    task: asyncio.Task[TurnState] | None = None
    stop_by: str | None = None
    lost: bool = False
    nudge: asyncio.Event = field(default_factory=asyncio.Event)  # look at the row now, not at the next beat


class Desk:
    """One a process."""

    def __init__(self, parts: DeskParts) -> None:
        self._parts = parts
        self._store = parts.store
        self._work: dict[int, _Work] = {}
        self._tasks: set[asyncio.Task[TurnState | None]] = set()
        self._closing = False
        self._wake = asyncio.Event()

    async def receive(self, arrival: Arrival) -> Receipt:
        """Store a message once and queue its turn, in one transaction. Raises Refused with what to do."""
        if arrival.starts_turn:
            _check(arrival.text)
        clean = self._parts.clean
        arrival = replace(
            arrival, text=await clean(arrival.text), person_name=await clean(arrival.person_name)
        )
        async with self._store.begin() as db:
            if arrival.front is Front.SLACK and not await inbox.add(
                db,
                team=arrival.team,
                event_key=arrival.event_key,
                message_key=arrival.message_key,
                channel=arrival.channel,
                thread_ts=arrival.thread_ts or arrival.ts,
                ts=arrival.ts,
                author=arrival.person,
                author_name=arrival.person_name,
                text=arrival.text,
                session_id=None,
                turn_id=None,
            ):
                return Receipt(session_id=None, turn_id=None, duplicate=True)
            await people.note(db, team=arrival.team, person=arrival.person, name=arrival.person_name)
            session = await _session(db, arrival)
            if session is None and arrival.opens_session and arrival.starts_turn:
                session, _ = await sessions.open_session(
                    db,
                    team=arrival.team,
                    origin=arrival.origin,
                    key=arrival.session_key,
                    owner=arrival.owner,
                    channel=arrival.channel,
                    thread_ts=arrival.thread_ts,
                    title=_title(arrival.text),
                )
            if session is None:
                return Receipt(session_id=None, turn_id=None, duplicate=False)
            before = await turns.unfinished(db, session.id)
            turn: Turn | None = None
            if arrival.starts_turn:
                await self._admit(db, arrival)
                turn = await turns.submit(
                    db,
                    team=arrival.team,
                    session_id=session.id,
                    front=arrival.front,
                    person=arrival.person,
                    person_name=arrival.person_name,
                    owner=arrival.owner,
                    channel=arrival.access_channel,
                    message=arrival.text,
                    source_ts=arrival.ts or None,
                )
            if arrival.front is Front.SLACK:
                await inbox.attach(
                    db,
                    message_key=arrival.message_key,
                    session_id=session.id,
                    turn_id=turn.id if turn else None,
                )
        self._wake.set()
        return Receipt(
            session_id=session.id,
            turn_id=turn.id if turn else None,
            duplicate=False,
            queued_behind=len(before) if turn else 0,
        )

    async def _admit(self, db: Db, arrival: Arrival) -> None:
        going = await turns.count_unfinished(db, team=arrival.team, person=arrival.person)
        if going >= self._parts.turns_per_person:
            raise Refused(
                f"{going} requests of yours are not finished, and that is the limit;"
                " wait for one to end, stop one, or answer its approval"
            )

    async def stop(self, turn_id: int, *, by: str, by_name: str) -> TurnState:
        """Ask for a turn to be stopped, wherever it is at work. Returns its state before."""
        async with self._store.begin() as db:
            turn = await turns.get(db, turn_id)
            state = await turns.request_stop(db, turn_id=turn_id, by=by_name or by)
            await audit.add(
                db,
                AuditEvent.TURN_STOPPED,
                team=turn.team,
                person=by or turn.person,
                session_id=turn.session_id,
                turn_id=turn_id,
                detail={"state_before": state, "how": by_name},
            )
        work = self._work.get(turn_id)
        if work is not None:
            self._cancel(work, by_name or by)
        self._wake.set()
        return state

    async def serve(self) -> None:
        """Work on any session's turns of this front until closed."""
        async with asyncio.TaskGroup() as group:
            watchers = [
                group.create_task(self._follow(turns.WAKE, lambda _payload: self._wake.set())),
                group.create_task(self._follow(turns.STOP, self._stop_heard)),
            ]
            while not self._closing:
                while len(self._work) < self._parts.at_once and not self._closing:
                    claim = await self._claim(None)
                    if claim is None:
                        break
                    self._start(claim)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(POLL_S):
                        await self._wake.wait()
                self._wake.clear()
            for watcher in watchers:
                watcher.cancel()

    async def work_on(self, session_id: int, *, turn_id: int) -> TurnState:
        """Work on one session until this turn is over or waits; earlier turns of ours come first.

        Raises StorageError.
        """
        watcher = asyncio.create_task(self._follow(turns.STOP, self._stop_heard), name="stops")
        try:
            while True:
                claim = await self._claim(session_id)
                if claim is not None:
                    await self._start(claim)
                async with self._store.begin() as db:
                    state = (await turns.get(db, turn_id)).state
                if state not in (TurnState.QUEUED, TurnState.RUNNING, TurnState.READY):
                    return state
                if claim is None:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(POLL_S / 4):
                            await self._wake.wait()
                    self._wake.clear()
        finally:
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)

    async def close(self, *, grace_s: float = 5.0) -> None:
        """Take no more turns; give those at work a moment, then hand them over to whoever comes next."""
        self._closing = True
        self._wake.set()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace_s)
        for work in self._work.values():
            if work.task is not None:
                work.task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace_s + 10)

    async def _claim(self, session_id: int | None) -> Claim | None:
        try:
            async with self._store.begin() as db:
                return await turns.claim(
                    db,
                    owner=self._parts.owner,
                    lease_s=self._parts.lease_s,
                    front=self._parts.front,
                    team=self._parts.team,
                    session_id=session_id,
                    besides=[work.claim.session.id for work in self._work.values()],
                )
        except StorageError as error:
            logger.warning("cannot look for turns", error=str(error))
            return None

    def _start(self, claim: Claim) -> asyncio.Task[TurnState | None]:
        work = _Work(claim=claim)
        self._work[claim.turn.id] = work
        task = asyncio.create_task(self._run(work), name=f"turn {claim.turn.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _run(self, work: _Work) -> TurnState | None:
        """One claim from start to end; None when it was lost or handed over."""
        claim = work.claim
        log_ = logger.bind(session=claim.session.id, turn=claim.turn.id)
        screen = self._parts.screen(claim.session, claim.turn)
        journal = self._parts.journal(claim, screen)
        heart = asyncio.create_task(self._beat(work))
        try:
            parts = self._parts.turn_parts(claim, journal)
            work.task = asyncio.create_task(run_turn(claim, parts))
            if work.stop_by:  # stopped before there was a task to cancel
                work.task.cancel()
            await asyncio.wait([work.task])
            return await self._ended(work, parts)
        except LeaseLost:
            log_.warning("another process took the turn over")
            return None
        except Exception:
            if claim.turn.resumed > MOST_RESUMED:  # not even its failure could be written
                log_.exception("turn given up without an answer")
                await self._give_up(claim)
            else:
                log_.exception("turn left as it is; it will be taken up again")
            return None
        finally:
            heart.cancel()
            await _end(work.task)
            self._work.pop(claim.turn.id, None)
            await asyncio.gather(heart, return_exceptions=True)
            await journal.close()
            self._wake.set()

    async def _ended(self, work: _Work, parts: TurnParts) -> TurnState | None:
        """Settle what the turn's task left: a state, a stop, a hand-over, a lost lease or a fault of ours."""
        assert work.task is not None
        claim = work.claim
        if work.task.cancelled():
            if work.lost:
                raise LeaseLost
            if work.stop_by:
                return await stop_turn(claim, parts, by=work.stop_by)
            await _drain(parts)
            async with self._store.begin() as db:
                await turns.release(db, session_id=claim.session.id, epoch=claim.epoch)
            return None
        error = work.task.exception()
        match error:
            case None:
                return work.task.result()
            case LeaseLost():
                raise error
            case StorageError():
                raise error
            case _:
                logger.error("turn failed", turn=claim.turn.id, exc_info=error)
                return await fail_turn(claim, parts, reason="a fault inside opsthread, which is in its log")

    async def _give_up(self, claim: Claim) -> None:
        with contextlib.suppress(StorageError):
            async with self._store.begin() as db:
                await turns.finish(
                    db,
                    turn_id=claim.turn.id,
                    session_id=claim.session.id,
                    epoch=claim.epoch,
                    state=TurnState.FAILED,
                )

    async def _beat(self, work: _Work) -> None:
        """Keep the lease, and hear of stops whose notification got lost."""
        claim = work.claim
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._parts.lease_s / 3):
                    await work.nudge.wait()
            work.nudge.clear()
            try:
                async with self._store.begin() as db:
                    stop_by = await turns.beat(
                        db,
                        session_id=claim.session.id,
                        turn_id=claim.turn.id,
                        epoch=claim.epoch,
                        lease_s=self._parts.lease_s,
                    )
            except LeaseLost:
                work.lost = True
                if work.task is not None:
                    work.task.cancel()
                return
            except StorageError as error:
                logger.warning("lease not extended", turn=claim.turn.id, error=str(error))
                continue
            if stop_by:
                self._cancel(work, stop_by)
                return

    def _stop_heard(self, payload: str) -> None:
        work = self._work.get(int(payload)) if payload.isdigit() else None
        if work is not None:
            work.nudge.set()

    def _cancel(self, work: _Work, by: str) -> None:
        if work.stop_by is None:
            work.stop_by = by
            if work.task is not None:
                work.task.cancel()

    async def _follow(self, channel: str, heard: Callable[[str], None]) -> None:
        async for payload in self._store.listen(channel):
            heard(payload)


async def _session(db: Db, arrival: Arrival) -> Session | None:
    if arrival.session_id is not None:
        return await sessions.get(db, arrival.session_id)
    return await sessions.find(db, arrival.team, arrival.origin, key=arrival.session_key)


async def _drain(parts: TurnParts) -> None:
    """Before a turn is handed over: what it has found so far goes in first, if the database is there."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(HAND_OVER_S):
            await parts.journal.drained()


async def _end(task: asyncio.Task[TurnState] | None) -> None:
    """See that a turn's task does not outlive the one who watches over it."""
    if task is not None and not task.done():
        task.cancel()
        await asyncio.wait({task})


def _check(text: str) -> None:
    if not text.strip():
        raise Refused(
            "the message has no words; say what you want to know, for example: is the disk of web-1 full?"
        )
    if len(text) > LONGEST_MESSAGE:
        raise Refused(
            f"the message has {len(text):,} characters and {LONGEST_MESSAGE:,} is the most that can be read; "
            "shorten it, or put the text into a file on a host and name the file"
        )


def _title(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TITLE else line[: TITLE - 1] + "…"
