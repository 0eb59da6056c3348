"""A conversation at a terminal: one session, turn by turn, over the same desk as Slack."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from bot.access import Actor
from bot.agent.intent import Intent
from bot.errors import Refused
from bot.events import ApprovalAsked
from bot.terminal.prompt import Choice
from bot.turns.approval import Approvals
from bot.turns.arrival import Arrival
from bot.turns.desk import Desk
from bot.turns.memories import Memories, Told
from bot.turns.memory_acts import Who
from storage import sessions
from storage.errors import NotFound
from storage.records import Approval, Front, Origin, Session, TurnState
from storage.store import Store

Asker = Callable[[ApprovalAsked], Awaitable[Choice]]


@dataclass(slots=True)
class Conversation:
    """account: the OS account (`local:…`), whose rights apply. owner: whose session and memories it is.

    ask: how to ask for an approval; None: nobody is there to be asked, approvals stay open.
    """

    store: Store
    desk: Desk
    approvals: Approvals
    memories: Memories
    team: str
    account: str
    owner: str
    ask: Asker | None = None
    session: Session | None = None
    _asked: asyncio.Queue[ApprovalAsked] = field(default_factory=asyncio.Queue)
    _turn_id: int | None = None

    @property
    def name(self) -> str:
        """The OS account without our prefix."""
        return self.account.partition(":")[2]

    async def go_on_with(self, session_id: int) -> None:
        """Use a session that exists. Raises NotFound with the way to find one."""
        async with self.store.begin() as db:
            try:
                self.session = await sessions.get(db, session_id)
            except NotFound:
                raise NotFound(
                    f"there is no session {session_id}; `opsthread sessions list` shows them"
                ) from None

    def approval_asked(self, event: ApprovalAsked) -> None:
        """The screen tells of an approval that opened."""
        self._asked.put_nowait(event)

    async def word(self, text: str) -> Told | str:
        """The answer to a word about memory; or the text to be worked on. Raises StorageError."""
        wanted = await self.memories.read(text, team=self.team, person=self.owner)
        if wanted.intent is Intent.WORK:
            return text
        if wanted.intent is Intent.MEANT_WORK:
            return await self.memories.corrected(team=self.team, person=self.owner)
        return await self.memories.answer(wanted, Who(self.team, self.owner, self.account, self.name))

    async def say(self, text: str) -> TurnState:
        """One turn, approvals included. Returns the state it was left in. Raises Refused."""
        receipt = await self.desk.receive(self._arrival(text))
        if receipt.session_id is None or receipt.turn_id is None:
            raise Refused("the message could not be taken; try again")
        self._turn_id = receipt.turn_id
        if self.session is None:
            await self.go_on_with(receipt.session_id)
        return await self.follow(receipt.session_id, receipt.turn_id)

    async def follow(self, session_id: int, turn_id: int) -> TurnState:
        """Work on a turn until it is over, or waits for somebody who is not here."""
        self._turn_id = turn_id
        while True:
            state = await self.desk.work_on(session_id, turn_id=turn_id)
            if state is not TurnState.WAITING or self.ask is None or not await self._answer():
                return state

    async def stop(self) -> None:
        """Ctrl-C: end the turn at work, and its command on the host."""
        if self._turn_id is not None:
            await self.desk.stop(self._turn_id, by=self.account, by_name=self.name)

    async def decide(self, approval: Approval, *, approve: bool) -> tuple[bool, str]:
        """Answer an approval with the OS account's rights."""
        actor = Actor(team=approval.team, id=self.account, name=self.name)
        return await self.approvals.decide(approval, actor=actor, approve=approve, os_account=self.name)

    async def _answer(self) -> bool:
        """Ask for what is open. False: something was left open, so the turn keeps waiting."""
        answered = False
        while not self._asked.empty():
            event = self._asked.get_nowait()
            approval = await self.approvals.by_id(event.approval.id)
            if approval is None or approval.state != "open":
                continue
            assert self.ask is not None
            choice = await self.ask(event)
            if choice is Choice.OPEN:
                if approval.expires_at <= datetime.now(UTC):
                    await self.approvals.expire()
                    answered = True
                    continue
                return False
            counted, said = await self.decide(approval, approve=choice is Choice.APPROVE)
            if not counted:
                raise Refused(said)
            answered = True
        return answered

    def _arrival(self, text: str) -> Arrival:
        session = self.session
        return Arrival(
            team=session.team if session else self.team,
            origin=session.origin if session else Origin.TERMINAL,
            front=Front.TERMINAL,
            session_key=session.key if session else secrets.token_hex(8),
            channel=session.channel if session else "terminal",
            access_channel="terminal",
            thread_ts=session.thread_ts if session else None,
            ts="",
            message_key="",
            event_key=None,
            person=self.account,
            person_name=self.name,
            owner=self.owner,
            text=text,
            starts_turn=True,
            opens_session=session is None,
            session_id=session.id if session else None,
        )
