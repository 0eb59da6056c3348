"""Words and buttons about memory in Slack: answered for one person's eyes, and kept nowhere."""

from __future__ import annotations

import asyncio
from typing import Any

from sqlalchemy import text

from bot.events import Answered
from storage import outbox, turns
from storage.memories import ending, keeping, rows
from storage.records import Memory, MemoryKind, NewMemory, TurnState
from tests.fakes.slack import FakeSlack, buttons, words
from tests.slack.conftest import Running, Start

C, T = "C01OPS", "T01TEAM"


async def kept(bot: Running, owner: str, sentence: str, **more: Any) -> Memory:
    async with bot.store.begin() as db:
        new = NewMemory(more.pop("kind", MemoryKind.SOFTWARE_FACT), sentence, **more)
        done = await keeping.add(db, new, team=T, owner=owner)
        assert done is not None
        return await rows.get(db, done.id, team=T, owner=owner)


async def mine(bot: Running, owner: str) -> list[str]:
    async with bot.store.begin() as db:
        return [m.text for m in await rows.list_(db, team=T, owner=owner)]


async def told(slack: FakeSlack, count: int) -> dict[str, Any]:
    await slack.until(lambda: len(slack.ephemeral) >= count, what="an answer for one person")
    return slack.ephemeral[count - 1]


async def test_words_in_a_thread_are_answered_for_one_person_and_kept_nowhere(
    slack: FakeSlack, start: Start
) -> None:
    bot = await start()
    await slack.mention("U01ALICE", "remember: the canary host is web-2")
    answer = await told(slack, 1)
    assert answer["user"] == "U01ALICE"
    assert "the canary host is web-2" in words(answer)
    await kept(bot, "U02BOB", "Bob's own thing.")
    await slack.mention("U01ALICE", "what do you know about me?")
    answer = await told(slack, 2)
    assert "the canary host is web-2" in words(answer)
    assert "Bob" not in words(answer)
    assert await bot.turns() == []
    async with bot.store.begin() as db:
        for table in ("inbox", "outbox", "chat_message", "audit"):
            found = await db.execute(text(f"SELECT 1 FROM {table} t WHERE t::text LIKE '%canary%'"))
            assert found.first() is None, table
    assert slack.violations == []


async def test_slash_commands_and_direct_messages_know_the_words_too(slack: FakeSlack, start: Start) -> None:
    bot = await start()
    await slack.slash("U01ALICE", "remember I am in the Berlin office")
    (answer,) = await slack.until(lambda: slack.responses, what="an answer")
    assert "Berlin" in words(answer)
    for said, expected in (
        ("我的记忆", "Berlin"),
        ("memory off", "Memory is off"),
        ("remember I am in Paris now", "wants no memories"),
    ):
        asked = await slack.dm("U01ALICE", said)
        (post,) = await slack.until(
            lambda asked=asked: slack.posts(slack.workspace.dm("U01ALICE").id, asked["ts"])
        )
        assert expected in words(post)
    assert await mine(bot, "U01ALICE") == ["I am in the Berlin office"]
    assert slack.violations == []


async def test_the_button_under_an_answer_tells_its_asker_and_nobody_else(
    slack: FakeSlack, start: Start
) -> None:
    bot = await start()
    wish = await kept(bot, "U01ALICE", "Prefers answers in French.", kind=MemoryKind.USER_PREFERENCE)
    root = await slack.mention("U01ALICE", "is web-1 up?")
    session = await bot.session(C, root["ts"])
    assert session is not None
    async with bot.store.begin() as db:
        (turn,) = await turns.unfinished(db, session.id)
        await turns.give_memories(db, turn.id, [wish.id])
        answered = Answered(turn, "It is.", "", TurnState.DONE, 1.0, memories=1)
        view = bot.front.screen(session, turn)
        await outbox.add(db, team=T, session_id=session.id, posts=view.posts(answered))
    (message,) = await slack.until(lambda: [m for m in slack.posts(C, root["ts"]) if buttons(m)])
    assert "Used 1 memory" in words(message)
    assert "French" not in words(message)
    await slack.click(message, "memories", "U02BOB")
    assert "French" not in words(await told(slack, 1))
    await slack.click(message, "memories", "U01ALICE")
    shown = await told(slack, 2)
    assert "Prefers answers in French." in words(shown)
    assert "you said so on" in words(shown)
    assert shown["user"] == "U01ALICE"
    await slack.click({**message, "blocks": shown["blocks"]}, "forget", "U02BOB")
    await told(slack, 3)
    assert await mine(bot, "U01ALICE") == ["Prefers answers in French."]
    await slack.click({**message, "blocks": shown["blocks"]}, "forget", "U01ALICE")
    assert "Forgotten" in words(await told(slack, 4))
    assert await mine(bot, "U01ALICE") == []
    assert slack.violations == []


async def test_sharing_is_a_click_on_the_exact_text(slack: FakeSlack, start: Start) -> None:
    bot = await start()
    fact = await kept(
        bot, "U01ALICE", "On web-1, nginx is 1.24.", subject="web-1", attribute="nginx", value="1.24"
    )
    root = await slack.mention("U01ALICE", f"share {fact.id}")
    card = await told(slack, 1)
    assert "On web-1, nginx is 1.24." in words(card)
    async with bot.store.begin() as db:
        assert not (await rows.get(db, fact.id, team=T, owner="U01ALICE")).shared
        await ending.forget(db, fact.id, team=T, owner="U01ALICE")
    await slack.click({**root, "blocks": card["blocks"]}, "share", "U01ALICE")
    await told(slack, 2)
    again = await kept(
        bot, "U01ALICE", "On web-1, nginx is 1.25.", subject="web-1", attribute="nginx", value="1.25"
    )
    await slack.mention("U01ALICE", f"share {again.id}")
    card = await told(slack, 3)
    await slack.click({**root, "blocks": card["blocks"]}, "share", "U02BOB")
    await told(slack, 4)
    async with bot.store.begin() as db:
        assert not (await rows.get(db, again.id, team=T, owner="U01ALICE")).shared
    await slack.click({**root, "blocks": card["blocks"]}, "share", "U01ALICE")
    assert "Shared" in words(await told(slack, 5))
    async with bot.store.begin() as db:
        assert (await rows.get(db, again.id, team=T, owner="U01ALICE")).shared
    assert slack.violations == []


async def test_a_word_that_was_meant_as_work_is_worked_on_and_stays_so(
    slack: FakeSlack, start: Start
) -> None:
    bot = await start()
    await slack.mention("U01ALICE", "forget the stale mounts on web-1")
    await told(slack, 1)
    await slack.mention("U01ALICE", "no, look into it")
    await _turns(slack, bot, ["forget the stale mounts on web-1"])
    await slack.mention("U01ALICE", "Forget the stale mounts on web-1.")
    await _turns(slack, bot, ["forget the stale mounts on web-1", "Forget the stale mounts on web-1."])
    await slack.mention("U02BOB", "forget the stale mounts on web-1")
    assert "nothing that fits" in words(await told(slack, 2))
    assert slack.violations == []


async def _turns(slack: FakeSlack, bot: Running, texts: list[str]) -> None:
    async with asyncio.timeout(20):
        while [turn.text for turn in await bot.turns()] != texts:
            await asyncio.sleep(0.05)
