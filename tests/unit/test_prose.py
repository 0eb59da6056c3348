"""Words that are not ours: they stay readable, and cannot be taken for ours."""

from __future__ import annotations

import pytest

from bot.prose import MARK, inert, marked, unlinked
from bot.slack import blocks
from storage.records import MilestoneKind


@pytest.mark.parametrize(
    "line",
    [
        "Approval needed",
        "**Approval needed** · part 1 of 2",
        "Approved by @alice at 10:02",
        "> *Approved* by <@U01ALICE>",
        ":white_check_mark: Approved by alice",
        "✅ approved by alice",
        "\u0410pproved by alice",  # a Cyrillic A
        "Ap\u200bproved by alice",
        "App&#114;oved by alice",
        "**App**roved by alice",
        "1. Denied by bob",
        "Root cause · 14:02 · the disk is full",
        "3 commands on web-1, web-2",
        "Done · 4 steps · 2.0 s",
        "[opsthread] go on",
        "Why it asks: it changes something",
        "已由 @alice 批准",
        "批准人：alice",
    ],
)
def test_a_line_that_looks_like_ours_is_marked_and_keeps_its_words(line: str) -> None:
    assert marked(f"before\n{line}\nafter").replace(MARK, "") == f"before\n{line}\nafter"
    assert MARK in marked(line)


@pytest.mark.parametrize(
    "line",
    [
        "The change was approved by nobody yet.",
        "It needs an approval: systemctl restart nginx.",
        "Root cause: the disk is full.",
        "Finding 1: 3 hosts are full",
        "Done. All hosts answer.",
        "I ran 3 commands on web-1.",
        "| host | disk |",
        "nginx 已恢复正常",
        "opsthread runs as opsbot",
    ],
)
def test_ordinary_words_are_left_alone(line: str) -> None:
    assert marked(line) == line


def test_a_mark_keeps_the_form_of_its_line() -> None:
    assert marked("## **Approved by** x") == f"## **{MARK}Approved by** x"
    assert marked("| Approved by | x |") == f"| {MARK}Approved by | x |"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[https://good.example](https://evil.example)", "[https://good.example] (https://evil.example)"),
        ("![x](https://evil.example/?q=secret)", "![x] (https://evil.example/?q=secret)"),
        ("[a][1]\n\n[1]: https://evil.example", "[a] [1]\n\n[1] : https://evil.example"),
        ("`f[0](x)` and ``a `b](c)` d``", "`f[0](x)` and ``a `b](c)` d``"),
        ("\\`[a](https://evil.example)`", "\\`[a] (https://evil.example)`"),
        ("rates [1] and (2)", "rates [1] and (2)"),
    ],
)
def test_a_link_shows_where_it_leads_and_code_is_left_alone(text: str, shown: str) -> None:
    assert unlinked(text) == shown


def test_a_document_holds_no_html_of_others_outside_of_code() -> None:
    text = "<img src=x>\n```\n<b>[a](b)\n```\n`<i>` <script>"
    assert inert(text) == "&lt;img src=x>\n```\n<b>[a](b)\n```\n`<i>` &lt;script>"


def test_fences_that_readers_may_see_differently_hide_nothing() -> None:
    assert "<img" not in inert("- a\n  ```\n<img src=x>")
    assert "<img" not in inert("> ```\n<img src=x>\n```\n<img src=y>")


def test_an_answer_cannot_look_like_a_card_in_slack() -> None:
    said = "**Approval needed**\nOn *web-1* as root:\n```\nrm -rf /\n```\n[Approve](https://evil.example)"
    (message,) = blocks.prose(said)
    assert {block["type"] for block in message.blocks} == {"markdown", "rich_text"}
    assert MARK in message.blocks[0]["text"]
    assert MARK in message.text
    assert "](" not in message.blocks[-1]["text"]


def test_our_own_sections_let_slack_make_nothing_of_words() -> None:
    (message,) = blocks.note("@here see #general")
    assert message.blocks[0]["text"]["verbatim"] is True
    assert all(e["verbatim"] for e in blocks.context("@here")[0]["elements"])


def test_a_milestone_says_who_says_it() -> None:
    (message,) = blocks.milestone(MilestoneKind.FINDING, "Approved by alice", "10:02")
    assert message.blocks[0]["text"] == f"**Finding · 10:02** · {MARK}Approved by alice"


def test_marks_count_when_an_answer_is_cut() -> None:
    messages = blocks.prose("Approved by alice\n" * 2_000)
    assert all(len(message.text) < 4_000 for message in messages)


def test_code_is_marked_only_where_it_is_not_shown_as_code() -> None:
    text = "```\nApproved by alice\n```"
    assert marked(text) == text
    assert MARK in marked(text, code=True)
