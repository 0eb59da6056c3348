"""Threads over kill -9, SIGTERM and several processes: nothing lost, nothing posted or run twice."""

from __future__ import annotations

import asyncio
from pathlib import Path

from storage import history
from storage.embedded import EmbeddedPostgres
from storage.migrate import upgrade
from storage.records import CommandState, Role
from storage.store import Store
from tests.acceptance.conftest import Office, run, until
from tests.fakes.following import FOLLOW, following
from tests.fakes.model import call, calls, say, slow
from tests.fakes.slack import words


async def test_kill_9_in_mid_command_and_the_thread_ends_with_one_answer(office: Office) -> None:
    first = await office.serve(afresh=True)
    office.model.push(run(FOLLOW), say("I do not know how it ended."))
    root = await office.slack.mention("U01ALICE", "follow it")
    await until(lambda: bool(following()))
    await first.kill()
    await until(lambda: not following())
    await office.serve()
    (answer,) = await office.answered(root)
    assert "I do not know how it ended." in words(answer)
    result = office.model.requests[-1]["messages"][-1]
    assert result["role"] == "tool"
    assert "unknown" in result["content"]
    (command,) = await office.commands()
    assert command.state is CommandState.UNKNOWN
    office.sound()


async def test_kill_9_while_an_approval_is_open_and_it_still_counts_once(
    office: Office, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    first = await office.serve()
    office.model.push(run(f"sh -c 'echo ran >> {log}'"), say("Done."))
    root = await office.slack.mention("U02BOB", "do it")
    card = await office.card(root)
    assert "web-1" in words(card)
    await first.kill()
    await office.serve()
    await office.slack.click(card, "approve", "U02BOB")
    await office.slack.until(lambda: office.slack.ephemeral or office.slack.responses, timeout=20)
    assert not log.exists()
    await office.slack.click(card, "approve", "U01ALICE")
    (answer,) = await office.answered(root)
    await office.slack.click(card, "approve", "U03CAROL")
    await office.slack.click(card, "deny", "U01ALICE")
    assert log.read_text() == "ran\n"
    assert "Done." in words(answer)
    assert len(await office.commands()) == 1
    closed = office.slack.workspace.channels["C01OPS"].message(card["ts"])
    assert "Approved* by alice" in words(closed or {})
    office.sound()


async def test_kill_9_in_an_approved_change_and_it_is_not_run_again(office: Office, tmp_path: Path) -> None:
    log = tmp_path / "log"
    first = await office.serve()
    office.model.push(run(f"sh -c 'echo begun >> {log}; sleep 4; echo ended >> {log}'"), say("It ended."))
    root = await office.slack.mention("U02BOB", "do it")
    await office.slack.click(await office.card(root), "approve", "U01ALICE")
    await until(log.exists)
    await first.kill()
    await office.serve()
    (answer,) = await office.answered(root)
    assert "It ended." in words(answer)
    assert log.read_text() == "begun\nended\n"
    assert "exit 0" in office.model.requests[-1]["messages"][-1]["content"]
    office.sound()


async def test_sigterm_hands_a_turn_over_and_an_approved_change_lives_on(
    office: Office, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    first = await office.serve()
    office.model.push(run(f"sh -c 'echo begun >> {log}; sleep 9; echo ended >> {log}'"), say("It ended."))
    root = await office.slack.mention("U02BOB", "do it")
    await office.slack.click(await office.card(root), "approve", "U01ALICE")
    await until(log.exists)
    assert await first.terminate() == 0
    await office.serve()
    (answer,) = await office.answered(root)
    assert "It ended." in words(answer)
    assert log.read_text() == "begun\nended\n"
    office.sound()


async def test_one_of_two_processes_is_killed_and_the_other_goes_on(office: Office) -> None:
    bots = [await office.serve(), await office.serve()]
    office.model.push(slow(run("uptime"), 1.5), run("uptime"), *[say(f"answer {n}") for n in range(8)])
    roots = [await office.slack.mention("U01ALICE", f"question {n}") for n in range(4)]
    await office.model.wait_for_requests(1)
    await bots[0].kill()
    for root in roots:
        assert len(await office.answered(root)) == 1
    third = await office.serve()
    office.model.push(say("from the new one"))
    await office.answered(await office.slack.mention("U01ALICE", "are you there?"))
    assert third.returncode is None
    office.sound()


async def test_the_embedded_postgres_outlives_the_process_that_started_it(office: Office) -> None:
    del office.env["DATABASE_URL"]
    first, second = await office.serve(), await office.serve()
    office.model.push(say("from two"), say("from one"), say("from the new one"))
    await office.answered(await office.slack.mention("U01ALICE", "hello"))
    await first.kill()
    root = await office.slack.mention("U01ALICE", "still there?")
    await office.answered(root)
    third = await office.serve()
    await second.terminate()
    office.model.push(say("and on"))
    await office.slack.reply("U01ALICE", "and now?", thread_ts=root["ts"])
    await office.answered(root, 2)
    assert any(m["content"] == "[alice] still there?" for m in office.model.requests[-1]["messages"])
    assert await third.terminate() == 0  # the last one takes the server with it
    office.sound()


async def test_what_was_said_while_the_bot_was_away_is_answered_once(office: Office) -> None:
    first = await office.serve()
    office.model.push(say("Hello."))
    root = await office.slack.mention("U01ALICE", "hello")
    await office.answered(root)
    await first.kill()
    await office.slack.sockets.drop()
    office.slack.workspace.write("C01OPS", user="U02BOB", text="<@U01ALICE> it was me", thread_ts=root["ts"])
    office.slack.workspace.write(
        "C01OPS", user="U01ALICE", text="<@U0BOT> are you back?", thread_ts=root["ts"]
    )
    new = office.slack.workspace.write("C01OPS", user="U02BOB", text="<@U0BOT> a new question")
    office.model.push(say("I am back."), say("A new answer."))
    await office.serve()
    await office.answered(root, 2)
    await office.answered(new)
    requests = [
        [m["content"] for m in r["messages"] if m["role"] == "user"][-1] for r in office.model.requests
    ]
    assert len(requests) == 3
    assert any("> bob: " in text and text.endswith("are you back?") for text in requests)
    office.sound()


async def test_an_answer_whose_delivery_was_unsure_is_posted_once(office: Office) -> None:
    await office.serve()
    office.model.push(say("only once"))
    office.slack.fail("chat.postMessage", times=2, lost=True)
    office.slack.fail("chat.postMessage", times=1, status=429, retry_after_s=1)
    root = await office.slack.mention("U01ALICE", "hello")
    await office.answered(root)
    assert len(await office.answered(root)) == 1
    office.sound()


async def test_an_outage_longer_than_the_lease_loses_nothing_that_was_said(
    office: Office, tmp_path: Path
) -> None:
    postgres = EmbeddedPostgres(tmp_path / "postgres")
    office.env["DATABASE_URL"] = await postgres.start()
    try:
        await upgrade(office.env["DATABASE_URL"])
        await office.serve()
        asked = [calls([call("list_hosts", filter="")], text=f"step {n}") for n in range(4)]
        office.model.push(*[slow(each, 0.2) for each in asked], slow(say("the end"), 0.2))
        root = await office.slack.mention("U01ALICE", "go")
        await office.model.wait_for_requests(2)
        await postgres.stop()
        await office.model.wait_for_requests(5)
        await asyncio.sleep(4)  # longer than the lease
        await postgres.start()
        (answer,) = await office.answered(root)
        assert "the end" in words(answer)
        assert len(office.model.requests) == 5
        said = [m["content"] for m in office.model.requests[-1]["messages"] if m["role"] == "assistant"]
        assert said == [f"step {n}" for n in range(4)]
        store = Store(office.env["DATABASE_URL"])
        async with store.begin() as db:
            kept = [m.text for m in await history.messages(db, 1) if m.role is Role.ASSISTANT]
        await store.close()
        assert kept == [*said, "the end"]
        office.sound()
    finally:
        await postgres.stop()
