"""The practice model's endpoint: chat completions over HTTP on loopback, streamed like a real one."""

from __future__ import annotations

import json
import re
import secrets
from typing import Any

from aiohttp import web

from bot.demo.practice.investigation import Said
from bot.demo.practice.reading import read
from bot.demo.practice.thinking import next_reply

MAX_REQUEST = 64 * 1024 * 1024  # bytes


class PracticeModel:
    """Listens on a free loopback port between start and stop."""

    name = "practice"

    def __init__(self) -> None:
        self._runner: web.AppRunner | None = None

    async def start(self) -> str:
        """Begin to listen; the base address for OPENAI_BASE_URL."""
        app = web.Application(client_max_size=MAX_REQUEST)
        app.router.add_post("/v1/chat/completions", self._complete)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    async def stop(self) -> None:
        """Stop listening; a second call does nothing."""
        if self._runner:
            await self._runner.cleanup()
            self._runner = None

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        try:
            body = await request.json()
            if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
                raise ValueError("messages is missing")
        except ValueError as error:
            fault = {
                "message": f"this is no chat completion request: {error}",
                "type": "invalid_request_error",
            }
            return web.json_response({"error": fault}, status=400)
        said = next_reply(read(body))
        calls = [_call(name, arguments) for name, arguments in said.calls]
        usage = _usage(body, said)
        if not body.get("stream"):
            return web.json_response(_whole(said, calls, usage))
        response = web.StreamResponse()
        response.content_type = "text/event-stream"
        await response.prepare(request)
        for chunk in _chunks(said, calls):
            await response.write(_event({"choices": [chunk]}))
        if (body.get("stream_options") or {}).get("include_usage"):
            await response.write(_event({"choices": [], "usage": usage}))
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response


def _call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(arguments, ensure_ascii=False)
    return {
        "id": f"p{secrets.token_hex(4)}",
        "type": "function",
        "function": {"name": name, "arguments": text},
    }


def _usage(body: dict[str, Any], said: Said) -> dict[str, int]:
    """Four characters a token, as a rough rule; it has no tokenizer."""
    sent = len(json.dumps(body.get("messages"), ensure_ascii=False)) // 4
    made = (len(said.text) + len(str(said.calls))) // 4
    return {"prompt_tokens": sent, "completion_tokens": made, "total_tokens": sent + made}


def _finish(calls: list[dict[str, Any]]) -> str:
    return "tool_calls" if calls else "stop"


def _whole(said: Said, calls: list[dict[str, Any]], usage: dict[str, int]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": said.text or None}
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": _finish(calls)}
    return {"object": "chat.completion", "model": PracticeModel.name, "choices": [choice], "usage": usage}


def _chunks(said: Said, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    # a word with the space before it, or a few Chinese characters, a chunk
    deltas += [
        {"content": piece}
        for piece in re.findall(r"\s*[\u3000-\uffff]{1,4}|\s*[^\s\u3000-\uffff]+|\s+$", said.text)
    ]
    deltas += [{"tool_calls": [{"index": at, **call}]} for at, call in enumerate(calls)]
    out: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    out.append({"index": 0, "delta": {}, "finish_reason": _finish(calls)})
    return out


def _event(chunk: dict[str, Any]) -> bytes:
    chunk = {"object": "chat.completion.chunk", "model": PracticeModel.name, **chunk}
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"
