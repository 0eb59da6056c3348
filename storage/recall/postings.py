"""Tokens in Postgres: put in, taken out, and added up by how rare they are. Memories and messages alike."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import text

from storage.recall.scopes import Scopes
from storage.store import Db

FEWEST = 100  # texts that a scope counts as at least: among three texts no word is common
ASKED = 100  # tokens of a query that are looked for
_AT_ONCE = 20_000  # tokens in one INSERT


class Postings(StrEnum):
    """The two tables of tokens, and the column that says what a token stands in."""

    MEMORIES = "memory_token"
    MESSAGES = "message_token"

    @property
    def column(self) -> str:
        return self.value.removesuffix("_token") + "_id"


@dataclass(frozen=True, slots=True)
class Overlap:
    """scores: the best texts, the best first. weight: of the whole query, so that a share of it can be told."""

    scores: dict[int, float]
    weight: float


def weight(docs: int, found: int) -> float:
    """How much a token tells that stands in `found` of `docs` texts; float8 in SQL is the same."""
    docs = max(docs, FEWEST, found)
    return math.log(1 + (docs - found + 0.5) / (found + 0.5))


def scored(postings: Postings) -> str:
    """Common table expressions `hit`, `rarity` and `scored(id, score)` over :scopes, :tokens and :docs."""
    return f"""hit AS MATERIALIZED (
  SELECT {postings.column} AS id, token FROM {postings}
  WHERE scope_id = ANY(CAST(:scopes AS bigint[])) AND token = ANY(CAST(:tokens AS text[]))
), rarity AS MATERIALIZED (
  SELECT token, ln(1e0::float8 + (greatest(CAST(:docs AS float8), count(*)) - count(*) + 0.5e0::float8)
    / (count(*) + 0.5e0::float8)) AS weight
  FROM hit GROUP BY token
), scored AS MATERIALIZED (
  SELECT h.id, sum(r.weight) AS score FROM hit h JOIN rarity r USING (token) GROUP BY h.id
)"""


def values(scopes: Scopes, tokens: Sequence[str]) -> dict[str, object]:
    """What `scored` needs."""
    return {
        "scopes": list(scopes.ids),
        "tokens": list(tokens[:ASKED]),
        "docs": float(max(scopes.docs, FEWEST)),
    }


async def overlap(
    db: Db, postings: Postings, scopes: Scopes, *, tokens: Sequence[str], limit: int
) -> Overlap:
    """The texts of these scopes that have most of the query's tokens, the rare ones counting most."""
    asked = tokens[:ASKED]
    if not scopes.ids or not asked:
        return Overlap({}, 0.0)
    rows = await db.execute(
        text(f"""WITH {scored(postings)}
SELECT 0 AS id, weight AS score, true AS rarity FROM rarity
UNION ALL
SELECT * FROM (SELECT id, score, false FROM scored ORDER BY score DESC, id DESC LIMIT :limit) best"""),
        {**values(scopes, asked), "limit": limit},
    )
    known: list[float] = []
    scores: dict[int, float] = {}
    for row in rows:
        if row.rarity:
            known.append(row.score)
        else:
            scores[row.id] = row.score
    unknown = (len(asked) - len(known)) * weight(scopes.docs, 0)
    return Overlap(dict(sorted(scores.items(), key=lambda one: (-one[1], -one[0]))), sum(known) + unknown)


async def put(
    db: Db, postings: Postings, scope_id: int, *, texts: Iterable[tuple[int, Sequence[str]]]
) -> None:
    """Add the tokens of texts by their ids; those that are there already stay."""
    ids: list[int] = []
    tokens: list[str] = []
    for id_, words in texts:
        ids += [id_] * len(words)
        tokens += words
    for start in range(0, len(ids), _AT_ONCE):
        await db.execute(
            text(
                f"""INSERT INTO {postings} (scope_id, token, {postings.column})
                SELECT :scope, token, id FROM unnest(CAST(:tokens AS text[]), CAST(:ids AS bigint[])) AS t(token, id)
                ON CONFLICT DO NOTHING"""
            ),
            {
                "scope": scope_id,
                "tokens": tokens[start : start + _AT_ONCE],
                "ids": ids[start : start + _AT_ONCE],
            },
        )


async def take(db: Db, postings: Postings, scope_id: int, ids: Sequence[int]) -> None:
    """Remove every token of these texts, whatever their text was: reads the whole scope."""
    await db.execute(
        text(
            f"DELETE FROM {postings} WHERE scope_id = :scope AND {postings.column} = ANY(CAST(:ids AS bigint[]))"
        ),
        {"scope": scope_id, "ids": list(ids)},
    )
