"""What recall scores, what passes the floor, who is shown what, and how few statements that takes."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event, text

from storage.memories import ending, finding, keeping, rows
from storage.memories.finding import Floor
from storage.records import MemoryKind, NewMemory, Recalled
from storage.store import Db, Store

T, A, B = "T1", "U01ALICE", "U02BOB"
NOW = datetime(2026, 5, 1, tzinfo=UTC)


def fact(words: str, **more: Any) -> NewMemory:
    return NewMemory(MemoryKind.SOFTWARE_FACT, words, **more)


async def add(db: Db, *memories: NewMemory, owner: str = A) -> list[int]:
    kept = [await keeping.add(db, new, team=T, owner=owner, now=NOW) for new in memories]
    return [one.id for one in kept if one is not None]


async def recall(db: Db, query: str, owner: str = A, **more: Any) -> list[Recalled]:
    return await finding.recall(db, query, team=T, owner=owner, now=NOW, **more)


def told(*found: int, docs: int = 100) -> float:
    """What tokens weigh that stand in so many texts."""
    return sum(math.log(1 + (docs - n + 0.5) / (n + 0.5)) for n in found)


async def test_a_score_adds_up_rarity_and_leans_by_length_age_kind_and_host(store: Store) -> None:
    async with store.begin() as db:
        plain, both, old, case, host = await add(
            db,
            fact("redis swaps"),
            fact("redis evicts keys"),
            fact("kafka lags", at=NOW - timedelta(days=30)),
            NewMemory(MemoryKind.TROUBLESHOOTING_CASE, "postfix bounces"),
            fact("haproxy flaps", host="LB9"),
        )
        scores = {
            one.memory.id: one.score
            for query in ("redis evicts", "kafka", "postfix", "haproxy lb9")
            for one in await recall(db, query)
        }
    usual = (2 + 3 + 2 + 2 + 2) / 5

    def leaning(words: int) -> float:
        return 1 / (0.8 + 0.2 * words / usual)

    assert scores == {
        plain: pytest.approx(told(2) * leaning(2) * 1.05, abs=1e-6),
        both: pytest.approx(told(2, 1) * leaning(3) * 1.05, abs=1e-6),
        old: pytest.approx(told(1) * leaning(2) * 1.025, abs=1e-6),
        case: pytest.approx(told(1) * leaning(2) * 1.05 * 1.05, abs=1e-6),
        host: pytest.approx(told(1) * leaning(2) * 1.05 * 1.2, abs=1e-6),
    }


async def test_rarity_is_counted_over_ones_own_and_the_shared_together(store: Store) -> None:
    async with store.begin() as db:
        await add(db, fact("redis swaps"))
        (theirs,) = await add(db, fact("redis swaps"), owner=B)
        await ending.share(db, theirs, team=T, owner=B, wording="redis swaps")
        found = await recall(db, "redis")
        assert [one.score for one in found] == [pytest.approx(told(2) * 1.05, abs=1e-6)] * 2
        await add(db, *(fact(f"w{n} redis") for n in range(150)))
        best, *_ = await recall(db, "w7")
        assert best.score == pytest.approx(told(1, docs=152) * 1.05, abs=1e-6)


async def test_of_equal_ones_the_newest_come_first_and_no_more_than_asked_for(store: Store) -> None:
    async with store.begin() as db:
        ids = await add(db, *(fact("redis swaps") for _ in range(5)))
        assert [one.memory.id for one in await recall(db, "redis")] == ids[::-1]
        assert [one.memory.id for one in await recall(db, "redis", limit=2)] == ids[:2:-1]


@pytest.mark.parametrize(
    ("floor", "passes"),
    [
        (Floor(share=0.49, part=1, rare=9), True),
        (Floor(share=0.51, part=1, rare=9), False),
        (Floor(share=1, part=0.49, rare=1.9), True),
        (Floor(share=1, part=0.49, rare=2.1), False),
        (Floor(share=1, part=0.51, rare=1.9), False),
    ],
)
async def test_the_floor_asks_for_a_share_or_for_less_and_rare_words(
    store: Store, floor: Floor, passes: bool
) -> None:
    async with store.begin() as db:
        await add(db, fact("kafka lags badly"))
        await add(db, *(fact(f"host{n} restarts") for n in range(2)))
        # Two of four words: half of the weight and a little less, nearly twice that of a word found nowhere.
        weights = told(1, 1) / told(1, 1, 0, 0), told(1, 1) / told(0)
        assert 0.4 < weights[0] < 0.5
        assert 1.5 < weights[1] < 2
        scale = weights[0] / 0.5, weights[1] / 2
        fitted = Floor(share=floor.share * scale[0], part=floor.part * scale[0], rare=floor.rare * scale[1])
        found = await finding.for_prompt(
            db, "kafka lags mysql mongodb", team=T, owner=A, hosts=[], floor=fitted, now=NOW
        )
        assert bool(found) is passes


async def test_who_opted_out_gets_nothing_into_a_prompt_but_may_look(store: Store) -> None:
    async with store.begin() as db:
        await add(db, fact("redis swaps"))
        (theirs,) = await add(db, fact("redis evicts"), owner=B)
        await ending.share(db, theirs, team=T, owner=B, wording="redis evicts")

        async def entering(owner: str) -> int:
            return len(await finding.for_prompt(db, "redis", team=T, owner=owner, hosts=[]))

        assert [await entering(A), await entering(B)] == [2, 1]
        await rows.opt_out(db, team=T, person=A)
        assert [await entering(A), await entering(B)] == [0, 1]
        assert len(await recall(db, "redis")) == 2


async def test_a_token_in_the_wrong_scope_shows_nobody_anything(store: Store) -> None:
    async with store.begin() as db:
        await add(db, fact("redis swaps"))
        await add(db, fact("kafka lags"), owner=B)
        await db.execute(
            text(
                """INSERT INTO memory_token (scope_id, token, memory_id)
                SELECT s.id, t.token, t.memory_id FROM recall_scope s, memory_token t
                WHERE s.owner = 'U02BOB' AND t.scope_id <> s.id"""
            )
        )
        assert await recall(db, "redis", owner=B) == []
        assert await finding.for_prompt(db, "redis swaps", team=T, owner=B, hosts=[]) == []


async def test_a_shared_value_is_superseded_in_both_scopes(store: Store) -> None:
    keyed = {"subject": "nginx", "attribute": "version", "host": "web-1"}
    async with store.begin() as db:
        (old,) = await add(db, fact("nginx has version 1.22 here", value="1.22", **keyed))
        await ending.share(db, old, team=T, owner=A, wording="nginx has version 1.22 here")
        await add(db, fact("nginx has 1.24", value="1.24", **keyed), fact("redis"))
        counts = await db.execute(text("SELECT kind, docs, words FROM recall_scope ORDER BY kind"))
        assert [tuple(row) for row in counts] == [("person", 2, 3), ("team", 0, 0)]
        tokens = await db.execute(text("SELECT token FROM memory_token ORDER BY token"))
        assert [row.token for row in tokens] == ["1.24", "nginx", "redis"]


async def test_looking_takes_one_statement_and_keeping_three(store: Store) -> None:
    """Each more is a round trip, and those are most of what a small recall and a write take."""
    keyed = {"subject": "nginx", "attribute": "version"}
    async with store.begin() as db:
        await add(db, fact("nginx 1.22", value="1.22", **keyed))
        sent: list[str] = []

        def note(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
            sent.append(statement)

        event.listen(db.sync_connection, "before_cursor_execute", note)
        counts = []
        for work in (
            recall(db, "nginx"),
            recall(db, ""),
            finding.for_prompt(db, "nginx", team=T, owner=A, hosts=[]),
            add(db, fact("nginx 1.24", value="1.24", **keyed)),
            add(db, fact("redis swaps")),
        ):
            await work
            counts.append(len(sent))
            sent.clear()
    assert counts == [1, 1, 1, 3, 3]
