"""Buttons and commands: who may, what they are told, and that only they see it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from bot.events import ApprovalAsked, ApprovalClosed, TurnStarted
from storage import approvals, commands, outbox, sessions, turns
from storage.records import Approval, ApprovalHost, ApprovalState, Decision, Role, TurnState
from storage.records import Message as Said
from tests import make
from tests.fakes.slack import FakeSlack, buttons, words
from tests.fakes.slack.workspace import Message
from tests.slack.conftest import Running, Start

C = "C01OPS"
WEB_1 = ApprovalHost("web-1", "10.0.0.1", 22, "opsbot", "SHA256:x")


async def card(
    bot: Running, slack: FakeSlack, *, asker: str = "U01ALICE", **changes: Any
) -> tuple[Approval, Message]:
    """An open approval of a waiting turn, with its card in the thread."""
    root = await slack.mention(asker, "restart nginx on web-1")
    session = await bot.session(C, root["ts"])
    assert session is not None
    async with bot.store.begin() as db:
        (turn,) = await turns.unfinished(db, session.id)
        stored = await approvals.open_(
            db,
            replace(
                make.approval(),
                team="T01TEAM",
                session_id=session.id,
                turn_id=turn.id,
                token=f"token-{session.id}",
                hosts=(WEB_1,),
                requester=asker,
                digest=f"d{session.id}",
                expires_at=datetime.now(UTC) + timedelta(minutes=10),
                **{"run": "sudo -n systemctl restart nginx", **changes},
            ),
        )
        view = bot.front.screen(session, turn)
        asked = ApprovalAsked(approval=stored, approvers=("U02BOB",), decision=Decision.ASK)
        await outbox.add(db, team="T01TEAM", session_id=session.id, posts=view.posts(asked))
    (message,) = await slack.until(lambda: [m for m in slack.posts(C, root["ts"]) if buttons(m)])
    return stored, message


async def now(bot: Running, approval: Approval) -> Approval:
    async with bot.store.begin() as db:
        return await approvals.get(db, approval.id)


async def told(slack: FakeSlack, count: int = 1) -> dict[str, object]:
    await slack.until(lambda: len(slack.ephemeral) >= count, what="a line for the clicker")
    return slack.ephemeral[count - 1]


async def test_an_approver_approves_once_and_the_card_says_so(start: Start, slack: FakeSlack) -> None:
    bot = await start()
    approval, message = await card(bot, slack)
    delivery = await slack.click(message, "approve", "U02BOB")
    assert delivery.acked_after_s is not None
    assert delivery.acked_after_s < 1
    await slack.until(lambda: not buttons(message), what="the card is closed")
    assert message["text"].startswith("Approved by bob at ")
    assert "sudo -n systemctl restart nginx" in words(message)
    assert (await now(bot, approval)).state is ApprovalState.APPROVED
    line = await told(slack)
    assert (line["user"], line["thread_ts"]) == ("U02BOB", message["thread_ts"])
    await slack.click({**message, "blocks": _card_blocks(slack)}, "approve", "U02BOB")
    assert "already approved by bob" in str((await told(slack, 2))["text"])
    assert slack.violations == []


def _card_blocks(slack: FakeSlack) -> list[dict[str, object]]:
    """The card as an old client still shows it."""
    posted = next(c for c in slack.called("chat.postMessage") if "Approval needed" in str(c.args.get("text")))
    return list(posted.args["blocks"])


async def test_the_wrong_people_change_nothing(start: Start, slack: FakeSlack) -> None:
    bot = await start()
    slack.user("U09GUEST", "gus", is_restricted=True)
    approval, message = await card(bot, slack)
    for n, (who, line) in enumerate(
        [("U01ALICE", "approver"), ("U03CAROL", "not an approver"), ("U09GUEST", "Guests")], start=1
    ):
        await slack.click(message, "approve", who)
        assert line in str((await told(slack, n))["text"])
    assert (await now(bot, approval)).state is ApprovalState.OPEN
    await slack.click(message, "approve", "U02BOB", value="forged")
    assert "not known here" in str((await told(slack, 4))["text"])
    await slack.click(message, "deny", "U02BOB")
    await slack.until(lambda: not buttons(message))
    assert (await now(bot, approval)).state is ApprovalState.DENIED


async def test_a_card_outlives_a_restart(start: Start, slack: FakeSlack) -> None:
    bot = await start()
    approval, message = await card(bot, slack)
    await bot.stop()
    again = await start(before=0)
    await slack.click(message, "approve", "U02BOB")
    await slack.until(lambda: not buttons(message))
    assert (await now(again, approval)).state is ApprovalState.APPROVED


async def test_stop_is_for_the_thread_it_stands_in(start: Start, slack: FakeSlack) -> None:
    bot = await start()
    root = await slack.mention("U01ALICE", "check web-1")
    session = await bot.session(C, root["ts"])
    (turn,) = await bot.turns()
    assert session is not None
    view = bot.front.screen(session, turn)
    await view.show(TurnStarted(turn=turn, session=session, max_steps=25, resumed=False))
    (progress,) = await slack.until(lambda: slack.posts(C, root["ts"]))
    await slack.click(progress, "stop", "U01ALICE", value="999999")
    assert "nothing to stop" in str((await told(slack))["text"])
    await slack.click(progress, "stop", "U02BOB")
    assert str((await told(slack, 2))["text"]).startswith("Stopping")
    async with bot.store.begin() as db:
        assert (await turns.get(db, turn.id)).stop_by == "bob"
    await view.close()


async def response(slack: FakeSlack, user: str, text: str, **more: str) -> str:
    before = len(slack.responses)
    await slack.slash(user, text, **more)
    await slack.until(lambda: len(slack.responses) > before)
    answer = slack.responses[-1]
    assert answer["response_type"] == "ephemeral"
    return words(answer)


async def test_sessions_are_listed_for_whom_they_concern(start: Start, slack: FakeSlack) -> None:
    slack.channel("C02PRIVATE", members=["U01ALICE"], kind="group")
    bot = await start()
    for n in range(12):
        await slack.mention("U01ALICE", f"question {n} &lt;b&gt;")
    secret = await slack.mention("U01ALICE", "secret matter", channel="C02PRIVATE")
    await slack.dm("U02BOB", "my own matter")
    assert len(await bot.sessions()) == 14
    alice = await response(slack, "U01ALICE", "sessions")
    ts = secret["ts"].replace(".", "")
    assert f"<https://acme.slack.example/archives/C02PRIVATE/p{ts}|secret matter>" in alice
    assert "my own matter" not in alice
    assert "page 1 of 2" in alice
    assert "question 0 &lt;b&gt;" in await response(slack, "U01ALICE", "sessions 2")
    bob = await response(slack, "U02BOB", "sessions")
    assert "my own matter" in bob
    assert "secret matter" not in bob
    assert "question 11" in bob, "a member of the channel"
    assert "is the last" in await response(slack, "U02BOB", "sessions 9")
    (hidden,) = [s for s in await bot.sessions() if s.title == "secret matter"]
    assert "that you may see" in await response(slack, "U02BOB", f"show {hidden.id}")
    assert "secret matter" in await response(slack, "U01ALICE", f"show {hidden.id}")
    assert slack.violations == []


async def test_show_tells_what_ran_and_search_finds_it(start: Start, slack: FakeSlack) -> None:
    bot = await start()
    root = await slack.mention("U01ALICE", "why is web-1 slow?")
    session = await bot.session(C, root["ts"])
    (turn,) = await bot.turns()
    assert session is not None
    async with bot.store.begin() as db:
        claim = await turns.claim(db, owner="t", lease_s=30, front=turn.front)
        assert claim is not None
        command = await commands.claim(
            db,
            team="T01TEAM",
            session_id=session.id,
            turn_id=turn.id,
            call_id="c1",
            host="web-1",
            run="uptime -p",
            decision=Decision.ALLOW,
            reason="reads",
            approval_id=None,
        )
        assert command is not None
        said = [
            Said(Role.USER, "why is web-1 slow?", "alice"),
            Said(Role.ASSISTANT, "The <redis> pool is exhausted."),
        ]
        await sessions.append(db, session.id, claim.epoch, said)
    shown = await response(slack, "U01ALICE", f"show {session.id}")
    assert "`uptime -p`" in shown
    assert "The &lt;redis&gt; pool is exhausted." in shown
    assert "why is web-1 slow?" in await response(slack, "U02BOB", "search redis pool")
    assert "None that you may see" in await response(slack, "U02BOB", "search kubernetes")
    assert slack.violations == []


async def test_unknown_words_of_a_command_get_the_help(start: Start, slack: FakeSlack) -> None:
    await start()
    assert "What I can do" in await response(slack, "U01ALICE", "")
    text = await response(slack, "U01ALICE", "frobnicate &lt;!channel&gt;")
    assert "“frobnicate &lt;!channel&gt;” is no command" in text


async def test_the_same_words_by_mention_in_a_thread_are_for_the_asker_alone(
    start: Start, slack: FakeSlack
) -> None:
    bot = await start()
    root = await slack.mention("U01ALICE", "check web-1")
    for n, text in enumerate(["sessions", "help", "show 1", "search web-1"], start=1):
        await slack.mention("U02BOB", text, thread_ts=root["ts"])
        line = await told(slack, n)
        assert (line["user"], line["thread_ts"]) == ("U02BOB", root["ts"])
    await slack.dm("U01ALICE", "sessions")
    await slack.until(
        lambda: any(m["user"] == "U0BOT" for m in slack.workspace.channels["D01ALICE"].messages)
    )
    assert [turn.text for turn in await bot.turns()] == ["check web-1"]
    await slack.mention("U01ALICE", "help me with web-2")
    assert len(await bot.turns()) == 2
    assert slack.violations == []


async def test_guests_get_no_command_answered(start: Start, slack: FakeSlack) -> None:
    await start()
    slack.user("U09GUEST", "gus", is_restricted=True)
    assert "Guests" in await response(slack, "U09GUEST", "sessions")


async def test_an_expired_card_is_closed_without_a_person(start: Start, slack: FakeSlack) -> None:
    bot = await start()
    approval, message = await card(bot, slack)
    session = await bot.session(C, message["thread_ts"])
    assert session is not None
    (turn,) = await bot.turns()
    assert turn.state in (TurnState.QUEUED, TurnState.WAITING)
    closed = ApprovalClosed(approval=replace(approval, state=ApprovalState.EXPIRED), by="")
    await bot.post(*bot.front.screen(session, turn).posts(closed))
    await slack.until(lambda: not buttons(message))
    assert message["text"].startswith("Expired at ")


async def test_anybody_with_a_host_may_hold_the_bot_and_an_approver_sets_it_back(
    start: Start, slack: FakeSlack
) -> None:
    slack.user("U09EVE", "eve")
    await start()
    assert "mode normal" in (await response(slack, "U01ALICE", "mode")).lower()
    assert "may use a host" in await response(slack, "U09EVE", "mode stopped")
    assert "Mode read-only since" in await response(slack, "U01ALICE", "mode read-only deploy freeze")
    shown = await response(slack, "U03CAROL", "mode")
    assert "set by alice (deploy freeze)" in shown
    assert "names as approver" in await response(slack, "U01ALICE", "mode normal")
    assert "Mode normal" in await response(slack, "U02BOB", "mode normal")
    assert "no command of mine" in await response(slack, "U02BOB", "mode sideways")
    assert slack.violations == []


async def test_a_card_says_that_two_people_are_needed_and_who_asked_by_which_message(
    start: Start, slack: FakeSlack
) -> None:
    bot = await start()
    _, message = await card(bot, slack, needs=2, danger="removes folders", run="rm  -r   /srv/x")
    shown = words(message)
    assert "Two different people must approve it" in shown
    assert "removes folders" in shown
    assert "The message: “restart nginx on web-1”" in shown
    assert "rm␠␠-r␠␠␠/srv/x" in shown
    assert "␠ stands for a space" in shown
    await slack.click(message, "approve", "U02BOB")
    assert "another person must approve it too" in str((await told(slack))["text"])
    await slack.until(
        lambda: any("approved by bob" in words(m) for m in slack.posts(C, message["thread_ts"]))
    )
    assert buttons(message), "it is still open"


async def test_show_leaves_out_what_ran_on_hosts_the_asker_may_not_use(
    start: Start, slack: FakeSlack
) -> None:
    bot = await start()
    root = await slack.mention("U01ALICE", "look at both")
    session = await bot.session(C, root["ts"])
    (turn,) = await bot.turns()
    assert session is not None
    async with bot.store.begin() as db:
        for host in ("web-1", "vault-1"):
            await commands.claim(
                db,
                team="T01TEAM",
                session_id=session.id,
                turn_id=turn.id,
                call_id="c1",
                host=host,
                run=f"uptime of {host}",
                decision=Decision.ALLOW,
                reason="reads",
                approval_id=None,
            )
    shown = await response(slack, "U01ALICE", f"show {session.id}")
    assert "uptime of web-1" in shown
    assert "uptime of vault-1" not in shown
    assert "1 commands ran on hosts that you may not use from here" in shown
