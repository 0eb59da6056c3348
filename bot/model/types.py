"""What passes between the loop and a model: messages and tools in wire shape, a typed reply back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from storage.records import ToolCall

ChatMessage = dict[str, Any]
"""One message as chat completions take it: role, content, tool_calls, tool_call_id."""

ToolSchema = dict[str, Any]
"""One tool as chat completions take it: type "function" and a function of name, description, parameters."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the endpoint counted them."""

    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Reply:
    """One finished reply.

    tool_calls: ids as sent, so they may be empty or equal; `arguments` may be invalid JSON, but is `{}`
    where the endpoint sent none. finish: as sent, so None or "" where an endpoint sends none; "length"
    means that text or arguments were cut at the endpoint's limit. usage: None where none was sent.
    reasoning: what a thinking model said to itself; not part of the answer and never sent back.
    """

    text: str
    tool_calls: tuple[ToolCall, ...]
    finish: str | None
    usage: Usage | None
    reasoning: str = ""


class Model(Protocol):
    """Something that can give the next reply to a conversation."""

    async def reply(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[ToolSchema],
        *,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        """The next reply. on_text gets the text piece by piece as it arrives; an empty piece says that
        all pieces so far are void, because the reply is asked for again. It must not block.

        Raises ModelUnavailable (can be tried again), ModelRefused (a person must change something) or
        its subclass ContextTooLong (send less).
        """
        ...
