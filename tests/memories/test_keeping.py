"""Memories are kept once, superseded under their key alone, forgotten wholly, and never shown to the wrong person."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from storage.errors import Conflict, MemoryRefused, NotFound
from storage.memories import ending, finding, keeping, rows
from storage.memories.keeping import Outcome
from storage.records import Memory, MemoryKind, NewMemory
from storage.store import Store

T, A, B = "T1", "U01ALICE", "U02BOB"
DAY = datetime(2026, 5, 1, tzinfo=UTC)


def fact(value: str, **more: Any) -> NewMemory:
    values: dict[str, Any] = {
        "subject": "nginx on web-1",
        "attribute": "version",
        "value": value,
        "host": "web-1",
    }
    return NewMemory(MemoryKind.SOFTWARE_FACT, f"nginx on web-1 has version {value}.", **{**values, **more})


def case(words: str, **more: Any) -> NewMemory:
    return NewMemory(MemoryKind.TROUBLESHOOTING_CASE, words, **more)


def preference(words: str, **more: Any) -> NewMemory:
    return NewMemory(MemoryKind.USER_PREFERENCE, words, **more)


async def add(store: Store, new: NewMemory, owner: str = A, **more: Any) -> keeping.Kept:
    async with store.begin() as db:
        kept = await keeping.add(db, new, team=T, owner=owner, **more)
    assert kept is not None
    return kept


async def texts(store: Store, query: str, owner: str = A, team: str = T, **more: Any) -> list[str]:
    async with store.begin() as db:
        return [one.memory.text for one in await finding.recall(db, query, team=team, owner=owner, **more)]


async def listed(store: Store, owner: str = A, *, history: bool = True) -> list[Memory]:
    async with store.begin() as db:
        return await rows.list_(db, team=T, owner=owner, history=history)


async def tokens_of(store: Store) -> int:
    async with store.begin() as db:
        return int((await db.execute(text("SELECT count(*) FROM memory_token"))).scalar_one())


async def counted(store: Store) -> list[tuple[int, int]]:
    """Texts and tokens as each scope counts them, next to those that are there."""
    async with store.begin() as db:
        found = await db.execute(
            text(
                """SELECT s.words, (SELECT count(*) FROM memory_token t WHERE t.scope_id = s.id) AS there,
                  s.docs, (SELECT count(*) FROM long_term_memory m WHERE m.scope_id = s.id) AS rows
                FROM recall_scope s"""
            )
        )
        return [pair for row in found for pair in ((row.words, row.there), (row.docs, row.rows))]


async def test_a_new_value_supersedes_and_the_old_one_stays_as_history(store: Store) -> None:
    first = await add(store, fact("1.22"), now=DAY)
    same = await add(store, fact(" 1.22"), now=DAY + timedelta(days=1))
    assert same == keeping.Kept(first.id, Outcome.REFRESHED)
    second = await add(store, fact("1.24"), now=DAY + timedelta(days=2))
    back = await add(store, fact("1.22"), now=DAY + timedelta(days=3))
    assert [second.outcome, back.outcome] == [Outcome.SUPERSEDED] * 2
    assert [(m.value, m.superseded_by, m.valid_to is None) for m in await listed(store)] == [
        ("1.22", second.id, False),
        ("1.24", back.id, False),
        ("1.22", None, True),
    ]
    assert await texts(store, "nginx version") == ["nginx on web-1 has version 1.22."]
    assert await texts(store, "1.24") == []
    assert all(told == there for told, there in await counted(store))


async def test_an_older_observation_goes_into_history(store: Store) -> None:
    now = await add(store, fact("1.24", at=DAY))
    late = await add(store, fact("1.20", at=DAY - timedelta(days=9)))
    assert late.outcome is Outcome.HISTORY
    assert [(m.value, m.superseded_by) for m in await listed(store)] == [("1.24", None), ("1.20", now.id)]


async def test_what_was_seen_before_the_last_look_does_not_take_its_place(store: Store) -> None:
    await add(store, fact("1.24", at=DAY))
    await add(store, fact("1.24", at=DAY + timedelta(days=2)))
    late = await add(store, fact("1.20", at=DAY + timedelta(days=1)))
    assert late.outcome is Outcome.HISTORY
    async with store.begin() as db:
        (found,) = await finding.recall(db, "nginx version", team=T, owner=A)
    assert found.memory.value == "1.24"


@pytest.mark.parametrize(
    "other",
    [
        fact("1.24", attribute="path"),
        fact("1.24", subject="nginx on web-2"),
        NewMemory(MemoryKind.ENVIRONMENT_FACT, "x", "nginx on web-1", "version", "1.24"),
        fact("1.24", subject=None),
        fact("1.24", attribute=None),
    ],
)
async def test_only_the_same_key_supersedes(store: Store, other: NewMemory) -> None:
    await add(store, fact("1.22"))
    assert (await add(store, other)).outcome is Outcome.NEW
    assert len(await listed(store, history=False)) == 2


async def test_two_writers_of_one_key_leave_one_value_in_force(store: Store) -> None:
    await asyncio.gather(*(add(store, fact(f"1.{n}")) for n in range(12)))
    every = await listed(store)
    assert len(every) == 12
    assert sum(m.valid_to is None for m in every) == 1
    assert all(told == there for told, there in await counted(store))


async def test_a_writer_that_fails_leaves_the_old_value_in_force(store: Store) -> None:
    await add(store, fact("1.22"))

    async def fails() -> None:
        async with store.begin() as db:
            await keeping.add(db, fact("1.24"), team=T, owner=A)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fails()
    assert [m.value for m in await listed(store)] == ["1.22"]
    assert await texts(store, "nginx") == ["nginx on web-1 has version 1.22."]


async def test_what_is_learnt_is_not_kept_twice_in_nearly_the_same_words(store: Store) -> None:
    first = await add(store, preference("以后请用中文回答我的问题。"), learnt=True)
    again = await add(store, preference("以后请用中文回答我的问题"), learnt=True)
    assert again == keeping.Kept(first.id, Outcome.REFRESHED)
    for other in ("以后请不用中文回答我的问题", "Run commands with sudo", "Do not run commands with sudo"):
        assert (await add(store, preference(other), learnt=True)).outcome is Outcome.NEW
    assert (await add(store, preference("以后请用中文回答我的问题"))).outcome is Outcome.NEW, "by hand"


async def test_what_is_forgotten_is_gone_everywhere_and_not_learnt_again(store: Store) -> None:
    async with store.begin() as db:
        await db.execute(
            text(
                """INSERT INTO chat_session (team, origin, key, owner, channel) VALUES ('T1', 'slack', 'k', 'u', 'c');
                INSERT INTO chat_message (team, session_id, seq, role, content)
                  SELECT 'T1', id, 1, 'user', 'x' FROM chat_session"""
            )
        )
        message = int((await db.execute(text("SELECT id FROM chat_message"))).scalar_one())
    await add(store, fact("1.22"))
    kept = await add(store, fact("1.24", message_id=message, ref="r"))
    async with store.begin() as db:
        assert len(await ending.forget(db, kept.id, team=T, owner=A)) == 2
    assert await listed(store) == []
    assert await texts(store, "nginx version 1.24 1.22") == await texts(store, "") == []
    assert await tokens_of(store) == 0
    async with store.begin() as db:
        left = (await db.execute(text("SELECT * FROM long_term_memory"))).mappings().all()
        assert "nginx" not in str(left)
        assert "web-1" not in str(left)
        assert await keeping.add(db, fact("1.24", message_id=message), team=T, owner=A, learnt=True) is None
        with pytest.raises(NotFound, match="U01ALICE has no memory"):
            await ending.forget(db, kept.id, team=T, owner=A)
    assert (await add(store, fact("1.24"))).outcome is Outcome.NEW
    assert all(told == there for told, there in await counted(store))


async def test_nobody_sees_or_changes_what_is_another_persons(store: Store) -> None:
    mine = await add(store, fact("1.24"))
    assert await texts(store, "nginx", owner=B) == await texts(store, "", owner=B) == []
    assert await texts(store, "nginx", team="T2") == []
    async with store.begin() as db:
        for work in (
            ending.forget(db, mine.id, team=T, owner=B),
            ending.forget(db, mine.id, team="T2", owner=A),
            ending.share(db, mine.id, team=T, owner=B, wording="x"),
            rows.get(db, mine.id, team=T, owner=B),
        ):
            with pytest.raises(NotFound):
                await work
        await ending.used(db, [mine.id], team=T, owner=B)
        assert (await rows.get(db, mine.id, team=T, owner=A)).use_count == 0
        await ending.used(db, [mine.id], team=T, owner=A)
        assert (await rows.get(db, mine.id, team=T, owner=A)).use_count == 1


async def test_a_shared_fact_reaches_those_who_may_use_its_host(store: Store) -> None:
    about = await add(store, fact("1.24"))
    words = "nginx on web-1 has version 1.24."
    async with store.begin() as db:
        with pytest.raises(Conflict, match="says something else"):
            await ending.share(db, about.id, team=T, owner=A, wording="nginx")
        await ending.share(db, about.id, team=T, owner=A, wording=words)
    assert await texts(store, "nginx", owner=B, hosts=["web-1"]) == [words]
    assert await texts(store, "nginx", owner=B, hosts=["web-2"]) == []
    assert await texts(store, "", owner=B, hosts=[]) == []
    assert await texts(store, "nginx", owner=A) == [words]
    assert await texts(store, "nginx", owner=B, team="T2") == []
    await add(store, fact("1.26"))
    assert await texts(store, "nginx", owner=B) == [], "a new value is not shared by itself"
    assert all(told == there for told, there in await counted(store))


async def test_sharing_is_taken_back_and_preferences_are_never_shared(store: Store) -> None:
    about = await add(store, case("disk of db-1 fills with WAL"))
    mine = await add(store, preference("always use sudo"))
    async with store.begin() as db:
        await ending.share(db, about.id, team=T, owner=A, wording="disk of db-1 fills with WAL")
        with pytest.raises(MemoryRefused):
            await ending.share(db, mine.id, team=T, owner=A, wording="always use sudo")
    assert len(await texts(store, "disk", owner=B, hosts=[])) == 1
    async with store.begin() as db:
        await ending.unshare(db, about.id, team=T, owner=A)
    assert await texts(store, "disk", owner=B) == []
    assert len(await texts(store, "disk", owner=A)) == 1


async def test_a_case_of_several_hosts_is_not_shared(store: Store) -> None:
    case = NewMemory(
        MemoryKind.TROUBLESHOOTING_CASE, "Case on web-1, db-1: x", "web-1, db-1", "x", "y", host="db-1"
    )
    kept = await add(store, case)
    async with store.begin() as db:
        with pytest.raises(MemoryRefused, match=r"several hosts \(web-1, db-1\)"):
            await ending.share(db, kept.id, team=T, owner=A, wording=case.text)


async def test_a_person_who_opted_out_is_neither_written_of_nor_reminded(store: Store) -> None:
    await add(store, preference("always use sudo"))
    async with store.begin() as db:
        await rows.opt_out(db, team=T, person=A)
        assert await keeping.add(db, fact("1"), team=T, owner=A, learnt=True) is None
        with pytest.raises(MemoryRefused, match="wants no memories"):
            await keeping.add(db, fact("1"), team=T, owner=A)
        assert await finding.preferences(db, team=T, owner=A) == []
        assert await finding.for_prompt(db, "use sudo", team=T, owner=A, hosts=[]) == []
        await rows.opt_out(db, team=T, person=A, out=False)
        assert len(await finding.preferences(db, team=T, owner=A)) == 1
        assert await finding.preferences(db, team=T, owner=B) == []


@pytest.mark.parametrize(
    ("new", "learnt", "what"),
    [
        (preference(" \n"), False, "needs a text"),
        (preference("x" * 10_001), False, "at most 10,000"),
        (preference("x" * 1_001), True, "at most 1,000"),
        (fact("1" * 501), False, "value has at most 500"),
        (NewMemory(MemoryKind.SOFTWARE_FACT, "x", "主" * 300, "版" * 300), False, "at most 1,500 bytes"),
    ],
)
async def test_what_is_empty_or_too_long_is_refused(
    store: Store, new: NewMemory, learnt: bool, what: str
) -> None:
    with pytest.raises(MemoryRefused, match=what):
        await add(store, new, learnt=learnt)


async def test_a_person_has_so_many_memories_at_most(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "MOST", 2)
    await add(store, fact("1"))
    await add(store, preference("b"))
    with pytest.raises(MemoryRefused, match="which is the limit"):
        await add(store, preference("c"))
    assert (await add(store, fact("2"))).outcome is Outcome.SUPERSEDED
    await add(store, preference("c"), owner=B)


async def test_cases_nobody_needed_for_long_no_longer_hold(store: Store) -> None:
    old, kept = await add(store, case("redis swaps", at=DAY)), await add(store, case("kafka lags", at=DAY))
    await add(store, fact("1.22", at=DAY))
    later = DAY + timedelta(days=200)
    async with store.begin() as db:
        await ending.used(db, [kept.id], team=T, owner=A, now=DAY + timedelta(days=100))
    assert await ending.decay(store, now=later) == 1
    assert [m.id for m in await listed(store) if m.valid_to] == [old.id]
    assert await texts(store, "redis swaps") == []
    assert await ending.decay(store, now=later) == 0


async def test_only_what_fits_enters_a_prompt_and_nothing_twice(store: Store) -> None:
    await add(store, case("the disk of db-1 was full of WAL files because replication stopped"))
    await add(store, case("The disk of db-1 was full of WAL files, because the replication stopped."))
    await add(store, preference("show the disk of db-1 in gigabytes"))

    async def entering(query: str) -> int:
        async with store.begin() as db:
            return len(await finding.for_prompt(db, query, team=T, owner=A, hosts=["db-1"]))

    assert await entering("why is the disk of db-1 full of WAL again?") == 1
    assert await entering("which files changed in the last release of the shop, and who reviewed them?") == 0
    assert len(await texts(store, "which files changed in the release")) == 2


async def test_without_words_the_last_used_come_first(store: Store) -> None:
    first, second = await add(store, preference("one"), now=DAY), await add(store, preference("two"), now=DAY)
    assert await texts(store, "") == ["two", "one"]
    async with store.begin() as db:
        await ending.used(db, [first.id], team=T, owner=A)
    assert await texts(store, " ") == ["one", "two"]
    assert second.id > first.id
