"""Each text through every part that shows words of others: Slack messages, terminals, JSON, post-mortems."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC

import pytest

from bot.cli import post_mortem
from bot.events import CommandFinished, CommandRefused, Event, MilestoneReached, Noted, PlanChanged
from bot.outside import name
from bot.slack import blocks, cards
from bot.slack.blocks import Line, Progress
from bot.slack.text import escape
from bot.terminal import json_lines, plain
from bot.terminal.screen import TerminalScreen, make_console
from storage.records import ApprovalState, MilestoneKind, Role
from tests import make
from tests.fakes import turn_events as events
from tests.hostile.cases import (
    CASES,
    Case,
    imitations,
    one_object_a_line,
    slack_is_sound,
    terminal_is_sound,
    wire_is_sound,
)

every = pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_there_are_enough_of_them_in_both_languages() -> None:
    assert len(CASES) >= 60
    assert len({case.aim for case in CASES}) == 7
    assert sum(1 for case in CASES if any("\u4e00" <= c <= "\u9fff" for c in case.text)) >= 10


@every
def test_slack_shows_it_as_words_of_the_model(case: Case) -> None:
    for message in [
        *blocks.prose(case.text, footer=f"1 command on {case.text[:50]}", asker=case.text),
        *blocks.milestone(MilestoneKind.FINDING, case.text, "10:02"),
    ]:
        slack_is_sound("chat.postMessage", message.payload())
        shown = [b["text"] for b in message.blocks if b["type"] == "markdown"]
        assert (
            imitations(
                line for text in shown for line in text.split("\n")[:1] if "Finding · 10:02" not in line
            )
            == []
        )
        assert imitations("\n".join(shown).split("\n")[1:]) == []


@every
def test_slack_shows_it_within_our_own_lines(case: Case) -> None:
    line = Line("✓", case.text, case.text, case.text)
    view = Progress(case.text, (line,), plan=((case.text, "todo"), ("x", "done")), stop=None)
    slack_is_sound("chat.postMessage", blocks.progress(view).payload())
    for message in [
        *blocks.note(case.text),
        blocks.listing(case.text, [escape(case.text)], hint=case.text),
    ]:
        slack_is_sound("chat.postMessage", message.payload())


@every
def test_a_card_holds_one_line_for_each_thing_that_others_said(case: Case) -> None:
    asked = replace(
        make.approval(),
        run="touch x",
        reason=case.text,
        purpose=case.text,
        requester=f"local:{case.text}",
        danger=case.text,
    )
    *before, last = cards.approval_card(asked, (f"local:{case.text}",), zone=UTC, said=case.text)
    for message in before:
        slack_is_sound("chat.postMessage", message.payload())
    slack_is_sound("chat.postMessage", last.payload(), card=True)
    assert [b["type"] for b in last.blocks].count("actions") == 1
    quoted = [b["text"]["text"] for b in last.blocks if b["type"] == "section"]
    assert [q for q in quoted if q.startswith(("Why it asks", "The message"))] == [
        q for q in quoted if q.startswith(("Why it asks", "The message")) and "\n" not in q
    ]
    for state in (ApprovalState.APPROVED, ApprovalState.DENIED, ApprovalState.EXPIRED):
        closed = cards.approval_closed(replace(asked, state=state), by=f"local:{case.text}", zone=UTC)
        slack_is_sound("chat.update", closed.payload("chat.update"))


def shown_events(case: Case) -> list[Event]:
    text = case.text
    return [
        events.answered(text),
        events.milestone(text),
        Noted(key="n", text=text),
        PlanChanged(steps=((text, "todo"),)),
        CommandRefused(host="web-1", run=text, reason=text),
        replace(events.finished(), stdout=text, note=text, run=text),
        replace(events.asked(), approval=replace(events.approval(), reason=text, requester=text)),
        events.closed(ApprovalState.DENIED, by=text),
    ]


@every
async def test_a_terminal_and_a_pipe_print_what_can_be_seen(case: Case) -> None:
    tty, pipe = Tty(), io.StringIO()
    for stream in (tty, pipe):
        screen = TerminalScreen(make_console(stream, width=100), zone=UTC)
        for event in shown_events(case):
            if isinstance(event, CommandFinished | MilestoneReached | Noted) or stream is pipe:
                await screen.show(event)
        await screen.close()
    terminal_is_sound(pipe.getvalue())
    for event in shown_events(case):
        terminal_is_sound("\n".join(plain.lines(event, UTC)))
    answer = plain.lines(events.answered(case.text), UTC)[1:-1]
    assert imitations(answer) == []


@every
def test_a_terminal_draws_it_with_our_colours_only(case: Case) -> None:
    from bot.terminal import panels

    stream = Tty()
    console = make_console(stream, width=100)
    for event in shown_events(case):
        for part in panels.render(event, 100, zone=UTC):
            console.print(part)
    terminal_is_sound(stream.getvalue(), colours=True)


@every
def test_json_stays_exact_on_one_line(case: Case) -> None:
    printed = json_lines.error_line(case.text) + "\n"
    (back,) = one_object_a_line(printed)
    assert back["text"] == case.text
    terminal_is_sound("".join(c for c in printed if c not in "\u200b\ufeff" and ord(c) < 0xE0000))


@every
def test_a_post_mortem_holds_no_html_no_hidden_link_and_no_control_character(case: Case) -> None:
    text = case.text
    page = post_mortem.render(
        replace(make.session(), title=text),
        messages=[make.user(text, author=text), make.assistant(text), make.result(text)],
        milestones=[replace(make.milestone(), text=text)],
        commands=[replace(make.command(), run="df", note=text, host="web-1")],
        approvals=[replace(make.approval(), run="touch x", reason=text, purpose=text, decided_by=text)],
    )
    terminal_is_sound(page)
    if "```" not in text and "~~~" not in text:
        prose = "\n".join(line for line in page.split("\n") if "`" not in line)
        assert "<script" not in prose.replace("\\<", "")
        assert "<img" not in prose.replace("\\<", "")
        assert "](" not in prose.replace("\\]", "")
    headings = [line for line in page.split("\n") if line.startswith("#")]
    assert len(headings) == 7
    assert Role.TOOL.value not in headings


@every
def test_a_name_is_harmless_everywhere(case: Case) -> None:
    shown = name(case.text, "U09EVE")
    wire_is_sound(shown)
    assert "\n" not in shown
    assert not set("[]<>|`") & set(shown)
    assert len(shown) <= 60
