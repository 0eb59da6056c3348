"""A thread in Slack, from a mention to the answer, with teammates, queues and refusals."""

from __future__ import annotations

import asyncio

from tests.acceptance.conftest import Office, run, until
from tests.fakes.following import FOLLOW, following
from tests.fakes.model import call, calls, say, slow
from tests.fakes.slack import words


async def test_a_mention_is_worked_on_and_answered_in_its_thread(office: Office) -> None:
    await office.serve(afresh=True)
    office.model.push(
        run("df -h /"),
        calls([call("milestone", kind="finding", text="/ is fine")]),
        say("The disk of web-1 is fine."),
    )
    root = await office.slack.mention("U01ALICE", "is the disk of web-1 full?")
    (answer,) = await office.answered(root)
    assert "The disk of web-1 is fine." in words(answer)
    assert "1 command on web-1" in words(answer)
    posts = office.slack.posts("C01OPS", root["ts"])
    assert all(m.get("thread_ts") == root["ts"] for m in posts)
    milestones = [m for m in posts if "Finding" in words(m)]
    assert len(milestones) == 1
    await office.slack.until(
        lambda: any("Done" in words(m) for m in office.slack.posts("C01OPS", root["ts"]))
    )
    progress = [m for m in office.slack.posts("C01OPS", root["ts"]) if "Done" in words(m)]
    assert len(progress) == 1
    assert "df" in words(progress[0])
    assert [c.args["name"] for c in office.slack.called("reactions.add")] == ["eyes"]
    office.sound()


async def test_a_teammate_goes_on_without_a_mention_and_with_their_own_rights(office: Office) -> None:
    await office.serve()
    office.model.push(run("uptime"), say("All is well."))
    root = await office.slack.mention("U01ALICE", "how is web-1?")
    await office.answered(root)
    office.model.push(run("uptime"), say("Still well."))
    await office.slack.reply("U02BOB", "and now?", thread_ts=root["ts"])
    await office.answered(root, 2)
    sent = office.model.requests[-1]["messages"]
    assert any(m["role"] == "user" and m["content"].startswith("[alice] ") for m in sent)
    assert [m["content"] for m in sent if m["role"] == "user"][-1].endswith("and now?")
    office.model.push(run("uptime"), say("You may not use web-1."))
    await office.slack.mention("U04DAN", "and for me?", thread_ts=root["ts"])
    await office.answered(root, 3)
    refused = office.model.requests[-1]["messages"][-1]["content"]
    assert 'host "web-1" is not in the inventory; you may use: db-1' in refused
    assert len(await office.commands()) == 2
    office.sound()


async def test_people_talking_with_one_another_are_left_alone_and_read_later(office: Office) -> None:
    await office.serve()
    office.model.push(say("Hello."))
    root = await office.slack.mention("U01ALICE", "hello")
    await office.answered(root)
    await office.slack.reply("U01ALICE", "<@U02BOB> did you deploy at 10?", thread_ts=root["ts"])
    await office.slack.reply("U02BOB", "yes, version 7", thread_ts=root["ts"])
    await office.slack.reply("U01ALICE", "thanks", thread_ts=root["ts"])
    office.model.push(say("bob deployed version 7."))
    await office.slack.mention("U01ALICE", "what was deployed?", thread_ts=root["ts"])
    await office.answered(root, 2)
    assert len(office.model.requests) == 2
    last = [m["content"] for m in office.model.requests[-1]["messages"] if m["role"] == "user"][-1]
    assert "> bob: yes, version 7" in last
    assert last.endswith("what was deployed?")
    office.sound()


async def test_messages_during_a_turn_are_queued_in_order_and_none_is_lost(office: Office) -> None:
    await office.serve()
    office.model.push(slow(run("uptime"), 0.4), say("one"), say("two"), say("three"))
    root = await office.slack.mention("U01ALICE", "first")
    await office.slack.mention("U02BOB", "second", thread_ts=root["ts"])
    await office.slack.mention("U01ALICE", "third", thread_ts=root["ts"])
    answers = await office.answered(root, 3)
    assert [("one" in words(a), "two" in words(b), "three" in words(c)) for a, b, c in [answers]] == [
        (True, True, True)
    ]
    office.sound()


