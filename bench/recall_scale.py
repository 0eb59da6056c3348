"""Recall and writing among many memories, next to arrays of tokens with a GIN index or an index on the owner.

The texts are made up: twelve words each, the k-th word of the vocabulary with a probability of about 1/k. Asked
are common words, the worst case. One person has 10,000 memories, one 1,000, many others the rest.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psycopg

from bench.figures import percentile, table
from storage.embedded import EmbeddedPostgres
from storage.memories import finding, keeping
from storage.migrate import upgrade
from storage.records import MemoryKind, NewMemory
from storage.store import Store

COUNT = int(os.environ.get("BENCH_MEMORIES", "1000000"))
PEOPLE = {"ten": 10_000, "one": 1_000}
ROUNDS = 60
SETTINGS = {"checkpoint_timeout": "1h", "max_wal_size": "16GB", "maintenance_work_mem": "512MB"}

_FILL = """
CREATE TABLE filled AS SELECT g AS id,
  CASE WHEN g <= 10000 THEN 'ten' WHEN g <= 11000 THEN 'one' ELSE 'u' || g % 500 END AS owner,
  ARRAY(SELECT DISTINCT 'w' || floor(power(20000, random()))::int FROM generate_series(1, 12 + 0 * g)) AS tokens
FROM generate_series(1, {count}) g;
INSERT INTO recall_scope (team, kind, owner, docs, words)
  SELECT 'T', 'person', owner, count(*), sum(cardinality(tokens)) FROM filled GROUP BY owner;
INSERT INTO long_term_memory (team, owner, kind, text, scope_id, words)
  SELECT 'T', f.owner, 'SOFTWARE_FACT', array_to_string(f.tokens, ' '), s.id, cardinality(f.tokens)
  FROM filled f JOIN recall_scope s USING (owner) ORDER BY f.id;
INSERT INTO memory_token SELECT m.scope_id, t, m.id
  FROM long_term_memory m, unnest(string_to_array(m.text, ' ')) t ORDER BY m.scope_id, t COLLATE "C", m.id;
CREATE TABLE with_gin AS TABLE filled;
CREATE INDEX ON with_gin USING gin (tokens);
CREATE TABLE with_owner AS TABLE filled;
CREATE INDEX ON with_owner (owner);
VACUUM ANALYZE;
"""
_ARRAYS = """
WITH h AS MATERIALIZED (
  SELECT id, t AS token FROM {table} m, unnest(m.tokens) t
  WHERE owner = %(owner)s AND tokens && %(asked)s::text[] AND t = ANY(%(asked)s::text[])
), d AS (SELECT token, ln(1e0::float8 + (%(n)s - count(*) + 0.5) / (count(*) + 0.5)) w FROM h GROUP BY token)
SELECT id, sum(d.w) s FROM h JOIN d USING (token) GROUP BY id ORDER BY s DESC, id DESC LIMIT 10"""


async def main() -> dict[str, float]:
    """Returns milliseconds at p95 of recalls and of a write."""
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="opsthread-bench-", ignore_cleanup_errors=True) as name:
        async with EmbeddedPostgres(Path(name) / "pg", settings=SETTINGS) as postgres:
            await upgrade(postgres.url)
            with psycopg.connect(postgres.url, autocommit=True) as admin:
                began = time.perf_counter()
                for statement in _FILL.format(count=COUNT).split(";"):
                    if statement.strip():
                        admin.execute(statement.encode())
                print(f"\n{COUNT:,} memories made in {time.perf_counter() - began:.0f} s")
                store = Store(postgres.url)
                await _recalls(store, admin, found)
                await _writes(store, found)
                await store.close()
    return found


def _questions() -> list[str]:
    chosen = random.Random(7)
    return [" ".join(f"w{n}" for n in chosen.sample(range(1, 30), 8)) for _ in range(ROUNDS)]


async def _recalls(store: Store, admin: psycopg.Connection[Any], found: dict[str, float]) -> None:
    rows: list[tuple[str, ...]] = [
        ("recall, eight common words, p50 / p95", *(f"{n:,} memories" for n in PEOPLE.values()))
    ]

    async def ours(owner: str, question: str) -> None:
        async with store.begin() as db:
            await finding.recall(db, question, team="T", owner=owner)

    def arrays(name: str) -> Callable[[str, str], Awaitable[None]]:
        async def ask(owner: str, question: str) -> None:
            values = {"owner": owner, "asked": question.split(), "n": PEOPLE[owner]}
            admin.execute(_ARRAYS.format(table=name).encode(), values).fetchall()

        return ask

    for title, ask in (
        ("ours: postings, weighed and read", ours),
        ("text[] with an index on the owner", arrays("with_owner")),
        ("text[] with GIN", arrays("with_gin")),
    ):
        cells = [title]
        for owner in PEOPLE:
            times = []
            for question in _questions():
                began = time.perf_counter()
                await ask(owner, question)
                times.append((time.perf_counter() - began) * 1000)
            times = times[5:]  # the first ones warm the cache
            cells.append(f"{percentile(times, 0.5):.1f} / {percentile(times, 0.95):.1f} ms")
            if ask is ours:
                found[f"recall p95 {owner}"] = percentile(times, 0.95)
        rows.append(tuple(cells))
    table(f"Recall among {COUNT:,} memories", rows)


async def _writes(store: Store, found: dict[str, float]) -> None:
    """A write alone, and with the commit that waits for the disk."""
    chosen = random.Random(8)
    alone, whole = [], []
    for number in range(ROUNDS * 3):
        words = " ".join(f"w{int(20_000 ** chosen.random())}" for _ in range(12))
        new = NewMemory(
            MemoryKind.SOFTWARE_FACT, words, subject=f"s{number % 40}", attribute="version", value=words
        )
        began = time.perf_counter()
        async with store.begin() as db:
            inside = time.perf_counter()
            await keeping.add(db, new, team="T", owner="ten")
            alone.append((time.perf_counter() - inside) * 1000)
        whole.append((time.perf_counter() - began) * 1000)
    table(
        "Writing a memory with a key, most superseding another, p50 / p95",
        [
            ("what", "time"),
            ("its statements", f"{percentile(alone, 0.5):.1f} / {percentile(alone, 0.95):.1f} ms"),
            (
                "with connection and commit to disk",
                f"{percentile(whole, 0.5):.1f} / {percentile(whole, 0.95):.1f} ms",
            ),
        ],
    )
    found["memory write p50"] = percentile(alone, 0.5)
