"""The fake endpoint's judgement of requests: each rule is broken once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.model import violations_of

TOOL = {"type": "function", "function": {"name": "run_command", "parameters": {"type": "object"}}}
SYSTEM = {"role": "system", "content": "be careful"}
USER = {"role": "user", "content": "?"}
RESULT = {"role": "tool", "tool_call_id": "a", "content": ""}


def asks(call_id: str = "a", arguments: str = "{}") -> dict[str, Any]:
    function = {"name": "run_command", "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def judged(*messages: dict[str, Any], tools: Any = (TOOL,)) -> list[str]:
    return violations_of({"model": "m", "messages": list(messages), "tools": list(tools)})


def test_a_sound_conversation_has_no_faults() -> None:
    said = {"role": "assistant", "content": "ok"}
    assert judged(SYSTEM, USER, asks(), RESULT, said, USER, asks("b"), {**RESULT, "tool_call_id": "b"}) == []


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ((), "no messages"),
        ((USER, asks()), "ends with calls without a result: a"),
        ((USER, asks(), USER), "calls without a result before it: a"),
        ((USER, RESULT), "which nobody asked"),
        ((USER, asks(), RESULT, RESULT), "which nobody asked"),
        ((USER, asks(), RESULT, asks(), RESULT), "used twice"),
        ((USER, {**asks(), "tool_calls": asks()["tool_calls"] * 2}, RESULT), "two calls with one id"),
        ((USER, asks(""), {**RESULT, "tool_call_id": ""}), "without id"),
        ((USER, asks(arguments="{oops"), RESULT), "no JSON text"),
        ((USER, asks(arguments="[]"), RESULT), "no JSON object"),
        ((USER, SYSTEM, USER), "after the conversation began"),
        ((USER, {"role": "assistant", "content": "x"}), "ends with a message of assistant"),
        ((USER, {"role": "assistant", "content": None}, USER), "no content"),
        ((USER, {"role": "assistant", "content": "x", "tool_calls": []}, USER), "empty list"),
        (({"role": "user", "content": ""},), "content is empty"),
        (({"role": "user", "content": ["x"]},), "content is no text"),
        (({"role": "human", "content": "x"},), "does not exist"),
        (({**USER, "author": "x"},), "does not belong here"),
    ],
)
def test_a_broken_conversation_is_named(messages: tuple[dict[str, Any], ...], words: str) -> None:
    assert any(words in fault for fault in judged(*messages))


@pytest.mark.parametrize(
    ("tools", "words"),
    [
        ((), "no tools"),
        ((TOOL, TOOL), "one name"),
        (
            ({"type": "function", "function": {"name": "a b", "parameters": {"type": "object"}}},),
            "plain name",
        ),
        (({"type": "function", "function": {"name": "a"}},), "no object of parameters"),
    ],
)
def test_broken_tools_are_named(tools: tuple[Any, ...], words: str) -> None:
    assert any(words in fault for fault in judged(USER, tools=tools))
