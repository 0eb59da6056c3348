"""Pure views of a session's messages: open calls, window, repair, and the shape the model is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from bot.model import ChatMessage
from bot.outside import clean, framed, name, quiet
from storage.history import OURS
from storage.records import Message, Role, ToolCall

INTERRUPTED = (
    "interrupted: the outcome is unknown. It was not run again; check the state before you repeat it."
)


IMPORTED = "(from an imported session; nothing was run here)"


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call without a result, and the turn that made it."""

    call: ToolCall
    turn_id: int | None


def open_calls(messages: Sequence[Message]) -> tuple[OpenCall, ...]:
    """Calls that have no result yet, in the order they were made."""
    results = _results(messages)
    return tuple(
        OpenCall(call=call, turn_id=m.turn_id)
        for i, m in enumerate(messages)
        for k, call in enumerate(m.tool_calls)
        if (i, k) not in results
    )


def _results(messages: Sequence[Message]) -> dict[tuple[int, int], Message]:
    """The result of each call, by the places of message and call.

    A result belongs to the newest call of its id before it: what others exported may use an id again and again.
    """
    waiting: dict[str, list[tuple[int, int]]] = {}
    found: dict[tuple[int, int], Message] = {}
    for i, message in enumerate(messages):
        for k, call in enumerate(message.tool_calls):
            waiting.setdefault(call.id, []).append((i, k))
        if message.role is Role.TOOL and (places := waiting.get(message.tool_call_id or "")):
            found[places.pop()] = message
    return found


def plan_author(messages: Sequence[Message]) -> str | None:
    """Who asked for the turn that wrote the plan last; None: no plan was written in what is read."""
    turn = next((m.turn_id for m in reversed(messages) if any(c.name == "plan" for c in m.tool_calls)), None)
    return next(
        (
            m.author
            for m in messages
            if turn is not None and m.turn_id == turn and m.role is Role.USER and m.author != OURS
        ),
        None,
    )


def window(messages: Sequence[Message], limit: int) -> tuple[Message, ...]:
    """The newest messages, at most `limit`, cut where a person speaks; the last turn is always whole."""
    if len(messages) <= limit:
        return tuple(messages)
    starts = [i for i, m in enumerate(messages) if m.role is Role.USER and m.author != OURS]
    fitting = [i for i in starts if len(messages) - i <= limit]
    cut = fitting[0] if fitting else (starts[-1] if starts else 0)
    return tuple(messages[cut:])


def repair(messages: Sequence[Message]) -> tuple[Message, ...]:
    """What a provider accepts: every call has its result right behind it, no result stands alone.

    A call without a result gets INTERRUPTED; a result without its call is left out; an id that was used
    before becomes another one.
    """
    results = _results(messages)
    out: list[Message] = []
    taken: set[str] = set()
    for i, message in enumerate(messages):
        if message.role is Role.TOOL:
            continue
        calls = unique_ids(message.tool_calls, taken=taken, seed=f"again:{i}")
        taken |= {call.id for call in calls}
        out.append(message if calls == message.tool_calls else replace(message, tool_calls=calls))
        for k, call in enumerate(calls):
            result = results.get((i, k)) or _interrupted(message, call)
            out.append(result if result.tool_call_id == call.id else replace(result, tool_call_id=call.id))
    return tuple(out)


def _interrupted(message: Message, call: ToolCall) -> Message:
    return Message(role=Role.TOOL, text=INTERRUPTED, tool_call_id=call.id, turn_id=message.turn_id)


def unique_ids(calls: Sequence[ToolCall], *, taken: set[str], seed: str) -> tuple[ToolCall, ...]:
    """Give calls without an id, or with one used before, an id of their own.

    Nine letters and digits: the strictest provider (Mistral) takes no other form.
    """
    out: list[ToolCall] = []
    used = set(taken)
    for number, call in enumerate(calls):
        name = call.id
        if not name or name in used:
            name = _fresh(f"{seed}:{number}", used)
        used.add(name)
        out.append(ToolCall(id=name, name=call.name, arguments=call.arguments))
    return tuple(out)


def _fresh(seed: str, used: set[str]) -> str:
    from hashlib import blake2b

    for salt in range(1_000):
        name = blake2b(f"{seed}:{salt}".encode(), digest_size=8).hexdigest()[:9]
        if name not in used:
            return name
    raise AssertionError("a thousand digests cannot all be taken")


def to_wire(messages: Sequence[Message], *, turn_id: int | None, preface: str) -> list[ChatMessage]:
    """The request's messages. `preface` (our blocks) stands before the words that opened `turn_id`.

    Older words of people carry their author in front, so that a shared thread stays attributed; the
    open turn's words stand verbatim at the end of their message. Further lines of older words are set in, so
    that none of them can begin as another message does. What came by an import is never ours.
    """
    opening = next(
        (
            i
            for i, m in enumerate(messages)
            if m.role is Role.USER and m.turn_id == turn_id and m.author != OURS
        ),
        None,
    )
    return [_wire(m, preface if i == opening else None) for i, m in enumerate(messages)]


def _wire(message: Message, preface: str | None) -> ChatMessage:
    match message.role:
        case Role.USER:
            if preface is not None:
                return {
                    "role": "user",
                    "content": f"{quiet(preface)}\n\n{message.text}" if preface else message.text,
                }
            return {"role": "user", "content": quiet(f"[{_speaker(message)}] {_said(message)}")}
        case Role.ASSISTANT:
            wire: ChatMessage = {"role": "assistant", "content": quiet(clean(message.text))}
            if message.tool_calls:
                wire["tool_calls"] = [
                    {
                        "id": call.id,
                        "type": "function",
                        "function": {"name": call.name, "arguments": call.arguments},
                    }
                    for call in message.tool_calls
                ]
            return wire
        case Role.TOOL:
            text = message.text if message.turn_id is not None else f"{IMPORTED}\n{framed(message.text)}"
            return {"role": "tool", "tool_call_id": message.tool_call_id, "content": quiet(text)}
        case _ as never:
            assert_never(never)


def _ours(message: Message) -> bool:
    """A note that the bot wrote in a turn; a file that is imported can name any author."""
    return message.author == OURS and message.turn_id is not None


def _speaker(message: Message) -> str:
    return OURS if _ours(message) else name(message.author or "", "somebody")


def _said(message: Message) -> str:
    """Notes of ours are framed already where they hold data."""
    return message.text if _ours(message) else "\n  ".join(clean(message.text).split("\n"))
