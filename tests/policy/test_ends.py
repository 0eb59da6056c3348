"""Reads that would never end, or take all memory, ask first."""

from __future__ import annotations

import pytest

from bot.policy.judge import judge
from bot.policy.rules import load_rules
from storage.records import Decision

ASK = r"""
awk '{for(i=1;i<=NF;i++) i=0}' /var/log/syslog
awk 'BEGIN{for(i=1;j<=3;k++) x=1}'
awk 'BEGIN{for(i=1;i<=3;i++) --i}'
awk '{for(i=1;i<=NF;i++) sub(/./,"0",i)}' /var/log/syslog
awk 'BEGIN{s="x"; for(i=1;i<=36;i++) s=s s}'
awk '{s=s "," s}' /var/log/syslog
jq '"xxxxxxxxxx" * 9999 * 9999 * 9999' /var/log/app.json
jq '.[536870910] = 1' /var/log/app.json
"""
ALLOW = r"""
awk '{for(i=1;i<=NF;i++) s+=$i} END{print s/NR}'
awk '{for(i=1;i<=NF;i++) {n[$i]=n[$i]+1}}' /var/log/syslog
jq '.ms * 1000' /var/log/app.json
jq '.[] | select(.id == 1234567)' /var/log/app.json
"""


@pytest.mark.parametrize("command", ASK.strip().splitlines())
def test_it_asks(command: str) -> None:
    assert judge(command, load_rules(), host_name="h", sudo_allowed=True).decision is Decision.ASK


@pytest.mark.parametrize("command", ALLOW.strip().splitlines())
def test_its_harmless_relatives_run(command: str) -> None:
    assert judge(command, load_rules(), host_name="h", sudo_allowed=True).decision is Decision.ALLOW
