"""Asks an OpenAI-compatible endpoint for replies; the one place that retries and maps its errors.

The openai client makes the request (address, key, proxies, connection pool) and hands over the bytes;
reading them is bot.model.stream's work, judging errors that of bot.model.faults.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai

from bot.errors import SettingsError
from bot.log import get
from bot.model.faults import Fault, Kind, as_error, classify, scrub
from bot.model.stream import Corrupt, InStreamError, ReplyReader, WebPage
from bot.model.types import ChatMessage, Reply, ToolSchema

OPENAI = "https://api.openai.com/v1"
CONNECT_S = 10.0
DRAIN_S = 0.5
RETRY_AFTER_CAP_S = 30.0
LONGEST_WAIT_S = 20.0
BAD_CALL_TRIES = 3

log = get(__name__)


class _Failed(Exception):
    """One attempt failed; says how."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.detail)
        self.fault = fault


class OpenAIModel:
    """A model behind any endpoint that speaks OpenAI's chat completions.

    base_url: None is OpenAI itself. api_key: may be empty where the endpoint wants none. budget_s: no new
    try begins later than this after the first; a reply that is arriving is never cut by it. idle_s: silence
    after which a try counts as dead. first_wait_s: wait before the second try, doubled for each further
    one, with jitter. Raises SettingsError when base_url is no http address.
    """

    def __init__(
        self,
        *,
        base_url: str | None,
        api_key: str,
        name: str,
        budget_s: float = 120.0,
        idle_s: float = 60.0,
        first_wait_s: float = 0.5,
    ) -> None:
        address = (base_url or OPENAI).rstrip("/")
        try:
            parts = urlsplit(address)
            host, port = parts.hostname, parts.port
        except ValueError:  # half an IPv6 address, a port that is none
            host, port = None, None
        if not host or parts.scheme not in ("http", "https"):
            raise SettingsError("OPENAI_BASE_URL must be an address such as https://api.openai.com/v1")
        self.name = name
        self._key = api_key
        self._place = host + (f":{port}" if port else "")
        self._budget_s = budget_s
        self._quiet_s = min(idle_s, budget_s)
        self._first_wait_s = first_wait_s
        self._stream = True
        self._stream_options = True
        try:
            self._client = openai.AsyncOpenAI(
                base_url=address,
                api_key=api_key or "none",
                max_retries=0,
                http_client=openai.DefaultAsyncHttpxClient(trust_env=not _on_loopback(host)),
            )
        except (ImportError, ValueError) as error:  # the libraries read HTTP_PROXY, ALL_PROXY and so on here
            raise SettingsError(f"the environment's proxy settings cannot be used: {error}") from None

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def reply(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[ToolSchema],
        *,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        """See bot.model.types.Model. Takes at most budget_s + idle_s where nothing usable arrives."""
        request = {"messages": _sendable(messages), **({"tools": list(tools)} if tools else {})}
        begun = time.monotonic()
        tries = bad_calls = 0
        heard = _Heard(on_text)
        while True:
            tries += 1
            try:
                heard.restart()
                return await self._try(request, heard)
            except _Failed as failed:
                fault = failed.fault
            if self._adapt(fault.kind):
                continue
            bad_calls += fault.kind is Kind.BAD_CALL
            again = fault.kind is Kind.TRANSIENT or (
                fault.kind is Kind.BAD_CALL and bad_calls < BAD_CALL_TRIES
            )
            wait = self._wait(tries, fault.retry_after)
            if not again or time.monotonic() - begun + wait > self._budget_s:
                raise as_error(fault, place=self._place, model=self.name, tries=tries)
            log.warning(
                "model_retry", place=self._place, tries=tries, wait_s=round(wait, 2), why=fault.detail
            )
            await asyncio.sleep(wait)

    def _adapt(self, kind: Kind) -> bool:
        """Ask more plainly from now on, if that is what the endpoint wants."""
        if kind is Kind.PLAIN_OPTIONS and self._stream and self._stream_options:
            self._stream_options = False
            return True
        if kind is Kind.PLAIN_REPLY and self._stream:
            self._stream = False
            return True
        return False

    def _wait(self, tries: int, retry_after: float | None) -> float:
        """Seconds before the next try: what the endpoint asks for, capped, else doubling with jitter."""
        if retry_after is not None:
            return min(retry_after, RETRY_AFTER_CAP_S)
        longest = min(self._first_wait_s * 2.0 ** min(tries - 1, 16), LONGEST_WAIT_S)
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, guards nothing

    async def _try(self, request: dict[str, Any], heard: _Heard) -> Reply:
        """One request. Raises _Failed."""
        reader = ReplyReader()
        try:
            async with self._answer(request) as pieces:
                async for piece in pieces:
                    heard.take(reader.feed(piece))
                    if reader.done:
                        await _drain(pieces)
                        break
            heard.take(reader.end())
        except _Failed as failed:
            if not (reader.whole and failed.fault.kind is Kind.TRANSIENT):
                raise  # else the connection broke after the end: nothing is missing
        except InStreamError as error:
            raise self._failed(classify(None, error.body)) from None
        except WebPage:
            advice = "check OPENAI_BASE_URL (it often ends in /v1)"
            raise _Failed(Fault(Kind.REFUSED, "it answered with a web page", advice)) from None
        except Corrupt as error:
            raise _Failed(Fault(Kind.TRANSIENT, str(error))) from None
        if not reader.whole:
            raise _Failed(Fault(Kind.TRANSIENT, "the reply was cut off"))
        return reader.reply()

    @asynccontextmanager
    async def _answer(self, request: dict[str, Any]) -> AsyncIterator[AsyncIterator[bytes]]:
        """The answer's bytes as they arrive; everything the libraries raise becomes _Failed."""
        options: dict[str, Any] = {"stream": True} if self._stream else {}
        if self._stream and self._stream_options:
            options["stream_options"] = {"include_usage": True}
        # an answer in one piece is not silent for being long in the making
        quiet_s = self._quiet_s if self._stream else self._budget_s
        options["timeout"] = openai.Timeout(quiet_s, connect=min(CONNECT_S, quiet_s))
        create = self._client.chat.completions.with_streaming_response.create
        try:
            async with create(model=self.name, **request, **options) as response:
                yield response.iter_bytes()
        except openai.APIStatusError as error:
            raise self._failed(_status_fault(error)) from None
        except (openai.APITimeoutError, httpx2.TimeoutException):
            raise _Failed(Fault(Kind.TRANSIENT, f"silent for {quiet_s:g} s")) from None
        except openai.APIConnectionError as error:
            why = type(error.__cause__ or error).__name__
            advice = 'check OPENAI_BASE_URL and the network, then say "continue"'
            raise _Failed(Fault(Kind.TRANSIENT, f"no connection ({why})", advice)) from None
        except (httpx2.RequestError, httpx2.StreamError, openai.OpenAIError) as error:
            raise _Failed(Fault(Kind.TRANSIENT, f"the connection broke ({type(error).__name__})")) from None

    def _failed(self, fault: Fault) -> _Failed:
        detail = scrub(fault.detail, self._key)
        return _Failed(Fault(fault.kind, detail, fault.advice, fault.retry_after))


class _Heard:
    """Passes text on, and says once that it is void when a reply is asked for again."""

    def __init__(self, on_text: Callable[[str], None] | None) -> None:
        self._on_text = on_text
        self._said = False

    def take(self, pieces: list[str]) -> None:
        if self._on_text:
            for piece in pieces:
                self._said = True
                self._on_text(piece)

    def restart(self) -> None:
        if self._said and self._on_text:
            self._said = False
            self._on_text("")


def _on_loopback(hostname: str) -> bool:
    """This machine itself: a proxy set in the environment could not reach it for us."""
    try:
        return ip_address(hostname).is_loopback
    except ValueError:
        return hostname == "localhost"


def _status_fault(error: openai.APIStatusError) -> Fault:
    try:
        body = error.response.json()
    except (ValueError, httpx2.StreamError):
        body = error.body
    return classify(error.status_code, body, retry_after=_retry_after(error.response.headers))


def _retry_after(headers: httpx2.Headers) -> float | None:
    """Seconds from retry-after-ms or Retry-After, which may hold a number or a date."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with suppress(ValueError):
            seconds = float(headers.get(name, "")) * unit
            if 0 <= seconds < float("inf"):
                return seconds
    with suppress(ValueError, TypeError):
        at = parsedate_to_datetime(headers.get("retry-after", ""))
        return max((at - datetime.now(UTC)).total_seconds(), 0.0)
    return None


async def _drain(pieces: AsyncIterator[bytes]) -> None:
    """Read on to the end of the answer, so that its connection can be used again; briefly."""
    with suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_S):
            async for _ in pieces:
                pass


def _sendable(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The messages with every call's arguments as a JSON object, and with a name that endpoints take.

    A model's invalid JSON stays in the history as it was; sent back, several endpoints refuse the whole
    conversation because of it, so the text travels inside an object. The same goes for a name of its own making.
    """
    return [_with_json_arguments(m) if m.get("tool_calls") else m for m in messages]


def _with_json_arguments(message: ChatMessage) -> ChatMessage:
    calls = [
        {**call, "function": {"name": _plain_name(f["name"]), "arguments": _json_object(f["arguments"])}}
        for call in message["tool_calls"]
        for f in (call["function"],)
    ]
    return {**message, "tool_calls": calls}


def _plain_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "unnamed"


def _json_object(text: str) -> str:
    try:
        if isinstance(json.loads(text), dict):
            return text
    except (ValueError, RecursionError):
        pass
    return json.dumps({"invalid_arguments": text}, ensure_ascii=False)
