"""The audit log: append-only, a row an event, written before and after what it tells of."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text

from storage.storable import storable_json
from storage.store import Db


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
    """Append one event (`command.started`, `approval.approved`, …). detail must be JSON."""
    await db.execute(
        text(
            """INSERT INTO audit (team, event, person, os_account, session_id, turn_id, host, detail)
            VALUES (:team, :event, :person, :os_account, :session_id, :turn_id, :host, CAST(:detail AS jsonb))"""
        ),
        {
            "team": team,
            "event": event,
            "person": person,
            "os_account": os_account,
            "session_id": session_id,
            "turn_id": turn_id,
            "host": host,
            "detail": storable_json(detail or {}),
        },
    )
