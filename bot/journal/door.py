"""What every write of a turn shares: whose turn it is, the fence, the posts and the audit row beside a record."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bot.events import Event, Screen
from bot.redact import RedactionWorker
from storage import audit, outbox, turns
from storage.audit import AuditEvent
from storage.records import Claim, Message, Session, ToolCall, Turn
from storage.storable import storable
from storage.store import Db, Store


@dataclass(frozen=True, slots=True)
class Door:
    """One claimed turn's way into the database. Every write is fenced by the claim's epoch.

    redaction: takes the secrets out of whatever is written, posted, shown or given to the model.
    per_minute: commands that one session, and one host, may see in a minute.
    """

    store: Store
    screen: Screen
    claim: Claim
    redaction: RedactionWorker
    os_account: str = ""
    per_minute: int = 120

    @property
    def turn(self) -> Turn:
        return self.claim.turn

    @property
    def session(self) -> Session:
        return self.claim.session

    async def clean(self, text: str) -> str:
        """As it may be kept: without secrets, and without what Postgres cannot hold."""
        return (await self.redaction.text(storable(text))).text

    async def clean_message(self, message: Message) -> Message:
        """The message as it may be kept. Arguments of calls stay the JSON they were."""
        redactor = self.redaction.redactor
        calls = tuple(
            ToolCall(
                id=call.id,
                name=redactor.text(storable(call.name)).text,
                arguments=redactor.json_text(storable(call.arguments)).text,
            )
            for call in message.tool_calls
        )
        return replace(message, text=await self.clean(message.text), tool_calls=calls)

    async def fence(self, db: Db) -> None:
        """Raises LeaseLost when another process works on the session now."""
        await turns.fence(db, session_id=self.session.id, epoch=self.claim.epoch)

    async def post(self, db: Db, event: Event) -> None:
        """What people must see of an event, in the same transaction as its record."""
        posts = self.screen.posts(event)
        if posts:
            await outbox.add(db, team=self.turn.team, session_id=self.session.id, posts=posts)

    async def audit(
        self, db: Db, event: AuditEvent, *, host: str = "", detail: dict[str, object] | None = None
    ) -> None:
        """One row of the audit log, as this turn's person."""
        await audit.add(
            db,
            event,
            team=self.turn.team,
            person=self.turn.person,
            os_account=self.os_account,
            session_id=self.session.id,
            turn_id=self.turn.id,
            host=host,
            detail=detail,
        )
