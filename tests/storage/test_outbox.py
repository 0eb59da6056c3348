"""The outbox: once, in order a thread, taken over after a crash."""

import asyncio
from datetime import UTC, datetime, timedelta

from storage import outbox
from storage.records import NewPost, Post, PostState
from storage.store import Store


def post(key: str, *, thread: str | None = "1.0", channel: str = "C1") -> NewPost:
    return NewPost(key, channel, thread, {"method": "chat.postMessage", "text": key})


async def add(store: Store, *posts: NewPost) -> int:
    async with store.begin() as db:
        return await outbox.add(db, team="T1", session_id=None, posts=posts)


async def claim(store: Store, owner: str = "me", *, lease_s: float = 60.0) -> list[Post]:
    async with store.begin() as db:
        return await outbox.claim(db, owner=owner, lease_s=lease_s)


async def test_the_same_key_is_queued_once(store: Store) -> None:
    assert await add(store, post("a"), post("b"), post("a")) == 2
    assert await add(store, post("a")) == 0


async def test_a_threads_posts_go_one_after_the_other_and_threads_side_by_side(store: Store) -> None:
    await add(
        store,
        post("a1"),
        post("a2"),
        post("b1", thread="2.0"),
        post("c1", thread=None),
        post("c2", thread=None),
    )
    first = await claim(store)
    assert [p.key for p in first] == ["a1", "b1", "c1"]
    assert await claim(store) == []
    async with store.begin() as db:
        await outbox.sent(db, first[0].id, external_ts="9.1")
        await outbox.failed(db, first[2].id, error="channel_not_found")
    assert [p.key for p in await claim(store)] == ["a2", "c2"]
    async with store.begin() as db:
        assert await outbox.external_ts(db, "a1") == "9.1"
        assert await outbox.external_ts(db, "a2") is None
        assert await outbox.external_ts(db, "none") is None
        assert await outbox.state(db, "c1") == PostState.FAILED
        assert await outbox.state(db, "a2") == PostState.SENDING
        assert await outbox.state(db, "none") is None


async def test_a_dead_senders_post_is_taken_over_and_known_to_be_doubtful(store: Store) -> None:
    await add(store, post("a1"), post("a2"))
    (mine,) = await claim(store, "dead", lease_s=0.05)
    assert (mine.state, mine.attempts) == (PostState.NEW, 1)
    assert await claim(store, "other") == []
    taken: list[Post] = []
    async with asyncio.timeout(5):
        while not taken:
            await asyncio.sleep(0.02)
            taken = await claim(store, "other")
    assert [(p.key, p.state, p.attempts) for p in taken] == [("a1", PostState.SENDING, 2)]


async def test_a_slow_sender_keeps_its_post_and_a_robbed_one_does_not(store: Store) -> None:
    await add(store, post("a1"))
    (mine,) = await claim(store, "me", lease_s=0.2)
    async with store.begin() as db:
        await outbox.extend(db, owner="me", ids=[mine.id], lease_s=60)
        await outbox.extend(db, owner="other", ids=[mine.id], lease_s=0)
    assert await claim(store, "other") == []
    async with store.begin() as db:
        await outbox.extend(db, owner="me", ids=[mine.id], lease_s=0)
    assert [p.key for p in await claim(store, "other")] == ["a1"]


async def test_retry_waits_and_says_whether_it_may_have_arrived(store: Store) -> None:
    await add(store, post("a1"), post("a2"))
    (first,) = await claim(store)
    now = datetime.now(UTC)
    async with store.begin() as db:
        await outbox.retry(db, first.id, at=now + timedelta(hours=1), error="ratelimited")
    assert await claim(store) == [], "the second waits for the first"
    async with store.begin() as db:
        await outbox.retry(db, first.id, at=now, error="late")  # not taken now: nothing changes
    assert await claim(store) == []


async def test_a_retry_that_may_have_arrived_is_looked_for_first(store: Store) -> None:
    await add(store, post("a1"))
    now = datetime.now(UTC)
    for unsure, state in [(False, PostState.NEW), (True, PostState.SENDING)]:
        (taken,) = await claim(store)
        async with store.begin() as db:
            await outbox.retry(db, taken.id, at=now, error="timeout", unsure=unsure)
        (again,) = await claim(store)
        assert again.state == state
        async with store.begin() as db:
            await outbox.retry(db, again.id, at=now, error="timeout")


async def test_two_senders_never_take_the_same_post(store: Store) -> None:
    await add(store, *(post(f"k{n}", thread=str(n)) for n in range(30)))
    taken = await asyncio.gather(*(claim(store, f"s{n}") for n in range(3)))
    keys = [p.key for part in taken for p in part]
    assert len(keys) == len(set(keys)) == 30


async def test_text_that_postgres_cannot_hold_is_stored_without_it(store: Store) -> None:
    payload = {"text": "a\x00b\ud800c", "blocks": [{"text": "\\u0000 stays"}]}
    await add(store, NewPost("a", "C1", None, payload))
    (found,) = await claim(store)
    assert found.payload == {"text": "a\ufffdb\ufffdc", "blocks": [{"text": "\\u0000 stays"}]}


async def test_adding_wakes_who_listens(store: Store) -> None:
    woken = asyncio.Event()

    async def wait() -> None:
        async for _ in store.listen(outbox.CHANNEL):
            woken.set()
            return

    waiter = asyncio.create_task(wait())
    try:
        async with asyncio.timeout(10):
            n = 0
            while not woken.is_set():  # until the listener is connected
                n += 1
                await add(store, post(f"k{n}"))
                await asyncio.sleep(0.05)
    finally:
        waiter.cancel()
        await asyncio.gather(waiter, return_exceptions=True)


async def test_a_bot_takes_only_the_posts_of_its_own_team(store: Store) -> None:
    async with store.begin() as db:
        await outbox.add(db, team="T2", session_id=None, posts=[post("theirs")])
        await outbox.add(db, team="T1", session_id=None, posts=[post("ours")])
        taken = await outbox.claim(db, owner="me", team="T1")
    assert [p.key for p in taken] == ["ours"]
