"""One turn's journal: history, milestones, commands, approvals, plan and answer.

Two kinds of entries. Records of what was said and found go through the Writer: kept in order and retried,
never failing the turn. What must stand before an act (the claim of a command, an approval) is written at
once and raises DatabaseUnavailable: without it nothing is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from bot.errors import Refused
from bot.events import (
    Answered,
    ApprovalAsked,
    ApprovalClosed,
    CommandFinished,
    CommandRefused,
    CommandStarted,
    Event,
    MilestoneReached,
    Noted,
    PlanChanged,
    Screen,
)
from bot.journal.writer import Writer
from storage import approvals, audit, commands, history, milestones, outbox, sessions, tasks, turns
from storage.records import (
    Approval,
    ApprovalState,
    Claim,
    Command,
    CommandState,
    Decision,
    Message,
    MilestoneKind,
    MilestoneSource,
    Output,
    TurnState,
)
from storage.storable import storable
from storage.store import Db, Store

OPEN_CARDS = 2  # approvals a session may have open at once


@dataclass(frozen=True, slots=True)
class Question:
    """What an approval would bind, before it is asked."""

    approval: Approval  # id 0: not stored yet
    approvers: tuple[str, ...]


class Journal:
    """The door of one claimed turn. Every write is fenced by the claim's epoch."""

    def __init__(
        self, *, store: Store, screen: Screen, claim: Claim, zone: str, os_account: str = ""
    ) -> None:
        self.turn = claim.turn
        self.session = claim.session
        self._store = store
        self._screen = screen
        self._epoch = claim.epoch
        self._zone = ZoneInfo(zone)
        self._os_account = os_account
        self._writer = Writer(store=store, screen=screen, session_id=claim.session.id)
        self._last_milestone: MilestoneKind | None = None

    def goes_on_after(self, kind: MilestoneKind | None) -> None:
        """The turn is resumed: the milestone it reached last, so that it is not posted again."""
        self._last_milestone = kind

    async def close(self) -> None:
        await self._writer.close()
        await self._screen.close()

    async def show(self, event: Event) -> None:
        """A live event that leaves no record of its own."""
        await self._screen.show(event)

    # What was said and found: in order, retried.

    async def message(self, message: Message) -> None:
        """Append to the history."""
        message = replace(message, turn_id=self.turn.id)

        async def write(db: Db, again: bool) -> Sequence[Event]:
            if not (again and await self._is_head(db, message)):
                await sessions.append(db, self.session.id, self._epoch, [message])
            return ()

        await self._writer.put(write)

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
            storable(message.text),
            message.tool_call_id,
            message.tool_calls,
        )

    async def milestone(self, kind: MilestoneKind, content: str, source: MilestoneSource) -> bool:
        """Record and post a milestone. False: the same kind came just before in this turn, nothing was done."""
        if kind is self._last_milestone:
            return False
        self._last_milestone = kind

        async def write(db: Db, again: bool) -> Sequence[Event]:
            await turns.fence(db, session_id=self.session.id, epoch=self._epoch)
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
                await self._post(db, event)
            return (event,)

        await self._writer.put(write)
        return True

    async def plan(self, plan: tasks.Plan, next_step: str) -> None:
        """Replace the open task's plan."""

        async def write(db: Db, _again: bool) -> Sequence[Event]:
            await turns.fence(db, session_id=self.session.id, epoch=self._epoch)
            await tasks.save(
                db, team=self.turn.team, session_id=self.session.id, plan=plan, next_step=next_step
            )
            return (PlanChanged(steps=plan),)

        await self._writer.put(write)

    async def note(self, key: str, content: str) -> None:
        """One line of ours to the thread; the same key is posted once."""
        event = Noted(key=key, text=content)

        async def write(db: Db, _again: bool) -> Sequence[Event]:
            await self._post(db, event)
            return (event,)

        await self._writer.put(write)

    async def step(self) -> None:
        """Count a model reply that is about to be asked for."""

        async def write(db: Db, _again: bool) -> Sequence[Event]:
            await turns.count_step(db, turn_id=self.turn.id)
            return ()

        await self._writer.put(write)

    async def drained(self) -> None:
        """Wait until all that was told so far is in the database."""

        async def write(_db: Db, _again: bool) -> Sequence[Event]:
            return ()

        await self._writer.put(write, patience_s=None)

    # Commands and approvals: written before the act.

    async def found(self, call_id: str) -> tuple[dict[str, Command], list[Approval]]:
        """What earlier tries of this call have claimed and asked."""
        async with self._store.begin() as db:
            return (
                await commands.for_call(db, turn_id=self.turn.id, call_id=call_id),
                await approvals.for_call(db, turn_id=self.turn.id, call_id=call_id),
            )

    async def output(self, command_id: int) -> Output:
        async with self._store.begin() as db:
            return await commands.output(db, command_id)

    async def command_started(
        self, *, call_id: str, host: str, fingerprint: str, run: str, reason: str, purpose: str
    ) -> Command | None:
        """Claim an allowed command. None: it was claimed before and must not run again."""
        async with self._store.begin() as db:
            await turns.fence(db, session_id=self.session.id, epoch=self._epoch)
            command = await self._claim(
                db,
                call_id,
                host,
                run,
                decision=Decision.ALLOW,
                reason=reason,
                approval=None,
                fingerprint=fingerprint,
            )
        if command is not None:
            await self._screen.show(
                CommandStarted(command_id=command.id, host=host, run=run, purpose=purpose)
            )
        return command

    async def approval_used(self, approval: Approval) -> list[Command] | None:
        """Take an approval, once, and claim its command on all its hosts. None: it cannot be used (any more)."""
        async with self._store.begin() as db:
            await turns.fence(db, session_id=self.session.id, epoch=self._epoch)
            used = await approvals.use(db, approval_id=approval.id)
            if used is None:
                return None
            claimed = [
                await self._claim(
                    db,
                    used.call_id,
                    host.name,
                    used.run,
                    decision=Decision.ASK,
                    reason=used.reason,
                    approval=used,
                    fingerprint=host.fingerprint,
                )
                for host in used.hosts
            ]
        fresh = [command for command in claimed if command is not None]
        for command in fresh:
            await self._screen.show(
                CommandStarted(
                    command_id=command.id, host=command.host, run=command.run, purpose=used.purpose
                )
            )
        return fresh

    async def _claim(
        self,
        db: Db,
        call_id: str,
        host: str,
        run: str,
        *,
        decision: Decision,
        reason: str,
        approval: Approval | None,
        fingerprint: str,
    ) -> Command | None:
        command = await commands.claim(
            db,
            team=self.turn.team,
            session_id=self.session.id,
            turn_id=self.turn.id,
            call_id=call_id,
            host=host,
            run=run,
            decision=decision,
            reason=reason,
            approval_id=approval.id if approval else None,
        )
        if command is not None:
            await self._audit(
                db,
                "command.started",
                host=host,
                detail={
                    "command": command.id,
                    "run": run,
                    "decision": decision,
                    "reason": reason,
                    "approval": approval.id if approval else None,
                    "approved_by": approval.decided_by if approval else None,
                    "host_key": fingerprint,
                },
            )
        return command

    async def command_finished(
        self,
        command: Command,
        *,
        state: CommandState,
        exit_status: int | None,
        signal: str | None,
        note: str,
        seconds: float,
        stdout: str,
        stderr: str,
        stdout_bytes: int,
        stderr_bytes: int,
        truncated: bool,
    ) -> None:
        """Store what became of a command; kept and retried, since it cannot be found out twice."""
        event = CommandFinished(
            command_id=command.id,
            host=command.host,
            run=command.run,
            exit_status=exit_status,
            note=note,
            seconds=seconds,
            output_bytes=stdout_bytes + stderr_bytes,
            stdout=stdout or stderr,
            approved=command.approval_id is not None,
        )

        async def write(db: Db, _again: bool) -> Sequence[Event]:
            await commands.finish(
                db,
                command_id=command.id,
                team=self.turn.team,
                state=state,
                exit_status=exit_status,
                signal=signal,
                note=note,
                seconds=seconds,
                output=Output(command_id=command.id, stdout=stdout, stderr=stderr),
                stdout_bytes=stdout_bytes,
                stderr_bytes=stderr_bytes,
                truncated=truncated,
            )
            await self._audit(
                db,
                f"command.{state}",
                host=command.host,
                detail={
                    "command": command.id,
                    "exit_status": exit_status,
                    "signal": signal,
                    "note": note,
                    "seconds": round(seconds, 3),
                    "bytes": stdout_bytes + stderr_bytes,
                    "truncated": truncated,
                },
            )
            await self._post(db, event)
            return (event,)

        await self._writer.put(write)

    async def refused(self, *, host: str, run: str, reason: str) -> None:
        """The gate or the access rules said no."""
        event = CommandRefused(host=host, run=run, reason=reason)

        async def write(db: Db, _again: bool) -> Sequence[Event]:
            await self._audit(
                db,
                "command.refused",
                host=host,
                detail={"run": run, "reason": reason},
            )
            return (event,)

        await self._writer.put(write)

    async def ask(self, question: Question) -> Approval:
        """Open an approval and post its card, in one transaction. Raises Refused when too many are open."""
        wanted = question.approval
        async with self._store.begin() as db:
            await turns.fence(db, session_id=self.session.id, epoch=self._epoch)
            waiting = [
                a for a in await approvals.of_session(db, self.session.id) if a.state is ApprovalState.OPEN
            ]
            if len(waiting) >= OPEN_CARDS and all(a.digest != wanted.digest for a in waiting):
                raise Refused(f"{OPEN_CARDS} approvals are open in this session; wait until one is answered")
            stored = await approvals.open_(
                db,
                team=self.turn.team,
                session_id=self.session.id,
                turn_id=self.turn.id,
                call_id=wanted.call_id,
                token=wanted.token,
                hosts=wanted.hosts,
                run=wanted.run,
                limit_s=wanted.limit_s,
                reason=wanted.reason,
                purpose=wanted.purpose,
                requester=wanted.requester,
                digest=wanted.digest,
                expires_at=wanted.expires_at,
            )
            event = ApprovalAsked(approval=stored, approvers=question.approvers, decision=Decision.ASK)
            await self._post(db, event)
            await self._audit(
                db,
                "approval.opened",
                detail={
                    "approval": stored.id,
                    "hosts": [host.name for host in stored.hosts],
                    "run": stored.run,
                    "reason": stored.reason,
                },
            )
        await self._screen.show(event)
        return stored

    async def approvals(self) -> list[Approval]:
        """All approvals this session has asked for."""
        async with self._store.begin() as db:
            return await approvals.of_session(db, self.session.id)

    # The end.

    async def finish(self, *, answer: Message, footer: str, state: TurnState) -> None:
        """Append the answer, post it and end the turn in one transaction; waits until it is in.

        A turn that ends before its work was done takes back what it had asked for: the cards lose their buttons.
        """
        now = datetime.now(UTC)
        started = self.turn.started_at or now
        event = Answered(
            turn=self.turn,
            text=answer.text,
            footer=footer,
            state=state,
            seconds=(now - started).total_seconds(),
        )

        async def write(db: Db, again: bool) -> Sequence[Event]:
            if again and (await turns.get(db, self.turn.id)).state is state:
                return (event,)
            await sessions.append(db, self.session.id, self._epoch, [replace(answer, turn_id=self.turn.id)])
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
            await self._post(db, event)
            await turns.finish(
                db, turn_id=self.turn.id, session_id=self.session.id, epoch=self._epoch, state=state
            )
            return (*closed, event)

        await self._writer.put(write, patience_s=None)

    async def _take_back(self, db: Db) -> list[Event]:
        closed: list[Event] = []
        for approval in await approvals.revoke(db, self.turn.id, by=""):
            event = ApprovalClosed(approval=approval, by=approval.decided_by or "")
            await self._post(db, event)
            await self._audit(
                db, "approval.revoked", detail={"approval": approval.id, "by": approval.decided_by}
            )
            closed.append(event)
        return closed

    async def pause(self) -> TurnState:
        """Give the turn back while people decide; waits until it is in."""
        states: list[TurnState] = []

        async def write(db: Db, _again: bool) -> Sequence[Event]:
            states.append(
                await turns.pause(db, turn_id=self.turn.id, session_id=self.session.id, epoch=self._epoch)
            )
            return ()

        await self._writer.put(write, patience_s=None)
        return states[-1]

    async def _post(self, db: Db, event: Event) -> None:
        posts = self._screen.posts(event)
        if posts:
            await outbox.add(db, team=self.turn.team, session_id=self.session.id, posts=posts)

    async def _audit(
        self, db: Db, event: str, *, host: str = "", detail: dict[str, object] | None = None
    ) -> None:
        await audit.add(
            db,
            event,
            team=self.turn.team,
            person=self.turn.person,
            os_account=self._os_account,
            session_id=self.session.id,
            turn_id=self.turn.id,
            host=host,
            detail=detail,
        )


def _first_line(text: str) -> str:
    """The answer's first line of words, as the logbook's outcome."""
    for line in text.splitlines():
        if line.strip(" #*>-"):
            return line.strip(" #*>")[:500]
    return text[:500]
