"""The screen: which events become posts, and how the one progress message is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC
from typing import Any

import pytest

from bot.events import (
    CommandProgress,
    CommandStarted,
    MilestoneReached,
    Noted,
    PlanChanged,
    StepStarted,
    TextStreamed,
)
from bot.slack import screen as module
from bot.slack.blocks import Message
from bot.slack.screen import SlackScreen
from storage.records import ApprovalState, Command, CommandState, Decision, MilestoneKind, NewPost, TurnState
from tests import make
from tests.fakes import turn_events as made
from tests.fakes.slack import rules


class Slackish:
    """Takes posts and edits in memory. posted: whether the progress message has been delivered."""

    def __init__(self, earlier: list[Command] | None = None) -> None:
        self.queued: list[NewPost] = []
        self.edits: list[Message] = []
        self.posted = True
        self.slow = asyncio.Event()
        self.slow.set()
        self.under_way = asyncio.Event()
        self.edited = asyncio.Event()
        self.earlier = earlier or []

    async def queue(self, post: NewPost) -> None:
        self.queued.append(post)

    async def edit(self, _key: str, content: Callable[[], Message]) -> bool:
        message = content()
        self.under_way.set()
        await self.slow.wait()
        if self.posted:
            self.edits.append(message)
        self.edited.set()
        return self.posted

    async def recall(self) -> list[Command]:
        return self.earlier

    def screen(self, **turn: Any) -> SlackScreen:
        return SlackScreen(
            session=make.session(id=12, channel="C1", thread_ts="1.0"),
            turn=make.turn(id=7, **turn),
            zone=UTC,
            queue=self.queue,
            edit=self.edit,
            recall=self.recall,
        )

    async def begun(self, view: SlackScreen) -> None:
        """Show the start of the turn and wait until its message is queued."""
        await view.show(made.started())
        async with asyncio.timeout(5):
            while not self.queued:
                await asyncio.sleep(0)

    async def next_edit(self) -> str:
        async with asyncio.timeout(5):
            await self.edited.wait()
        self.edited.clear()
        return shown(self.edits[-1]) if self.edits else ""


def shown(message: Message) -> str:
    return "\n".join(rules.texts(list(message.blocks)))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY_S", 0.05)


def test_posts_have_keys_of_what_they_tell_and_go_to_the_thread() -> None:
    view = Slackish().screen()
    keys = {
        "progress": view.posts(made.started()),
        "milestone": view.posts(made.milestone()),
        "asked": view.posts(made.asked()),
        "closed": view.posts(made.closed(ApprovalState.APPROVED)),
        "note": view.posts(Noted("restart", "went on after a restart")),
        "answer": view.posts(made.answered("It is redis-1. " * 600)),
    }
    assert {name: [post.key for post in posts] for name, posts in keys.items()} == {
        "progress": ["progress:7"],
        "milestone": ["milestone:3:1"],
        "asked": ["approval:5"],
        "closed": ["approval:5:approved"],
        "note": ["note:12:restart:1"],
        "answer": ["answer:7:1", "answer:7:2", "answer:7:3", "progress:7:end"],
    }
    assert {(post.channel, post.thread_ts) for posts in keys.values() for post in posts} == {("C1", "1.0")}
    (closed,) = keys["closed"]
    assert (closed.payload["method"], closed.payload["ref"]) == ("chat.update", "approval:5")
    end = keys["answer"][-1].payload
    assert (end["method"], end["ref"], end["otherwise"]) == ("chat.update", "progress:7", "drop")


def test_the_same_event_gives_the_same_posts_again() -> None:
    view = Slackish().screen()
    assert view.posts(made.answered()) == view.posts(made.answered())


def test_steps_and_commands_and_the_conclusion_are_no_posts() -> None:
    view = Slackish().screen()
    conclusion = MilestoneReached(milestone_id=4, kind=MilestoneKind.CONCLUSION, text="x", at="10:00")
    for event in (
        StepStarted(1, 25),
        TextStreamed("x"),
        CommandStarted(1, "web-1", "df", ""),
        CommandProgress(1, "web-1", "df", 30.0, 5),
        made.finished(),
        PlanChanged((("a", "todo"),)),
        conclusion,
    ):
        assert view.posts(event) == ()


async def test_one_message_is_queued_and_then_edited_in_place() -> None:
    slack = Slackish()
    view = slack.screen()
    await slack.begun(view)
    await view.show(StepStarted(1, 25))
    await view.show(CommandStarted(41, "web-1", "systemctl status nginx", ""))
    text = await slack.next_edit()
    assert "Looking into it · step 1 of at most 25 · web-1" in text
    assert "… web-1  systemctl status nginx" in text
    await view.show(made.finished())
    assert "✓ web-1  systemctl status nginx --no-pager   exit 0 · 0.2 s · 7 B" in await slack.next_edit()
    await view.close()
    assert [post.key for post in slack.queued] == ["progress:7"]


async def test_a_hundred_events_are_few_edits_and_the_last_one_counts() -> None:
    slack = Slackish()
    view = slack.screen()
    await slack.begun(view)
    for n in range(100):
        await view.show(CommandStarted(n, "web-1", f"cmd {n}", ""))
    await view.close()
    assert len(slack.edits) <= 3
    assert "cmd 99" in shown(slack.edits[-1])
    assert "… 92 earlier" in shown(slack.edits[-1])


async def test_the_end_is_a_post_and_no_live_edit_follows_it() -> None:
    slack = Slackish()
    view = slack.screen()
    await slack.begun(view)
    await view.show(StepStarted(3, 25))
    await slack.next_edit()
    *_, end = view.posts(made.answered())
    await view.show(made.answered())
    await view.close()
    assert end.payload["text"] == "Done · 3 steps · 4.1 s"
    assert "step 3" in slack.edits[-1].text, "the last state went through the outbox alone"


async def test_an_edit_that_was_under_way_at_the_end_is_followed_by_the_last_state() -> None:
    slack = Slackish()
    view = slack.screen()
    await slack.begun(view)
    slack.slow.clear()
    await view.show(StepStarted(1, 25))
    async with asyncio.timeout(5):
        await slack.under_way.wait()
    view.posts(made.answered())
    await view.show(made.answered())
    slack.slow.set()
    await view.close()
    assert slack.edits[-1].text == "Done · 1 step · 4.1 s"


@pytest.mark.parametrize(
    ("state", "word"),
    [(TurnState.DONE, "Done"), (TurnState.FAILED, "Not finished"), (TurnState.STOPPED, "Stopped")],
)
def test_how_it_ended_is_said(state: TurnState, word: str) -> None:
    *_, end = Slackish().screen().posts(made.answered(state=state))
    assert end.payload["text"].startswith(f"{word} · ")


async def test_waiting_for_approval_is_shown_before_the_turn_is_let_go() -> None:
    slack = Slackish()
    view = slack.screen()
    await slack.begun(view)
    await view.show(made.asked())
    await view.close()
    assert "Waiting for approval" in shown(slack.edits[-1])


async def test_taken_up_again_it_still_shows_what_ran_before() -> None:
    ran = Command(
        1,
        12,
        7,
        "c",
        "web-1",
        "df -h",
        CommandState.DONE,
        Decision.ALLOW,
        "",
        None,
        exit_status=0,
        seconds=0.5,
    )
    lost = Command(
        2, 12, 7, "d", "web-2", "ls", CommandState.UNKNOWN, Decision.ALLOW, "", None, note="cut off"
    )
    slack = Slackish([ran, lost])
    view = slack.screen()
    await view.show(made.started(resumed=True))
    await view.show(made.finished())
    await view.close()
    text = shown(slack.edits[-1])
    assert "Going on" in text
    assert "✓ web-1  df -h   exit 0 · 0.5 s" in text
    assert "? web-2  ls   cut off" in text
    assert text.index("df -h") < text.index("systemctl")


async def test_a_message_that_is_not_delivered_yet_is_edited_later() -> None:
    slack = Slackish()
    slack.posted = False
    view = slack.screen()
    await slack.begun(view)
    await view.show(StepStarted(1, 25))
    await slack.next_edit()
    slack.posted = True
    slack.edited.clear()
    assert "step 1" in await slack.next_edit()
    await view.close()


def test_a_long_turn_ends_by_naming_who_asked() -> None:
    view = Slackish().screen(person="U01ALICE")
    quick, slow = (view.posts(replace(made.answered(), seconds=seconds))[0] for seconds in (5.0, 500.0))
    assert "<@U01ALICE>" not in str(quick.payload)
    assert "<@U01ALICE>" in str(slow.payload["blocks"])
