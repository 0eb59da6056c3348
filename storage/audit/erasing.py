"""Erasing payloads of the audit log: who and what go, the digests stay, and the chain still verifies."""

from __future__ import annotations

from sqlalchemy import text

from storage.audit.events import AuditEvent
from storage.audit.rows import ERASED, add
from storage.store import Db

BATCH = 1000  # rows that one event tells of


async def erase(db: Db, *, team: str, person: str, by: str, os_account: str = "") -> int:
    """Erase person, account, detail and salt of up to BATCH sealed rows of a person; how many it were.

    Call it until it answers 0, each call in a transaction of its own. Rows that are not sealed yet are left
    alone: seal first. The event that tells of it names rows, not the person. Events of that kind stay.
    """
    found = await db.execute(
        text(
            f"""UPDATE audit SET person = '{ERASED}', os_account = '', detail = '{{}}', salt = NULL, erased_at = now()
            WHERE id IN (SELECT id FROM audit WHERE team = :team AND person = :person AND link IS NOT NULL
                AND erased_at IS NULL AND event <> '{AuditEvent.AUDIT_ERASED}' ORDER BY id LIMIT {BATCH})
            RETURNING id"""
        ),
        {"team": team, "person": person},
    )
    rows = sorted(found.scalars())
    if rows:
        await add(
            db,
            AuditEvent.AUDIT_ERASED,
            team=team,
            person=by,
            os_account=os_account,
            detail={"rows": rows},
        )
    return len(rows)
