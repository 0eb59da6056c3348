"""Scopes: whose texts are searched. Every token stands under one, and a search is given the ones it may read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import text

from storage.store import Db


class ScopeKind(StrEnum):
    """person: one person's memories. team: shared ones about one host. messages: one person's in one channel."""

    PERSON = "person"
    TEAM = "team"
    MESSAGES = "messages"


@dataclass(frozen=True, slots=True)
class Scopes:
    """What a search may read. docs: texts in them; words: tokens in them."""

    ids: tuple[int, ...]
    docs: int
    words: int


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


async def of_person(db: Db, *, team: str, owner: str, hosts: Sequence[str] | None) -> Scopes:
    """A person's own memories and the shared ones of their team about no host or these (None: any)."""
    rows = await db.execute(
        text(
            """SELECT id, docs, words FROM recall_scope
            WHERE team = :team AND docs > 0 AND (kind = 'person' AND owner = :owner
              OR kind = 'team' AND owner = '' AND (place = '' OR CAST(:hosts AS text[]) IS NULL
                OR place = ANY(CAST(:hosts AS text[]))))"""
        ),
        {"team": team, "owner": owner, "hosts": None if hosts is None else list(hosts)},
    )
    return _scopes(rows)


async def of_messages(
    db: Db, *, team: str | None, owner: str | None, channels: Sequence[str] | None
) -> Scopes:
    """Messages of the sessions that these filters let through; None: any."""
    rows = await db.execute(
        text(
            """SELECT id, docs, words FROM recall_scope
            WHERE kind = 'messages' AND docs > 0
              AND (CAST(:team AS text) IS NULL OR team = :team)
              AND (CAST(:owner AS text) IS NULL OR owner = :owner)
              AND (CAST(:channels AS text[]) IS NULL OR place = ANY(CAST(:channels AS text[])))"""
        ),
        {"team": team, "owner": owner, "channels": None if channels is None else list(channels)},
    )
    return _scopes(rows)


def _scopes(rows: Any) -> Scopes:
    found = list(rows)
    return Scopes(
        ids=tuple(row.id for row in found),
        docs=sum(row.docs for row in found),
        words=sum(row.words for row in found),
    )
