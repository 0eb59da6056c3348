"""Fitting a history into the room there is."""

from __future__ import annotations

from bot.agent.budget import cost, fit, shorten, tokens
from storage.records import Message, Role, ToolCall


def turn(n: int, output: str) -> list[Message]:
    call = ToolCall(id=f"c{n}", name="run_command", arguments="{}")
    return [
        Message(role=Role.USER, text=f"question {n}", author="alice", turn_id=n),
        Message(role=Role.ASSISTANT, text="", tool_calls=(call,), turn_id=n),
        Message(role=Role.TOOL, text=output, tool_call_id=f"c{n}", turn_id=n),
    ]


def test_a_chinese_character_counts_as_a_token_and_ascii_as_a_third() -> None:
    assert tokens("磁盘" * 50) >= 100
    assert tokens("a" * 300) <= 110


def test_what_fits_is_left_alone() -> None:
    messages = turn(1, "small") + turn(2, "small")
    assert fit(messages, 10_000) == (tuple(messages), 0)


def test_older_output_shrinks_before_any_turn_is_left_out() -> None:
    messages = turn(1, "x" * 30_000) + turn(2, "y" * 3_000)
    kept, dropped = fit(messages, 3_000)
    assert dropped == 0
    assert "left out here" in kept[2].text
    assert kept[5].text == "y" * 3_000


def test_old_turns_go_and_the_last_question_stays() -> None:
    messages = [m for n in range(60) for m in turn(n, "z" * 400)]
    kept, dropped = fit(messages, 1_500)
    assert dropped > 0
    assert kept[0].role is Role.USER
    assert kept[-3].text == "question 59"
    assert cost(kept) <= 1_500


def test_one_huge_output_of_the_last_turn_shrinks_to_fit() -> None:
    kept, _ = fit(turn(1, "w" * 1_000_000), 4_000)
    assert cost(kept) <= 4_100
    assert kept[0].text == "question 1"


def test_shortening_keeps_head_and_tail_and_says_how_much_is_missing() -> None:
    text = shorten("a" * 500 + "b" * 500, 300)
    assert text.startswith("a" * 200)
    assert text.endswith("b" * 100)
    assert "700 characters left out here" in text