async def test_the_same_event_again_is_answered_once(office: Office) -> None:
    await office.serve()
    await office.serve()
    office.model.push(slow(say("once"), 0.3), say("twice"))
    root = await office.slack.mention("U01ALICE", "hello")
    for _ in range(3):
        office.slack.deliver_message(root, "C01OPS", "app_mention", event_id="EvAGAIN")
        office.slack.deliver_message(root, "C01OPS", "message")
    await office.answered(root)
    await asyncio.sleep(1.5)  # nothing must follow: there is no state to wait for
    assert len(await office.answered(root)) == 1
    assert len(office.model.requests) == 1
    office.sound()


async def test_a_direct_message_is_a_session_too(office: Office) -> None:
    await office.serve()
    office.model.push(run("uptime"), say("Fine."), say("Yes."))
    root = await office.slack.dm("U01ALICE", "how is web-1?")
    channel = office.slack.workspace.dm("U01ALICE").id
    await office.slack.until(
        lambda: any("Fine." in words(m) for m in office.slack.posts(channel, root["ts"])), timeout=30
    )
    await office.slack.dm("U01ALICE", "sure?", thread_ts=root["ts"])
    await office.slack.until(
        lambda: any("Yes." in words(m) for m in office.slack.posts(channel, root["ts"])), timeout=30
    )
    office.sound()


async def test_guests_empty_messages_and_pictures_get_one_clear_line(office: Office) -> None:
    await office.serve()
    guest = await office.slack.mention("U05GUEST", "let me in")
    empty = await office.slack.mention("U01ALICE", "")
    picture = await office.slack.mention(
        "U01ALICE", "", subtype="file_share", files=[{"id": "F1", "name": "a.png", "mimetype": "image/png"}]
    )
    long = await office.slack.mention("U01ALICE", "x" * 100_000)
    for root in (guest, empty, picture, long):
        posts = await office.slack.until(
            lambda root=root: [
                *office.slack.posts("C01OPS", root["ts"]),
                *[e for e in office.slack.ephemeral if e.get("thread_ts") == root["ts"]],
            ],
            timeout=30,
            what=f"a line for {root['text'][:30]}",
        )
        assert len(posts) == 1
    assert office.model.requests == []
    office.sound()


async def test_the_stop_button_ends_the_command_and_says_who_pressed_it(office: Office) -> None:
    await office.serve()
    office.model.push(run(FOLLOW))
    root = await office.slack.mention("U01ALICE", "follow it")
    await until(lambda: bool(following()))
    progress = await office.slack.until(
        lambda: next(
            (m for m in office.slack.posts("C01OPS", root["ts"]) if "Looking into it" in words(m)), None
        )
    )
    await office.slack.click(progress, "stop", "U01ALICE")
    (answer,) = await office.answered(root)
    assert "Stopped by alice" in words(answer)
    await until(lambda: not following())
    office.sound()


async def test_past_sessions_by_slash_and_by_mention(office: Office) -> None:
    await office.serve()
    office.model.push(say("redis had too many clients."))
    root = await office.slack.mention("U01ALICE", "why does the shop answer 502?")
    await office.answered(root)
    await office.slack.slash("U02BOB", "sessions")
    listed = await office.slack.until(lambda: office.slack.responses[-1:], timeout=20)
    assert "502" in words(listed[0])
    await office.slack.slash("U02BOB", "search redis")
    await office.slack.until(lambda: len(office.slack.responses) >= 2, timeout=20)
    assert "redis" in words(office.slack.responses[-1])
    await office.slack.mention("U01ALICE", "help", thread_ts=root["ts"])
    await office.slack.until(
        lambda: len(office.slack.posts("C01OPS", root["ts"])) + len(office.slack.ephemeral) > 2
    )
    assert len(office.model.requests) == 1
    office.sound()
