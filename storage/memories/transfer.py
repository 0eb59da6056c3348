"""Memories to and from JSON lines: everything out, and in again line by line under its `ref`.

A line is `{"id", "kind", "subject", "attribute", "value", "text", "host", "source", "ref", "created_at",
"valid_to", "superseded_by"}`; kind and text are enough to import. Ids are worth something in one file only:
`superseded_by` is the `id` of another line.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import text

from storage.errors import MemoryRefused, StorageError
from storage.memories import keeping
from storage.memories.keeping import Outcome
from storage.memories.rows import list_, opted_out
from storage.recall import scopes
from storage.recall.scopes import ScopeKind
from storage.records import Memory, MemoryKind, NewMemory
from storage.store import Db

IMPORT_S = 600.0  # seconds a file may take


class MemoryFault(StorageError):
    """The file of memories cannot be imported."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file, checked. number: from 1. id and superseded_by: as the file has them."""

    number: int
    memory: NewMemory
    id: int | None = None
    superseded_by: int | None = None


@dataclass(frozen=True, slots=True)
class Imported:
    """added: rows; refreshed: a key had that value already; skipped: the same line was there already."""

    added: int
    refreshed: int
    skipped: int


def parse(lines: Iterable[str]) -> list[Line]:
    """Read a file's lines. Raises MemoryFault that names the first faulty line; nothing is stored yet."""
    return [_line(number, raw) for number, raw in enumerate(lines, 1) if raw.strip()]


def _fault(number: int, what: str) -> MemoryFault:
    return MemoryFault(f"line {number}: {what}; nothing was imported")


def _line(number: int, raw: str) -> Line:
    try:
        values = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise _fault(number, f"this is not JSON ({error})") from None
    if not isinstance(values, dict):
        raise _fault(number, "this is not a JSON object")
    try:
        kind = MemoryKind(str(values.get("kind")))
    except ValueError:
        raise _fault(
            number, f"unknown kind {values.get('kind')!r} (known: {', '.join(MemoryKind)})"
        ) from None
    new = NewMemory(
        kind=kind,
        text=_text(number, "text", values) or "",
        subject=_text(number, "subject", values),
        attribute=_text(number, "attribute", values),
        value=_text(number, "value", values),
        host=_text(number, "host", values),
        source=values.get("source"),
        ref=_text(number, "ref", values),
        at=_time(number, "created_at", values),
        valid_to=_time(number, "valid_to", values),
    )
    try:
        checked = keeping.checked(new)
    except MemoryRefused as error:
        raise _fault(number, str(error)) from None
    return Line(number, checked, _id(values, "id"), _id(values, "superseded_by"))


def _text(number: int, name: str, values: dict[str, Any]) -> str | None:
    value = values.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool) and name != "text":
        value = str(value)
    if value is not None and not isinstance(value, str):
        raise _fault(number, f"{name} is not a text")
    return value


def _id(values: dict[str, Any], name: str) -> int | None:
    value = values.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _time(number: int, name: str, values: dict[str, Any]) -> datetime | None:
    value = values.get(name)
    if value is None:
        return None
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise _fault(number, f"{name} {value!r} is not a time such as 2026-05-01T12:00:00+00:00") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


async def import_(db: Db, lines: Sequence[Line], *, team: str, owner: str) -> Imported:
    """Keep every line under its ref, all or nothing. A line that is there already, word for word, is not doubled.

    Only a line with subject and attribute may refresh or supersede. Raises MemoryRefused.
    """
    if await opted_out(db, team=team, person=owner):
        raise MemoryRefused(f"{owner} wants no memories kept; `opsthread memory opt-out --undo` changes that")
    scope_id, docs = await scopes.hold(db, team=team, kind=ScopeKind.PERSON, owner=owner)
    if docs + len(lines) > keeping.MOST:
        raise MemoryRefused(
            f"{owner} has {docs:,} memories; with {len(lines):,} more it were over {keeping.MOST:,}"
        )
    there = Counter(map(_whole, await list_(db, team=team, owner=owner, history=True)))
    now = datetime.now(UTC)
    ids: dict[int, int] = {}
    outcomes: Counter[Outcome | None] = Counter()
    for line in lines:
        new = line.memory
        if there[_whole(new)] > 0:
            there[_whole(new)] -= 1
            outcomes[None] += 1
            continue
        if new.subject is not None and new.attribute is not None and new.valid_to is None:
            kept = await keeping.add(db, new, team=team, owner=owner, now=now)
            assert kept is not None, "only what is learnt is passed over"
            made, outcome = kept.id, kept.outcome
        else:
            made = await keeping.insert(db, new, team=team, owner=owner, now=now, scope_id=scope_id)
            outcome = Outcome.NEW
        outcomes[outcome] += 1
        if line.id is not None:
            ids[line.id] = made
    await _link(db, lines, ids)
    refreshed, skipped = outcomes[Outcome.REFRESHED], outcomes[None]
    return Imported(len(lines) - refreshed - skipped, refreshed, skipped)


def _whole(one: Memory | NewMemory) -> tuple[object, ...]:
    """What makes two lines the same; times apart, which a file need not give."""
    return (
        one.kind, one.text, one.subject, one.attribute, one.value, one.host, one.ref, one.valid_to is None,
    )  # fmt: skip


async def _link(db: Db, lines: Sequence[Line], ids: dict[int, int]) -> None:
    pairs = [
        (ids[line.id], ids[line.superseded_by])
        for line in lines
        if line.id in ids and line.superseded_by in ids and line.memory.valid_to is not None
    ]
    if pairs:
        await db.execute(
            text(
                """UPDATE long_term_memory m SET superseded_by = p.later
                FROM unnest(CAST(:old AS bigint[]), CAST(:later AS bigint[])) AS p(old, later)
                WHERE m.id = p.old AND m.superseded_by IS NULL"""
            ),
            {"old": [old for old, _ in pairs], "later": [later for _, later in pairs]},
        )


def record(memory: Memory) -> dict[str, Any]:
    """A memory as a file's line."""
    source = memory.source
    if source is None and memory.command_id is not None:
        source = f"command {memory.command_id}"
    elif source is None and memory.message_id is not None:
        source = f"message {memory.message_id}"
    return {
        "id": memory.id,
        "kind": memory.kind,
        "subject": memory.subject,
        "attribute": memory.attribute,
        "value": memory.value,
        "text": memory.text,
        "host": memory.host,
        "source": source,
        "ref": memory.ref,
        "created_at": memory.created_at.isoformat(),
        "valid_to": None if memory.valid_to is None else memory.valid_to.isoformat(),
        "superseded_by": memory.superseded_by,
    }
