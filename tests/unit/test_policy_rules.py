"""The table: what loads, what an operator may add, and the digest that names it."""

from __future__ import annotations

import time

import pytest

from bot.errors import SettingsError
from bot.policy.judge import judge
from bot.policy.paths import meets
from bot.policy.rules import Rules, load_rules
from storage.records import Decision

EXTRA = r"""
commands:
  appctl:
    opts: -v --json
    sub:
      status: {args: name?}
    bare: appctl needs a sub-command
    match: appctl status web
    not_match: appctl stop web
ask: [dmesg]
deny:
  '\bterraform +apply\b': infrastructure changes go through review
secrets: ['^/var/log/payments']
"""


def decide(command: str, rules: Rules) -> Decision:
    return judge(command, rules, host_name="h", sudo_allowed=False).decision


def test_the_table_is_read_once_and_knows_many_programs() -> None:
    rules = load_rules()
    assert load_rules() is rules
    assert len(rules.commands) > 300
    assert len(rules.digest) == 64


def test_an_operator_adds_programs_and_tightens() -> None:
    rules = load_rules(EXTRA)
    assert decide("appctl status web", rules) is Decision.ALLOW
    assert decide("appctl stop web", rules) is Decision.ASK
    assert decide("dmesg -T", load_rules()) is Decision.ALLOW
    assert decide("dmesg -T", rules) is Decision.ASK
    assert decide("terraform apply", rules) is Decision.DENY
    assert decide("cat /var/log/payments.log", rules) is Decision.ASK
    assert decide("cat /var/log/pay*.log", rules) is Decision.ASK
    assert decide("rm -rf /", rules) is Decision.DENY
    assert rules.digest != load_rules().digest


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ("commands: {bash: {}}", "bash"),
        ("commands: {ls: {}}", "ls"),
        ("commands: {rm: {args: path*}}", "rm"),
        ("allow: [rm]", "allow is not a key"),
        ("commands: {x: {option: -a}}", "x: option is not a key"),
        ("commands: {x: {args: wrong}}", "wrong is not a kind"),
        ("commands: {x: {opts: '-a:wrong'}}", "wrong is not a kind"),
        ("commands: {x: {check: wrong}}", "wrong is not a checker"),
        ("commands: {x: {match: x --y}}", "`x --y` should run by itself"),
        ("commands: {x: {opts: -y, not_match: x -y}}", "`x -y` should not run by itself"),
        ("deny: {'(': x}", "not a regular expression"),
        ("secrets: ['(']", "not a regular expression"),
        ("deny: [x]", "deny must map"),
        ("- x", "must be a mapping"),
        ("a: [", "not YAML"),
    ],
)
def test_a_wrong_operator_file_is_named_with_its_entry(extra: str, said: str) -> None:
    with pytest.raises(SettingsError) as error:
        load_rules(extra)
    assert said in str(error.value)
    assert "OPSTHREAD_POLICY" in str(error.value)


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        ("env?ron", "environ", True),
        ("env[i]ron", "environ", True),
        ("m?m", "mem", True),
        ("*", "mem", True),
        ("sha*", "shadow", True),
        ("*.log", "shadow", False),
        ("*.k?y", "*.key", True),
        ("a*b*c", "*z*", True),
        ("abc", "abd", False),
        ("a*", "*b", True),
        ("", "*", True),
        ("[ab]x", "ax", True),
        ("stat*", "environ", False),
    ],
)
def test_globs_are_judged_by_whether_they_can_meet_a_name(one: str, other: str, wanted: bool) -> None:
    assert meets(one, other) is wanted
    assert meets(other, one) is wanted


def test_a_verdict_is_quick() -> None:
    rules = load_rules()
    command = "ps -eo pid,ppid,user,%cpu,cmd --sort=-%cpu | head -20"
    best = min(_timed(command, rules) for _ in range(50))
    assert best < 0.001  # about 70 µs on a quiet machine


def _timed(command: str, rules: Rules) -> float:
    start = time.perf_counter()
    judge(command, rules, host_name="h", sudo_allowed=False)
    return time.perf_counter() - start
