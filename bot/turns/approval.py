"""Answers to approvals: who may, once, and what follows; and those nobody answered in time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bot import log
from bot.access import Actor, approval_refusal, rule_for
from bot.events import ApprovalClosed, Event, Noted, Screen
from bot.ssh.inventory import Inventory
from storage import approvals, audit, outbox, sessions, turns
from storage.audit import AuditEvent
from storage.errors import NotFound
from storage.records import Approval, ApprovalState, Session, Turn
from storage.store import Db, Store

logger = log.get(__name__)


@dataclass(frozen=True, slots=True)
class Approvals:
    """The counter where people answer. actor gives a person's rights now (groups at most 60 s old)."""

    store: Store
    inventory: Callable[[str], Inventory]  # by team
    actor: Callable[[str, str], Awaitable[Actor]]  # of a person, by team and id
    shared: Callable[[Turn], Awaitable[bool]]  # is the turn's channel shared with another company
    screen: Callable[[Session, Turn], Screen]

    async def decide(
        self, approval: Approval, *, actor: Actor, approve: bool, os_account: str = ""
    ) -> tuple[bool, str]:
        """Answer one approval. Returns whether the answer counted, and one line for who gave it."""
        async with self.store.begin() as db:
            turn = await turns.get(db, approval.turn_id)
        refusal = await self._refusal(approval, turn, actor=actor, approve=approve)
        void = await self._void(approval, turn) if approve and approval.needs > 1 else set()
        async with self.store.begin() as db:
            if refusal:
                await _record(
                    db, AuditEvent.APPROVAL_REFUSED_ANSWER, approval, actor, os_account, said=refusal
                )
                return False, refusal
            await turns.lock(db, turn.id)  # a Stop at the same moment takes them in this order
            said = await approvals.approvers(db, approval.id)
            answered = await approvals.answer(
                db,
                approval_id=approval.id,
                person=actor.id,
                name=actor.name or actor.id,
                approve=approve,
                void=void,
            )
            if answered is None:
                now = await approvals.get(db, approval.id)
                late = _already(now, mine=actor.id in said)
                await _record(db, AuditEvent.APPROVAL_LATE_ANSWER, approval, actor, os_account, said=late)
                return False, late
            await _record(
                db,
                AuditEvent.APPROVAL_APPROVED if approve else AuditEvent.APPROVAL_DENIED,
                answered,
                actor,
                os_account,
            )
            if answered.state is ApprovalState.OPEN:
                said_so = f"approved by {answered.decided_by}; another person must approve it too"
                note = Noted(key=f"half:{approval.id}", text=f"Approval {approval.id} {said_so}.")
                await self._post(db, answered, turn, note)
                return True, said_so
            await self._closed(db, answered, turn, by=answered.decided_by or "")
            await turns.make_ready(db, turn.id)
        return True, f"{answered.state} by {answered.decided_by}"

    async def expire(self) -> list[Approval]:
        """Close what nobody answered in time; the turns go on and say so."""
        async with self.store.begin() as db:
            expired = await approvals.expire_due(db)
            for approval in expired:
                turn = await turns.get(db, approval.turn_id)
                await audit.add(
                    db,
                    AuditEvent.APPROVAL_EXPIRED,
                    team=approval.team,
                    person=approval.requester,
                    session_id=approval.session_id,
                    turn_id=approval.turn_id,
                    detail={"approval": approval.id, "run": approval.run},
                )
                await self._closed(db, approval, turn, by="")
                await turns.make_ready(db, turn.id)
        return expired

    async def by_token(self, token: str) -> Approval | None:
        """The approval a button belongs to."""
        return await self._find(lambda db: approvals.by_token(db, token))

    async def by_id(self, approval_id: int) -> Approval | None:
        """The approval of this number."""
        return await self._find(lambda db: approvals.get(db, approval_id))

    async def _find(self, read: Callable[[Db], Awaitable[Approval]]) -> Approval | None:
        try:
            async with self.store.begin() as db:
                return await read(db)
        except NotFound:
            return None

    async def _void(self, approval: Approval, turn: Turn) -> set[str]:
        """Those whose earlier yes does not count any more, as they may not approve it now."""
        async with self.store.begin() as db:
            said = await approvals.approvers(db, approval.id)
        void = set()
        for person in said:
            earlier = await self.actor(approval.team, person)
            if await self._refusal(approval, turn, actor=earlier, approve=True):
                void.add(person)
        return void

    async def _refusal(self, approval: Approval, turn: Turn, *, actor: Actor, approve: bool) -> str | None:
        """Why this person's answer does not count: rights are read now, from the inventory as it is now."""
        if actor.team != approval.team:
            return "this approval belongs to another team"
        if not approve and actor.id == approval.requester:
            return None  # whoever asked may withdraw
        requester = await self.actor(turn.team, turn.person)
        shared = await self.shared(turn)
        inventory = self.inventory(approval.team)
        for bound in approval.hosts:
            host = inventory.host(bound.name)
            rule = rule_for(requester, turn.channel, host, inventory, shared=shared) if host else None
            refusal = approval_refusal(rule, approver=actor, requester=approval.requester)
            if refusal:
                return refusal
        return None

    async def _closed(self, db: Db, approval: Approval, turn: Turn, *, by: str) -> None:
        await self._post(db, approval, turn, ApprovalClosed(approval=approval, by=by))

    async def _post(self, db: Db, approval: Approval, turn: Turn, event: Event) -> None:
        session = await sessions.get(db, approval.session_id)
        posts = self.screen(session, turn).posts(event)
        if posts:
            await outbox.add(db, team=approval.team, session_id=session.id, posts=posts)


def _already(approval: Approval, *, mine: bool) -> str:
    if approval.state is ApprovalState.OPEN and mine:
        return "you have approved it already; another person must approve it too"
    if approval.state is ApprovalState.OPEN:
        return "this approval has expired; ask again if it is still needed"
    by = f" by {approval.decided_by}" if approval.decided_by else ""
    done = "approved and carried out" if approval.state is ApprovalState.USED else str(approval.state)
    return f"this approval was already {done}{by}; nothing was done now"


async def _record(
    db: Db, event: AuditEvent, approval: Approval, actor: Actor, os_account: str, *, said: str = ""
) -> None:
    await audit.add(
        db,
        event,
        team=approval.team,
        person=actor.id,
        os_account=os_account,
        session_id=approval.session_id,
        turn_id=approval.turn_id,
        detail={
            "approval": approval.id,
            "hosts": [host.name for host in approval.hosts],
            "run": approval.run,
            "digest": approval.digest,
            "said": said,
        },
    )
