"""Learns from turns: long-term memories from what people said and what commands printed, beside the main flow.

A tick takes every turn that has something to teach; a turn that begins first learns from its person's others,
so that what was said a moment ago in another thread is known. Nothing a turn does waits for it otherwise.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from bot import log
from bot.memory import Found, Heard, TakenBack, events
from bot.memory.standing import said_before, taken_back
from storage import learning
from storage.errors import MemoryRefused, StorageError
from storage.history import OURS
from storage.learning import Due, Lesson
from storage.memories import ending, keeping, rows
from storage.recall import scopes
from storage.recall.scopes import ScopeKind
from storage.records import Command, CommandState, Memory, MemoryKind, Message, NewMemory, Output, Role, Turn
from storage.store import Db, Store

CATCH_UP_S = 1.5  # that a turn waits for what its person said elsewhere
MOST_AT_ONCE = 50  # turns of one tick
TRIES = 3  # at one turn, while the database answers otherwise
_FACTS = (MemoryKind.ENVIRONMENT_FACT, MemoryKind.SOFTWARE_FACT)

logger = log.get(__name__)


@dataclass(frozen=True, slots=True)
class _Spoken:
    """What extraction hears, and what it is made of: a message, or one command of a call's result."""

    message: Message
    heard: Heard
    command: Command | None = None

    @property
    def at(self) -> datetime:
        return self.heard.at or datetime.now(UTC)


class Learner:
    """One a process; several work side by side."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._failed: Counter[int] = Counter()  # by turn

    async def tick(self) -> None:
        """Learn from whatever is due. Raises StorageError."""
        for _ in range(MOST_AT_ONCE):
            if not await self._one():
                return

    async def catch_up(self, turn: Turn) -> None:
        """Learn from what this turn's person said and found in others, for a moment at most. Never raises."""
        try:
            async with asyncio.timeout(CATCH_UP_S):
                for _ in range(MOST_AT_ONCE):
                    if not await self._one((turn.team, turn.owner)):
                        return
        except (StorageError, TimeoutError) as error:
            logger.warning("the newest memories are not there yet", error=str(error) or "it takes long")

    async def _one(self, of: tuple[str, str] | None = None) -> bool:
        """Learn from one turn. False: none is due."""
        async with self._store.begin() as db:
            due = await learning.due(db, of=of)
        if due is None:
            return False
        try:
            await self._learn_from(due)
        except StorageError as error:
            self._failed[due.turn.id] += 1
            if self._failed[due.turn.id] < TRIES:
                raise
            # It would be so the next time too, and keep all others from being learnt.
            logger.error("nothing is learnt from a turn", turn=due.turn.id, error=str(error))
            async with self._store.begin() as db:
                await learning.claim(db, due)
        self._failed.pop(due.turn.id, None)
        return True

    async def _learn_from(self, due: Due) -> None:
        team, owner = due.turn.team, due.turn.owner
        async with self._store.begin() as db:
            out = await rows.opted_out(db, team=team, person=owner)
            spoken = [] if out else list(_spoken(await learning.lesson(db, due.turn), due.turn))
        found = await asyncio.to_thread(_found, due, spoken)
        for event in found:
            if isinstance(event, Found) and event.kind in _FACTS:
                new = _new(event, spoken[event.source - 1])
                await ending.outdate(self._store, new, team=team, owner=owner)
        async with self._store.begin() as db:
            if await learning.claim(db, due) and found:
                await scopes.hold(db, team=team, kind=ScopeKind.PERSON, owner=owner)
                for event in found:
                    await _learn(db, due.turn, event, spoken)


def _found(due: Due, spoken: Sequence[_Spoken]) -> list[Found | TakenBack]:
    """What the rules make of it. What earlier turns of the session said is heard too, for what it means here."""
    found = []
    try:
        for event in events([each.heard for each in spoken]):
            source = spoken[event.source - 1]
            wanted = due.words if source.heard.role is Role.USER else due.findings
            if source.message.turn_id == due.turn.id and wanted:
                found.append(event)
    except Exception:  # a text that trips a rule must not keep all others from being learnt
        logger.exception("a turn is learnt from in part only", turn=due.turn.id)
    return found


async def _learn(db: Db, turn: Turn, event: Found | TakenBack, spoken: Sequence[_Spoken]) -> None:
    match event:
        case TakenBack():
            await _close(db, turn, event, spoken)
        case Found(kind=MemoryKind.USER_PREFERENCE):
            await _prefer(db, turn, event, spoken)
        case Found(kind=MemoryKind.TROUBLESHOOTING_CASE):
            await _conclude(db, turn, event, spoken[event.source - 1])
        case Found():
            await _keep(db, turn, event, spoken[event.source - 1])


