"""One turn's journal: history, milestones, plan, notes and answer; its ledger holds commands and approvals.

All of it goes through the Writer: kept in order and retried, never failing the turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from bot.events import Answered, ApprovalClosed, Event, MilestoneReached, Noted, PlanChanged
from bot.journal.door import Door
from bot.journal.ledger import Ledger
from bot.journal.notes import Notes
from bot.journal.writer import Writer
from bot.outside import line
from storage import approvals, history, milestones, sessions, tasks, turns
from storage.audit import AuditEvent
from storage.records import Message, MilestoneKind, MilestoneSource, Role, TurnState
from storage.store import Db


class Journal:
    """One a claimed turn."""

    def __init__(self, door: Door, *, zone: str) -> None:
        self.turn = door.turn
        self.session = door.session
        self._door = door
        self._zone = ZoneInfo(zone)
        self._writer = Writer(store=door.store, screen=door.screen, session_id=door.session.id)
        self.notes = Notes()
        self.ledger = Ledger(door, self._writer)
        self._last_milestone: MilestoneKind | None = None

    def goes_on_after(self, kind: MilestoneKind | None) -> None:
        """The turn is resumed: the milestone it reached last, so that it is not posted again."""
        self._last_milestone = kind

    async def close(self) -> None:
        await self._writer.close()
        await self._door.screen.close()

    async def show(self, event: Event) -> None:
        """A live event that leaves no record of its own."""
        await self._door.screen.show(event)

    # What was said and found: in order, retried.

    async def message(self, message: Message) -> Message:
        """Append to the history; returns it as it is kept. A reply of the model counts as a step of the turn."""
        message = await self._clean(message)

        async def write(db: Db, again: bool) -> Sequence[Event]:
            if not (again and await self._is_head(db, message)):
                await sessions.append(db, self.session.id, self._door.claim.epoch, [message])
                if message.role is Role.ASSISTANT:
                    await turns.count_step(db, turn_id=self.turn.id)
            return ()

        await self._writer.put(write)
        return message

    async def _clean(self, message: Message) -> Message:
        """As it is kept. What the model wrote quotes no private note."""
        message = replace(await self._door.clean_message(message), turn_id=self.turn.id)
        if message.role is Role.TOOL:
            self.notes.shown(message.text)
        if message.role is not Role.ASSISTANT:
            return message
        unquoted = self.notes.unquoted
        calls = tuple(replace(call, arguments=unquoted(call.arguments)) for call in message.tool_calls)
        return replace(message, text=unquoted(message.text), tool_calls=calls)

    async def _is_head(self, db: Db, message: Message) -> bool:
        """Was this very message committed by a try whose answer got lost? Only we append, so it is the head."""
        newest = await history.history(db, self.session.id, limit=1)
        return bool(newest) and (
            newest[-1].role,
            newest[-1].text,
            newest[-1].tool_call_id,
            newest[-1].tool_calls,
        ) == (
            message.role,
            message.text,
            message.tool_call_id,
            message.tool_calls,
        )

    async def milestone(self, kind: MilestoneKind, content: str, source: MilestoneSource) -> bool:
        """Record and post a milestone. False: the same kind came just before in this turn, nothing was done."""
        if kind is self._last_milestone:
            return False
        self._last_milestone = kind
        content = line(
            self.notes.unquoted(await self._door.clean(content))
        )  # one line: nothing in it looks like another post

        async def write(db: Db, again: bool) -> Sequence[Event]:
            await self._door.fence(db)
            row = await milestones.newest(db, self.turn.id) if again else None
            if row is None or (row.kind, row.text) != (kind, content):
                row = await milestones.add(
                    db,
                    team=self.turn.team,
                    session_id=self.session.id,
                    turn_id=self.turn.id,
                    kind=kind,
                    content=content,
                    source=source,
                )
            at = row.created_at.astimezone(self._zone).strftime("%H:%M")
            event = MilestoneReached(milestone_id=row.id, kind=kind, text=content, at=at)
            if kind is not MilestoneKind.CONCLUSION:  # the answer is the conclusion's post
                await self._door.post(db, event)
            return (event,)

        await self._writer.put(write)
        return True

    async def plan(self, plan: tasks.Plan, next_step: str) -> None:
        """Replace the open task's plan."""
        plan = tuple([(line(await self._door.clean(step)), state) for step, state in plan])
        next_step = line(await self._door.clean(next_step))

        async def write(db: Db, _again: bool) -> Sequence[Event]:
            await self._door.fence(db)
            await tasks.save(
                db, team=self.turn.team, session_id=self.session.id, plan=plan, next_step=next_step
            )
            return (PlanChanged(steps=plan),)

        await self._writer.put(write)

    async def note(self, key: str, content: str) -> None:
        """One line of ours to the thread; the same key is posted once."""
        event = Noted(key=key, text=await self._door.clean(content))

        async def write(db: Db, _again: bool) -> Sequence[Event]:
            await self._door.post(db, event)
            return (event,)

        await self._writer.put(write)

    async def drained(self) -> None:
        """Wait until all that was told so far is in the database."""

        async def write(_db: Db, _again: bool) -> Sequence[Event]:
            return ()

        await self._writer.put(write, patience_s=None)

    # The end.

    async def finish(self, *, answer: Message, footer: str, state: TurnState, memories: int = 0) -> None:
        """Append the answer, post it and end the turn in one transaction; waits until it is in.

        memories: how many of its person's memories the turn was given.

        A turn that ends before its work was done takes back what it had asked for: the cards lose their buttons.
        """
        answer = await self._clean(answer)
        now = datetime.now(UTC)
        started = self.turn.started_at or now
        event = Answered(
            turn=self.turn,
            text=answer.text,
            footer=await self._door.clean(footer),
            state=state,
            seconds=(now - started).total_seconds(),
            memories=memories,
        )

        async def write(db: Db, again: bool) -> Sequence[Event]:
            if again and (await turns.get(db, self.turn.id)).state is state:
                return (event,)
            await sessions.append(db, self.session.id, self._door.claim.epoch, [answer])
            await milestones.add(
                db,
                team=self.turn.team,
                session_id=self.session.id,
                turn_id=self.turn.id,
                kind=MilestoneKind.CONCLUSION,
                content=_first_line(answer.text),
                source=MilestoneSource.RULE,
            )
            closed = await self._take_back(db) if state is not TurnState.DONE else []
            await self._door.post(db, event)
            await turns.finish(
                db,
                turn_id=self.turn.id,
                session_id=self.session.id,
                epoch=self._door.claim.epoch,
                state=state,
            )
            return (*closed, event)

        await self._writer.put(write, patience_s=None)

    async def _take_back(self, db: Db) -> list[Event]:
        closed: list[Event] = []
        for approval in await approvals.revoke(db, self.turn.id, by=""):
            event = ApprovalClosed(approval=approval, by=approval.decided_by or "")
            await self._door.post(db, event)
            await self._door.audit(
                db, AuditEvent.APPROVAL_REVOKED, detail={"approval": approval.id, "run": approval.run}
            )
            closed.append(event)
        return closed

    async def pause(self) -> TurnState:
        """Give the turn back while people decide; waits until it is in."""
        states: list[TurnState] = []

        async def write(db: Db, _again: bool) -> Sequence[Event]:
            states.append(
                await turns.pause(
                    db, turn_id=self.turn.id, session_id=self.session.id, epoch=self._door.claim.epoch
                )
            )
            return ()

        await self._writer.put(write, patience_s=None)
        return states[-1]


def _first_line(text: str) -> str:
    """The answer's first line of words, as the logbook's outcome."""
    for each in text.splitlines():
        if each.strip(" #*>-"):
            return each.strip(" #*>")[:500]
    return text[:500]
