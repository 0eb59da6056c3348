"""An approval is good once, for what was shown, from the right person, for a while: also across kill -9 and replicas."""

from __future__ import annotations

import asyncio
from pathlib import Path

from sqlalchemy import text

from storage import approvals
from storage.records import ApprovalState
from tests.acceptance.conftest import Office, run, until
from tests.fakes.model import say

GRAVE = "rm -r"


def told(office: Office) -> list[str]:
    return [str(line["text"]) for line in office.slack.ephemeral]


async def test_of_many_clicks_at_two_processes_only_the_right_ones_count_and_it_runs_once(
    office: Office, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    await office.serve()
    await office.serve()
    office.model.push(run(f"sh -c 'echo ran >> {log}'"), say("done"))
    root = await office.slack.mention("U02BOB", "go")
    card = await office.card(root)
    for who in ("U02BOB", "U04DAN", "U05GUEST"):
        await office.slack.click(card, "approve", who)
    for forged in ("forged", "x' OR '1'='1", "\x00", " "):
        await office.slack.click(card, "approve", "U01ALICE", value=forged)
    await office.slack.until(lambda: len(office.slack.ephemeral) == 7, what="a line for each")
    assert not log.exists()
    assert not any("approved by" in line for line in told(office))
    clicks = [office.slack.click(card, "approve", who) for who in ("U01ALICE", "U03CAROL") * 4]
    await asyncio.gather(*clicks)
    await office.answered(root)
    await office.slack.until(lambda: len(office.slack.ephemeral) == 15, what="a line for each")
    assert sum(line.startswith("Approved by") for line in told(office)) == 1
    assert sum("already" in line for line in told(office)) == 7
    await office.slack.click(card, "approve", "U01ALICE")
    await office.slack.until(lambda: len(office.slack.ephemeral) == 16, what="a line for the replay")
    assert "already approved and carried out" in told(office)[-1]
    assert log.read_text() == "ran\n"
    office.sound()


async def test_two_people_approve_what_is_dangerous_one_before_and_one_after_kill_9(
    office: Office, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    bot = await office.serve()
    office.model.push(run(f"{GRAVE} {gone}"), say("removed"))
    root = await office.slack.mention("U02BOB", "remove it")
    card = await office.card(root)
    await office.slack.click(card, "approve", "U01ALICE")
    await office.slack.until(lambda: bool(told(office)))
    assert "another person must approve it too" in told(office)[0]
    await bot.kill()
    await office.serve()
    await office.slack.click(card, "approve", "U01ALICE")
    await office.slack.until(lambda: len(told(office)) == 2)
    assert "you have approved it already" in told(office)[1].lower()
    assert gone.exists()
    await office.slack.click(card, "approve", "U03CAROL")
    await office.answered(root)
    assert not gone.exists()
    office.sound()


async def test_an_approval_altered_or_outlived_while_everything_was_down_runs_nothing(
    office: Office, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    bot = await office.serve()
    office.model.push(run(f"sh -c 'echo altered >> {log}'"), say("not then"))
    root = await office.slack.mention("U02BOB", "go")
    card = await office.card(root)
    await bot.kill()
    async with office.store.begin() as db:
        await db.execute(text("UPDATE approval SET run = replace(run, 'altered', 'another')"))
    bot = await office.serve()
    await office.slack.click(card, "approve", "U01ALICE")
    await office.answered(root)
    assert "refused: the rules would run another text now" in str(office.model.requests[-1]["messages"][-1])
    assert not log.exists()

    office.model.push(run(f"sh -c 'echo late >> {log}'"), say("too late"))
    root = await office.slack.mention("U02BOB", "go again")
    card = await office.card(root)
    await bot.kill()
    async with office.store.begin() as db:
        await db.execute(text("UPDATE approval SET expires_at = now() WHERE state = 'open'"))
    await office.serve()
    await office.slack.click(card, "approve", "U01ALICE")
    await office.answered(root)
    assert "nobody answered the approval in time" in str(office.model.requests[-1]["messages"][-1])
    async with office.store.begin() as db:
        (last,) = await approvals.of_session(db, 2)
    assert last.state is ApprovalState.EXPIRED
    await asyncio.sleep(0.5)
    assert not log.exists()
    office.sound()


async def test_deleting_the_message_that_asked_takes_its_card_back(office: Office, tmp_path: Path) -> None:
    log = tmp_path / "log"
    await office.serve()
    office.model.push(run(f"sh -c 'echo ran >> {log}'"))
    root = await office.slack.mention("U02BOB", "go")
    card = await office.card(root)
    gone = {"type": "message", "subtype": "message_deleted", "channel": "C01OPS", "hidden": True}
    await office.slack._acked(
        office.slack.deliver_event({**gone, "deleted_ts": root["ts"], "ts": "1900000000.000100"})
    )
    await office.answered(root)
    await office.slack.click(card, "approve", "U01ALICE")
    await office.slack.until(lambda: bool(told(office)))
    assert "already revoked by deleting its message" in told(office)[0]
    assert not log.exists()
    await until(lambda: office.model.violations == [])
