"""Finds memories by words, for a person's look (`recall`) or for a prompt (`for_prompt`), and what always enters."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import text

from storage.memories import likeness
from storage.memories.rows import COLUMNS, memory_of, opted_out
from storage.recall import postings, scopes
from storage.recall.postings import Overlap, Postings
from storage.recall.scopes import Scopes
from storage.recall.tokens import tokens
from storage.records import Memory, MemoryKind, Recalled
from storage.store import Db

_LOOKED_AT = 50  # memories with the most words in common that are weighed
_LENGTH = 0.2  # how much a text longer than the others loses
_ON_HOST = 1.2
_RECENT, _HALF_LIFE_DAYS = 0.05, 30.0
_KIND = {MemoryKind.TROUBLESHOOTING_CASE: 1.05}


@dataclass(frozen=True, slots=True)
class Floor:
    """What a memory must have in common with a question before it enters a prompt by itself.

    Either `share` of the weight of the question's words; or `part` of it, and as much as `rare` words weigh
    that stand in no memory. Calibrated on questions about other things (docs/benchmarks.md).
    """

    share: float = 0.6
    part: float = 0.3
    rare: float = 1.8

    def lets(self, score: float, *, whole: float, docs: int) -> bool:
        return score >= self.share * whole or (
            score >= self.part * whole and score >= self.rare * postings.weight(docs, 0)
        )


FLOOR = Floor()


async def recall(
    db: Db,
    query: str,
    *,
    team: str,
    owner: str,
    hosts: Collection[str] | None = None,
    limit: int = 10,
    now: datetime | None = None,
) -> list[Recalled]:
    """The memories this person may see, the best first, without a floor; without words in `query`, the newest.

    hosts: the hosts this person may use, None any: a memory about another host is left out.
    """
    asked = tokens(query)
    visible = await scopes.of_person(db, team=team, owner=owner, hosts=_list(hosts))
    if not asked and not query.strip():
        return await _newest(db, visible, team=team, owner=owner, hosts=hosts, limit=limit)
    found = await _overlap(db, visible, asked, limit=limit)
    memories = await _visible(db, list(found.scores), team=team, owner=owner, hosts=hosts)
    return _ranked(memories, found, visible, asked=asked, now=now or datetime.now(UTC))[:limit]


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
) -> list[Recalled]:
    """Facts and cases that fit the question well enough, none twice; nothing for a person who opted out."""
    asked = tokens(query)
    if not asked or await opted_out(db, team=team, person=owner):
        return []
    visible = await scopes.of_person(db, team=team, owner=owner, hosts=_list(hosts))
    found = await _overlap(db, visible, asked, limit=limit)
    fitting = [
        id_ for id_, score in found.scores.items() if floor.lets(score, whole=found.weight, docs=visible.docs)
    ]
    memories = [
        memory
        for memory in await _visible(db, fitting, team=team, owner=owner, hosts=hosts)
        if memory.kind is not MemoryKind.USER_PREFERENCE
    ]
    ranked = _ranked(memories, found, visible, asked=asked, now=now or datetime.now(UTC))
    return likeness.distinct(ranked)[:limit]


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


def _list(hosts: Collection[str] | None) -> list[str] | None:
    return None if hosts is None else sorted(hosts)


async def _overlap(db: Db, visible: Scopes, asked: Sequence[str], *, limit: int) -> Overlap:
    return await postings.overlap(
        db, Postings.MEMORIES, visible, tokens=asked, limit=max(_LOOKED_AT, limit * 3)
    )


# The scopes have decided already; that this asks again costs nothing and makes a slip elsewhere harmless.
_MAY_SEE = """team = :team AND (owner = :owner OR shared) AND valid_to IS NULL
  AND (host IS NULL OR CAST(:hosts AS text[]) IS NULL OR host = ANY(CAST(:hosts AS text[])))"""


async def _visible(
    db: Db, ids: Sequence[int], *, team: str, owner: str, hosts: Collection[str] | None
) -> list[Memory]:
    if not ids:
        return []
    rows = await db.execute(
        text(f"SELECT {COLUMNS} FROM long_term_memory WHERE id = ANY(CAST(:ids AS bigint[])) AND {_MAY_SEE}"),
        {"ids": list(ids), "team": team, "owner": owner, "hosts": _list(hosts)},
    )
    return [memory_of(row) for row in rows]


async def _newest(
    db: Db, visible: Scopes, *, team: str, owner: str, hosts: Collection[str] | None, limit: int
) -> list[Recalled]:
    """The last used or seen first, those used more often before others of the same moment."""
    rows = await db.execute(
        text(
            f"""SELECT {COLUMNS} FROM long_term_memory
            WHERE scope_id = ANY(CAST(:scopes AS bigint[])) AND {_MAY_SEE}
            ORDER BY greatest(confirmed_at, last_used_at) DESC, use_count DESC, id DESC LIMIT :limit"""
        ),
        {
            "scopes": list(visible.ids),
            "team": team,
            "owner": owner,
            "hosts": _list(hosts),
            "limit": limit,
        },
    )
    return [Recalled(memory_of(row), 0.0) for row in rows]


def _ranked(
    memories: Sequence[Memory], found: Overlap, visible: Scopes, *, asked: Sequence[str], now: datetime
) -> list[Recalled]:
    usual = max(1.0, visible.words / max(1, visible.docs))
    named = set(asked)
    ranked = []
    for memory in memories:
        days = max(0.0, (now - memory.confirmed_at).total_seconds() / 86_400)
        score = found.scores[memory.id] / (1 - _LENGTH + _LENGTH * memory.words / usual)
        score *= 1 + _RECENT * 0.5 ** (days / _HALF_LIFE_DAYS)
        score *= _KIND.get(memory.kind, 1.0)
        if memory.host is not None and memory.host.lower() in named:
            score *= _ON_HOST
        ranked.append(Recalled(memory, round(score, 6)))
    return sorted(ranked, key=lambda one: (-one.score, -one.memory.id))
