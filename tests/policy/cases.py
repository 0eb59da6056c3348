"""The tables of commands that the gate is held against: tests/policy_cases/*.yml and the examples of the packaged rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from bot.policy.judge import judge
from bot.policy.rules import packaged_examples
from bot.policy.spec import Rules
from storage.records import Decision, Verdict

FOLDER = Path(__file__).parents[1] / "policy_cases"
TARGETS = ("*.example.com", "10.0.0.0/8")


@dataclass(frozen=True, slots=True)
class Case:
    """A command and what must be said of it. `group` is a part of the reason, or the name of the group."""

    file: str
    group: str
    command: str

    def fault(self, rules: Rules) -> str | None:
        """What is wrong with the verdict; None when all is as the table says."""
        sudo = self.file in ("sudo", "example")
        found = judge(
            self.command, rules, host_name="web-1", sudo_allowed=sudo,
            targets=TARGETS[:1] if self.file == "example" else TARGETS,
        )  # fmt: skip
        return _fault(self, found)


def _fault(case: Case, found: Verdict) -> str | None:
    said = f"{found.decision}: {found.reason}{found.danger and ' / ' + found.danger}"
    match case.file, case.group:
        case "allow", _:
            right = found.decision is Decision.ALLOW and found.parsed and bool(found.run) and not found.danger
        case (("ask" | "words"), reason):
            right = found.decision is Decision.ASK and reason in found.reason and bool(found.run)
            right = right and (found.parsed or found.run == case.command)  # byte for byte
        case "deny", reason:
            right = (
                found.decision is Decision.DENY
                and reason in found.reason
                and found.run is None
                and not found.danger
            )
        case "danger", why:
            right = found.decision is Decision.ASK and bool(found.danger) is bool(why) and why in found.danger
        case "run", run:
            right = found.decision is Decision.ALLOW and found.run == run
        case _, "allow":
            right = found.decision is Decision.ALLOW
        case _:
            right = found.decision is not Decision.ALLOW
    return None if right else said


def cases(name: str) -> Iterator[Case]:
    """The cases of one file. A group is a list, or a text with one command a line; a{9} and w{9} stand for many letters
    or words.
    """
    for group, found in yaml.safe_load((FOLDER / f"{name}.yml").read_text("utf-8")).items():
        for command in found.splitlines() if isinstance(found, str) else found:
            command = re.sub(
                r"([aw])\{(\d+)\}", lambda m: (m[1] if m[1] == "a" else "w ") * int(m[2]), command
            )
            if name == "ask" and command.startswith("'") and command.endswith("'"):
                command = command[1:-1]  # written in quotes where YAML or the eye would trip
            yield Case(name, group, command)


def examples() -> Iterator[Case]:
    """The examples beside the entries of the packaged table."""
    for _, wanted, command in packaged_examples():
        yield Case("example", "allow" if wanted else "not allow", command)


def all_cases() -> list[Case]:
    """Every case there is."""
    return [*(case for path in sorted(FOLDER.glob("*.yml")) for case in cases(path.stem)), *examples()]
