"""The client against an endpoint that misbehaves: retries inside a budget, errors that teach, no secrets."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bot.errors import ContextTooLong, ModelRefused, ModelUnavailable, SettingsError
from bot.model import OpenAIModel, Reply
from tests.fakes.model import (
    Answer,
    Call,
    FakeModel,
    call,
    calls,
    corrupt,
    disconnect,
    plain,
    raw,
    say,
    silent,
    slow,
    status,
    truncated,
)

ASK = [{"role": "user", "content": "is the disk full?"}]
TOOLS = [{"type": "function", "function": {"name": "run_command", "parameters": {"type": "object"}}}]
KEY = "sk-test-0123456789abcdef"


@asynccontextmanager
async def talking(fake: FakeModel, **options: Any) -> AsyncIterator[OpenAIModel]:
    settings = {"budget_s": 10.0, "idle_s": 10.0, "first_wait_s": 0.01, **options}
    async with fake:
        model = OpenAIModel(base_url=fake.base_url, api_key=KEY, name="m", **settings)
        try:
            yield model
        finally:
            await model.aclose()


async def ask(*script: Answer, on_text: Callable[[str], None] | None = None, **options: Any) -> Reply:
    fake = FakeModel(script)
    async with talking(fake, **options) as model:
        reply = await model.reply(ASK, TOOLS, on_text=on_text)
    assert fake.violations == []
    assert len(fake.requests) == len(script)
    return reply


async def test_text_is_streamed_and_tokens_are_counted() -> None:
    pieces: list[str] = []
    reply = await ask(say("the disk is fine\n  really"), on_text=pieces.append)
    assert reply.text == "the disk is fine\n  really" == "".join(pieces)
    assert len(pieces) > 1
    assert reply.finish == "stop"
    assert reply.usage is not None
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (10, 5)


async def test_several_calls_come_with_their_ids_and_arguments() -> None:
    wanted = [call("run_command", hosts=["web-1"], command="df -h"), Call("list_hosts", "{}", "")]
    reply = await ask(calls(wanted, text="let me look"))
    assert reply.text == "let me look"
    assert [(c.id, c.name, json.loads(c.arguments)) for c in reply.tool_calls] == [
        ("call_1", "run_command", {"hosts": ["web-1"], "command": "df -h"}),
        ("", "list_hosts", {}),
    ]


async def test_invalid_arguments_are_handed_over_as_sent() -> None:
    reply = await ask(calls([Call("run_command", '{"hosts": [', "a")]))
    assert reply.tool_calls[0].arguments == '{"hosts": ['


async def test_invalid_arguments_in_the_history_are_sent_as_json_that_shows_them() -> None:
    history = [
        *ASK,
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "x", "arguments": "{oops"}}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "not JSON"},
    ]
    fake = FakeModel([say("ok")])
    async with talking(fake) as model:
        await model.reply(history, TOOLS)
    assert fake.violations == []
    sent = fake.requests[0]["messages"][1]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(sent) == {"invalid_arguments": "{oops"}
    assert history[1]["tool_calls"][0]["function"]["arguments"] == "{oops"


@pytest.mark.parametrize("name", ["", "functions.run", "run<|channel|>x", "läuft", "x" * 99])
async def test_a_name_of_the_models_own_making_is_sent_as_one_that_endpoints_take(name: str) -> None:
    made = {"id": "a", "type": "function", "function": {"name": name, "arguments": "{}"}}
    history = [
        *ASK,
        {"role": "assistant", "content": None, "tool_calls": [made]},
        {"role": "tool", "tool_call_id": "a", "content": "there is no such tool"},
    ]
    fake = FakeModel([say("ok")])
    async with talking(fake) as model:
        await model.reply(history, TOOLS)
    sent = fake.requests[0]["messages"][1]["tool_calls"][0]["function"]["name"]
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", sent)


async def test_a_length_finish_is_surfaced() -> None:
    assert (await ask(say("half of the", finish="length"))).finish == "length"


async def test_plain_json_to_a_stream_request_is_read() -> None:
    pieces: list[str] = []
    reply = await ask(plain(calls([call("list_hosts")], text="hm")), on_text=pieces.append)
    assert (reply.text, "".join(pieces), reply.tool_calls[0].name) == ("hm", "hm", "list_hosts")


@pytest.mark.parametrize(
    "fault",
    [
        status(500),
        status(429, retry_after=0.05),
        status(408),
        status(503, "overloaded"),
        truncated(say("one two three four")),
        disconnect(say("one two three four")),
        corrupt(say("one two three four")),
        silent(say("one two three four")),
        raw(b"data: [DONE]\n\n"),
        raw(b""),
        raw(b"{}", content_type="application/json"),
        raw(b'{"error": {"message": "upstream is busy", "code": 429}}', content_type="application/json"),
        raw(b'data: {"error": {"message": "overloaded", "type": "overloaded_error"}}\n\n'),
        raw(b'data: {"choices": [{"delta": {"content": "x"}, "finish_reason": "error"}]}\n\n'),
    ],
    ids=lambda a: a.fault or f"{a.status}-{(a.body or b'')[:24]!r}",
)
async def test_a_passing_fault_is_retried_and_the_streamed_text_is_called_void(fault: Answer) -> None:
    pieces: list[str] = []
    idle_s = 0.7 if fault.fault == "silent" else 10.0
    reply = await ask(fault, fault, say("all is well"), on_text=pieces.append, idle_s=idle_s)
    assert reply.text == "all is well"
    void = [at for at, piece in enumerate(pieces) if piece == ""]
    last = void[-1] + 1 if void else 0
    assert "".join(pieces[last:]) == "all is well"
    assert len(void) == (2 if any(pieces[:last]) else 0)


async def test_retry_after_is_honoured() -> None:
    begun = time.monotonic()
    await ask(status(429, retry_after=0.4), say("ok"))
    assert time.monotonic() - begun >= 0.4


async def test_a_wait_beyond_the_budget_is_not_begun() -> None:
    begun = time.monotonic()
    with pytest.raises(ModelUnavailable, match=r"in 1 try: scripted 429; say .continue."):
        await ask(status(429, retry_after=3600))
    assert time.monotonic() - begun < 5


async def test_the_budget_ends_the_retries_with_a_clear_error() -> None:
    fake = FakeModel(lambda _: status(503, "overloaded"))
    begun = time.monotonic()
    async with talking(fake, budget_s=0.3) as model:
        with pytest.raises(ModelUnavailable, match="overloaded") as caught:
            await model.reply(ASK, TOOLS)
    assert time.monotonic() - begun < 2
    assert len(fake.requests) > 1
    assert "model m at 127.0.0.1" in str(caught.value)


async def test_a_silent_endpoint_ends_inside_the_budget() -> None:
    fake = FakeModel(lambda _: silent(say("one two three four")))
    begun = time.monotonic()
    async with talking(fake, budget_s=0.6, idle_s=0.25) as model:
        with pytest.raises(ModelUnavailable, match=r"silent for 0\.25 s"):
            await model.reply(ASK, TOOLS)
    assert time.monotonic() - begun < 2
    assert len(fake.requests) >= 2


async def test_a_slow_reply_is_not_cut_by_the_budget() -> None:
    reply = await ask(slow(say("one two three four"), 0.3), budget_s=2.0)
    assert reply.text == "one two three four"


async def test_nobody_listening_is_said_with_the_address() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        model = OpenAIModel(
            base_url=f"http://127.0.0.1:{port}/v1", api_key=KEY, name="m", budget_s=0.2, first_wait_s=0.02
        )
        with pytest.raises(ModelUnavailable, match=f"127.0.0.1:{port}.*no connection.*OPENAI_BASE_URL"):
            await model.reply(ASK, TOOLS)
        await model.aclose()


async def test_a_connection_that_breaks_after_the_end_loses_nothing() -> None:
    whole = b'data: {"choices": [{"delta": {"content": "ok"}, "finish_reason": "stop"}]}\n\n'

    async def cut_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        writer.write(f"{len(whole):x}\r\n".encode() + whole + b"\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(cut_off, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        model = OpenAIModel(base_url=f"http://127.0.0.1:{port}", api_key=KEY, name="m", budget_s=1)
        reply = await model.reply(ASK, TOOLS)
        await model.aclose()
    assert (reply.text, reply.finish) == ("ok", "stop")


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (status(401, f"Incorrect API key provided: {KEY}"), ModelRefused, "check OPENAI_API_KEY"),
        (status(403, "no access"), ModelRefused, "check OPENAI_API_KEY"),
        (status(402, "no credits"), ModelRefused, "no credit left"),
        (status(429, "quota", code="insufficient_quota"), ModelRefused, "no credit left"),
        (
            status(404, "The model `m` does not exist", code="model_not_found"),
            ModelRefused,
            "OPSTHREAD_MODEL",
        ),
        (status(404, "nothing here"), ModelRefused, "OPENAI_BASE_URL"),
        (raw(b"<html>hi</html>", content_type="text/html"), ModelRefused, "OPENAI_BASE_URL"),
        (status(400, "gemma:2b does not support tools"), ModelRefused, "a model with tool support is needed"),
        (
            status(404, "No endpoints found that support tool use"),
            ModelRefused,
            "a model with tool support is needed",
        ),
        (status(400, "too long", code="context_length_exceeded"), ContextTooLong, "OPSTHREAD_MAX_TOKENS"),
        (
            status(400, "This model's maximum context length is 8192 tokens"),
            ContextTooLong,
            "OPSTHREAD_MAX_TOKENS",
        ),
        (
            status(413, "Request too large", code="rate_limit_exceeded"),
            ContextTooLong,
            "OPSTHREAD_MAX_TOKENS",
        ),
        (
            raw(b'data: {"error": {"message": "prompt is too long", "code": 400}}\n\n'),
            ContextTooLong,
            "OPSTHREAD_MAX_TOKENS",
        ),
        (status(422, "bad field"), ModelRefused, "bad field"),
    ],
    ids=lambda v: v if isinstance(v, str) else None,
)
async def test_a_refusal_is_final_and_says_what_to_change(
    answer: Answer, kind: type[ModelRefused], words: str
) -> None:
    with pytest.raises(kind, match=words) as caught:
        await ask(answer)
    assert type(caught.value) is kind
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert "\n" not in str(caught.value)


async def test_a_bad_call_is_tried_three_times() -> None:
    fault = status(400, "call did not match its schema", code="tool_use_failed")
    assert (await ask(fault, fault, say("ok"))).text == "ok"
    with pytest.raises(ModelUnavailable, match="in 3 tries: call did not match"):
        await ask(fault, fault, fault)


async def test_an_endpoint_without_stream_options_is_asked_without_them_from_then_on() -> None:
    fake = FakeModel([status(400, "unknown field", param="stream_options"), say("one"), say("two")])
    async with talking(fake) as model:
        assert (await model.reply(ASK, TOOLS)).text == "one"
        assert (await model.reply(ASK, TOOLS)).text == "two"
    assert ["stream_options" in r for r in fake.requests] == [True, False, False]
    assert all(r["stream"] for r in fake.requests)


async def test_an_endpoint_that_does_not_stream_is_asked_for_plain_replies_from_then_on() -> None:
    fake = FakeModel([status(400, "tools are not supported in streaming mode"), say("one"), say("two")])
    async with talking(fake) as model:
        assert (await model.reply(ASK, TOOLS)).text == "one"
        assert (await model.reply(ASK, TOOLS)).text == "two"
    assert [r.get("stream") for r in fake.requests] == [True, None, None]


async def test_connections_are_used_again() -> None:
    fake = FakeModel([say("one"), say("two"), say("three")])
    async with talking(fake) as model:
        for _ in range(3):
            await model.reply(ASK, TOOLS)
    assert len(fake.peers) == 3
    assert len(set(fake.peers)) == 1


async def test_a_cancelled_reply_closes_its_connection() -> None:
    fake = FakeModel(lambda _: silent(say("one two three four")))
    async with talking(fake, idle_s=30, budget_s=30) as model:
        asked = asyncio.create_task(model.reply(ASK, TOOLS))
        await fake.wait_for_requests(1)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked


async def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert (await ask(say("ok"))).text == "ok"


def test_a_proxy_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "gopher://127.0.0.1:9")
    with pytest.raises(SettingsError, match="proxy settings"):
        OpenAIModel(base_url="http://10.0.0.1/v1", api_key=KEY, name="m")


@pytest.mark.parametrize(
    "address",
    ["api.example.com/v1", "ftp://x/v1", "http://", "localhost:11434", "http://[::1", "http://x:99999"],
)
def test_an_address_that_is_none_is_refused_at_once(address: str) -> None:
    with pytest.raises(SettingsError, match="OPENAI_BASE_URL"):
        OpenAIModel(base_url=address, api_key=KEY, name="m")


def test_a_key_is_not_needed_by_every_endpoint() -> None:
    OpenAIModel(base_url="http://127.0.0.1:11434/v1", api_key="", name="m")
