"""Milestones found in the model's interim words."""

from __future__ import annotations

import pytest

from bot.agent.milestones import from_reply
from storage.records import MilestoneKind as Kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("The root cause is a full /var on web-1.", Kind.ROOT_CAUSE),
        ("The 502s are caused by redis-1 refusing connections.", Kind.ROOT_CAUSE),
        ("根本原因是 redis 连接数已满。", Kind.ROOT_CAUSE),
        ("由于连接池泄漏导致 502。", Kind.ROOT_CAUSE),
        ("nginx has recovered: no 502 in the last minute.", Kind.RECOVERED),
        ("服务已恢复正常。", Kind.RECOVERED),
        ("I am blocked because the log is not readable.", Kind.BLOCKED),
        ("没有权限，无法继续。", Kind.BLOCKED),
        ("I found 212 connection errors in the log.", Kind.FINDING),
        ("日志显示 212 次连接被拒绝。", Kind.FINDING),
    ],
)
def test_a_sentence_that_states_a_result_is_a_milestone(text: str, kind: Kind) -> None:
    assert from_reply(text) == [(kind, text)]


@pytest.mark.parametrize(
    "text",
    [
        "Let me look at the disk.",
        "I will check whether the root cause is the disk.",
        "Is the root cause the disk?",
        "If nginx has recovered we are done.",
        "让我确认磁盘的情况。",
        "原因可能是磁盘已满。",
        "服务尚未恢复。",
        "",
    ],
)
def test_plans_and_guesses_are_no_milestones(text: str) -> None:
    assert from_reply(text) == []


def test_the_most_telling_sentence_wins() -> None:
    text = "I found errors in the log. The root cause is a full disk. Next I will look at the backups."
    assert from_reply(text) == [(Kind.ROOT_CAUSE, "The root cause is a full disk.")]
