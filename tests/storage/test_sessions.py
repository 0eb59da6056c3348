"""Sessions: append-only, in order, fenced; the faults other stores have shipped must not happen here."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from storage import sessions, turns
from storage.errors import LeaseLost, NotFound
from storage.records import Message, Origin, Role, TurnState
from storage.store import Store
from tests import make


async def _count(store: Store, table: str) -> int:
    async with store.begin() as db:
        return int((await db.execute(text(f"SELECT count(*) FROM {table}"))).scalar_one())


async def test_a_session_is_opened_once_however_many_ask_at_the_same_time(store: Store) -> None:
    async def open_one() -> tuple[int, bool]:
        async with store.begin() as db:
            found, created = await sessions.open_session(
                db, team="T1", origin=Origin.SLACK, key="C1:1.0", owner="U1", channel="C1", thread_ts="1.0"
            )
            return found.id, created

    answers = await asyncio.gather(*(open_one() for _ in range(8)))
    assert len({id_ for id_, _ in answers}) == 1
    assert sum(created for _, created in answers) == 1


async def test_team_origin_and_key_together_name_a_session(store: Store) -> None:
    one = await make.stored_session(store, key="k", team="T1", origin=Origin.TERMINAL)
    two = await make.stored_session(store, key="k", team="T2", origin=Origin.TERMINAL)
    three = await make.stored_session(store, key="k", team="T1", origin=Origin.SCHEDULE)
    assert len({one.id, two.id, three.id}) == 3
    async with store.begin() as db:
        assert (await sessions.find(db, "T2", Origin.TERMINAL, key="k")) == two
        assert await sessions.find(db, "T2", Origin.SLACK, key="k") is None


async def test_a_key_may_be_longer_than_36_characters(store: Store) -> None:
    key = "C0123456789:1718031234.000100/" + "x" * 500
    assert (await make.stored_session(store, key=key)).key == key


async def test_messages_are_chained_numbered_and_move_the_head(store: Store) -> None:
    session = await make.stored_session(store)
    async with store.begin() as db:
        stored = await sessions.append(
            db, session.id, None, [make.user("one"), make.assistant("two"), make.user("three", author="Bob")]
        )
    assert [m.seq for m in stored] == [1, 2, 3]
    assert [m.parent_id for m in stored] == [None, stored[0].id, stored[1].id]
    assert all(m.created_at is not None and m.created_at.tzinfo is not None for m in stored)
    async with store.begin() as db:
        after = await sessions.get(db, session.id)
        assert await sessions.history(db, session.id) == stored
    assert (after.head_id, after.last_seq, after.people) == (stored[2].id, 3, ("Alice", "Bob"))
    assert after.updated_at > session.updated_at


async def test_nothing_to_append_changes_nothing(store: Store) -> None:
    session = await make.stored_session(store, make.user())
    async with store.begin() as db:
        assert await sessions.append(db, session.id, None, []) == []
        assert await sessions.get(db, session.id) == session


async def test_tool_calls_and_results_come_back_whole(store: Store) -> None:
    calls = (
        make.call("call_a", "run_command", '{"command": "awk \'$5>80\'", "hosts": ["db-1"]}'),
        make.call("call_b", "run_command", "{not json"),
        make.call("", "", ""),
    )
    session = await make.stored_session(
        store,
        make.user(),
        make.assistant("", *calls),
        make.result("92 %", "call_a"),
        make.result("", "call_b"),
    )
    async with store.begin() as db:
        found = await sessions.history(db, session.id)
    assert found[1].tool_calls == calls
    assert [(m.role, m.text, m.tool_call_id) for m in found[2:]] == [
        (Role.TOOL, "92 %", "call_a"),
        (Role.TOOL, "", "call_b"),
    ]


async def test_text_beyond_ascii_is_stored_as_itself(store: Store) -> None:
    words = "磁盘满了 🔥 e\u0301 Ünïcödé \u202ertl"
    session = await make.stored_session(
        store, make.user(words), make.assistant("", make.call(arguments=words))
    )
    async with store.begin() as db:
        assert [m.text for m in await sessions.history(db, session.id)] == [words, ""]
        raw = await db.execute(text("SELECT tool_calls::text FROM chat_message WHERE seq = 2"))
        assert "磁盘满了 🔥" in raw.scalar_one()


async def test_what_postgres_text_cannot_hold_becomes_the_replacement_character(store: Store) -> None:
    bad = "a\x00b\ud800c"
    session = await make.stored_session(
        store, make.user(bad, author="A\x00"), make.assistant(bad, make.call("i\x00d", arguments=bad))
    )
    async with store.begin() as db:
        first, second = await sessions.history(db, session.id)
    assert (first.text, first.author) == ("a\ufffdb\ufffdc", "A\ufffd")
    assert (second.tool_calls[0].id, second.tool_calls[0].arguments) == ("i\ufffdd", "a\ufffdb\ufffdc")


async def test_a_message_of_a_million_characters_is_kept(store: Store) -> None:
    long = "日志 line\n" * 125_000
    session = await make.stored_session(store, make.user(long))
    async with store.begin() as db:
        assert (await sessions.history(db, session.id))[0].text == long


async def test_order_is_that_of_seq_when_all_times_are_equal(store: Store) -> None:
    same = datetime(2026, 1, 1, tzinfo=UTC)
    session = await make.stored_session(store, *(make.user(str(n), created_at=same) for n in range(40)))
    async with store.begin() as db:
        found = await sessions.history(db, session.id, limit=50)
    assert [m.text for m in found] == [str(n) for n in range(40)]
    assert {m.created_at for m in found} == {same}


async def test_writers_at_the_same_time_lose_nothing_and_double_nothing(store: Store) -> None:
    session = await make.stored_session(store)

    async def write(who: str) -> None:
        for n in range(10):
            async with store.begin() as db:
                await sessions.append(
                    db, session.id, None, [make.user(f"{who}{n}", author=who), make.assistant(f"to {who}{n}")]
                )

    await asyncio.gather(*(write(who) for who in "abcd"))
    async with store.begin() as db:
        found = await sessions.messages(db, session.id)
        after = await sessions.get(db, session.id)
    assert [m.seq for m in found] == list(range(1, 81))
    assert len({m.text for m in found}) == 80
    pairs = list(zip(found[::2], found[1::2], strict=True))
    assert all(answer.text == f"to {asked.text}" for asked, answer in pairs), (
        "what was appended at once stays together"
    )
    assert (after.last_seq, set(after.people)) == (80, set("abcd"))


async def test_a_writer_that_lost_its_lease_cannot_write(store: Store) -> None:
    session = await make.stored_session(store)
    old = await make.claimed(store, session.id, lease_s=0.0)
    async with store.begin() as db:
        new = await turns.claim(db, owner="process-2", lease_s=60, front=old.turn.front)
    assert new is not None
    assert new.epoch > old.epoch
    with pytest.raises(LeaseLost):
        async with store.begin() as db:
            await sessions.append(db, session.id, old.epoch, [make.user("late")])
    async with store.begin() as db:
        await sessions.append(db, session.id, new.epoch, [make.user("in time")])
        assert [m.text for m in await sessions.history(db, session.id)] == ["in time"]


async def test_a_block_that_fails_leaves_nothing_behind(store: Store) -> None:
    session = await make.stored_session(store, make.user("kept"))

    async def fail() -> None:
        async with store.begin() as db:
            await sessions.append(db, session.id, None, [make.user("lost")])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail()
    async with store.begin() as db:
        assert [m.text for m in await sessions.history(db, session.id)] == ["kept"]


async def test_an_unknown_session_is_named(store: Store) -> None:
    async with store.begin() as db:
        with pytest.raises(NotFound, match="no session 99"):
            await sessions.append(db, 99, None, [make.user()])
        with pytest.raises(NotFound, match="no session 99"):
            await sessions.get(db, 99)


def _turn_of(number: int, steps: int) -> list[Message]:
    out = [make.user(f"ask {number}")]
    for step in range(steps):
        id_ = f"c{number}.{step}"
        out += [make.assistant("", make.call(id_)), make.result("r", id_)]
    return [*out, make.assistant(f"answer {number}")]


async def test_the_window_begins_where_a_person_speaks(store: Store) -> None:
    session = await make.stored_session(store, *(m for n in range(10) for m in _turn_of(n, 2)))
    async with store.begin() as db:
        found = await sessions.history(db, session.id, limit=20)
    assert len(found) == 18
    assert (found[0].text, found[-1].text) == ("ask 7", "answer 9")


async def test_one_long_turn_neither_empties_the_window_nor_is_cut(store: Store) -> None:
    session = await make.stored_session(store, *_turn_of(1, 2), *_turn_of(2, 60))
    async with store.begin() as db:
        found = await sessions.history(db, session.id, limit=50)
    assert (len(found), found[0].text, found[-1].text) == (122, "ask 2", "answer 2")


async def test_a_note_of_our_own_is_no_place_to_cut(store: Store) -> None:
    session = await make.stored_session(
        store, *_turn_of(1, 1), *_turn_of(2, 3), make.user("a note", author="opsthread"), make.assistant("so")
    )
    async with store.begin() as db:
        found = await sessions.history(db, session.id, limit=3)
        after = await sessions.get(db, session.id)
    assert (found[0].text, found[-1].text) == ("ask 2", "so")
    assert after.people == ("Alice",)


async def test_history_outside_the_window_is_still_there(store: Store) -> None:
    session = await make.stored_session(store, *(m for n in range(100) for m in _turn_of(n, 0)))
    async with store.begin() as db:
        await sessions.history(db, session.id, limit=10)
        await sessions.append(db, session.id, None, [make.user("more")])
        assert len(await sessions.messages(db, session.id)) == 201


async def test_an_empty_session_has_an_empty_history(store: Store) -> None:
    session = await make.stored_session(store)
    async with store.begin() as db:
        assert await sessions.history(db, session.id) == []
        assert await sessions.messages(db, session.id, all_branches=True) == []


async def test_a_turn_costs_the_same_wal_in_a_long_session(store: Store) -> None:
    session = await make.stored_session(store)

    async def wal() -> int:
        async with store.begin() as db:
            return int(
                (await db.execute(text("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))).scalar_one()
            )

    async def turns_from(number: int) -> int:
        """The median of what ten turns cost in bytes."""
        costs: list[int] = []
        for each in range(number, number + 10):
            before = await wal()
            for message in _turn_of(each, 1):
                async with store.begin() as db:
                    await sessions.append(db, session.id, None, [message])
            costs.append(await wal() - before)
        return sorted(costs)[5]

    early = await turns_from(10)
    async with store.begin() as db:
        await sessions.append(db, session.id, None, [m for n in range(980) for m in _turn_of(n, 1)])
    late = await turns_from(1000)
    assert late <= early * 1.2, f"{early} bytes a turn at first, {late} at last"


async def test_sessions_are_listed_by_last_use_and_by_person(store: Store) -> None:
    one = await make.stored_session(store, make.user(author="Bob"), key="1", owner="U1")
    two = await make.stored_session(store, make.user(), key="2", owner="U2")
    three = await make.stored_session(store, key="3", owner="U1", team="T2")
    async with store.begin() as db:
        await sessions.append(db, one.id, None, [make.user(author="Bob")])

        async def ids(**more: object) -> list[int]:
            return [s.id for s in await sessions.list_(db, **more)]  # type: ignore[arg-type]

        assert await ids() == [one.id, three.id, two.id]
        assert await ids(limit=1) == [one.id]
        assert await ids(owner="U1") == [one.id, three.id]
        assert await ids(team="T1") == [one.id, two.id]
        assert await ids(person="Bob") == [one.id]
        assert await ids(person="U2") == [two.id]


async def test_an_archived_session_is_hidden_and_kept(store: Store) -> None:
    session = await make.stored_session(store, make.user("kept"))
    async with store.begin() as db:
        assert (await sessions.archive(db, session.id)).state == "archived"
        assert await sessions.list_(db) == []
        assert [s.id for s in await sessions.list_(db, archived=True)] == [session.id]
        assert [m.text for m in await sessions.messages(db, session.id)] == ["kept"]
        assert (await sessions.archive(db, session.id, archived=False)).state == "idle"
        assert len(await sessions.list_(db)) == 1


async def test_a_sessions_state_is_that_of_its_most_urgent_turn(store: Store) -> None:
    session = await make.stored_session(store)

    async def state() -> str:
        async with store.begin() as db:
            return (await sessions.get(db, session.id)).state

    assert await state() == "idle"
    claim = await make.claimed(store, session.id)
    assert await state() == "running"
    async with store.begin() as db:
        await db.execute(text("UPDATE chat_session SET lease_until = now() - interval '1 hour'"))
    assert await state() == "queued", "its process died: it waits to be taken up, it does not run for ever"
    async with store.begin() as db:
        await db.execute(text("UPDATE turn SET state = 'waiting'"))
    assert await state() == "waiting"
    async with store.begin() as db:
        await turns.finish(
            db, turn_id=claim.turn.id, session_id=session.id, epoch=claim.epoch, state=TurnState.DONE
        )
    assert await state() == "idle"
