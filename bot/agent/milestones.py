"""Pure: milestones found by rules, English and Chinese, in what the model writes between its calls.

The tool `milestone` is the better way; the rules catch models that do not use it. Only sentences that state
a result count: a plan or a question is no milestone.
"""

from __future__ import annotations

import re

from storage.records import MilestoneKind

_MARKS: tuple[tuple[MilestoneKind, re.Pattern[str]], ...] = (
    (
        MilestoneKind.ROOT_CAUSE,
        re.compile(
            r"\b(?:root cause (?:is|was)|caused by|the cause is|this is because)\b|根本原因(?:是|在于)"
            r"|根因|原因是|由于.{1,40}导致",
            re.I,
        ),
    ),
    (
        MilestoneKind.RECOVERED,
        re.compile(
            r"\b(?:has recovered|recovered|is back (?:up|to normal)|works again|is healthy again)\b|已恢复|恢复正常|已经恢复",
            re.I,
        ),
    ),
    (
        MilestoneKind.BLOCKED,
        re.compile(
            r"\b(?:i am blocked|blocked because|cannot continue|can't continue|unable to proceed)\b|无法继续|受阻|卡住了",
            re.I,
        ),
    ),
    (
        MilestoneKind.FINDING,
        re.compile(
            r"\b(?:i found|found that|shows that|it turns out|confirmed that|the finding is)\b|发现|显示|确认",
            re.I,
        ),
    ),
)
_NOT_A_RESULT = re.compile(
    r"\?|？|\b(?:if|whether|let me|i will|i'll|going to|might|may|could|perhaps|not recovered|not yet|no longer works)\b"
    r"|如果|是否|可能|也许|让我|接下来|准备|尚未|没有恢复|未恢复",
    re.I,
)
_SENTENCE = re.compile(r"(?<=[.!。！])\s+|(?<=[。！])|\n+")


def from_reply(text: str) -> list[tuple[MilestoneKind, str]]:
    """At most one milestone of an interim text: its most telling sentence."""
    for kind, mark in _MARKS:
        for sentence in _SENTENCE.split(text):
            plain = sentence.strip(" \t*#->")
            if 8 <= len(plain) <= 500 and mark.search(plain) and not _NOT_A_RESULT.search(plain):
                return [(kind, plain)]
    return []
