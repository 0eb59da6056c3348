"""Fitting a history into the room there is, and keeping to what was cut."""

from __future__ import annotations

from bot.agent.budget import AIM, Cut, StickyCut, cost, fit, summary_room, tokens
from storage.history import OURS
from storage.records import Message, Role, ToolCall


def turn(n: int, *outputs: str) -> list[Message]:
    messages = [Message(role=Role.USER, text=f"question {n}", author="alice", turn_id=n)]
    for i, output in enumerate(outputs):
        call = ToolCall(id=f"c{n}.{i}", name="run_command", arguments="{}")
        messages.append(Message(role=Role.ASSISTANT, text="", tool_calls=(call,), turn_id=n))
        messages.append(Message(role=Role.TOOL, text=output, tool_call_id=call.id, turn_id=n))
    return messages


def last_question(messages: list[Message]) -> int:
    return max(i for i, m in enumerate(messages) if m.role is Role.USER and m.author != OURS)


def cut(messages: list[Message], room: int) -> Cut:
    return StickyCut().over(messages, begins=0, opening=last_question(messages), room=room)


def test_a_chinese_character_counts_as_a_token_and_ascii_as_a_third() -> None:
    assert tokens("磁盘" * 50) >= 100
    assert tokens("a" * 300) <= 110


def test_what_was_imported_counts_with_the_frames_of_its_lines() -> None:
    message = Message(role=Role.TOOL, text="y\n" * 300, tool_call_id="c")
    assert cost([message]) >= tokens("| y\n" * 300)


def test_what_fits_is_left_alone() -> None:
    messages = turn(1, "small") + turn(2, "small")
    assert cut(messages, 10_000) == Cut()
    assert Cut().shown(messages) == messages


def test_older_output_shrinks_before_any_turn_is_left_out() -> None:
    messages = turn(1, "x" * 30_000) + turn(2, "y" * 3_000)
    decided = cut(messages, 3_000)
    shown = decided.shown(messages)
    assert decided.begins == 0
    assert shown[2].text == "(shortened: 30000 characters are left out here and kept in the session)"
    assert shown[5].text == "y" * 3_000


def test_old_turns_go_and_the_last_question_stays() -> None:
    messages = [m for n in range(60) for m in turn(n, "z" * 400)]
    decided = cut(messages, 1_500)
    shown = decided.shown(messages)
    assert decided.begins > 0
    assert shown[0].role is Role.USER
    assert shown[-3].text == "question 59"
    assert cost(shown) + summary_room(1_500) <= 1_500 * AIM


def test_output_of_the_turn_itself_shrinks_after_older_turns_went_and_the_newest_last() -> None:
    messages = turn(1, "x" * 3_000) + turn(2, *["y" * 3_000] * 6)
    decided = cut(messages, 4_000)
    shown = decided.shown(messages)
    assert shown[0].text == "question 2"
    assert "left out here" in shown[2].text
    assert shown[-1].text == "y" * 3_000


def test_one_huge_output_of_the_last_turn_shrinks_to_fit() -> None:
    messages = turn(1, "w" * 1_000_000)
    shown = cut(messages, 4_000).shown(messages)
    assert cost(shown) <= 4_100
    assert shown[0].text == "question 1"


def test_a_note_that_tells_a_late_result_shrinks_as_a_result_does() -> None:
    late = Message(role=Role.USER, author=OURS, text="v" * 9_000, tool_call_id="c1.0", turn_id=1)
    messages = [*turn(1, "small"), late, *turn(2)]
    assert "kept in the session" in cut(messages, 1_000).shown(messages)[3].text
    imported = Message(role=Role.USER, author=OURS, text="v" * 9_000, tool_call_id="c1.0")
    messages = [*turn(1, "small"), imported, *turn(2)]
    assert cut(messages, 1_000).texts == {}


def test_a_cut_holds_until_the_room_is_exceeded_again() -> None:
    messages = [m for n in range(9) for m in turn(n, "z" * 900)] + turn(9)
    sticky = StickyCut()

    def after(text: str) -> Cut:
        n = len(messages)
        call = ToolCall(id=f"d{n}", name="run_command", arguments="{}")
        messages.append(Message(role=Role.ASSISTANT, text="", tool_calls=(call,), turn_id=9))
        messages.append(Message(role=Role.TOOL, text=text, tool_call_id=call.id, turn_id=9))
        return sticky.over(messages, begins=0, opening=opening, room=2_000)

    opening = len(messages) - 1
    first = sticky.over(messages, begins=0, opening=opening, room=2_000)
    assert first != Cut()
    assert after("small") == first
    assert after("small again") == first
    second = after("w" * 3_000)
    assert second != first
    assert second.begins >= first.begins
    assert all(len(second.texts[i]) <= len(text) for i, text in first.texts.items())


def test_what_was_cut_never_comes_back_in_a_turn() -> None:
    messages = [m for n in range(9) for m in turn(n, "z" * 900)] + turn(9)
    sticky = StickyCut()
    opening = len(messages) - 1
    small = sticky.over(messages, begins=0, opening=opening, room=1_000)
    assert sticky.over(messages, begins=0, opening=opening, room=100_000) == small
    assert sticky.over(messages, begins=30, opening=opening, room=100_000).begins == 30 > small.begins - 30


def test_the_room_is_halved_three_times_and_no_further() -> None:
    sticky = StickyCut()
    assert [sticky.tighten() for _ in range(4)] == [True, True, True, False]
    assert sticky.shrink == 8


def test_larger_steps_get_more_room_ahead() -> None:
    def left(size: int) -> int:
        messages = turn(1, *["y" * size] * (75_000 // size))
        return 20_000 - fit(messages, Cut(), opening=0, room=20_000).size(messages, 20_000)

    assert left(2_000) >= 20_000 * (1 - AIM)
    assert left(6_000) >= 20_000 * (1 - AIM) + 5_000


def test_once_a_turns_own_results_had_to_shrink_the_next_ones_begin_smaller() -> None:
    messages = turn(1, *["y" * 12_000] * 8)
    sticky = StickyCut()
    sticky.over(messages, begins=0, opening=0, room=20_000)
    messages = turn(1, *["y" * 12_000] * 9)
    shown = sticky.over(messages, begins=0, opening=0, room=20_000).shown(messages)
    assert 2_000 <= len(shown[-1].text) < 4_000
    assert shown[-1].text.startswith("yyy")
