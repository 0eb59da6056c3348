"""What people wrote while we were away, and connections that break."""

from __future__ import annotations

import asyncio

import pytest

from bot.errors import SettingsError
from bot.redact import load_redactor
from bot.slack import socket as socket_module
from bot.slack.front import SlackConfig, SlackFront
from storage import inbox
from storage.store import Store
from tests.fakes.slack import FakeSlack
from tests.slack.conftest import INVENTORY, Running, Start

C = "C01OPS"


async def turn_texts(bot: Running, count: int) -> list[str]:
    async with asyncio.timeout(15):
        while len(found := await bot.turns()) < count:
            await asyncio.sleep(0.05)
    return [turn.text for turn in found]


async def test_while_we_were_down_a_mention_is_answered_once_and_a_reply_becomes_context(
    start: Start, slack: FakeSlack
) -> None:
    bot = await start()
    root = await slack.mention("U01ALICE", "check web-1")
    await bot.stop()
    slack.workspace.write(C, user="U02BOB", text="is it redis?", thread_ts=root["ts"])
    slack.workspace.write(C, user="U01ALICE", text="I doubt it", thread_ts=root["ts"])
    slack.workspace.write(C, user="U02BOB", text="<@U0BOT> what do you say?", thread_ts=root["ts"])
    new = slack.workspace.write(C, user="U01ALICE", text="<@U0BOT> and web-2?")
    slack.workspace.write(C, user="U01ALICE", text="lunch?")
    again = await start(before=0)
    assert sorted(await turn_texts(again, 3)) == ["and web-2?", "check web-1", "what do you say?"]
    async with again.store.begin() as db:
        turns = {turn.text: turn for turn in await again.turns()}
        lines = await inbox.idle_lines(
            db, team="T01TEAM", channel=C, thread_ts=root["ts"], turn_id=turns["what do you say?"].id
        )
    assert [line.text for line in lines] == ["is it redis?", "I doubt it"]
    assert await again.session(C, new["ts"]) is not None


async def test_a_direct_message_and_a_mention_in_a_strange_thread_are_found_too(
    start: Start, slack: FakeSlack
) -> None:
    slack.workspace.dm("U01ALICE")
    slack.workspace.write("D01ALICE", user="U01ALICE", text="check web-1")
    talk = slack.workspace.write(C, user="U02BOB", text="web-2 is slow")
    slack.workspace.write(C, user="U01ALICE", text="really?", thread_ts=talk["ts"])
    slack.workspace.write(C, user="U01ALICE", text="<@U0BOT> is it?", thread_ts=talk["ts"])
    bot = await start()
    assert sorted(await turn_texts(bot, 2)) == ["check web-1", "is it?"]


async def test_after_a_dropped_connection_nothing_is_missing_and_nothing_twice(
    start: Start, slack: FakeSlack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_module, "PING_S", 0.3)
    bot = await start()
    root = await slack.mention("U01ALICE", "check web-1")
    hellos = slack.sockets.hellos
    slack.sockets.refusing = True
    await slack.sockets.drop()
    slack.workspace.write(C, user="U01ALICE", text="and web-2", thread_ts=root["ts"])
    slack.workspace.write(C, user="U02BOB", text="<@U0BOT> help us with web-1")
    slack.sockets.refusing = False
    await slack.until(lambda: slack.sockets.hellos > hellos, what="a new connection")
    assert await turn_texts(bot, 3) == ["check web-1", "and web-2", "help us with web-1"]
    await slack.connected()
    await slack.mention("U01ALICE", "one more")
    assert len(await bot.turns()) == 4


async def test_slack_asks_for_a_fresh_connection(start: Start, slack: FakeSlack) -> None:
    bot = await start()
    hellos = slack.sockets.hellos
    await slack.sockets.disconnect("refresh_requested")
    await slack.until(lambda: slack.sockets.hellos > hellos, what="a new connection")
    await slack.connected()
    await slack.mention("U01ALICE", "check web-1")
    assert len(await bot.turns()) == 1
    assert await bot.front.connected()


async def test_a_handler_that_died_is_replaced(
    start: Start, slack: FakeSlack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_module, "WATCH_S", 0.05)
    monkeypatch.setattr(socket_module, "REBUILD_S", 0.2)
    bot = await start()
    assert bot.front._socket is not None
    assert bot.front._socket._handler is not None
    hellos = slack.sockets.hellos
    await socket_module._close(bot.front._socket._handler.client)
    await slack.until(lambda: slack.sockets.hellos > hellos, what="a new connection")
    await slack.connected()
    await slack.mention("U01ALICE", "check web-1")
    assert len(await bot.turns()) == 1


async def test_an_event_that_cannot_be_stored_is_not_acknowledged_and_comes_again(
    start: Start, slack: FakeSlack, monkeypatch: pytest.MonkeyPatch
) -> None:
    bot = await start()
    receive, broken = bot.desk.receive, [True]

    async def once_broken(arrival):  # type: ignore[no-untyped-def]
        if broken:
            broken.clear()
            raise RuntimeError("a fault of ours")
        return await receive(arrival)

    monkeypatch.setattr(bot.desk, "receive", once_broken)
    message = slack.workspace.write(C, user="U01ALICE", text="<@U0BOT> check web-1")
    delivery = slack.deliver_message(message, C, "app_mention")
    await delivery.done.wait()
    assert delivery.tries == 2
    assert len(await bot.turns()) == 1


async def test_a_wrong_token_is_one_line_that_names_it(slack: FakeSlack, store: Store) -> None:
    def front(**tokens: str) -> SlackFront:
        given = {"bot_token": slack.bot_token, "app_token": slack.app_token, **tokens}
        config = SlackConfig(**given, api_url=slack.api_url, command_name="/ops", timezone="UTC")
        return SlackFront(
            config, store, inventory=lambda _team: INVENTORY, redactor=load_redactor(), owner="t"
        )

    wrong = front(bot_token="xoxb-wrong")
    with pytest.raises(SettingsError, match=r"SLACK_BOT_TOKEN: Slack says invalid_auth"):
        await wrong.open()
    await wrong.close()
    with pytest.raises(SettingsError, match="SLACK_BOT_TOKEN and SLACK_APP_TOKEN must be set"):
        SlackConfig.checked(bot_token=None, app_token="", api_url="x", command_name="/ops", timezone="UTC")


async def test_a_wrong_app_token_is_one_line_that_names_it(start: Start, slack: FakeSlack) -> None:
    wrong = SlackConfig(slack.bot_token, "xapp-wrong", slack.api_url, "/ops", "UTC")
    with pytest.raises(SettingsError, match=r"SLACK_APP_TOKEN: Slack says invalid_auth"):
        await start(config=wrong)
