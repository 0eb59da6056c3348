"""Messages through a real front: sessions, turns, etiquette, refusals; each message once."""

import asyncio

import pytest
from sqlalchemy import text

from bot.events import Noted
from bot.slack import reception
from bot.ssh.inventory import Inventory
from storage import inbox
from tests.fakes.slack import FakeSlack, words
from tests.slack.conftest import INVENTORY, Start, host, rule

C = "C01OPS"


async def answered(slack: FakeSlack, ts: str, *, channel: str = C, count: int = 1) -> str:
    """The bot's own words in a thread, once there are so many posts."""
    posts = await slack.until(lambda: (p := slack.posts(channel, ts)) and len(p) >= count and p)
    return "\n".join(words(post) for post in posts)


async def test_a_mention_and_its_twin_open_one_session_and_one_turn(start: Start, slack: FakeSlack) -> None:
    bot = await start()
    message = await slack.mention("U01ALICE", "why is <http://web-1.example.com|web-1.example.com> slow?")
    (turn,) = await bot.turns()
    assert (turn.person, turn.person_name, turn.channel) == ("U01ALICE", "alice", C)
    assert turn.text == "why is web-1.example.com slow?"
    assert turn.source_ts == message["ts"]
    assert await bot.session(C, message["ts"]) is not None
    await slack.until(lambda: message.get("reactions") == ["eyes"])
    assert slack.violations == []


async def test_the_same_event_again_changes_nothing_also_after_a_restart(
    start: Start, slack: FakeSlack
) -> None:
    bot = await start()
    message = await slack.mention("U01ALICE", "check web-1")
    for kind in ("app_mention", "message"):
        await slack.deliver_message(message, C, kind, event_id="Ev00000001").done.wait()
    await bot.stop()
    again = await start(before=0)
    await slack.deliver_message(message, C, "app_mention", event_id="Ev00000001").done.wait()
    await slack.deliver_message(message, C, "message").done.wait()
    assert len(await again.turns()) == 1
    assert slack.posts(C, message["ts"]) == []


async def test_two_replicas_take_a_message_once(start: Start, slack: FakeSlack) -> None:
    bot = await start()
    await start()
    for n in range(6):
        await slack.mention("U01ALICE", f"question {n}")
    assert len(await bot.turns()) == 6


async def test_a_lone_person_goes_on_without_a_mention(start: Start, slack: FakeSlack) -> None:
    bot = await start()
    root = await slack.mention("U01ALICE", "check web-1")
    await slack.reply("U01ALICE", "and web-2 as well", thread_ts=root["ts"])
    assert [turn.text for turn in await bot.turns()] == ["check web-1", "and web-2 as well"]
    assert len(await bot.sessions()) == 1


async def test_people_talking_with_one_another_are_context_until_we_are_asked(
    start: Start, slack: FakeSlack
) -> None:
    bot = await start()
    root = await slack.mention("U01ALICE", "check web-1")
    await slack.reply("U02BOB", "I think it is redis", thread_ts=root["ts"])
    await slack.reply("U01ALICE", "you mean the pool?", thread_ts=root["ts"])
    await slack.reply("U01ALICE", "<@U02BOB> can you look?", thread_ts=root["ts"])
    assert [turn.text for turn in await bot.turns()] == ["check web-1"]
    await slack.mention("U02BOB", "what do you say?", thread_ts=root["ts"])
    turns = await bot.turns()
    assert [turn.text for turn in turns] == ["check web-1", "what do you say?"]
    async with bot.store.begin() as db:
        lines = await inbox.idle_lines(
            db, team="T01TEAM", channel=C, thread_ts=root["ts"], turn_id=turns[1].id
        )
    assert [(line.author_name, line.text) for line in lines] == [
        ("bob", "I think it is redis"),
        ("alice", "you mean the pool?"),
        ("alice", "@bob can you look?"),
    ]


async def test_a_reply_to_our_own_post_is_for_us_whoever_writes_it(start: Start, slack: FakeSlack) -> None:
    bot = await start()
    root = await slack.mention("U01ALICE", "check web-1")
    await slack.reply("U02BOB", "hm", thread_ts=root["ts"])
    (session,) = await bot.sessions()
    (turn,) = await bot.turns()
    screen = bot.front.screen(session, turn)
    await bot.post(*screen.posts(Noted("n", "I looked.")))
    await slack.until(lambda: slack.posts(C, root["ts"]))
    await slack.reply("U02BOB", "thanks!", thread_ts=root["ts"])
    await slack.reply("U02BOB", "好的 :+1:", thread_ts=root["ts"])
    assert len(await bot.turns()) == 1
    await bot.post(*screen.posts(Noted("m", "Shall I go on?")))
    await slack.until(lambda: len(slack.posts(C, root["ts"])) == 2)
    await slack.reply("U02BOB", "go ahead", thread_ts=root["ts"])
    assert [turn.person for turn in await bot.turns()] == ["U01ALICE", "U02BOB"]


