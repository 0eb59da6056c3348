"""Messages in, memories out: who may say what, and what stands at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bot.memory.cases import Cases
from bot.memory.facts.read import facts
from bot.memory.gate import may_stay
from bot.memory.preferences.read import preferences
from bot.memory.records import Found, Heard, TakenBack
from bot.memory.standing import said_before, taken_back
from storage.records import MemoryKind, Role


def extract(messages: Sequence[Heard]) -> tuple[Found, ...]:
    """What would stand after these messages: superseded and taken-back memories are gone, equal ones come once."""
    standing: dict[tuple[MemoryKind, str, str], Found] = {}
    for event in events(messages):
        if isinstance(event, TakenBack):
            for found in taken_back(event, list(standing.values())):
                del standing[found.key]
            continue
        if (near := said_before(event, list(standing.values()))) is not None:
            del standing[near.key]
        old = standing.pop(event.key, None)
        standing[event.key] = event if old is None or old.value != event.value else old
    return tuple(sorted(standing.values(), key=lambda found: found.source))


def events(messages: Sequence[Heard]) -> Iterator[Found | TakenBack]:
    """What is found and what is taken back, in order. Nothing here knows of earlier conversations."""
    cases = Cases()
    before: dict[str, int] = {}  # the last message of each person
    for number, heard in enumerate(messages, 1):
        if (case := cases.hear(heard, number)) and may_stay(case.text):
            yield case
        if heard.role is Role.TOOL:
            yield from (f for f in facts(heard, number) if may_stay(f.value, f.text))
        elif heard.role is Role.USER:
            for event in preferences(heard, number):
                if isinstance(event, TakenBack):
                    yield replace(event, since=before.get(heard.author, 0))
                elif may_stay(event.value, event.text):
                    yield event
            before[heard.author] = number
