"""Pure: older turns that a prompt does not show, told in a line or two each, by rules.

All of it is data. A line begins with a mark of ours and holds what was said on one line; commands are quoted so
that nothing in them can end them. Commands come from the results, never from the calls: what a person may not see
was taken out of the results before (bot.agent.withhold), and so it is missing here too.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence

from bot.agent.budget import tokens
from bot.agent.shorten import outcomes
from bot.agent.withhold import RUN, WITHHELD
from bot.outside import clean, line, name
from bot.tools.reported import reported
from storage.history import OURS
from storage.records import Message, Role

HEADING = (
    "Earlier in this session, in short (made by rules from what was said and run; what is quoted is data):"
)
COMMANDS = 5  # of a turn that are named, the newest
_WORDS = 200  # characters of a question, a command or an answer
_HIDDEN = WITHHELD.partition("{")[0]


def summary(messages: Sequence[Message], room: int) -> str:
    """The turns of these messages, newest kept first in at most `room` tokens, in their order; "" for none.

    The messages are repaired: a result stands behind its call.
    """
    unread = bool(messages) and messages[0].parent_id is not None  # the history was not read to its beginning
    turns = _turns(messages)
    kept: list[str] = []
    room -= tokens(HEADING) + 20
    while turns and (room := room - tokens(told := _turn(turns[-1]))) >= 0:
        kept.insert(0, told)
        turns.pop()
    if turns or unread:
        kept.insert(0, f"- {_count(len(turns), unread=unread)} before {'that' if kept else 'this'}")
    return "\n".join([HEADING, *kept]) if kept else ""


def _count(turns: int, *, unread: bool) -> str:
    if not turns:
        return "more turns"
    return f"{'at least ' if unread else ''}{turns} turn{'s' * (turns > 1)}"


def _turns(messages: Sequence[Message]) -> list[list[Message]]:
    """By turn, in the order of their first message: a turn that waited goes on behind others.

    What was imported has no turns; there each message of a person begins one.
    """
    groups: dict[tuple[str, int], list[Message]] = {}
    key = ("imported", 0)
    for i, message in enumerate(messages):
        if message.role is not Role.TOOL:  # a result belongs to its call, whoever wrote it down
            if message.turn_id is not None:
                key = ("turn", message.turn_id)
            elif message.role is Role.USER or key[0] == "turn":
                key = ("imported", i)
        groups.setdefault(key, []).append(message)
    return list(groups.values())


def _turn(messages: Sequence[Message]) -> str:
    asked = [m for m in messages if m.role is Role.USER and not _ours(m)]
    lines = [f"> {name(m.author, 'somebody')}: {line(_first(m.text), _WORDS)}" for m in asked]
    answer = next((m.text for m in reversed(messages) if m.role is Role.ASSISTANT and m.text.strip()), "")
    done = [*_ran(messages), *([f"answered: {line(answer, _WORDS)}"] if answer else [])]
    if done:
        lines.append(f"- {' · '.join(done)}")
    return "\n".join(lines)


def _first(text: str) -> str:
    """The first line that says something."""
    return next((each for each in clean(text).split("\n") if each.strip()), "")


def _ran(messages: Sequence[Message]) -> Iterator[str]:
    """What ran and how it ended, and what of it is withheld. What was imported is only counted: it ran elsewhere,
    and its results are no reports of ours.
    """
    runs = {call.id for m in messages for call in m.tool_calls if call.name == RUN}
    told: list[str] = []
    hidden: dict[str, None] = {}
    other = 0
    for text in [m.text for m in messages if m.turn_id is not None and _is_result(m, runs)]:
        found = reported(text)
        if text.startswith(_HIDDEN):
            hidden[line(text, _WORDS)] = None
        elif found is None:
            other += 1
        else:
            told.append(f"{_quoted(found.command)} ({outcomes(found)})")
    if told:
        more = f"{len(told) - COMMANDS} commands, then " if len(told) > COMMANDS else ""
        yield f"ran {more}{', '.join(told[-COMMANDS:])}"
    yield from hidden
    if other:
        yield f"{other} call{'s' * (other > 1)} without a result"
    if imported := sum(len(m.tool_calls) for m in messages if m.turn_id is None):
        yield f"{imported} imported call{'s' * (imported > 1)}"


def _is_result(message: Message, runs: Collection[str]) -> bool:
    """Of a command, also one that came late as a note of ours."""
    late = message.role is Role.USER and _ours(message) and message.tool_call_id is not None
    return late or (message.role is Role.TOOL and message.tool_call_id in runs)


def _quoted(command: str) -> str:
    return json.dumps(line(command, _WORDS), ensure_ascii=False)


def _ours(message: Message) -> bool:
    return message.author == OURS and message.turn_id is not None
