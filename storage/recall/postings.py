"""Tokens in Postgres: put in, taken out, and added up by how rare they are. Memories and messages alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from sqlalchemy import text

from storage.store import Db

FEWEST = 100  # texts that a scope counts as at least: among three texts no word is common
ASKED = 100  # tokens of a query that are looked for: the first ones
_AT_ONCE = 20_000  # tokens in one INSERT


class Postings(StrEnum):
    """The two tables of tokens, and the column that says what a token stands in."""

    MEMORIES = "memory_token"
    MESSAGES = "message_token"

    @property
    def column(self) -> str:
        return self.value.removesuffix("_token") + "_id"


def scored(postings: Postings) -> str:
    """Common table expressions behind one called `seen` (storage/recall/scopes.py), over :tokens.

    every(docs, usual): how many texts there are, and how many tokens one has. rarity(ids, weight): a row for each
    token that is asked for. scored(id, score). A token's texts are read once, counted and kept as an array: to
    join each hit to the weight of its token would take twice the time.
    """
    return f"""every AS (
  SELECT greatest({FEWEST}, coalesce(sum(docs), 0))::float8 AS docs,
    greatest(1, sum(words) / nullif(sum(docs), 0))::float8 AS usual FROM seen
), rarity AS (
  SELECT ids, {weight("n")} AS weight
  FROM every CROSS JOIN unnest(CAST(:tokens AS text[])) AS asked(token) CROSS JOIN LATERAL (
    SELECT count(*)::float8 AS n, array_agg({postings.column}) AS ids FROM {postings} t
    WHERE t.scope_id = ANY(ARRAY(SELECT id FROM seen)) AND t.token = asked.token COLLATE "C") hit
), scored AS (
  SELECT id, sum(weight) AS score FROM rarity CROSS JOIN unnest(ids) AS id GROUP BY id
)"""


def weight(found: str) -> str:
    """SQL: how much a token tells that stands in `found` of `every.docs` texts."""
    return f"ln(1 + (greatest(every.docs, {found}) - {found} + 0.5e0::float8) / ({found} + 0.5e0::float8))"


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
