"""What the model reads about commands."""

from __future__ import annotations

from bot.tools.report import Part, clean, cut, ran, report
from storage.records import Command, CommandState, Decision


def command(**changes: object) -> Command:
    values: dict[str, object] = {
        "id": 7, "session_id": 1, "turn_id": 1, "call_id": "c", "host": "web-1", "run": "'df'", "state": CommandState.DONE,
        "decision": Decision.ALLOW, "reason": "", "approval_id": None, "exit_status": 0, "seconds": 0.21,
    }  # fmt: skip
    return Command(**{**values, **changes})  # type: ignore[arg-type]


def test_a_block_has_host_status_time_and_both_streams() -> None:
    text = report("'df'", [ran(command(exit_status=1), "out\n", "err\n")])
    assert text == "$ 'df'\n### web-1 · exit 1 · 0.2 s\n| out\n--- stderr\n| err"


def test_an_unknown_outcome_is_never_shown_as_success() -> None:
    part = ran(command(state=CommandState.UNKNOWN, exit_status=None, note="the connection broke"), "", "")
    assert part.headline == "unknown: the connection broke. It was not run again."


def test_no_output_is_said() -> None:
    assert "(no output)" in report(None, [ran(command(), "", "")])


def test_long_output_keeps_head_and_tail_and_names_where_the_rest_is() -> None:
    lines = "\n".join(f"line {n}" for n in range(5_000))
    text = cut(lines, 1_000, 7)
    assert text.startswith("line 0\n")
    assert text.endswith("line 4999")
    assert "bytes left out, full output kept as command 7" in text
    assert len(text) < 1_200


def test_escape_sequences_and_control_characters_are_removed_and_other_scripts_kept() -> None:
    assert clean("\x1b[31mred\x1b[0m \x1b]0;title\x07bell\x07 磁盘\ttab\r\n") == "red bell 磁盘\ttab\n"


def test_each_host_gets_its_share_of_the_room() -> None:
    parts = [Part(f"web-{n}", "exit 0", "x\n" * 10_000) for n in range(10)]
    assert len(report(None, parts)) < 14_000
