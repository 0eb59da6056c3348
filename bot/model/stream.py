"""Reads what an endpoint sends back, however it sends it: server-sent events or one JSON object. Pure.

Endpoints differ more than the client library's types allow (content as a list of parts, calls without
index or arguments, errors inside a 200 stream), so the bytes are read here, leniently.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bot.model.types import Reply, Usage
from storage.records import ToolCall

MAX_BODY = 32 * 1024 * 1024  # bytes of one reply; more is a fault, not an answer


class Corrupt(Exception):  # private to bot.model: the client turns it into a retry
    """The endpoint sent something that is no chat completion."""


class WebPage(Corrupt):
    """The endpoint answered with a web page."""


class InStreamError(Exception):
    """The endpoint reported an error inside a reply that began with status 200."""

    def __init__(self, body: Any) -> None:
        super().__init__("error inside a stream")
        self.body = body


@dataclass(slots=True)
class _Call:
    id: str
    name: str
    arguments: str
    index: int | None


class ReplyReader:
    """Feed bytes as they come, in pieces of any size; each feed gives the new pieces of text.

    Raises Corrupt or InStreamError as soon as one is seen. `whole` says whether the reply came to its
    end: a finish reason or the end mark was sent (one recorded endpoint sends only the end mark).
    """

    def __init__(self) -> None:
        self._rest = bytearray()  # a line that is not finished
        self._data: list[str] = []  # data lines of an event that is not finished
        self._plain: bytearray | None = None  # the body, once it is known to be no event stream
        self._begun = False
        self._size = 0
        self._after_cr = False
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[_Call] = []
        self._finish: str | None = None
        self._usage: Usage | None = None
        self._begun_reply = False
        self._done = False

    @property
    def done(self) -> bool:
        """The end mark was seen; nothing that matters can follow."""
        return self._done

    @property
    def whole(self) -> bool:
        return bool(self._finish) or (self._done and self._begun_reply)

    def feed(self, piece: bytes) -> list[str]:
        """Take some bytes; the text that became readable."""
        self._size += len(piece)
        if self._size > MAX_BODY:
            raise Corrupt("the reply is longer than 32 MB")
        if not self._begun:
            piece = piece.lstrip()
            if not piece:
                return []
            self._begun = True
            if piece.startswith(b"<"):
                raise WebPage
            if piece[:1] in (b"{", b"["):
                self._plain = bytearray()
        if self._plain is not None:
            self._plain += piece
            return []
        before = len(self._text)
        for line in self._lines(piece):
            self._line(line)
        return self._text[before:]

    def end(self) -> list[str]:
        """The connection ended in order; what the last, unfinished line still held."""
        before = len(self._text)
        if self._plain is not None:
            self._chunk(_parse(bytes(self._plain)), key="message")
            self._done = True
            return self._text[before:]
        if self._rest:
            self._line(bytes(self._rest))
            self._rest.clear()
        self._line(b"")
        return self._text[before:]

    def reply(self) -> Reply:
        """The reply so far."""
        return Reply(
            text="".join(self._text) or "".join(self._refusal),
            tool_calls=tuple(ToolCall(c.id, c.name, c.arguments or "{}") for c in self._calls),
            finish=self._finish,
            usage=self._usage,
            reasoning="".join(self._reasoning),
        )

    def _lines(self, piece: bytes) -> Iterator[bytes]:
        """Finished lines. LF, CRLF and CR all end one; a CR at the edge of a piece may be half of CRLF."""
        if self._after_cr and piece.startswith(b"\n"):
            piece = piece[1:]
        self._after_cr = piece.endswith(b"\r")
        self._rest += piece
        if b"\n" not in piece and b"\r" not in piece:
            return
        lines = bytes(self._rest).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = bytearray(lines.pop())
        yield from lines

    def _line(self, line: bytes) -> None:
        if not line:
            if self._data:
                data, self._data = "\n".join(self._data), []
                self._event(data)
            return
        name, _, value = line.partition(b":")
        if name == b"data":
            try:
                self._data.append(value.removeprefix(b" ").decode())
            except UnicodeDecodeError as error:
                raise Corrupt("a chunk is not UTF-8") from error
        # `event:`, `id:`, `retry:` and comments (`: keep-alive`) carry nothing that the data does not

    def _event(self, data: str) -> None:
        data = data.strip()
        if data == "[DONE]":
            self._done = True
        elif data:
            self._chunk(_parse(data.encode()), key="delta")

    def _chunk(self, chunk: Any, *, key: str) -> None:
        if isinstance(chunk, list) and len(chunk) == 1:
            chunk = chunk[0]  # one provider wraps its error object in a list
        if not isinstance(chunk, dict):
            raise Corrupt("a chunk is no JSON object")
        if chunk.get("error"):
            raise InStreamError(chunk)
        self._usage = _usage(chunk.get("usage")) or self._usage
        choices = chunk.get("choices")
        if not isinstance(choices, list):
            if key == "message":
                raise Corrupt("the answer has no choices")
            return  # usage and moderation chunks
        for choice in choices:
            if isinstance(choice, dict) and choice.get("index") in (0, None):
                self._choice(choice, choice.get(key) or choice.get("delta") or choice.get("message"))

    def _choice(self, choice: dict[str, Any], said: Any) -> None:
        self._begun_reply = True
        if isinstance(said, dict):
            self._content(said.get("content"))
            self._reasoning.append(_text(said.get("reasoning_content")) or _text(said.get("reasoning")))
            self._refusal.append(_text(said.get("refusal")))
            for part in said.get("tool_calls") or ():
                if isinstance(part, dict):
                    self._call(part)
        finish = choice.get("finish_reason")
        if finish == "error":
            raise InStreamError({"error": {"message": "the provider broke off", "code": 502}})
        if isinstance(finish, str) and not self._finish:
            self._finish = finish

    def _content(self, content: Any) -> None:
        """Text, or a list of parts of which some are thoughts."""
        if isinstance(content, str):
            if content:
                self._text.append(content)
            return
        for part in content if isinstance(content, list) else ():
            if not isinstance(part, dict):
                continue
            if part.get("type") == "thinking":
                thought = part.get("thinking")
                inner = thought if isinstance(thought, list) else [{"text": thought}]
                self._reasoning += [_text(i.get("text")) for i in inner if isinstance(i, dict)]
            elif _text(part.get("text")):
                self._text.append(part["text"])

    def _call(self, part: dict[str, Any]) -> None:
        """One whole call, or a fragment of one."""
        raw = part.get("function")
        function = raw if isinstance(raw, dict) else {}
        name = _text(function.get("name"))
        arguments = _arguments(function.get("arguments"))
        call_id = _text(part.get("id"))
        index = part.get("index") if isinstance(part.get("index"), int) else None
        call = self._open_call(index, call_id=call_id, name=name, arguments=arguments)
        if call is None:
            self._calls.append(_Call(call_id, name, arguments, index))
            return
        call.id = call.id or call_id
        if name and name != call.name:
            call.name += name
        call.arguments += arguments

    def _open_call(self, index: int | None, *, call_id: str, name: str, arguments: str) -> _Call | None:
        """The call that a fragment goes on with; None when the fragment begins a new one.

        The index decides where it is sent. Some endpoints send none, or 0 for every call, and some no id
        either: then a name beside another id, or beside arguments after complete ones, begins a new call.
        """
        if index is None:
            call = self._calls[-1] if self._calls else None
        else:
            call = next((c for c in reversed(self._calls) if c.index in (index, None)), None)
        if call is None or not name or (call_id and call_id == call.id):
            return call
        if call_id and call.id and call_id != call.id:
            return None
        if arguments and _is_object(call.arguments):
            return None
        return None if index is None and call.name else call


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Corrupt("a chunk is not JSON") from error


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _arguments(value: Any) -> str:
    """As sent; some servers send the object itself instead of its text."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else ""


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _usage(raw: Any) -> Usage | None:
    if not isinstance(raw, dict):
        return None
    sent, made = raw.get("prompt_tokens"), raw.get("completion_tokens")
    if not isinstance(sent, int) or not isinstance(made, int):
        return None
    return Usage(sent, made)
