"""Approved changes whose turn ended while they ran: their outcome is collected and told, or called unknown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bot import log
from bot.errors import HostError
from bot.events import Noted, Screen
from bot.journal import ended_detail, redacted
from bot.redact import RedactionWorker
from bot.ssh.inventory import Inventory
from bot.ssh.remote import Outcome, Remote
from bot.tools.execution import change_key, ended
from storage import approvals, audit, commands, outbox, sessions, turns
from storage.audit import AuditEvent
from storage.records import Approval, Command, Front, Session, Turn
from storage.store import Store

WAIT_S = 5  # for one look at a host
MARGIN_S = 120  # beyond its limit a change has ended; what is not known then stays unknown

logger = log.get(__name__)


@dataclass(frozen=True, slots=True)
class Leftovers:
    """Looks after what a Stop or a failure left running. Safe in several processes: the first outcome counts."""

    store: Store
    front: Front
    remote: Remote
    inventory: Callable[[str], Inventory]
    screen: Callable[[Session, Turn], Screen]
    redaction: RedactionWorker

    async def collect(self) -> None:
        """Look at each of them once."""
        async with self.store.begin() as db:
            left = await commands.left_behind(db, front=self.front)
        for command in left:
            async with self.store.begin() as db:
                assert command.approval_id is not None
                approval = await approvals.get(db, command.approval_id)
            outcome = await self._look(command, approval)
            if outcome is not None:
                await self._settle(command, approval, outcome)

    async def _look(self, command: Command, approval: Approval) -> Outcome | None:
        """The outcome, or None while it may still come."""
        host = self.inventory(approval.team).host(command.host)
        said = "its host is not in the inventory any more"
        if host is not None:
            try:
                key = change_key(approval, command)
                found = await self.remote.collect(host, key=key, limit_s=WAIT_S)
            except HostError as error:
                found, said = None, str(error)
            else:
                said = found.unknown if found else "it left no trace on the host"
            if found is not None and not found.unknown:
                return found
        began = command.created_at or approval.created_at
        if datetime.now(UTC) > began + timedelta(seconds=approval.limit_s + MARGIN_S):
            return Outcome(None, unknown=said)
        return None

    async def _settle(self, command: Command, approval: Approval, outcome: Outcome) -> None:
        end, redactions = await redacted(ended(outcome), self.redaction)
        async with self.store.begin() as db:
            first = await commands.finish(db, command_id=command.id, team=approval.team, ended=end)
            if not first:
                return
            turn = await turns.get(db, command.turn_id)
            session = await sessions.get(db, command.session_id)
            how = (
                end.note if outcome.unknown else ""
            ) or f"exit {outcome.exit_status} after {outcome.seconds:.0f} s"
            note = Noted(
                key=f"left:{command.id}",
                text=f"`{command.run}` on {command.host}, which was still running: {how}",
            )
            posts = self.screen(session, turn).posts(note)
            await outbox.add(db, team=approval.team, session_id=session.id, posts=posts)
            await audit.add(
                db,
                AuditEvent(f"command.{end.state}"),
                team=approval.team,
                person=approval.requester,
                session_id=session.id,
                turn_id=turn.id,
                host=command.host,
                detail=ended_detail(command, end, redactions),
            )
        logger.info("collected a change that was left running", command=command.id, state=end.state)
