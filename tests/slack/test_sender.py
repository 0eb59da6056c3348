"""The outbox's worker against a Slack that is slow, silent, busy or refuses: once, and in order."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from bot.slack import sender as module
from bot.slack.blocks import note
from storage import outbox
from storage.records import NewPost, PostState
from tests.fakes.slack import FakeSlack
from tests.slack.conftest import Running, Start

C = "C01OPS"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POLL_S", 0.1)
    monkeypatch.setattr(module, "EDIT_GAP_S", 0.3)


def post(key: str, ts: str, **payload: Any) -> NewPost:
    return NewPost(key, C, ts, {**note(key)[0].payload(), **payload})


async def root(slack: FakeSlack) -> str:
    return str(slack.workspace.write(C, user="U01ALICE", text="root")["ts"])


def texts(slack: FakeSlack, ts: str) -> list[str]:
    return [message["text"] for message in slack.posts(C, ts)]


async def state(bot: Running, key: str) -> PostState | None:
    async with bot.store.begin() as db:
        return await outbox.state(db, key)


async def settled(bot: Running, *keys: str, as_: PostState = PostState.SENT) -> None:
    async with asyncio.timeout(15):
        for key in keys:
            while await state(bot, key) is not as_:
                await asyncio.sleep(0.02)


async def test_posts_of_a_thread_arrive_in_order_with_their_key(start: Start, slack: FakeSlack) -> None:
    bot = await start()
    ts = await root(slack)
    slack.fail("chat.postMessage", slow_s=0.3)
    await bot.post(*(post(f"k{n}", ts) for n in range(6)))
    await settled(bot, "k5")
    assert texts(slack, ts) == [f"k{n}" for n in range(6)]
    assert slack.posts(C, ts)[0]["metadata"] == {"event_type": "opsthread", "event_payload": {"post": "k0"}}
    assert slack.violations == []


async def test_two_replicas_send_each_post_once(start: Start, slack: FakeSlack) -> None:
    bot = await start()
    await start()
    roots = [await root(slack) for _ in range(4)]
    await bot.post(*(post(f"{ts} {n}", ts) for n in range(4) for ts in roots))
    await settled(bot, *(f"{ts} 3" for ts in roots))
    for ts in roots:
        assert texts(slack, ts) == [f"{ts} {n}" for n in range(4)]


async def test_an_answer_of_slack_that_got_lost_does_not_post_twice(start: Start, slack: FakeSlack) -> None:
    bot = await start()
    ts = await root(slack)
    slack.fail("chat.postMessage", lost=True)
    await bot.post(post("a", ts), post("b", ts))
    await settled(bot, "b")
    assert texts(slack, ts) == ["a", "b"]
    assert slack.called("conversations.replies"), "it looked before it would have posted again"


@pytest.mark.parametrize("delivered", [True, False])
async def test_a_post_left_by_a_killed_process_is_sent_once(
    start: Start, slack: FakeSlack, delivered: bool
) -> None:
    bot = await start()
    ts = await root(slack)
    await bot.stop()
    await bot.store.open()
    await bot.post(post("a", ts), post("b", ts))
    async with bot.store.begin() as db:
        await outbox.claim(db, owner="killed", lease_s=0.2)
    if delivered:
        metadata = {"event_type": "opsthread", "event_payload": {"post": "a"}}
        slack.workspace.write(C, user="U0BOT", text="a", thread_ts=ts, bot_id="B0BOT", metadata=metadata)
    again = await start(before=0)
    await settled(again, "a", "b")
    assert texts(slack, ts) == ["a", "b"]


async def test_a_slow_slack_is_no_reason_for_another_process_to_post_too(
    start: Start, slack: FakeSlack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LEASE_S", 0.4)
    bot = await start()
    await start()
    ts = await root(slack)
    slack.fail("chat.postMessage", slow_s=2.0)
    await bot.post(post("a", ts), post("b", ts))
    await settled(bot, "b")
    assert texts(slack, ts) == ["a", "b"]
    assert len(slack.called("chat.postMessage")) == 2


async def test_rate_limits_and_outages_delay_but_keep_the_order(start: Start, slack: FakeSlack) -> None:
    bot = await start()
    ts = await root(slack)
    slack.fail("chat.postMessage", status=429, retry_after_s=1)
    slack.fail("chat.postMessage", status=500)
    slack.fail("chat.postMessage", error="internal_error")
    await bot.post(post("a", ts), post("b", ts))
    await settled(bot, "b")
    assert texts(slack, ts) == ["a", "b"]
    first, second = slack.called("chat.postMessage")[:2]
    assert second.at - first.at >= 1.0, "Retry-After was kept"


async def test_slack_away_for_a_while_loses_nothing(start: Start, slack: FakeSlack) -> None:
    bot = await start()
    ts = await root(slack)
    slack.down = True
    await bot.post(post("a", ts), post("b", ts))
    await slack.until(lambda: len(slack.called("conversations.replies")) >= 2)
    slack.down = False
    await settled(bot, "a", "b")
    assert texts(slack, ts) == ["a", "b"]


@pytest.mark.parametrize("error", ["channel_not_found", "is_archived", "thread_not_found", "msg_too_long"])
async def test_what_slack_refuses_for_good_does_not_hold_the_rest(
    start: Start, slack: FakeSlack, error: str
) -> None:
    bot = await start()
    ts = await root(slack)
    slack.fail("chat.postMessage", error=error)
    await bot.post(post("a", ts), post("b", ts))
    await settled(bot, "b")
    assert await state(bot, "a") is PostState.FAILED
    assert texts(slack, ts) == ["b"]


async def test_blocks_that_slack_refuses_are_said_as_text(start: Start, slack: FakeSlack) -> None:
    bot = await start()
    ts = await root(slack)
    slack.fail("chat.postMessage", error="msg_blocks_too_long")
    await bot.post(post("a", ts))
    await settled(bot, "a")
    (message,) = slack.posts(C, ts)
    assert message["text"] == "a"
    assert "blocks" not in message


async def test_a_revoked_token_holds_the_posts_back(start: Start, slack: FakeSlack) -> None:
    bot = await start()
    ts = await root(slack)
    slack.fail("chat.postMessage", error="token_revoked")
    await bot.post(post("a", ts))
    await slack.until(lambda: slack.called("chat.postMessage"))
    async with asyncio.timeout(5):
        while await state(bot, "a") is not PostState.NEW:
            await asyncio.sleep(0.02)


async def test_an_update_edits_the_message_of_its_post(start: Start, slack: FakeSlack) -> None:
    bot = await start()
    ts = await root(slack)
    update = {"method": "chat.update", "text": "answered", "ref": "card", "otherwise": "post"}
    await bot.post(post("card", ts), NewPost("card:approved", C, ts, update))
    await settled(bot, "card:approved")
    assert texts(slack, ts) == ["answered"]


@pytest.mark.parametrize(("otherwise", "said"), [("post", ["closed"]), ("drop", [])])
async def test_an_update_without_its_message_is_said_anew_or_dropped(
    start: Start, slack: FakeSlack, otherwise: str, said: list[str]
) -> None:
    bot = await start()
    ts = await root(slack)
    slack.fail("chat.postMessage", error="is_archived")
    update = {"method": "chat.update", "text": "closed", "ref": "card", "otherwise": otherwise}
    await bot.post(post("card", ts), NewPost("card:denied", C, ts, update), post("after", ts))
    await settled(bot, "after")
    assert texts(slack, ts) == [*said, "after"]


async def test_an_ephemeral_post_is_for_one_person(start: Start, slack: FakeSlack) -> None:
    bot = await start()
    ts = await root(slack)
    payload = note("psst")[0].payload("chat.postEphemeral", user="U01ALICE")
    await bot.post(NewPost("e", C, ts, payload))
    await settled(bot, "e")
    (told,) = slack.ephemeral
    assert (told["user"], told["thread_ts"], told["text"]) == ("U01ALICE", ts, "psst")
    assert slack.violations == []


async def test_a_progress_edit_finds_its_message_also_after_a_restart(start: Start, slack: FakeSlack) -> None:
    bot = await start()
    ts = await root(slack)
    await bot.post(post("progress:1", ts))
    await settled(bot, "progress:1")
    await bot.stop()
    again = await start(before=0)
    _, sender = again.front._opened()
    assert await sender.edit("progress:1", lambda: note("step 2")[0])
    assert not await sender.edit("progress:2", lambda: note("never posted")[0])
    slack.fail("chat.update", error="message_not_found")
    assert not await sender.edit("progress:1", lambda: note("step 3")[0])
    assert texts(slack, ts) == ["step 2"]


async def test_edits_of_all_turns_keep_a_distance_and_show_the_newest(start: Start, slack: FakeSlack) -> None:
    bot = await start()
    ts = await root(slack)
    await bot.post(*(post(f"progress:{n}", ts) for n in range(3)))
    await settled(bot, "progress:2")
    _, sender = bot.front._opened()
    newest = ["old"]
    edits = [asyncio.create_task(sender.edit(f"progress:{n}", lambda: note(newest[0])[0])) for n in range(3)]
    await slack.until(lambda: slack.called("chat.update"))
    newest[0] = "new"
    assert all(await asyncio.gather(*edits))
    times = [call.at for call in slack.called("chat.update")]
    assert all(later - earlier >= 0.25 for earlier, later in itertools.pairwise(times))
    assert sorted(texts(slack, ts)) == ["new", "new", "old"]
