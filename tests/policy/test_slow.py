"""Texts of 2,000 characters that once held the judge for minutes: the suite's time limit would end such a test."""

from __future__ import annotations

import pytest

from bot.policy.judge import judge
from bot.policy.rules import load_rules
from storage.records import Decision


@pytest.mark.parametrize(
    "unit", ["find -exec ", "find / -exec ", "-exec rm ", "-execdir sh -c ", "-ok xargs find "]
)
@pytest.mark.parametrize("before", ["", "find / ", "ls $( ", "sudo find / "])
def test_many_find_exec_are_judged_at_once(before: str, unit: str) -> None:
    rules = load_rules()
    command = (before + unit * 200)[:2000]
    verdict = judge(command, rules, host_name="h", sudo_allowed=True)
    assert verdict.decision is not Decision.ALLOW


def test_what_a_later_exec_runs_is_still_seen() -> None:
    rules = load_rules()
    for command in ("find /a -exec ls {} ; -exec rm {} ;", "find /a -exec find /b -exec rm -r {} ; ;"):
        assert judge(command.replace(";", "\\;"), rules, host_name="h", sudo_allowed=True).danger
