"""Open calls, window, repair and wire shape of a history."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.agent.history import INTERRUPTED, OURS, open_calls, repair, to_wire, unique_ids, window
from storage.records import Message, Role, ToolCall


def user(text: str, *, turn: int = 1, author: str = "alice") -> Message:
    return Message(role=Role.USER, text=text, author=author, turn_id=turn)


def calling(*ids: str, turn: int = 1, text: str = "") -> Message:
    calls = tuple(ToolCall(id=i, name="run_command", arguments="{}") for i in ids)
    return Message(role=Role.ASSISTANT, text=text, tool_calls=calls, turn_id=turn)


def result(call_id: str, text: str = "ok") -> Message:
    return Message(role=Role.TOOL, text=text, tool_call_id=call_id, turn_id=1)


def test_open_calls_are_those_without_a_result() -> None:
    messages = [user("q"), calling("a", "b"), result("b")]
    assert [each.call.id for each in open_calls(messages)] == ["a"]


def test_a_call_without_a_result_gets_an_honest_one() -> None:
    fixed = repair([user("q"), calling("a", "b"), result("b", "two"), user("and?")])
    assert [(m.role, m.tool_call_id) for m in fixed[2:4]] == [(Role.TOOL, "a"), (Role.TOOL, "b")]
    assert fixed[2].text == INTERRUPTED
    assert fixed[3].text == "two"


def test_a_result_without_its_call_is_left_out() -> None:
    assert [m.role for m in repair([result("gone"), user("q")])] == [Role.USER]


def test_results_follow_their_call_in_the_order_of_the_calls() -> None:
    fixed = repair([user("q"), calling("a", "b"), result("b"), result("a")])
    assert [m.tool_call_id for m in fixed[2:]] == ["a", "b"]


def test_an_id_that_is_used_again_keeps_each_call_with_its_own_result() -> None:
    messages = [user("1"), calling("a"), result("a", "one"), user("2"), calling("a"), result("a", "two")]
    fixed = repair([*messages, user("3"), calling("a")])
    assert [m.text for m in fixed if m.role is Role.TOOL] == ["one", "two", INTERRUPTED]
    ids = [call.id for m in fixed for call in m.tool_calls]
    assert len(set(ids)) == 3
    assert [m.tool_call_id for m in fixed if m.role is Role.TOOL] == ids
    assert [each.call.id for each in open_calls([*messages, calling("a")])] == ["a"]


def test_the_window_is_cut_where_a_person_speaks() -> None:
    messages = [user("1"), calling("a"), result("a"), user("2"), calling("b"), result("b")]
    assert window(messages, 4)[0].text == "2"


def test_one_long_turn_never_empties_the_window() -> None:
    messages = [user("1"), user("2", turn=2)]
    for n in range(40):
        messages += [calling(f"c{n}", turn=2), result(f"c{n}")]
    kept = window(messages, 20)
    assert kept[0].text == "2"
    assert len(kept) == 81


def test_a_note_of_ours_is_no_border_of_the_window() -> None:
    messages = [user("1"), calling("a"), result("a"), user("note", author=OURS), calling("b"), result("b")]
    assert window(messages, 3)[0].text == "1"


def test_the_open_turns_words_stand_verbatim_at_the_end_of_their_message() -> None:
    wire = to_wire([user("old", turn=1), user("why 502?", turn=2, author="bob")], turn_id=2, preface="BLOCKS")
    assert wire[0]["content"] == "[alice] old"
    assert wire[1]["content"] == "BLOCKS\n\nwhy 502?"


def test_calls_keep_their_ids_and_arguments_on_the_wire() -> None:
    wire = to_wire([calling("call_1")], turn_id=None, preface="")
    assert wire[0]["tool_calls"] == [
        {"id": "call_1", "type": "function", "function": {"name": "run_command", "arguments": "{}"}}
    ]


def test_empty_and_repeated_call_ids_are_replaced_and_others_kept() -> None:
    calls = [ToolCall("", "a", "{}"), ToolCall("x", "b", "{}"), ToolCall("x", "c", "{}")]
    ids = [c.id for c in unique_ids(calls, taken={"y"}, seed="1:2")]
    assert ids[1] == "x"
    assert len(set(ids)) == 3
    assert all(len(i) == 9 and i.isalnum() for i in (ids[0], ids[2]))


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """Any mixture, broken ones too: calls without results, results without calls."""
    out: list[Message] = []
    for n in range(draw(st.integers(0, 12))):
        match draw(st.sampled_from(["user", "call", "result", "say"])):
            case "user":
                out.append(user(f"u{n}", turn=n))
            case "call":
                out.append(calling(*(f"c{n}.{i}" for i in range(draw(st.integers(1, 3))))))
            case "result":
                out.append(result(f"c{draw(st.integers(0, 12))}.{draw(st.integers(0, 2))}"))
            case _:
                out.append(Message(role=Role.ASSISTANT, text="t"))
    return out


@given(histories(), st.integers(1, 10))
def test_whatever_was_stored_the_request_is_valid(messages: list[Message], limit: int) -> None:
    fixed = repair(window(messages, limit))
    due: list[str] = []
    for message in fixed:
        if message.role is Role.TOOL:
            assert due, "a result must follow its call"
            assert message.tool_call_id == due.pop(0)
        else:
            assert not due, "every call has its result before the next message"
            due = [call.id for call in message.tool_calls]
    assert not due
