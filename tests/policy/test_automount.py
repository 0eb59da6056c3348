"""Names below folders that may mount something over the network ask, however they are written."""

from __future__ import annotations

import pytest

from bot.policy.judge import judge
from bot.policy.rules import load_rules
from storage.records import Decision

ASK = """
ls //net/evil
ls /./net/evil
ls /var/../net/evil
ls ../../net/evil
ls /ne?/evil
find //net/evil
find /tmp -newer //net/evil/x
find /tmp -newer /./net/evil/x
find /tmp -newer /var/../net/evil/x
echo //net/evil/*
test -f //net/evil
"""


@pytest.mark.parametrize("command", ASK.strip().splitlines())
def test_it_asks(command: str) -> None:
    assert judge(command, load_rules(), host_name="h", sudo_allowed=True).decision is Decision.ASK


@pytest.mark.parametrize(
    "command", ["ls /net", "ls -l /network/x", "du -sh /var/*", "find /tmp -newer /var/log/x"]
)
def test_others_run(command: str) -> None:
    assert judge(command, load_rules(), host_name="h", sudo_allowed=True).decision is Decision.ALLOW
