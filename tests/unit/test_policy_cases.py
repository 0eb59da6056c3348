"""The gate held against tables of commands: what runs by itself, what asks, what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from bench.gate_worst import worst_commands
from bot.policy.judge import judge
from bot.policy.rules import load_rules
from storage.records import Decision, Verdict
from tests.policy.cases import TARGETS, Case, cases

SHARED = Path(os.environ.get("SHARED", Path(__file__).parents[3] / "shared")) / "policy"


def verdict(command: str, *, sudo: bool = False) -> Verdict:
    return judge(command, load_rules(), host_name="web-1", sudo_allowed=sudo, targets=TARGETS)


def grouped(name: str) -> list[list[Case]]:
    """The cases of a file, those of one group together: a test each would take longer to begin than to run."""
    found: dict[str, list[Case]] = {}
    for case in cases(name):
        found.setdefault(case.group, []).append(case)
    return list(found.values())


def named(group: list[Case]) -> str:
    return group[0].group[:80] or "none"


def hold(group: list[Case]) -> None:
    """Every case of the group, and every one that does not hold is named."""
    rules = load_rules()
    faults = {case.command: said for case in group if (said := case.fault(rules)) is not None}
    assert not faults, "\n".join(f"{command}: {said}" for command, said in faults.items())


@pytest.mark.parametrize("group", grouped("allow"), ids=named)
def test_a_harmless_read_runs_by_itself(group: list[Case]) -> None:
    hold(group)


@pytest.mark.parametrize("group", grouped("ask"), ids=named)
def test_what_is_not_proved_asks_with_a_reason_and_a_text_to_show(group: list[Case]) -> None:
    hold(group)


@pytest.mark.parametrize("group", grouped("deny"), ids=named)
def test_a_disaster_or_a_text_that_cannot_be_shown_is_refused(group: list[Case]) -> None:
    hold(group)


@pytest.mark.parametrize("group", grouped("danger"), ids=named)
def test_what_is_grave_needs_two_people_and_says_why(group: list[Case]) -> None:
    hold(group)


@pytest.mark.parametrize("group", grouped("run"), ids=named)
def test_what_runs_is_our_text_with_the_words_that_we_add(group: list[Case]) -> None:
    hold(group)


@pytest.mark.parametrize("group", grouped("sudo"), ids=named)
def test_sudo_runs_by_itself_only_alone_and_before_what_is_in_its_list(group: list[Case]) -> None:
    hold(group)


def test_only_what_is_asked_is_marked_dangerous() -> None:
    assert verdict("df -h").danger == ""
    assert verdict("rm -rf /").danger == ""


def test_sudo_needs_the_flag_of_the_host_and_never_asks_for_a_password() -> None:
    assert verdict("sudo dmesg -T").decision is Decision.ASK
    found = verdict("sudo dmesg -T", sudo=True)
    assert found.decision is Decision.ALLOW
    assert found.run == "'sudo' -n dmesg -T"


def test_the_strictest_stage_decides() -> None:
    assert verdict("df -h && systemctl restart nginx").decision is Decision.ASK
    assert verdict("df -h; rm -rf /").decision is Decision.DENY


def test_without_targets_only_this_machine_may_be_asked_of() -> None:
    rules = load_rules()
    for command, wanted in (
        ("ping -c 1 localhost", Decision.ALLOW),
        ("ping -c 1 db1.example.com", Decision.ASK),
    ):
        assert judge(command, rules, host_name="h", sudo_allowed=False).decision is wanted


def test_refusals_say_what_would_work() -> None:
    assert "timeout 10 tail -f" in verdict("tail -f /var/log/syslog").reason
    assert "cat, head" in verdict("less /var/log/syslog").reason
    assert "top -b -n 1" in verdict("htop").reason
    assert "State" in verdict("docker inspect web").reason


def test_commands_made_to_be_slow_are_judged_all_the_same() -> None:
    # What makes a pattern take for ever runs into the time limit of the tests; `make bench` measures the rest.
    rules = load_rules()
    for command in worst_commands():
        assert judge(command, rules, host_name="h", sudo_allowed=True).reason


@pytest.mark.parametrize("name", ["benign", "tricky", "mutating"])
def test_the_shared_lists_of_commands(name: str) -> None:
    path = SHARED / f"{name}.jsonl"
    if not path.is_file():
        pytest.skip(f"SKIPPED: {path} is absent; set SHARED to the folder that holds policy/")
    commands = [json.loads(line)["command"] for line in path.read_text("utf-8").splitlines()]
    rules = load_rules()
    allowed = [
        c for c in commands if judge(c, rules, host_name="h", sudo_allowed=False).decision is Decision.ALLOW
    ]
    if name == "benign":
        assert len(allowed) >= 0.86 * len(commands)
    else:
        assert allowed == []
