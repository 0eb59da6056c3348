"""Memories as rows: one, many, and what a person wants of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import text

from storage.errors import NotFound
from storage.records import Memory, MemoryKind
from storage.store import Db

COLUMNS = ", ".join(field.name for field in fields(Memory))  # in the record's order


def memory_of(row: Any) -> Memory:
    """A row of COLUMNS as a record. By position: a recall makes fifty of them."""
    id_, team, owner, shared, kind, *rest = row
    return Memory(id_, team, owner, shared, MemoryKind(kind), *rest)


async def get(db: Db, memory_id: int, *, team: str, owner: str) -> Memory:
    """One of this person's memories. Raises NotFound, also for another person's and for a forgotten one."""
    row = (
        await db.execute(
            text(
                f"""SELECT {COLUMNS} FROM long_term_memory
                WHERE id = :id AND team = :team AND owner = :owner AND forgotten_at IS NULL"""
            ),
            {"id": memory_id, "team": team, "owner": owner},
        )
    ).first()
    if row is None:
        raise NotFound(f"{owner} has no memory {memory_id}; see `opsthread memory list --user {owner}`")
    return memory_of(row)


async def list_(
    db: Db,
    *,
    team: str,
    owner: str,
    kind: MemoryKind | None = None,
    attribute: str | None = None,
    history: bool = False,
    limit: int | None = None,
) -> list[Memory]:
    """A person's memories, the oldest first; history: those that no longer hold as well."""
    rows = await db.execute(
        text(
            f"""SELECT {COLUMNS} FROM long_term_memory
            WHERE team = :team AND owner = :owner AND forgotten_at IS NULL AND (:history OR valid_to IS NULL)
              AND (CAST(:kind AS text) IS NULL OR kind = :kind)
              AND (CAST(:attribute AS text) IS NULL OR attribute = :attribute)
            ORDER BY id LIMIT :limit"""
        ),
        {
            "team": team,
            "owner": owner,
            "kind": kind,
            "attribute": attribute,
            "history": history,
            "limit": limit,
        },
    )
    return [memory_of(row) for row in rows]


async def count(db: Db, *, team: str, owner: str) -> int:
    """How many memories of a person hold."""
    row = await db.execute(
        text(
            """SELECT count(*) FROM long_term_memory
            WHERE team = :team AND owner = :owner AND forgotten_at IS NULL AND valid_to IS NULL"""
        ),
        {"team": team, "owner": owner},
    )
    return int(row.scalar_one())


async def page(db: Db, *, team: str, owner: str, limit: int, offset: int) -> list[Memory]:
    """Those that hold, for people to read: wishes, hosts, versions, cases, in each the last confirmed first."""
    rows = await db.execute(
        text(
            f"""SELECT {COLUMNS} FROM long_term_memory
            WHERE team = :team AND owner = :owner AND forgotten_at IS NULL AND valid_to IS NULL
            ORDER BY array_position(CAST(:kinds AS text[]), kind), confirmed_at DESC, id DESC
            LIMIT :limit OFFSET :offset"""
        ),
        {"team": team, "owner": owner, "kinds": list(MemoryKind), "limit": limit, "offset": offset},
    )
    return [memory_of(row) for row in rows]


async def visible(db: Db, ids: Sequence[int], *, team: str, owner: str) -> list[Memory]:
    """Those of these memories that are this person's or shared with them, whether they hold or not; not forgotten ones."""
    rows = await db.execute(
        text(
            f"""SELECT {COLUMNS} FROM long_term_memory
            WHERE id = ANY(CAST(:ids AS bigint[])) AND team = :team AND (owner = :owner OR shared)
              AND forgotten_at IS NULL ORDER BY id"""
        ),
        {"ids": list(ids), "team": team, "owner": owner},
    )
    return [memory_of(row) for row in rows]


async def opted_out(db: Db, *, team: str, person: str) -> bool:
    """Whether this person wants nothing kept and nothing recalled."""
    row = await db.execute(
        text("SELECT 1 FROM person WHERE team = :team AND id = :person AND memory_opt_out"),
        {"team": team, "person": person},
    )
    return row.first() is not None


async def opt_out(db: Db, *, team: str, person: str, out: bool = True) -> None:
    """Keep and recall nothing more for this person, or again. What is kept stays until it is forgotten."""
    await db.execute(
        text(
            """INSERT INTO person (team, id, memory_opt_out) VALUES (:team, :person, :out)
            ON CONFLICT (team, id) DO UPDATE SET memory_opt_out = excluded.memory_opt_out"""
        ),
        {"team": team, "person": person, "out": out},
    )
