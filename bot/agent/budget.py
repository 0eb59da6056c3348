"""Pure: how many tokens a text is likely to take, and making a history fit the room there is.

Older output shrinks to one line first, then whole turns are left out; never the last turn's question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bot.outside import FRAME
from storage.history import OURS
from storage.records import Message, Role


def tokens(text: str) -> int:
    """A cautious estimate: three ASCII characters a token, one Chinese character a token."""
    wide = sum(1 for char in text if ord(char) > 0x2E7F)
    return (len(text) - wide) // 3 + wide + 4


def cost(messages: Sequence[Message]) -> int:
    """Estimated tokens of all messages, their calls included."""
    return sum(tokens(m.text) + sum(tokens(c.arguments) for c in m.tool_calls) for m in messages)


def fit(messages: Sequence[Message], room: int) -> tuple[tuple[Message, ...], int]:
    """Messages that fit into `room` tokens, and how many older ones were left out."""
    kept = list(messages)
    turns = [i for i, m in enumerate(kept) if m.role is Role.USER and m.author != OURS]
    last = turns[-1] if turns else 0
    excess = cost(kept) - room
    excess = _shrink(kept, range(last), excess, keep=300)
    dropped = 0
    while excess > 0 and len(turns) > 1:
        cut = turns[1]
        excess -= cost(kept[:cut])
        dropped += cut
        kept = kept[cut:]
        turns = [t - cut for t in turns[1:]]
    if excess > 0:
        results = [i for i, m in enumerate(kept) if m.role is Role.TOOL]
        newest = _newest_step(kept)
        excess = _shrink(kept, [i for i in results if i < newest], excess, keep=600)
        excess = _shrink(kept, [i for i in results if i >= newest], excess, keep=max(2_000, room // 2))
        _shrink(kept, results, excess, keep=600)
    return tuple(kept), dropped


def _newest_step(messages: Sequence[Message]) -> int:
    """Where the last reply with calls stands: its results are what the model reads next."""
    return max((i for i, m in enumerate(messages) if m.tool_calls), default=len(messages))


def _shrink(messages: list[Message], places: Sequence[int] | range, excess: int, *, keep: int) -> int:
    """Shorten results at `places`, oldest first, until `excess` is gone; returns what is left of it."""
    for i in places:
        if excess <= 0:
            break
        message = messages[i]
        if message.role is not Role.TOOL or len(message.text) <= keep + 200:
            continue
        before = tokens(message.text)
        messages[i] = replace(message, text=shorten(message.text, keep))
        excess -= before - tokens(messages[i].text)
    return excess


def shorten(text: str, keep: int) -> str:
    """Head and tail of a result with a line between that says how much is missing.

    The tail begins where a line begins, or gets the frame of the line it was cut from.
    """
    if len(text) <= keep:
        return text
    head = text[: keep * 2 // 3]
    tail = text[-(keep // 3) :] if keep >= 3 else ""
    begun = tail.find("\n") + 1
    tail = tail[begun:]
    left = len(text) - len(head) - len(tail)
    return f"{head}\n… {left} characters left out here …\n{'' if begun else FRAME}{tail}"
