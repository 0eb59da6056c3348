"""An OpenAI-compatible endpoint over HTTP that answers from a script and checks every request.

    async with FakeModel([calls([call("list_hosts", filter="")]), say("two hosts")]) as fake:
        ...                       # fake.base_url goes into OPENAI_BASE_URL
    assert fake.violations == []

The script is a list, used up one answer a request, or a function of the request (plain or async).
It runs in the test's event loop; a bot in another process reaches it by its port like any endpoint.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from aiohttp import web

Request = dict[str, Any]
Fault = Literal["truncated", "disconnect", "corrupt", "silent"]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call to answer with. id None: the fake makes one up."""

    name: str
    arguments: str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer. body: sent as it is, with status, instead of a completion."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    finish: str | None = None
    fault: Fault | None = None
    plain: bool = False
    pause_s: float = 0.0  # between the pieces of a stream
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    content_type: str = "application/json"
    piece_size: int | None = None  # bytes a write, for body


Script = Iterable[Answer] | Callable[[Request], Answer | Awaitable[Answer]]


def say(text: str, *, finish: str = "stop") -> Answer:
    """An answer of text only."""
    return Answer(text=text, finish=finish)


def call(name: str, **args: Any) -> Call:
    """A well-formed call."""
    return Call(name, json.dumps(args, ensure_ascii=False))


def calls(wanted: Iterable[Call], *, text: str = "") -> Answer:
    """An answer that asks for tools."""
    return Answer(text=text, calls=tuple(wanted), finish="tool_calls")


def status(number: int, message: str = "", *, retry_after: float | None = None, **error: Any) -> Answer:
    """An error answer, such as 429, 500 or 400."""
    body = {"error": {"message": message or f"scripted {number}", **error}}
    headers = (("Retry-After", f"{retry_after:g}"),) if retry_after is not None else ()
    return Answer(status=number, body=json.dumps(body).encode(), headers=headers)


def raw(
    body: bytes, *, code: int = 200, content_type: str = "text/event-stream", piece_size: int | None = None
) -> Answer:
    """These very bytes, in writes of piece_size."""
    return Answer(status=code, body=body, content_type=content_type, piece_size=piece_size)


def truncated(answer: Answer) -> Answer:
    """The stream ends in order but too early: no finish reason, no end mark."""
    return replace(answer, fault="truncated")


def disconnect(answer: Answer) -> Answer:
    """The connection is reset in the middle of the stream."""
    return replace(answer, fault="disconnect")


def corrupt(answer: Answer) -> Answer:
    """A chunk in the middle is not JSON."""
    return replace(answer, fault="corrupt")


def silent(answer: Answer) -> Answer:
    """Half of the answer, then nothing until the other side goes away."""
    return replace(answer, fault="silent")


def slow(answer: Answer, pause_s: float) -> Answer:
    """A pause before each piece."""
    return replace(answer, pause_s=pause_s)


def plain(answer: Answer) -> Answer:
    """One JSON object, whether or not a stream was asked for."""
    return replace(answer, plain=True)


