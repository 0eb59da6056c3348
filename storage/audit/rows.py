"""Rows of the audit log: added by whoever acts, before and after the act; read for people and for proof."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import text

from storage.audit.digest import parsed, payload_digest, row_digest
from storage.audit.events import AuditEvent
from storage.storable import storable, storable_json
from storage.store import Db

ERASED = "[erased]"  # stands in `person` where a payload was erased

# Times as text: exact, in UTC whatever the connection's zone, and a value out of range cannot stop a reader.
UTC_TEXT = """to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""
COLUMNS = f"""id, team, {UTC_TEXT.format("at")} AS at, event, person, os_account, session_id, turn_id, host,
    detail::text AS detail, salt::text AS salt, {UTC_TEXT.format("erased_at")} AS erased_at,
    link, payload_digest, digest, hash"""
_DETAIL = 9  # its place in COLUMNS


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One event. Until a row is sealed, link and the three digests are None; salt is None once erased."""

    id: int
    team: str
    at: str | None  # UTC, `2026-05-01T12:00:00.000000Z`
    event: str
    person: str
    os_account: str
    session_id: int | None
    turn_id: int | None
    host: str
    detail: Any = field(hash=False)
    salt: str | None
    erased_at: str | None
    link: int | None
    payload_digest: bytes | None
    digest: bytes | None
    hash: bytes | None

    def payload_digest_now(self) -> bytes:
        """Of the payload as it stands there."""
        return payload_digest(
            person=self.person, os_account=self.os_account, detail=self.detail, salt=self.salt
        )

    def digest_over(self, payload: bytes) -> bytes:
        """Of the row as it stands there, with this digest of its payload."""
        return row_digest(
            id_=self.id,
            team=self.team,
            at=self.at,
            event=self.event,
            session_id=self.session_id,
            turn_id=self.turn_id,
            host=self.host,
            payload=payload,
        )


async def add(
    db: Db,
    event: str,
    *,
    team: str,
    person: str,
    os_account: str = "",
    session_id: int | None = None,
    turn_id: int | None = None,
    host: str = "",
    detail: dict[str, Any] | None = None,
) -> None:
    """Append one event (an AuditEvent). detail must be JSON. Waits for nobody: rows are sealed afterwards."""
    await db.execute(
        text(
            """INSERT INTO audit (team, event, person, os_account, session_id, turn_id, host, detail)
            VALUES (:team, :event, :person, :os_account, :session_id, :turn_id, :host, CAST(:detail AS jsonb))"""
        ),
        {
            "team": team,
            "event": event,
            "person": storable(person),
            "os_account": storable(os_account),
            "session_id": session_id,
            "turn_id": turn_id,
            "host": storable(host),
            "detail": storable_json(detail or {}),
        },
    )


async def list_(
    db: Db,
    *,
    session_id: int | None = None,
    person: str = "",
    host: str = "",
    event: str = "",
    since: datetime | None = None,
    limit: int = 50,
) -> list[AuditRow]:
    """The newest first. event: a whole name, or `approval.` for all that begin so."""
    wanted = {
        "session_id = :session_id": session_id,
        "person = :person": person or None,
        "host = :host": host or None,
        "starts_with(event, :event)" if event.endswith(".") else "event = :event": event or None,
        "at >= :since": since,
    }
    where = " AND ".join(condition for condition, value in wanted.items() if value is not None) or "true"
    found = await db.execute(
        text(f"SELECT {COLUMNS} FROM audit WHERE {where} ORDER BY id DESC LIMIT :limit"),
        {
            "session_id": session_id,
            "person": person,
            "host": host,
            "event": event,
            "since": since,
            "limit": limit,
        },
    )
    return [record(row) for row in found]


async def page(db: Db, after: tuple[int, int], *, limit: int) -> list[AuditRow]:
    """Sealed rows in the order of the chain, those behind (link, id).

    The id is in the key because a forged row may bear the link of another, and links below 1 are read too.
    """
    found = await db.execute(
        text(
            f"""SELECT {COLUMNS} FROM audit WHERE link IS NOT NULL AND link >= :link AND (link, id) > (:link, :id)
            ORDER BY link, id LIMIT :limit"""
        ),
        {"link": after[0], "id": after[1], "limit": limit},
    )
    return [record(row) for row in found]


@dataclass(frozen=True, slots=True)
class Pending:
    """What a walk along the chain does not see: rows without a link."""

    rows: int
    oldest: str | None  # UTC
    erasures: tuple[str, ...]  # details as JSON of `audit.erased` without a link, or sealed since


async def pending(db: Db, after: int) -> Pending:
    """What is not sealed yet. In one statement: a row sealed meanwhile must not slip through between two."""
    found = await db.execute(
        text(
            f"""SELECT count(*) FILTER (WHERE link IS NULL) AS rows,
              {UTC_TEXT.format("min(at) FILTER (WHERE link IS NULL)")} AS oldest,
              array_agg(detail::text) FILTER (WHERE event = '{AuditEvent.AUDIT_ERASED}') AS erasures
            FROM audit WHERE link IS NULL OR link > :after"""
        ),
        {"after": after},
    )
    row = found.one()
    return Pending(row.rows, row.oldest, tuple(row.erasures or ()))


def record(row: Any) -> AuditRow:
    """A row of COLUMNS, which are the fields in their order; by name it takes twice as long."""
    values = list(row)
    values[_DETAIL] = parsed(values[_DETAIL])
    return AuditRow(*values)
