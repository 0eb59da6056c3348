"""The answer held against what was run."""

from __future__ import annotations

import pytest

from bot.agent.evidence import footer, unproved_claims
from storage.records import Command, CommandState, Decision


def ran(run: str, *, host: str = "web-1", state: CommandState = CommandState.DONE) -> Command:
    return Command(
        id=1, session_id=1, turn_id=1, call_id="c", host=host, run=run, state=state,
        decision=Decision.ALLOW, reason="", approval_id=None, exit_status=0,
    )  # fmt: skip


def test_a_command_that_was_run_is_no_unproved_claim() -> None:
    assert unproved_claims("I ran `df -h /var` and it is full.", [ran("'df' '-h' '/var'")]) == ()


@pytest.mark.parametrize(
    "text", ["I ran `iostat -x 1 3` and saw it.", "我运行了 `iostat -x 1 3`，磁盘很忙。"]
)
def test_a_command_that_never_ran_is_named(text: str) -> None:
    assert unproved_claims(text, [ran("'df' '-h'")]) == ("iostat -x 1 3",)


@pytest.mark.parametrize(
    "text",
    [
        "You can run `systemctl restart nginx`.",
        "To settle it, run `ss -s`.",
        "I have not run `dmesg`.",
        "建议运行 `df -i`。",
        "The file `/etc/fstab` lists it.",
    ],
)
def test_proposals_are_no_claims(text: str) -> None:
    assert unproved_claims(text, []) == ()


def test_the_footer_counts_commands_and_hosts_and_names_what_is_unproved() -> None:
    commands = [ran("a"), ran("b", host="db-1"), ran("c", state=CommandState.UNKNOWN)]
    assert footer(commands, ("x",)) == (
        "2 commands on web-1, db-1 · 1 with unknown outcome · named above but not run in this session: `x`"
    )


def test_an_answer_without_commands_has_no_footer() -> None:
    assert footer([], ()) == ""
