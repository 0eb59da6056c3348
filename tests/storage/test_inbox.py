"""The inbox: a message once, context for the next turn, who spoke last."""

import asyncio
from datetime import UTC, datetime, timedelta

from sqlalchemy import text

from storage import inbox, outbox, people
from storage.records import NewPost, ThreadLine
from storage.store import Db, Store

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


async def put(
    db: Db,
    ts: str,
    *,
    author: str = "U1",
    event: str | None = None,
    turn_id: int | None = None,
    words: str = "hi",
) -> bool:
    return await inbox.add(
        db,
        team="T1",
        event_key=event,
        message_key=f"T1:C1:{ts}",
        channel="C1",
        thread_ts="100.000001",
        ts=ts,
        author=author.strip("\x00"),
        author_name=author.lower(),
        text=words,
        session_id=None,
        turn_id=turn_id,
    )


async def session_and_turns(db: Db, count: int) -> list[int]:
    session = await db.execute(
        text("""INSERT INTO chat_session (team, origin, key, owner, channel, thread_ts)
                VALUES ('T1', 'slack', 'C1:100.000001', 'U1', 'C1', '100.000001') RETURNING id""")
    )
    found = session.scalar_one()
    return [
        (
            await db.execute(
                text("""INSERT INTO turn (team, session_id, state, front, person, owner, channel, text)
                        VALUES ('T1', :session, 'queued', 'slack', 'U1', 'U1', 'C1', 'x') RETURNING id"""),
                {"session": found},
            )
        ).scalar_one()
        for _ in range(count)
    ]


async def test_what_postgres_cannot_hold_is_mended(store: Store) -> None:
    async with store.begin() as db:
        assert await put(db, "1.000001", author="U\x00", words="a\x00b\ud800c")
        await people.note(db, team="T1", person="U1", name="a\x00\udfff")
        said = (await db.execute(text("SELECT author_name, text FROM inbox"))).one()
        name = (await db.execute(text("SELECT name FROM person"))).scalar_one()
    assert (said.author_name, said.text, name) == ("u\ufffd", "a\ufffdb\ufffdc", "a\ufffd\ufffd")


async def test_a_message_is_added_once_whichever_event_brings_it(store: Store) -> None:
    async with store.begin() as db:
        assert await put(db, "1.000001", event="Ev1")
        assert not await put(db, "1.000001", event="Ev1")
        assert not await put(db, "1.000001", event="Ev2"), "the twin event of the same message"
        assert not await put(db, "1.000009", event="Ev1"), "the same event again"
        assert await inbox.known(db, message_key="T1:C1:1.000001")
        assert not await inbox.known(db, message_key="T1:C1:1.000009")


async def test_of_many_at_the_same_time_one_wins(store: Store) -> None:
    async def one(n: int) -> bool:
        async with store.begin() as db:
            won = await put(db, "1.000001", event=f"Ev{n % 2}")
            await asyncio.sleep(0.02)
            return won

    assert sum(await asyncio.gather(*(one(n) for n in range(6)))) == 1


async def test_a_rolled_back_receiver_leaves_the_message_to_the_next(store: Store) -> None:
    class Crash(Exception):
        pass

    try:
        async with store.begin() as db:
            assert await put(db, "1.000001", event="Ev1")
            raise Crash
    except Crash:
        pass
    async with store.begin() as db:
        assert await put(db, "1.000001", event="Ev1")


async def test_lines_without_a_turn_are_context_for_the_next_turn_only(store: Store) -> None:
    async with store.begin() as db:
        first, second = await session_and_turns(db, 2)
        await put(db, "1.000001", turn_id=first)
        await put(db, "1.000002", author="U2", words="looks like redis")
        await put(db, "1.000003", author="U3", words="yes")
        await put(db, "1.000004", turn_id=second)
        await put(db, "1.000005", author="U2", words="later")

        async def lines(turn: int | None) -> list[str]:
            found = await inbox.idle_lines(db, team="T1", channel="C1", thread_ts="100.000001", turn_id=turn)
            return [line.text for line in found]

        assert await lines(first) == []
        assert await lines(second) == ["looks like redis", "yes"]
        assert await lines(None) == ["later"]


async def test_a_line_that_came_late_is_context_for_the_next_turn(store: Store) -> None:
    async with store.begin() as db:
        (turn,) = await session_and_turns(db, 1)
        await put(db, "1.000002", turn_id=turn)
        await put(db, "1.000001", author="U2", words="late")
        found = await inbox.idle_lines(db, team="T1", channel="C1", thread_ts="100.000001")
        assert found == [ThreadLine("U2", "u2", "late", "1.000001")]


