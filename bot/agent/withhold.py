"""Pure: results from hosts that a person may not use are taken out of what they, and their turns, get to see."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace

from storage.records import Message, Role, ToolCall

RUN = "run_command"
WITHHELD = "(withheld: this is from {hosts}, which {who} may not use here)"


def withheld(
    messages: Sequence[Message], *, denied: Collection[str], who: str, but_turn: int | None = None
) -> list[Message]:
    """The messages, those replaced that tell what was seen on denied hosts. but_turn: a turn left as it is.

    A result belongs to the hosts its call names, of every call of that id; so do our notes of a result that
    came late. One whose call is not among the messages may be of any host. What the bot itself wrote in its
    answers stays: it stands in the thread for all to read.
    """
    hosts: dict[str, list[str]] = {}
    for message in messages:
        for call in message.tool_calls:
            hosts.setdefault(call.id, []).extend(hosts_of(call) if call.name == RUN else ())
    out: list[Message] = []
    for message in messages:
        of = () if message.tool_call_id is None else hosts.get(message.tool_call_id, sorted(denied))
        named = [host for host in dict.fromkeys(of) if host in denied]
        if not named or message.role is Role.ASSISTANT or (but_turn and message.turn_id == but_turn):
            out.append(message)
            continue
        out.append(replace(message, text=WITHHELD.format(hosts=", ".join(named), who=who)))
    return out


def hosts_of(call: ToolCall) -> tuple[str, ...]:
    """The hosts that a call of run_command names; none when they cannot be read."""
    try:
        named = json.loads(call.arguments or "{}").get("hosts", ())
    except (ValueError, RecursionError, AttributeError):
        return ()
    if isinstance(named, str):
        return tuple(name.strip() for name in named.split(","))
    return tuple(name for name in named if isinstance(name, str)) if isinstance(named, list) else ()
