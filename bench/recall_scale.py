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
from itertools import pairwise
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
MOST_S = 20.0  # seconds for one figure, after which fewer questions have to do
SETTINGS = {"checkpoint_timeout": "1h", "max_wal_size": "16GB", "maintenance_work_mem": "512MB"}

# Without looking up a scope a million times, and with the tokens' index made at the end: the same tables, sooner.
_FILL = """
SET session_replication_role = replica;
CREATE TABLE filled AS SELECT g AS id,
  CASE WHEN g <= 10000 THEN 'ten' WHEN g <= 11000 THEN 'one' ELSE 'u' || g % 500 END AS owner,
  ARRAY(SELECT DISTINCT 'w' || floor(power(20000, random()))::int FROM generate_series(1, 12 + 0 * g)) AS tokens
FROM generate_series(1, {count}) g;
INSERT INTO recall_scope (team, kind, owner, docs, words)
  SELECT 'T', 'person', owner, count(*), sum(cardinality(tokens)) FROM filled GROUP BY owner;
INSERT INTO long_term_memory (team, owner, kind, text, scope_id, words)
  SELECT 'T', f.owner, 'SOFTWARE_FACT', array_to_string(f.tokens, ' '), s.id, cardinality(f.tokens)
  FROM filled f JOIN recall_scope s USING (owner) ORDER BY f.id;
ALTER TABLE memory_token DROP CONSTRAINT memory_token_pkey;
INSERT INTO memory_token SELECT m.scope_id, t, m.id
  FROM long_term_memory m, unnest(string_to_array(m.text, ' ')) t;
ALTER TABLE memory_token ADD PRIMARY KEY (scope_id, token, memory_id);
RESET session_replication_role;
VACUUM ANALYZE;
"""
_ARRAYS = """
WITH h AS MATERIALIZED (
  SELECT id, t AS token FROM filled m, unnest(m.tokens) t
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
                print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
                store = Store(postgres.url)
                await _recalls(store, admin, found)
                await _writes(store, found)
                await store.close()
    return found


def _questions() -> list[str]:
    chosen = random.Random(7)
    return [" ".join(f"w{n}" for n in chosen.sample(range(1, 30), 8)) for _ in range(ROUNDS)]


async def _recalls(store: Store, admin: psycopg.Connection[Any], found: dict[str, float]) -> None:
    async def recall(owner: str, question: str) -> None:
        async with store.begin() as db:
            await finding.recall(db, question, team="T", owner=owner)

    async def for_prompt(owner: str, question: str) -> None:
        async with store.begin() as db:
            await finding.for_prompt(db, question, team="T", owner=owner, hosts=[])

    async def arrays(owner: str, question: str) -> None:
        values = {"owner": owner, "asked": question.split(), "n": PEOPLE[owner]}
        admin.execute(_ARRAYS, values).fetchall()

    rows: list[tuple[str, ...]] = [
        ("recall, eight common words, p50 / p95", *(f"{n:,} memories" for n in PEOPLE.values()))
    ]
    for title, ask, index in (
        ("ours: recall", recall, ""),
        ("ours: for a prompt", for_prompt, ""),
        ("text[] with an index on the owner", arrays, "(owner)"),
        ("text[] with GIN", arrays, "USING gin (tokens)"),
    ):
        if index:
            admin.execute("DROP INDEX IF EXISTS simple")
            admin.execute(f"CREATE INDEX simple ON filled {index}".encode())
        cells = [title]
        for owner in PEOPLE:
            times = await _times(ask, owner)
            cells.append(f"{percentile(times, 0.5):.1f} / {percentile(times, 0.95):.1f} ms")
            if not index:
                name = f"recall p95 {owner}"
                found[name] = max(found.get(name, 0.0), percentile(times, 0.95))
        rows.append(tuple(cells))
    table(f"Recall among {COUNT:,} memories", rows)


async def _times(ask: Callable[[str, str], Awaitable[None]], owner: str) -> list[float]:
    """Milliseconds of each question, for MOST_S at most."""
    times = []
    last = time.perf_counter() + MOST_S
    for question in _questions():
        began = time.perf_counter()
        await ask(owner, question)
        times.append((time.perf_counter() - began) * 1000)
        if time.perf_counter() > last:
            break
    return times[5:]  # the first ones warm the cache


async def _writes(store: Store, found: dict[str, float]) -> None:
    """A write's statements, and apart from them what every transaction costs: its connection and its commit."""
    chosen = random.Random(8)
    parts: dict[str, list[float]] = {"connection and limits": [], "its statements": [], "commit to disk": []}
    for number in range(ROUNDS * 3):
        words = " ".join(f"w{int(20_000 ** chosen.random())}" for _ in range(12))
        new = NewMemory(
            MemoryKind.SOFTWARE_FACT, words, subject=f"s{number % 40}", attribute="version", value=words
        )
        moments = [time.perf_counter()]
        async with store.begin() as db:
            moments.append(time.perf_counter())
            await keeping.add(db, new, team="T", owner="ten")
            moments.append(time.perf_counter())
        moments.append(time.perf_counter())
        for times, (began, ended) in zip(parts.values(), pairwise(moments), strict=True):
            times.append((ended - began) * 1000)
    table(
        "Writing a memory with a key, most superseding another, p50 / p95",
        [
            ("what", "time"),
            *(
                (name, f"{percentile(times, 0.5):.1f} / {percentile(times, 0.95):.1f} ms")
                for name, times in parts.items()
            ),
        ],
    )
    found["memory write p50"] = percentile(parts["its statements"], 0.5)
