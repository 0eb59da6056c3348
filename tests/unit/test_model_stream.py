"""Reading replies: the shapes in which endpoints differ, one small example each."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.model import Reply
from bot.model.stream import Corrupt, InStreamError, ReplyReader, WebPage


def events(*chunks: dict[str, Any] | str) -> bytes:
    return b"".join(
        b"data: " + (c if isinstance(c, str) else json.dumps(c)).encode() + b"\n\n" for c in chunks
    )


def delta(finish: str | None = None, **said: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": said, "finish_reason": finish}]}


def part(index: int | None = 0, *, id: str | None = None, **function: Any) -> dict[str, Any]:  # noqa: A002
    """One fragment of a call, with only the keys that are given."""
    fragment: dict[str, Any] = {"function": function}
    if index is not None:
        fragment["index"] = index
    if id is not None:
        fragment["id"] = id
    return fragment


def read(body: bytes) -> Reply:
    reader = ReplyReader()
    reader.feed(body)
    reader.end()
    assert reader.whole
    return reader.reply()


def read_calls(*fragments: dict[str, Any]) -> list[tuple[str, str, str]]:
    reply = read(events(*(delta(tool_calls=[f]) for f in fragments), delta("tool_calls")))
    return [(c.id, c.name, c.arguments) for c in reply.tool_calls]


def test_a_call_in_fragments_is_put_together() -> None:
    assert read_calls(
        part(0, id="a", name="x", arguments=""), part(0, arguments='{"k"'), part(0, arguments=":1}")
    ) == [("a", "x", '{"k":1}')]


def test_calls_whose_fragments_are_interleaved_are_told_apart_by_index() -> None:
    assert read_calls(
        part(0, id="a", name="x", arguments="{"),
        part(1, id="b", name="y", arguments="{"),
        part(0, arguments="}"),
        part(1, arguments='"k":1}'),
    ) == [("a", "x", "{}"), ("b", "y", '{"k":1}')]


def test_whole_calls_without_an_index_are_told_apart() -> None:
    assert read_calls(
        part(None, id="a", name="x", arguments="{}"), part(None, id="b", name="x", arguments="{}")
    ) == [
        ("a", "x", "{}"),
        ("b", "x", "{}"),
    ]


def test_whole_calls_with_empty_ids_and_the_same_index_are_told_apart() -> None:
    assert read_calls(
        part(0, id="", name="x", arguments="{}"), part(0, id="", name="x", arguments='{"k":1}')
    ) == [
        ("", "x", "{}"),
        ("", "x", '{"k":1}'),
    ]


def test_fragments_without_an_index_go_on_with_the_last_call() -> None:
    assert read_calls(
        part(None, id="a", name="x", arguments='{"k"'), part(None, arguments=":1"), part(None, arguments="}")
    ) == [("a", "x", '{"k":1}')]


def test_a_name_and_id_repeated_in_each_fragment_are_taken_once() -> None:
    for index in (0, None):
        assert read_calls(
            part(index, id="a", name="x", arguments='{"k"'), part(index, id="a", name="x", arguments=":1}")
        ) == [("a", "x", '{"k":1}')]


def test_a_new_id_in_each_fragment_without_a_name_does_not_split_a_call() -> None:
    assert read_calls(part(0, id="a", name="x", arguments="{"), part(0, id="b", arguments="}")) == [
        ("a", "x", "{}")
    ]


@pytest.mark.parametrize(
    "function", [{"name": "x"}, {"name": "x", "arguments": None}, {"name": "x", "arguments": ""}]
)
def test_a_call_without_arguments_has_none(function: dict[str, Any]) -> None:
    assert read_calls(part(0, id="a", **function)) == [("a", "x", "{}")]


def test_arguments_sent_as_an_object_become_text() -> None:
    assert read_calls(part(0, id="a", name="x", arguments={"k": "ü"})) == [("a", "x", '{"k": "ü"}')]


def test_null_where_a_list_or_object_is_usual_is_passed_over() -> None:
    chunk = {"choices": [{"index": 0, "delta": None}]}
    reply = read(
        events(chunk, delta(content=None, tool_calls=None, refusal=None), delta("stop", content="ok"))
    )
    assert (reply.text, reply.tool_calls, reply.usage) == ("ok", (), None)


def test_thoughts_are_kept_apart_from_the_text() -> None:
    reply = read(
        events(
            delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "hm, "}]}]),
            delta(content=[{"type": "thinking", "thinking": "well"}, {"type": "text", "text": "yes"}]),
            delta(reasoning=" so"),
            delta(reasoning_content=" be it", reasoning=" be it"),
            delta("stop", content="."),
        )
    )
    assert (reply.text, reply.reasoning) == ("yes.", "hm, well so be it")


def test_a_refusal_is_shown_when_there_is_no_text() -> None:
    assert read(events(delta(refusal="I will "), delta("stop", refusal="not."))).text == "I will not."


def test_the_end_mark_alone_ends_a_reply() -> None:
    reply = read(events(delta(content="4"), "[DONE]"))
    assert (reply.text, reply.finish) == ("4", None)


def test_a_finish_reason_alone_ends_a_reply() -> None:
    assert read(events(delta("stop", content="4"))).finish == "stop"


def test_usage_comes_from_its_own_chunk_or_the_last_one() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 4}
    alone = read(events(delta("stop"), {"choices": [], "usage": usage}, "[DONE]"))
    within = read(events({**delta("stop"), "usage": usage}, {"choices": [], "usage": None}))
    without_choices = read(events(delta("stop"), {"usage": usage}))
    for reply in (alone, within, without_choices):
        assert reply.usage is not None
        assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (3, 4)


@pytest.mark.parametrize(
    "body",
    [
        events(delta(content="half")),
        b"",
        b": waiting\n\n",
        events("[DONE]"),
        events({"choices": []}, "[DONE]"),
    ],
)
def test_a_reply_without_its_end_is_not_whole(body: bytes) -> None:
    reader = ReplyReader()
    reader.feed(body)
    reader.end()
    assert not reader.whole


def test_comments_blank_lines_and_other_fields_are_passed_over() -> None:
    body = (
        b"\n\n: waiting\n\nevent: message\nid: 1\nretry: 5\ndata:"
        + json.dumps(delta("stop", content="ok")).encode()
    )
    assert read(body).text == "ok"


def test_an_event_in_several_data_lines_is_one() -> None:
    text = json.dumps(delta("stop", content="ok"), indent=1)
    assert (
        read(b"".join(b"data: " + line.encode() + b"\n" for line in text.splitlines()) + b"\n").text == "ok"
    )


def test_a_character_cut_between_two_pieces_is_put_together() -> None:
    body = events(delta("stop", content="盘")).replace(b"\\u76d8", "盘".encode())
    for at in range(len(body)):
        reader = ReplyReader()
        assert "".join(reader.feed(body[:at]) + reader.feed(body[at:]) + reader.end()) == "盘"


@pytest.mark.parametrize(
    "body",
    [b"data: {oops\n\n", b"data: 7\n\n", b"data: \xff\n\n", b"{oops", b"{}", b'{"choices": null}', b"[]"],
)
def test_what_is_no_completion_is_corrupt(body: bytes) -> None:
    reader = ReplyReader()
    with pytest.raises(Corrupt):  # noqa: PT012 - an unfinished body is only judged at its end
        reader.feed(body)
        reader.end()


def test_a_web_page_is_told_apart() -> None:
    with pytest.raises(WebPage):
        ReplyReader().feed(b"\n <!doctype html>")


def test_an_error_object_in_a_list_is_an_error() -> None:
    reader = ReplyReader()
    reader.feed(b'[{"error": {"code": 400, "message": "no"}}]')
    with pytest.raises(InStreamError):
        reader.end()


def test_only_the_first_choice_counts() -> None:
    second = {"choices": [{"index": 1, "delta": {"content": "b"}, "finish_reason": "length"}]}
    assert read(events(delta(content="a"), second, delta("stop"))).text == "a"