async def test_a_quick_reply_to_a_post_that_we_have_not_recorded_yet_is_for_us(
    start: Start, slack: FakeSlack
) -> None:
    bot = await start()
    root = await slack.mention("U01ALICE", "check web-1")
    await slack.reply("U02BOB", "hm", thread_ts=root["ts"])
    (session,) = await bot.sessions()
    (turn,) = await bot.turns()
    slack.fail("chat.postMessage", late_s=0.6)
    await bot.post(*bot.front.screen(session, turn).posts(Noted("n", "Shall I restart it?")))
    await slack.until(lambda: slack.posts(C, root["ts"]))
    await slack.reply("U02BOB", "yes, do", thread_ts=root["ts"])
    assert [turn.text for turn in await bot.turns()] == ["check web-1", "yes, do"]


async def test_while_the_database_is_away_the_author_is_told_and_the_message_is_kept(
    start: Start, slack: FakeSlack
) -> None:
    bot = await start()
    async with bot.store.begin() as db:
        await db.execute(text("ALTER TABLE inbox RENAME TO inbox_away"))
    message = await slack.mention("U01ALICE", "check web-1")
    assert "I cannot reach my database" in await answered(slack, message["ts"])
    async with bot.store.begin() as db:
        await db.execute(text("ALTER TABLE inbox_away RENAME TO inbox"))
    async with asyncio.timeout(15):
        while not (turns := await bot.turns()):
            await asyncio.sleep(0.05)
    assert [turn.text for turn in turns] == ["check web-1"]
    assert len(slack.posts(C, message["ts"])) == 1


async def test_other_threads_and_channel_talk_are_not_stored(start: Start, slack: FakeSlack) -> None:
    bot = await start()
    talk = await slack.say("U01ALICE", "lunch?")
    await slack.reply("U02BOB", "yes", thread_ts=talk["ts"])
    async with bot.store.begin() as db:
        assert not await inbox.known(db, message_key=f"T01TEAM:{C}:{talk['ts']}")
    assert await bot.sessions() == []


async def test_a_direct_message_needs_no_mention_and_its_thread_stays_one_session(
    start: Start, slack: FakeSlack
) -> None:
    bot = await start()
    root = await slack.dm("U01ALICE", "check web-1")
    reply = await slack.dm("U01ALICE", "and now?", thread_ts=root["ts"])
    await slack.dm("U01ALICE", "thanks", thread_ts=root["ts"])
    turns = await bot.turns()
    assert [turn.text for turn in turns] == ["check web-1", "and now?", "thanks"]
    assert {turn.channel for turn in turns} == {"dm"}
    await slack.deliver_message(reply, "D01ALICE", team_id=None, event_id="EvX").done.wait()
    late = slack.workspace.write("D01ALICE", user="U01ALICE", text="more", thread_ts=root["ts"])
    late.pop("team")
    await slack.deliver_message(late, "D01ALICE", team_id=None, authorizations=None).done.wait()
    assert len(await bot.turns()) == 4
    assert len(await bot.sessions()) == 1


async def test_a_burst_stays_in_order(start: Start, slack: FakeSlack) -> None:
    bot = await start()
    slack.fail("users.info", slow_s=0.4)
    root = slack.workspace.write(C, user="U01ALICE", text="<@U0BOT> first")
    sent = [slack.deliver_message(root, C, "app_mention")]
    for n in range(5):
        message = slack.workspace.write(C, user="U01ALICE", text=f"more {n}", thread_ts=root["ts"])
        sent.append(slack.deliver_message(message, C))
    await asyncio.gather(*(delivery.done.wait() for delivery in sent))
    assert [turn.text for turn in await bot.turns()] == ["first", *(f"more {n}" for n in range(5))]


@pytest.mark.parametrize(
    ("facts", "line"),
    [
        ({"is_restricted": True}, "Guests cannot work with me"),
        ({"is_ultra_restricted": True}, "Guests cannot work with me"),
        ({"is_stranger": True}, "People of other companies"),
        ({"team_id": "T99OTHER"}, "People of other companies"),
    ],
)
async def test_guests_and_strangers_get_one_clear_line(
    start: Start, slack: FakeSlack, facts: dict[str, object], line: str
) -> None:
    bot = await start()
    slack.user("U09GUEST", "gus", **facts)
    message = await slack.mention("U09GUEST", "reboot everything")
    assert line in await answered(slack, message["ts"])
    assert await bot.sessions() == []
    assert len(slack.posts(C, message["ts"])) == 1


async def test_other_bots_are_left_alone(start: Start, slack: FakeSlack) -> None:
    bot = await start()
    slack.user("U08BOT", "alertbot", is_bot=True)
    await slack.mention("U08BOT", "disk full", bot_id="B08")
    await slack.mention("U08BOT", "disk full")
    await slack.mention("U01ALICE", "check web-1")
    assert [turn.text for turn in await bot.turns()] == ["check web-1"]