async def test_attach_tells_the_turn_afterwards(store: Store) -> None:
    async with store.begin() as db:
        (turn,) = await session_and_turns(db, 1)
        await put(db, "1.000001")
        session = (await db.execute(text("SELECT id FROM chat_session"))).scalar_one()
        await inbox.attach(db, message_key="T1:C1:1.000001", session_id=session, turn_id=turn)
        assert await inbox.idle_lines(db, team="T1", channel="C1", thread_ts="100.000001") == []


async def test_the_last_word_is_the_one_before_the_message_even_when_we_posted_since(store: Store) -> None:
    async with store.begin() as db:
        await session_and_turns(db, 1)
        await put(db, "100.000001", author="U1")
        await put(db, "101.000001", author="U2")
        await outbox.add(db, team="T1", session_id=None, posts=[NewPost("p1", "C1", "100.000001", {})])
        (post,) = await outbox.claim(db, owner="me")
        await outbox.sent(db, post.id, external_ts="103.000001")
        for ts, by in [("100.000001", "U1"), ("101.000001", "U2")]:
            await inbox.note_seen(db, "T1", "C1", thread_ts="100.000001", ts=ts, by=by, person=by)

        async def last(before: str) -> str:
            found = await inbox.thread_state(db, "T1", "C1", thread_ts="100.000001", before_ts=before)
            assert found.people == ("U1", "U2")
            assert found.session_id is not None
            return found.last_by

        assert await last("102.000001") == "U2", "written before our post, though it arrived after"
        assert await last("104.000001") == inbox.BOT
        assert await last("101.000001") == "U1"


async def test_a_post_on_its_way_is_told(store: Store) -> None:
    async with store.begin() as db:
        post = NewPost("p1", "C1", "100.000001", {"method": "chat.postMessage"})
        await outbox.add(db, team="T1", session_id=None, posts=[post])
        (claimed,) = await outbox.claim(db, owner="me")
        assert (await inbox.thread_state(db, "T1", "C1", thread_ts="100.000001")).in_flight
        await outbox.sent(db, claimed.id, external_ts="101.000001")
        assert not (await inbox.thread_state(db, "T1", "C1", thread_ts="100.000001")).in_flight


async def test_an_unknown_thread_has_no_session_and_no_people(store: Store) -> None:
    async with store.begin() as db:
        assert await inbox.thread_state(db, "T1", "C9", thread_ts="1.0") == inbox.ThreadState(None, "", ())
        assert await inbox.last_seen(db, "T1", "C9", thread_ts="1.0") is None


async def test_note_seen_keeps_the_latest(store: Store) -> None:
    async with store.begin() as db:
        for ts, by in [("2.0", "U1"), ("1.0", "U2"), ("2.0", "U3")]:
            await inbox.note_seen(db, "T1", "C1", thread_ts="", ts=ts, by=by, person=by)
        assert await inbox.last_seen(db, "T1", "C1", thread_ts="") == "2.0"
        assert (await inbox.thread_state(db, "T1", "C1", thread_ts="")).people == ("U1", "U2", "U3")
        assert [seen.channel for seen in await inbox.channels_seen(db, "T1")] == ["C1"]


async def test_live_threads_are_the_slack_sessions_that_moved(store: Store) -> None:
    async with store.begin() as db:
        await session_and_turns(db, 1)
        (found,) = await inbox.live_threads(db, "T1", since=LONG_AGO)
        assert (found.channel, found.thread_ts, found.last_ts) == ("C1", "100.000001", "100.000001")
        await inbox.note_seen(db, "T1", "C1", thread_ts="100.000001", ts="105.0", by="U1", person="U1")
        (found,) = await inbox.live_threads(db, "T1", since=LONG_AGO)
        assert found.last_ts == "105.0"
        assert await inbox.live_threads(db, "T1", since=datetime.now(UTC) + timedelta(hours=1)) == []
        assert await inbox.live_threads(db, "T2", since=LONG_AGO) == []


async def test_a_line_that_was_not_kept_counts_as_the_last_word_all_the_same(store: Store) -> None:
    async with store.begin() as db:
        await put(db, "100.000001")
        await inbox.note_seen(
            db, "T1", "C1", thread_ts="100.000001", ts="101.000001", by="UGUEST", person="UGUEST"
        )
        found = await inbox.thread_state(db, "T1", "C1", thread_ts="100.000001", before_ts="102.000001")
        assert (found.last_by, found.people) == ("UGUEST", ("UGUEST",))


async def test_sessions_of_are_those_a_person_wrote_in(store: Store) -> None:
    async with store.begin() as db:
        (turn,) = await session_and_turns(db, 1)
        session = (await db.execute(text("SELECT id FROM chat_session"))).scalar_one()
        await put(db, "1.000001", author="U1")
        await put(db, "1.000002", author="U2")
        await inbox.attach(db, message_key="T1:C1:1.000001", session_id=session, turn_id=turn)
        assert await inbox.sessions_of(db, team="T1", person="U1") == {session}
        assert await inbox.sessions_of(db, team="T1", person="U2") == frozenset()