class FakeModel:
    """The endpoint. requests: bodies in order of arrival; violations: what a strict endpoint would refuse."""

    def __init__(self, script: Script = (), *, port: int = 0, expect_tools: bool = True) -> None:
        self.requests: list[Request] = []
        self.headers: list[dict[str, str]] = []
        self.peers: list[object] = []  # the other side's address of each request: equal = one connection
        self.violations: list[str] = []
        self._answer: Callable[[Request], Answer | Awaitable[Answer]] | None = None
        self._queue: list[Answer] = []
        if callable(script):
            self._answer = script
        else:
            self._queue = list(script)
        self._port = port
        self._expect_tools = expect_tools
        self._made_ids = 0
        self._arrived = asyncio.Condition()
        self._runner: web.AppRunner | None = None

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    def push(self, *answers: Answer) -> None:
        """Add to the end of the script."""
        self._queue += answers

    def answer_by(self, answer: Callable[[Request], Answer | Awaitable[Answer]]) -> None:
        """From now on every request is answered by this function."""
        self._answer = answer

    async def start(self) -> str:
        """Listen on loopback, on the given port or a free one; the base address."""
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=0.2, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self.base_url

    async def stop(self) -> None:
        if self._runner:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def wait_for_requests(self, count: int, *, timeout: float = 20.0) -> None:
        """Until that many requests have arrived. Raises TimeoutError."""
        async with asyncio.timeout(timeout), self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= count)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.violations += violations_of(body, expect_tools=self._expect_tools)
        if not request.headers.get("Authorization", "").startswith("Bearer "):
            self.violations.append("no Authorization: Bearer header")
        self.headers.append(dict(request.headers))
        self.peers.append(request.transport and request.transport.get_extra_info("peername"))
        self.requests.append(body)
        async with self._arrived:
            self._arrived.notify_all()
        answer = await self._next(body)
        if answer.body is not None:
            return await self._bytes(request, answer)
        if answer.plain or not body.get("stream"):
            return web.json_response(self._completion(answer))
        return await self._stream(request, answer, usage=bool(body.get("stream_options")))

    async def _next(self, body: Request) -> Answer:
        if self._answer:
            made = self._answer(body)
            return await made if inspect.isawaitable(made) else made
        if not self._queue:
            self.violations.append(f"request {len(self.requests)} came after the script was over")
            return status(400, "the script is over")
        return self._queue.pop(0)

    async def _bytes(self, request: web.Request, answer: Answer) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers=dict(answer.headers))
        response.content_type = answer.content_type
        await response.prepare(request)
        body, size = answer.body or b"", answer.piece_size or len(answer.body or b"") or 1
        for at in range(0, len(body), size):
            await response.write(body[at : at + size])
            await asyncio.sleep(0)  # lets the other side read this piece by itself
        await response.write_eof()
        return response

    async def _stream(self, request: web.Request, answer: Answer, *, usage: bool) -> web.StreamResponse:
        response = web.StreamResponse(headers=dict(answer.headers))
        response.content_type = "text/event-stream"
        await response.prepare(request)
        pieces = [chunk async for chunk in self._chunks(answer, usage=usage)]
        half = len(pieces) // 2
        for at, piece in enumerate(pieces):
            if at == half and answer.fault == "corrupt":
                piece = piece[: len(piece) // 2] + b"\n\n"
            elif at == half and answer.fault:
                await self._break_off(request, answer.fault)
                return response
            await asyncio.sleep(answer.pause_s)
            await response.write(piece)
        await response.write_eof()
        return response

    async def _break_off(self, request: web.Request, fault: Fault) -> None:
        if fault == "silent":
            await asyncio.Event().wait()  # cancelled when the other side goes away or the fake stops
        if fault == "disconnect" and request.transport:
            await asyncio.sleep(0.02)  # what was written before must have left first
            request.transport.abort()

    async def _chunks(self, answer: Answer, *, usage: bool) -> AsyncIterator[bytes]:
        yield _event({"role": "assistant", "content": ""})
        for piece in re.findall(r"\s*\S+\s*", answer.text) or ([answer.text] if answer.text else []):
            yield _event({"content": piece})
        for index, wanted in enumerate(self._with_ids(answer.calls)):
            head = {"name": wanted.name, "arguments": ""}
            yield _event(
                {"tool_calls": [{"index": index, "id": wanted.id, "type": "function", "function": head}]}
            )
            middle = len(wanted.arguments) // 2
            for part in (wanted.arguments[:middle], wanted.arguments[middle:]):
                yield _event({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
        yield _event({}, finish=answer.finish)
        if usage:
            yield _data({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}})
        yield b"data: [DONE]\n\n"

    def _completion(self, answer: Answer) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
        if answer.calls:
            message["tool_calls"] = [
                {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
                for c in self._with_ids(answer.calls)
            ]
        return {
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": answer.finish}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5},
        }

    def _with_ids(self, wanted: tuple[Call, ...]) -> list[Call]:
        named = []
        for one in wanted:
            if one.id is None:
                self._made_ids += 1
                one = replace(one, id=f"call_{self._made_ids}")
            named.append(one)
        return named


def _data(chunk: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps({"object": "chat.completion.chunk", **chunk}).encode() + b"\n\n"


def _event(delta: dict[str, Any], *, finish: str | None = None) -> bytes:
    return _data({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


_KEYS = {
    "system": {"role", "content"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "tool_calls"},
    "tool": {"role", "content", "tool_call_id"},
}


def violations_of(request: Request, *, expect_tools: bool = True) -> list[str]:
    """What the strictest endpoints would refuse in a request, one line each; empty when it is sound."""
    found = [] if request.get("model") else ["no model is named"]
    if expect_tools:
        found += _tool_faults(request.get("tools"))
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        return [*found, "no messages"]
    waiting: list[str] = []  # calls without a result yet
    seen: set[str] = set()
    begun = False
    for at, message in enumerate(messages):
        role = message.get("role")
        found += [f"messages[{at}]: {fault}" for fault in _message_faults(message)]
        if role == "system" and begun:
            found.append(f"messages[{at}]: a system message after the conversation began")
        begun = begun or role != "system"
        if role == "tool":
            if message.get("tool_call_id") in waiting:
                waiting.remove(message["tool_call_id"])
            else:
                found.append(
                    f"messages[{at}]: a result for {message.get('tool_call_id')!r}, which nobody asked"
                )
            continue
        if waiting:
            found.append(f"messages[{at}]: calls without a result before it: {', '.join(waiting)}")
        waiting = [str(c.get("id")) for c in message.get("tool_calls") or ()]
        found += [f"messages[{at}]: the call id {i!r} is used twice" for i in waiting if i in seen]
        if len(set(waiting)) < len(waiting):
            found.append(f"messages[{at}]: two calls with one id")
        seen.update(waiting)
    if waiting:
        found.append(f"the request ends with calls without a result: {', '.join(waiting)}")
    if messages[-1].get("role") not in ("user", "tool"):
        found.append(f"the request ends with a message of {messages[-1].get('role')}")
    return found


def _tool_faults(tools: Any) -> list[str]:
    if not isinstance(tools, list) or not tools:
        return ["no tools are offered"]
    found = []
    names = []
    for tool in tools:
        function = tool.get("function") or {}
        name = function.get("name")
        names.append(name)
        if tool.get("type") != "function" or not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", str(name)):
            found.append(f"tool {name!r} is not a function with a plain name")
        if (function.get("parameters") or {}).get("type") != "object":
            found.append(f"tool {name!r} has no object of parameters")
    if len(set(names)) < len(names):
        found.append("two tools with one name")
    return found


def _message_faults(message: dict[str, Any]) -> list[str]:
    role, content, wanted = message.get("role"), message.get("content"), message.get("tool_calls")
    if role not in _KEYS:
        return [f"the role {role!r} does not exist"]
    found = [f"the key {key!r} does not belong here" for key in sorted(set(message) - _KEYS[role])]
    if content is None and not (role == "assistant" and wanted):
        found.append("no content")
    elif content is not None and not isinstance(content, str):
        found.append("content is no text")
    elif content == "" and not wanted and role != "tool":
        found.append("content is empty")
    if "tool_calls" in message and not wanted:
        found.append("an empty list of calls")
    for one in wanted or ():
        function = one.get("function") or {}
        if not one.get("id") or one.get("type") != "function" or not function.get("name"):
            found.append("a call without id, type or name")
        try:
            if not isinstance(json.loads(function.get("arguments")), dict):
                found.append("arguments are no JSON object")
        except (TypeError, ValueError):
            found.append("arguments are no JSON text")
    return found