async def test_without_access_the_line_says_who_can_help(start: Start, slack: FakeSlack) -> None:
    bot = await start()
    slack.user("U07DAVE", "dave")
    message = await slack.mention("U07DAVE", "check web-1")
    assert "no access to any host from here, dave" in await answered(slack, message["ts"])
    root = await slack.mention("U01ALICE", "check web-1")
    for line in ("let me", "and me"):
        await slack.mention("U02BOB", "hm", thread_ts=root["ts"])
        await slack.reply("U07DAVE", line, thread_ts=root["ts"])
    assert {turn.person for turn in await bot.turns()} == {"U01ALICE", "U02BOB"}


async def test_a_member_of_the_group_has_access_and_an_unreadable_group_gives_none(
    start: Start, slack: FakeSlack
) -> None:
    bot = await start()
    await slack.mention("U03CAROL", "check web-1")
    assert [turn.person for turn in await bot.turns()] == ["U03CAROL"]
    slack.workspace.usergroups.clear()
    await bot.stop()
    await start(before=0)
    message = await slack.mention("U03CAROL", "check web-2")
    assert "no access" in await answered(slack, message["ts"])


async def test_a_channel_shared_with_another_company_is_refused_unless_a_rule_names_it(
    start: Start, slack: FakeSlack
) -> None:
    slack.channel("C09SHARED", ext_shared=True)
    bot = await start()
    message = await slack.mention("U01ALICE", "check web-1", channel="C09SHARED")
    assert "shared with another company" in await answered(slack, message["ts"], channel="C09SHARED")
    await bot.stop()
    named = Inventory(hosts=(host("web-1"),), rules=(rule(channels=("C09SHARED",)),))
    bot = await start(inventory=named, before=0)
    await slack.mention("U01ALICE", "check web-2", channel="C09SHARED")
    assert [turn.text for turn in await bot.turns()] == ["check web-2"], "what was refused stays refused"


async def test_no_words_only_a_picture_and_too_many_words_get_one_line_each(
    start: Start, slack: FakeSlack
) -> None:
    bot = await start()
    picture = [{"id": "F1", "name": "graph.png", "mimetype": "image/png"}]
    empty = await slack.mention("U01ALICE", "")
    image = await slack.dm("U01ALICE", "", subtype="file_share", files=picture)
    huge = await slack.mention("U01ALICE", "line <&>\n" * 12_000)
    assert "Say what to look into" in await answered(slack, empty["ts"])
    assert "graph.png" in await answered(slack, image["ts"], channel="D01ALICE")
    assert "the most that can be read" in await answered(slack, huge["ts"])
    assert await bot.sessions() == []
    both = await slack.mention("U01ALICE", "what is this?", subtype="file_share", files=picture)
    assert "I go by your words" in await answered(slack, both["ts"])
    assert [turn.text for turn in await bot.turns()] == ["what is this?"]
    assert slack.violations == []


async def test_a_long_message_that_slack_lets_through_is_taken_whole(start: Start, slack: FakeSlack) -> None:
    bot = await start()
    long = "第" * 39_000
    await slack.mention("U01ALICE", long)
    assert [turn.text for turn in await bot.turns()] == [long]


async def test_messages_of_file_and_broadcast_kind_count_and_edits_do_not(
    start: Start, slack: FakeSlack
) -> None:
    bot = await start()
    root = await slack.mention("U01ALICE", "check web-1")
    await slack.reply("U01ALICE", "and this", thread_ts=root["ts"], subtype="thread_broadcast")
    changed = {"type": "message", "subtype": "message_changed", "channel": C, "ts": "1.0", "message": root}
    await slack.deliver_event(changed).done.wait()
    assert [turn.text for turn in await bot.turns()] == ["check web-1", "and this"]


async def test_when_slack_does_not_say_who_it_is_it_is_asked_again_and_then_the_author(
    start: Start, slack: FakeSlack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reception, "ASK_AGAIN_S", 0.02)
    bot = await start()
    slack.fail("users.info", times=4, error="internal_error")
    await slack.mention("U01ALICE", "check web-1")
    assert [turn.text for turn in await bot.turns()] == ["check web-1"]
    slack.fail("users.info", times=5, error="internal_error")
    message = await slack.mention("U02BOB", "check web-2")
    assert "I could not ask Slack who you are" in await answered(slack, message["ts"])
    assert len(await bot.turns()) == 1


async def test_a_known_inventory_is_used(start: Start, slack: FakeSlack) -> None:
    bot = await start(inventory=Inventory(hosts=INVENTORY.hosts))
    message = await slack.mention("U01ALICE", "check web-1")
    assert "no access" in await answered(slack, message["ts"])
    assert await bot.sessions() == []
