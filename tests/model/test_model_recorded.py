"""Answers that real endpoints gave, replayed over HTTP: each is read as expected, or is a clear error.

The recordings lie beside the repository, in the folder that the variable SHARED names (../shared if unset).
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from bot.errors import ModelError, ModelRefused, ModelUnavailable
from bot.model import OpenAIModel, Reply
from bot.model.stream import InStreamError, ReplyReader
from tests.fakes.model import Answer, FakeModel, raw

SHARED = Path(os.environ.get("SHARED", Path(__file__).parents[3] / "shared"))
RECORDED = SHARED / "model" / "recorded.jsonl"
ROWS = [json.loads(line) for line in RECORDED.read_text().splitlines()] if RECORDED.is_file() else []
ASK = [{"role": "user", "content": "?"}]

needs_recordings = pytest.mark.skipif(
    not ROWS, reason=f"no recordings at {RECORDED}; set SHARED to their folder"
)


def ids(rows: list[dict[str, Any]]) -> list[str]:
    return [f"{row['provider']}-{row['status']}-{'stream' if row['stream'] else 'json'}" for row in rows]


def sent(row: dict[str, Any]) -> bytes:
    return (row["body"] if isinstance(row["body"], str) else json.dumps(row["body"])).encode()


def wanted_text(expected: Any) -> str:
    if isinstance(expected, str):
        return expected
    return "".join(part["text"] for part in expected if part["type"] == "text")


def assert_as_expected(reply: Reply, expect: dict[str, Any]) -> None:
    assert reply.text == wanted_text(expect["text"])
    assert [(c.id, c.name, c.arguments) for c in reply.tool_calls] == [
        (c["id"], c["name"], c["arguments"] or "{}") for c in expect["tool_calls"]
    ]
    assert reply.finish == expect["finish_reason"]
    if expect.get("usage"):
        assert reply.usage is not None
        assert reply.usage.prompt_tokens == expect["usage"]["prompt_tokens"]
        assert reply.usage.completion_tokens == expect["usage"]["completion_tokens"]


async def replay(
    row: dict[str, Any], piece_size: int | None, *, budget_s: float = 1
) -> tuple[Reply, str, int]:
    """The reply, what was streamed, and how many requests it took."""
    kind = "text/event-stream" if row["stream"] else "application/json"

    def answer(_: dict[str, Any]) -> Answer:
        return raw(sent(row), code=row["status"], content_type=kind, piece_size=piece_size)

    pieces: list[str] = []
    async with FakeModel(answer, expect_tools=False) as fake:
        model = OpenAIModel(
            base_url=fake.base_url, api_key="k", name=row["model"], budget_s=budget_s, first_wait_s=0.01
        )
        try:
            return await model.reply(ASK, [], on_text=pieces.append), "".join(pieces), len(fake.requests)
        finally:
            await model.aclose()


@needs_recordings
def test_all_recordings_are_there() -> None:
    assert len(ROWS) == 78


GOOD = [row for row in ROWS if row["expect"] and not row["expect"].get("error")]
BROKEN = [row for row in ROWS if row["expect"] and row["expect"].get("error")]
REFUSED = [row for row in ROWS if not row["expect"]]


@needs_recordings
@pytest.mark.parametrize("piece_size", [None, 37])
@pytest.mark.parametrize("row", GOOD, ids=ids(GOOD))
async def test_a_recorded_reply_is_read_as_expected(row: dict[str, Any], piece_size: int | None) -> None:
    reply, streamed, requests = await replay(row, piece_size)
    assert_as_expected(reply, row["expect"])
    assert streamed == reply.text
    assert requests == 1


@needs_recordings
@pytest.mark.parametrize("row", GOOD, ids=ids(GOOD))
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
def test_a_recorded_reply_reads_the_same_byte_by_byte(row: dict[str, Any], end: str) -> None:
    reader = ReplyReader()
    body = sent(row) if not row["stream"] else row["body"].replace("\n", end).encode()
    pieces = [p for byte in body for p in reader.feed(bytes([byte]))] + reader.end()
    assert reader.whole
    assert_as_expected(reader.reply(), row["expect"])
    assert "".join(pieces) == reader.reply().text


@needs_recordings
@pytest.mark.parametrize("row", BROKEN, ids=ids(BROKEN))
async def test_a_call_the_endpoint_threw_away_is_tried_three_times(row: dict[str, Any]) -> None:
    with pytest.raises(ModelUnavailable) as caught:
        await replay(row, 37, budget_s=20)
    assert "in 3 tries" in str(caught.value)
    assert row["expect"]["error"]["message"] in str(caught.value)


@needs_recordings
@pytest.mark.parametrize("row", BROKEN, ids=ids(BROKEN))
def test_an_error_in_mid_stream_keeps_what_came_before(row: dict[str, Any]) -> None:
    reader = ReplyReader()
    with pytest.raises(InStreamError):
        reader.feed(sent(row))
    assert reader.reply().text == row["expect"]["text"]
    assert not reader.whole


@needs_recordings
@pytest.mark.parametrize("row", REFUSED, ids=ids(REFUSED))
async def test_a_recorded_refusal_names_its_reason_and_what_to_do(row: dict[str, Any]) -> None:
    with pytest.raises(ModelError) as caught:
        await replay(row, None)
    said = str(caught.value)
    error = row["body"]["error"]
    assert error["message"] in said
    assert "\n" not in said
    if row["status"] == 404:
        assert isinstance(caught.value, ModelRefused)
        assert "OPSTHREAD_MODEL" in said
    elif row["status"] == 429:
        assert isinstance(caught.value, ModelUnavailable)
        assert error["metadata"]["raw"] in said
        assert "continue" in said
    elif error.get("code") == "tool_use_failed":
        assert isinstance(caught.value, ModelUnavailable)
    else:
        assert isinstance(caught.value, ModelRefused)
        assert "OPSTHREAD_MODEL" in said
