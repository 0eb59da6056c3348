"""One turn's commands and approvals: what must stand in the database before anything is done on a host.

A claim, an approval and its use are written at once and raise DatabaseUnavailable: without them nothing is
run. What became of a command goes through the Writer: it is kept and retried, as it cannot be found out twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.errors import Refused
from bot.events import ApprovalAsked, CommandFinished, CommandRefused, CommandStarted, Event
from bot.journal.door import Door
from bot.journal.writer import Writer
from bot.redact import RedactionWorker
from storage import approvals, commands, control
from storage.audit import AuditEvent
from storage.records import Approval, Command, Decision, Ended, Output, Turn
from storage.store import Db

OPEN_CARDS = 2  # approvals a session may have open at once


@dataclass(frozen=True, slots=True)
class Wanted:
    """A command that is about to be claimed.

    where: account, address and port. policy: the digest of the rules that judged it. limit_s: seconds it may take.
    """

    call_id: str
    host: str
    where: str
    fingerprint: str
    run: str
    reason: str
    purpose: str
    policy: str
    limit_s: int


@dataclass(frozen=True, slots=True)
class Question:
    """What an approval would bind, before it is asked."""

    approval: Approval  # id 0: not stored yet
    approvers: tuple[str, ...]


class Ledger:
    """See the module's docstring. One a turn."""

    def __init__(self, door: Door, writer: Writer) -> None:
        self._door = door
        self._writer = writer

    @property
    def turn(self) -> Turn:
        return self._door.turn

    async def found(self, call_id: str) -> tuple[dict[str, Command], list[Approval]]:
        """What earlier tries of this call have claimed, by host, and asked."""
        async with self._door.store.begin() as db:
            return (
                await commands.for_call(db, turn_id=self.turn.id, call_id=call_id),
                await approvals.for_call(db, turn_id=self.turn.id, call_id=call_id),
            )

    async def asked(self) -> list[Approval]:
        """The approvals this turn has asked for."""
        async with self._door.store.begin() as db:
            return await approvals.of_turn(db, self.turn.id)

    async def output(self, command_id: int) -> Output:
        async with self._door.store.begin() as db:
            return await commands.output(db, command_id)

    async def started(self, wanted: Wanted) -> Command | None:
        """Claim an allowed command. None: it was claimed before and must not run again.

        Raises Refused while everything is stopped, or when too many ran of late.
        """
        async with self._door.store.begin() as db:
            await self._door.fence(db)
            await self._admit(db, wanted.host, change=False)
            command = await self._claim(db, wanted, decision=Decision.ALLOW, approval=None)
        if command is not None:
            await self._tell_started(command, wanted.purpose)
        return command

    async def used(self, approval: Approval, *, policy: str) -> list[Command] | None:
        """Take an approval, once, and claim its command on all its hosts. None: it cannot be used (any more).

        Raises Refused while nothing may be changed; the approval stays as it is.
        """
        async with self._door.store.begin() as db:
            await self._door.fence(db)
            for host in approval.hosts:
                await self._admit(db, host.name, change=True)
            used = await approvals.use(db, approval_id=approval.id)
            if used is None:
                return None
            claimed: list[Command] = []
            for host in used.hosts:
                wanted = Wanted(
                    call_id=used.call_id,
                    host=host.name,
                    where=f"{host.user}@{host.address}:{host.port}",
                    fingerprint=host.fingerprint,
                    run=used.run,
                    reason=used.reason,
                    purpose=used.purpose,
                    policy=policy,
                    limit_s=used.limit_s,
                )
                command = await self._claim(db, wanted, decision=Decision.ASK, approval=used)
                if command is not None:
                    claimed.append(command)
        for command in claimed:
            await self._tell_started(command, used.purpose)
        return claimed

    def secrets(self, text: str) -> tuple[str, ...]:
        """The rules by which a text holds secrets: such a command is not run."""
        return self._door.redaction.redactor.text(text).found

    async def finished(self, command: Command, ended: Ended) -> Ended:
        """Store what became of a command, with its audit row and what people see of it; returns what is kept."""
        ended, redactions = await redacted(ended, self._door.redaction)
        event = CommandFinished(
            command_id=command.id,
            host=command.host,
            run=command.run,
            exit_status=ended.exit_status,
            note=ended.note,
            seconds=ended.seconds,
            output_bytes=ended.stdout_bytes + ended.stderr_bytes,
            stdout=ended.stdout or ended.stderr,
            approved=command.approval_id is not None,
        )

        async def write(db: Db, _again: bool) -> Sequence[Event]:
            first = await commands.finish(db, command_id=command.id, team=self.turn.team, ended=ended)
            if first:  # else somebody, perhaps an earlier try of ours, has told it already
                await self._door.audit(
                    db,
                    AuditEvent(f"command.{ended.state}"),
                    host=command.host,
                    detail=ended_detail(command, ended, redactions),
                )
                await self._door.post(db, event)
            return (event,)

        await self._writer.put(write)
        return ended

    async def refused(self, *, host: str, run: str, reason: str) -> None:
        """The gate or the access rules said no."""
        run, reason = await self._door.clean(run), await self._door.clean(reason)
        event = CommandRefused(host=host, run=run, reason=reason)

        async def write(db: Db, _again: bool) -> Sequence[Event]:
            await self._door.audit(
                db, AuditEvent.COMMAND_REFUSED, host=host, detail={"run": run, "reason": reason}
            )
            return (event,)

        await self._writer.put(write)

    async def ask(self, question: Question) -> Approval:
        """Open an approval and post its card, in one transaction.

        Raises Refused when too many are open, or while nothing may be changed.
        """
        wanted = question.approval
        async with self._door.store.begin() as db:
            await self._door.fence(db)
            for host in wanted.hosts:
                await self._admit(db, host.name, change=True)
            waiting = await approvals.open_in(db, self._door.session.id)
            if len(waiting) >= OPEN_CARDS and all(a.digest != wanted.digest for a in waiting):
                raise Refused(f"{OPEN_CARDS} approvals are open in this session; wait until one is answered")
            stored = await approvals.open_(db, wanted)
            event = ApprovalAsked(approval=stored, approvers=question.approvers, decision=Decision.ASK)
            await self._door.post(db, event)
            await self._door.audit(
                db,
                AuditEvent.APPROVAL_OPENED,
                detail={
                    "approval": stored.id,
                    "hosts": [
                        f"{h.name} {h.user}@{h.address}:{h.port} {h.fingerprint}" for h in stored.hosts
                    ],
                    "run": stored.run,
                    "limit_s": stored.limit_s,
                    "reason": stored.reason,
                    "requester": stored.requester,
                    "approvers": list(question.approvers),
                    "needs": stored.needs,
                    "policy": stored.policy,
                    "digest": stored.digest,
                    "expires_at": stored.expires_at.isoformat(),
                },
            )
        await self._door.screen.show(event)
        return stored

    async def _admit(self, db: Db, host: str, *, change: bool) -> None:
        """Raises Refused when the switch or the limits let nothing more through now."""
        now = await control.standing(db, team=self.turn.team, session_id=self._door.session.id, host=host)
        if now.mode is control.Mode.STOPPED:
            raise Refused(f"{now.by} has stopped everything; nothing is run until `opsthread mode normal`")
        if now.mode is control.Mode.READ_ONLY and change:
            raise Refused(
                f"{now.by} has set read-only mode; nothing is changed until `opsthread mode normal`"
            )
        limit = self._door.per_minute
        for count, what in ((now.in_session, "in this session"), (now.on_host, f"on {host}")):
            if count >= limit:
                raise Refused(f"{limit} commands a minute {what} is the limit; wait a minute, then go on")

    async def _claim(
        self, db: Db, wanted: Wanted, *, decision: Decision, approval: Approval | None
    ) -> Command | None:
        command = await commands.claim(
            db,
            team=self.turn.team,
            session_id=self._door.session.id,
            turn_id=self.turn.id,
            call_id=wanted.call_id,
            host=wanted.host,
            run=wanted.run,
            decision=decision,
            reason=wanted.reason,
            approval_id=approval.id if approval else None,
        )
        if command is not None:
            await self._door.audit(
                db,
                AuditEvent.COMMAND_STARTED,
                host=wanted.host,
                detail={
                    "command": command.id,
                    "run": wanted.run,
                    "decision": decision,
                    "reason": wanted.reason,
                    "policy": wanted.policy,
                    "approval": approval.id if approval else None,
                    "approved_by": await approvals.approvers(db, approval.id) if approval else [],
                    "call": wanted.call_id,
                    "where": wanted.where,
                    "host_key": wanted.fingerprint,
                    "limit_s": wanted.limit_s,
                },
            )
        return command

    async def _tell_started(self, command: Command, purpose: str) -> None:
        await self._door.screen.show(
            CommandStarted(command_id=command.id, host=command.host, run=command.run, purpose=purpose)
        )


async def redacted(ended: Ended, redaction: RedactionWorker) -> tuple[Ended, int]:
    """What became of a command, as it may be kept, and how many secrets were taken out."""
    out, err = await redaction.text(ended.stdout), await redaction.text(ended.stderr)
    note = await redaction.text(ended.note)
    kept = replace(ended, stdout=out.text, stderr=err.text, note=note.text)
    return kept, len(out.found) + len(err.found) + len(note.found)


def ended_detail(command: Command, ended: Ended, redactions: int) -> dict[str, object]:
    """What the audit log keeps of a command's end; of the output its sizes and the digest of what was kept."""
    kept = hashlib.sha256(f"{ended.stdout}\0{ended.stderr}".encode(errors="surrogatepass")).hexdigest()
    return {
        "command": command.id,
        "run": command.run,
        "approval": command.approval_id,
        "exit_status": ended.exit_status,
        "signal": ended.signal,
        "note": ended.note,
        "seconds": round(ended.seconds, 3),
        "stdout_bytes": ended.stdout_bytes,
        "stderr_bytes": ended.stderr_bytes,
        "truncated": ended.truncated,
        "redactions": redactions,
        "output_sha256": kept,
    }
