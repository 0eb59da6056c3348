"""How people corrected the reading of their words: what was taken for a word to us and was meant as work."""

from __future__ import annotations

from sqlalchemy import text

from storage.storable import storable
from storage.store import Db


async def corrected(db: Db, *, team: str, person: str, words: str) -> bool:
    """Whether this person has said that these words, folded, mean work."""
    row = await db.execute(
        text("SELECT 1 FROM intent_correction WHERE team = :team AND person = :person AND words = :words"),
        {"team": team, "person": person, "words": storable(words)},
    )
    return row.first() is not None


async def correct(db: Db, *, team: str, person: str, words: str, intent: str) -> None:
    """Keep what a person says their words mean."""
    await db.execute(
        text(
            """INSERT INTO intent_correction (team, person, words, intent) VALUES (:team, :person, :words, :intent)
            ON CONFLICT (team, person, words) DO UPDATE SET intent = excluded.intent, created_at = now()"""
        ),
        {"team": team, "person": person, "words": storable(words), "intent": intent},
    )
