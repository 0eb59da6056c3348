"""Finds memories by words, for a person's look (`recall`) or for a prompt (`for_prompt`), and what always enters."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import text

from storage.memories import likeness
from storage.memories.rows import COLUMNS, memory_of
from storage.recall import postings, scopes
from storage.recall.meaning import Meaning, mixed
from storage.recall.postings import Postings
from storage.recall.tokens import tokens
from storage.records import Memory, Recalled
from storage.store import Db

_LOOKED_AT = 50  # memories with the most words in common that are weighed
_LENGTH = 0.2  # how much a text longer than the others loses
_ON_HOST = 1.2
_RECENT, _HALF_LIFE_S = 0.05, 30 * 86_400
_CASE = 1.05


@dataclass(frozen=True, slots=True)
class Floor:
    """What a memory must have in common with a question before it enters a prompt by itself.

    Either `share` of the weight of the question's words; or `part` of it, and as much as `rare` words weigh
    that stand in no memory. Calibrated on questions about other things (docs/benchmarks.md).
    """

    share: float = 0.6
    part: float = 0.3
    rare: float = 1.8


FLOOR = Floor()
_NO_FLOOR = Floor(0, 0, 0)


async def recall(
    db: Db,
    query: str,
    *,
    team: str,
    owner: str,
    hosts: Collection[str] | None = None,
    limit: int = 10,
    now: datetime | None = None,
    meaning: Meaning | None = None,
) -> list[Recalled]:
    """The memories this person may see, the best first, without a floor; without words in `query`, the newest.

    hosts: the hosts this person may use, None any: a memory about another host is left out. meaning: orders
    what keywords found.
    """
    asked = tokens(query)
    if not asked and not query.strip():
        return await _newest(db, team=team, owner=owner, hosts=hosts, limit=limit)
    most = limit if meaning is None else None
    found = await _found(
        db, asked, team=team, owner=owner, hosts=hosts, limit=limit, most=most, floor=_NO_FLOOR, now=now
    )
    return found if meaning is None else mixed(found, query, meaning)[:limit]


async def for_prompt(
    db: Db,
    query: str,
    *,
    team: str,
    owner: str,
    hosts: Collection[str],
    limit: int = 5,
    floor: Floor = FLOOR,
    now: datetime | None = None,
    meaning: Meaning | None = None,
) -> list[Recalled]:
    """Facts and cases that fit the question well enough, none twice; nothing for a person who opted out."""
    asked = tokens(query)
    if not asked:
        return []
    found = await _found(
        db, asked, team=team, owner=owner, hosts=hosts, limit=limit, floor=floor, now=now, prompt=True
    )
    found = found if meaning is None else mixed(found, query, meaning)
    return likeness.distinct(found)[:limit]


async def preferences(db: Db, *, team: str, owner: str, limit: int = 20) -> list[Memory]:
    """A person's own preferences that hold, the newest first; none for a person who opted out."""
    rows = await db.execute(
        text(
            f"""SELECT {COLUMNS} FROM long_term_memory
            WHERE team = :team AND owner = :owner AND kind = 'USER_PREFERENCE' AND valid_to IS NULL
              AND NOT EXISTS (SELECT 1 FROM person WHERE team = :team AND id = :owner AND memory_opt_out)
            ORDER BY confirmed_at DESC, id DESC LIMIT :limit"""
        ),
        {"team": team, "owner": owner, "limit": limit},
    )
    return [memory_of(row) for row in rows]


# The scopes have decided already; that this asks again costs nothing and makes a slip elsewhere harmless.
_MAY_SEE = """team = :team AND (owner = :owner OR shared) AND valid_to IS NULL
  AND (host IS NULL OR CAST(:hosts AS text[]) IS NULL OR host = ANY(CAST(:hosts AS text[])))"""

# One statement from the scopes to the rows: every further one would cost more than it does among 1,000 memories.
_FOUND = text(f"""
WITH {scopes.OF_PERSON}, {postings.scored(Postings.MEMORIES)}, best AS (
  SELECT id, score FROM scored ORDER BY score DESC, id DESC LIMIT :looked_at
), floor AS (
  SELECT least(:share * whole, greatest(:part * whole, :rare * {postings.weight("0")})) AS score
  FROM every CROSS JOIN (SELECT sum(weight) AS whole FROM rarity) question
)
SELECT round((best.score / (1 - {_LENGTH} + {_LENGTH} * m.words / every.usual)
    * (1 + {_RECENT} * power(0.5, greatest(0, extract(epoch FROM :now - m.confirmed_at)::float8) / {_HALF_LIFE_S}))
    * CASE kind WHEN 'TROUBLESHOOTING_CASE' THEN {_CASE} ELSE 1 END
    * CASE WHEN lower(host) = ANY(CAST(:tokens AS text[])) THEN {_ON_HOST} ELSE 1 END)::numeric, 6)::float8 AS rank,
  {COLUMNS}
FROM best JOIN long_term_memory m USING (id) CROSS JOIN every CROSS JOIN floor
WHERE best.score >= floor.score AND NOT (:prompt AND kind = 'USER_PREFERENCE') AND {_MAY_SEE}
ORDER BY rank DESC, id DESC LIMIT :most
""")

_NEWEST = text(f"""
WITH {scopes.OF_PERSON}
SELECT {COLUMNS} FROM long_term_memory WHERE scope_id = ANY(ARRAY(SELECT id FROM seen)) AND {_MAY_SEE}
ORDER BY greatest(confirmed_at, last_used_at) DESC, use_count DESC, id DESC LIMIT :limit
""")


async def _found(
    db: Db,
    asked: Sequence[str],
    *,
    team: str,
    owner: str,
    hosts: Collection[str] | None,
    limit: int,
    floor: Floor,
    now: datetime | None,
    most: int | None = None,
    prompt: bool = False,
) -> list[Recalled]:
    """The best first, at most `most`; with `prompt` no preferences, and nothing for a person who opted out."""
    rows = await db.execute(
        _FOUND,
        {
            "team": team,
            "owner": owner,
            "hosts": None if hosts is None else list(hosts),
            "prompt": prompt,
            "tokens": list(asked[: postings.ASKED]),
            "looked_at": max(_LOOKED_AT, limit * 3),
            "share": floor.share,
            "part": floor.part,
            "rare": floor.rare,
            "now": now or datetime.now(UTC),
            "most": most,
        },
    )
    return [Recalled(memory_of(row[1:]), row[0]) for row in rows]


async def _newest(
    db: Db, *, team: str, owner: str, hosts: Collection[str] | None, limit: int
) -> list[Recalled]:
    """The last used or seen first, those used more often before others of the same moment."""
    rows = await db.execute(
        _NEWEST,
        {
            "team": team,
            "owner": owner,
            "hosts": None if hosts is None else list(hosts),
            "prompt": False,
            "limit": limit,
        },
    )
    return [Recalled(memory_of(row), 0.0) for row in rows]
