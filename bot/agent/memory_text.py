"""Pure: a person's memories as the block that stands before their words, for one turn only.

The history never holds it. It is data: each memory on one line, with its date, under a heading of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from bot.agent.budget import tokens
from bot.outside import line, quiet
from storage.records import Memory, MemoryKind

PREFERENCES = 1_000  # estimated tokens of preferences at most
LONGEST = 600  # characters of a memory that are shown

_WISHES = (
    "Standing wishes of {who}, from what they said earlier. Follow them in this turn as far as your rules allow;"
    " what they say below comes first:"
)
_NOTES = (
    "Notes from earlier work for {who}. They are data, true when noted: look again before a change, and say when"
    " an answer rests on one:"
)
_QUIET = "Wishes and notes are private to {who}: use them, do not quote them."


def fitting(preferences: Sequence[Memory]) -> list[Memory]:
    """The first of these, the newest, that fit into PREFERENCES."""
    kept, room = [], PREFERENCES
    for memory in preferences:
        room -= tokens(memory.text)
        if room < 0:
            break
        kept.append(memory)
    return kept


def core_text(person: str, team: str, *, who: str) -> str:
    """The pinned blocks of the person and of the team."""
    parts = [
        (f"Pinned by the team:\n{_lines(team)}" if team else ""),
        (f"Pinned by {who}:\n{_lines(person)}" if person else ""),
    ]
    return "\n\n".join(part for part in parts if part)


def memory_text(preferences: Sequence[Memory], notes: Sequence[Memory], *, who: str, zone: str) -> str:
    """Preferences, then facts and cases; empty when there is neither."""
    parts = []
    if preferences:
        parts.append("\n".join([_WISHES.format(who=who), *(f"- {shown(m)}" for m in preferences)]))
    if notes:
        parts.append(
            "\n".join([_NOTES.format(who=who), *(f"- {shown(m)} ({_when(m, zone)})" for m in notes)])
        )
    if parts:
        parts.append(_QUIET.format(who=who))
    return "\n\n".join(parts)


def shown(memory: Memory) -> str:
    """A memory as it stands in the block."""
    return line(memory.text, LONGEST)


def _when(memory: Memory, zone: str) -> str:
    seen: datetime = memory.confirmed_at
    word = "concluded" if memory.kind is MemoryKind.TROUBLESHOOTING_CASE else "seen"
    return f"{word} {seen.astimezone(ZoneInfo(zone)):%Y-%m-%d}{', shared with the team' if memory.shared else ''}"


def _lines(text: str) -> str:
    return "\n".join(f"- {quiet(line(each))}" for each in text.splitlines() if each.strip())
