"""`ask --json` prints one object a line, with the names of the contract, and nothing else."""

from __future__ import annotations

import io
import json
import os
from typing import Any

from bot.events import (
    CommandRefused,
    CommandStarted,
    Event,
    Noted,
    PlanChanged,
    StepStarted,
    TextStreamed,
)
from bot.terminal.json_lines import JsonScreen, error_line
from storage.records import ApprovalState, TurnState
from tests.fakes import turn_events as make


async def printed(*events: Event) -> list[dict[str, Any]]:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    screen = JsonScreen(stream)
    for event in events:
        await screen.show(event)
    await screen.close()
    return [json.loads(line) for line in raw.getvalue().decode().splitlines()]


async def test_a_turn_is_told_in_the_order_it_happened() -> None:
    lines = await printed(
        make.started(),
        StepStarted(step=1, max_steps=25),
        TextStreamed(piece="x"),
        CommandStarted(command_id=41, host="web-1", run="ls", purpose=""),
        make.finished("active\n"),
        PlanChanged(steps=()),
        Noted(key="k", text="x"),
        make.milestone(),
        make.asked(),
        make.answered("It is redis-1."),
    )
    names = ["session", "step", "command", "milestone", "approval", "answer"]
    assert [line["event"] for line in lines] == names


async def test_an_answer_has_its_session_and_text() -> None:
    (line,) = await printed(make.answered("磁盘满了"))
    assert (line["session"], line["text"], line["state"]) == (12, "磁盘满了", "done")


async def test_a_turn_that_failed_is_an_error() -> None:
    (line,) = await printed(make.answered("The model cannot be reached.", state=TurnState.FAILED))
    assert (line["event"], line["session"], line["text"]) == ("error", 12, "The model cannot be reached.")


async def test_an_approval_has_what_is_needed_to_answer_it() -> None:
    line, after = await printed(make.asked(), make.closed(ApprovalState.DENIED))
    assert line["id"] == 5
    assert line["hosts"] == ["app-2"]
    assert line["run"] == "sudo -n systemctl restart app-workers"
    assert line["reason"] == "changes state (systemctl restart)"
    assert line["expires_at"] == "2026-03-01T10:14:00+00:00"
    assert (line["state"], after["state"], after["by"]) == ("open", "denied", "alice")


async def test_a_command_carries_what_it_really_printed() -> None:
    (line,) = await printed(make.finished("a\x1b[31mb\x9bc\u2028d\udcff"))
    assert line["stdout"] == "a\x1b[31mb\x9bc\u2028d\udcff"
    assert (line["host"], line["exit_status"], line["id"]) == ("web-1", 0, 41)


async def test_a_refused_command_says_why() -> None:
    (line,) = await printed(CommandRefused(host="web-1", run="tail -f /x", reason="does not end"))
    assert (line["event"], line["refused"]) == ("command", "does not end")


def test_a_line_holds_no_raw_control_character() -> None:
    line = error_line("x\x1b]0;t\x07\x9b\u2028\u202e\ny")
    assert line.isprintable()
    assert json.loads(line) == {"event": "error", "text": "x\x1b]0;t\x07\x9b\u2028\u202e\ny"}


async def test_a_reader_that_went_away_does_not_end_the_turn() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as stream:
        screen = JsonScreen(stream)
        await screen.show(make.milestone())
        await screen.show(make.answered())
        await screen.close()