def _spoken(lesson: Lesson, turn: Turn) -> Iterator[_Spoken]:
    """The messages as extraction hears them. A call's result is heard as what each of its commands printed."""
    ran: dict[tuple[int, str], list[Command]] = {}
    for command in lesson.ran:
        ran.setdefault((command.turn_id, command.call_id), []).append(command)
    for message in lesson.messages:
        match message.role:
            case Role.USER if message.author != OURS:
                whose = turn.owner if message.turn_id == turn.id else message.author or ""
                yield _Spoken(message, Heard(Role.USER, message.text, author=whose, at=message.created_at))
            case Role.ASSISTANT if not message.tool_calls:
                yield _Spoken(message, Heard(Role.ASSISTANT, message.text, at=message.created_at))
            case Role.TOOL if message.turn_id is not None:
                for command in ran.pop((message.turn_id, message.tool_call_id or ""), []):
                    yield _Spoken(message, _printed(command, lesson.outputs.get(command.id)), command)
            case _:
                pass


def _printed(command: Command, output: Output | None) -> Heard:
    text = "" if output is None else "\n".join(part for part in (output.stdout, output.stderr) if part)
    done = command.state is CommandState.DONE and not command.truncated
    return Heard(
        Role.TOOL,
        text,
        host=command.host,
        command=command.run,
        exit_status=command.exit_status if done else None,
        at=command.created_at,
    )


async def _prefer(db: Db, turn: Turn, found: Found, spoken: Sequence[_Spoken]) -> None:
    """Keep a preference; the one that said nearly the same in other words gives way."""
    standing = await _preferences(db, turn, spoken)
    before = said_before(found, list(standing))
    source = spoken[found.source - 1]
    if before is not None:
        await keeping.close(db, standing[before], at=source.at)
    await _keep(db, turn, found, source)


async def _close(db: Db, turn: Turn, back: TakenBack, spoken: Sequence[_Spoken]) -> None:
    """What its person took back no longer holds; it stays in their list as history."""
    standing = await _preferences(db, turn, spoken)
    for found in taken_back(back, list(standing)):
        await keeping.close(db, standing[found], at=spoken[back.source - 1].at)


async def _preferences(db: Db, turn: Turn, spoken: Sequence[_Spoken]) -> dict[Found, Memory]:
    """The preferences that hold, the oldest first, and which of these messages each came from (0: none)."""
    place = {each.message.id: number for number, each in enumerate(spoken, 1)}
    standing = await rows.list_(db, team=turn.team, owner=turn.owner, kind=MemoryKind.USER_PREFERENCE)
    return {
        Found(
            kind=memory.kind,
            subject=memory.subject or turn.owner,
            attribute=memory.attribute or "",
            value=memory.value or memory.text,
            text=memory.text,
            host="",
            source=place.get(memory.message_id, 0) if memory.message_id else 0,
        ): memory
        for memory in standing
    }


async def _conclude(db: Db, turn: Turn, found: Found, source: _Spoken) -> None:
    """Keep a case. A later conclusion of the same problem in its session takes the place of the earlier one.

    The same symptom in another session is another case: its cause may be another.
    """
    symptom = f"{found.attribute} (session {turn.session_id})"
    for memory in await rows.list_(
        db, team=turn.team, owner=turn.owner, kind=MemoryKind.TROUBLESHOOTING_CASE, attribute=symptom
    ):
        if memory.subject != found.subject:  # more hosts were looked at meanwhile
            await keeping.close(db, memory, at=source.at)
    await _keep(db, turn, replace(found, attribute=symptom), source)


async def _keep(db: Db, turn: Turn, found: Found, source: _Spoken) -> None:
    try:
        await keeping.add(db, _new(found, source), team=turn.team, owner=turn.owner, learnt=True)
    except MemoryRefused as error:
        logger.warning("a memory was not kept", turn=turn.id, error=str(error))


def _new(found: Found, source: _Spoken) -> NewMemory:
    return NewMemory(
        kind=found.kind,
        text=found.text,
        subject=found.subject,
        attribute=found.attribute,
        value=found.value,
        host=found.host or None,
        message_id=source.message.id,
        command_id=None if source.command is None else source.command.id,
        at=source.at,
    )
