"""Scopes: whose texts are searched. Every token stands under one, and a search is given the ones it may read."""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy import text

from storage.store import Db


class ScopeKind(StrEnum):
    """person: one person's memories. team: shared ones about one host. messages: one person's in one channel."""

    PERSON = "person"
    TEAM = "team"
    MESSAGES = "messages"


async def hold(db: Db, *, team: str, kind: ScopeKind, owner: str = "", place: str = "") -> tuple[int, int]:
    """Lock a scope until the transaction ends, made if there is none; answers its number and its texts.

    Whoever writes in a scope holds it, so that a person's memories are written one at a time.
    """
    values = {"team": team, "kind": kind, "owner": owner, "place": place}
    for _ in range(2):
        row = (
            await db.execute(
                text(
                    """SELECT id, docs FROM recall_scope
                    WHERE team = :team AND kind = :kind AND owner = :owner AND place = :place FOR UPDATE"""
                ),
                values,
            )
        ).first()
        if row is not None:
            return row.id, row.docs
        await db.execute(
            text(
                """INSERT INTO recall_scope (team, kind, owner, place) VALUES (:team, :kind, :owner, :place)
                ON CONFLICT (team, kind, owner, place) DO NOTHING"""
            ),
            values,
        )
    raise AssertionError("a scope is never deleted")


async def grow(db: Db, scope_id: int, *, docs: int, words: int) -> None:
    """Count texts and tokens that came, or with negative numbers went. The scope is held."""
    await db.execute(
        text("UPDATE recall_scope SET docs = docs + :docs, words = words + :words WHERE id = :id"),
        {"id": scope_id, "docs": docs, "words": words},
    )


# Whose texts a search may read, as the common table expression `seen(id, docs, words)` that leads its statement.

# A person's own memories and the shared ones of their team about no host or about :hosts (NULL: any). With
# :prompt there are none for a person who opted out.
OF_PERSON = """seen AS (
  SELECT id, docs, words FROM recall_scope
  WHERE team = :team AND docs > 0
    AND (kind = 'person' AND owner = :owner
      OR kind = 'team' AND owner = '' AND (place = '' OR CAST(:hosts AS text[]) IS NULL
        OR place = ANY(CAST(:hosts AS text[]))))
    AND NOT (:prompt AND EXISTS (SELECT 1 FROM person p WHERE p.team = :team AND p.id = :owner AND memory_opt_out))
)"""

# One scope, which the caller holds.
ONE = "seen AS (SELECT id, docs, words FROM recall_scope WHERE id = :scope)"

# Messages of the sessions that :team, :owner and :channels let through; NULL: any.
OF_MESSAGES = """seen AS (
  SELECT id, docs, words FROM recall_scope
  WHERE kind = 'messages' AND docs > 0
    AND (CAST(:team AS text) IS NULL OR team = :team)
    AND (CAST(:owner AS text) IS NULL OR owner = :owner)
    AND (CAST(:channels AS text[]) IS NULL OR place = ANY(CAST(:channels AS text[])))
)"""
