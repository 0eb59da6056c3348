"""People by team: the names that messages were written under."""

from __future__ import annotations

from sqlalchemy import text

from storage.storable import storable
from storage.store import Db


async def note(db: Db, *, team: str, person: str, name: str) -> None:
    """Remember a person and the name they have now."""
    await db.execute(
        text(
            """INSERT INTO person (team, id, name) VALUES (:team, :person, :name)
            ON CONFLICT (team, id) DO UPDATE SET name = excluded.name
              WHERE person.name <> excluded.name AND excluded.name <> ''"""
        ),
        {"team": team, "person": person, "name": storable(name)},
    )
