"""Core memory: one short block of a person and one of a team, always in the prompt, edited by people only."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import text

from storage.errors import MemoryRefused
from storage.storable import storable
from storage.store import Db

LONGEST = 2_000  # characters of a block


@dataclass(frozen=True, slots=True)
class CoreBlocks:
    """A person's block and their team's; empty when there is none."""

    person: str = ""
    team: str = ""


async def blocks(db: Db, *, team: str, owner: str) -> CoreBlocks:
    """What stands in the prompt of this person's turns; their own block not while they want no memory."""
    rows = await db.execute(
        text(
            """SELECT owner, text FROM core_memory WHERE team = :team AND (owner IS NULL OR owner = :owner
              AND NOT EXISTS (SELECT 1 FROM person WHERE team = :team AND id = :owner AND memory_opt_out))"""
        ),
        {"team": team, "owner": owner},
    )
    found = {row.owner: row.text for row in rows}
    return CoreBlocks(person=found.get(owner, ""), team=found.get(None, ""))


async def put(db: Db, block: str, *, team: str, owner: str | None, by: str) -> None:
    """Replace a block; owner None: the team's. An empty one is removed. Raises MemoryRefused."""
    if len(block) > LONGEST:
        raise MemoryRefused(
            f"what is pinned has at most {LONGEST:,} characters, and this would be {len(block):,};"
            " unpin something first"
        )
    if not block.strip():
        await db.execute(
            text("DELETE FROM core_memory WHERE team = :team AND owner IS NOT DISTINCT FROM :owner"),
            {"team": team, "owner": owner},
        )
        return
    await db.execute(
        text(
            """INSERT INTO core_memory (team, owner, text, updated_by) VALUES (:team, :owner, :block, :by)
            ON CONFLICT (team, owner) DO UPDATE SET text = excluded.text, updated_by = excluded.updated_by,
              updated_at = now()"""
        ),
        {"team": team, "owner": owner, "block": storable(block.strip()), "by": by},
    )
