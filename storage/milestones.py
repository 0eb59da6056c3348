"""Milestones: events in a session worth a notification."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text

from storage.records import Milestone, MilestoneKind, MilestoneSource
from storage.storable import storable
from storage.store import Db

_COLUMNS = "id, session_id, turn_id, kind, text, source, created_at"


def _milestone(row: Any) -> Milestone:
    values = dict(row._mapping)
    return Milestone(
        **{**values, "kind": MilestoneKind(values["kind"]), "source": MilestoneSource(values["source"])}
    )


async def add(
    db: Db,
    *,
    team: str,
    session_id: int,
    turn_id: int,
    kind: MilestoneKind,
    content: str,
    source: MilestoneSource,
) -> Milestone:
    """Append one."""
    row = (
        await db.execute(
            text(
                f"""INSERT INTO chat_milestone (team, session_id, turn_id, kind, text, source)
                VALUES (:team, :session_id, :turn_id, :kind, :content, :source) RETURNING {_COLUMNS}"""
            ),
            {
                "team": team,
                "session_id": session_id,
                "turn_id": turn_id,
                "kind": kind,
                "content": storable(content),
                "source": source,
            },
        )
    ).one()
    return _milestone(row)


async def of_session(db: Db, session_id: int, *, limit: int = 100) -> list[Milestone]:
    """The newest `limit` milestones of a session, oldest first."""
    rows = await db.execute(
        text(
            f"""SELECT * FROM (SELECT {_COLUMNS} FROM chat_milestone WHERE session_id = :id
            ORDER BY id DESC LIMIT :limit) newest ORDER BY id"""
        ),
        {"id": session_id, "limit": limit},
    )
    return [_milestone(row) for row in rows]


async def newest(db: Db, turn_id: int) -> Milestone | None:
    """The last milestone of a turn."""
    row = (
        await db.execute(
            text(f"SELECT {_COLUMNS} FROM chat_milestone WHERE turn_id = :id ORDER BY id DESC LIMIT 1"),
            {"id": turn_id},
        )
    ).one_or_none()
    return _milestone(row) if row is not None else None
