"""Sessions to and from JSON lines: everything out, and in again under the same keys without doubling.

A line is one message: `{"session", "seq", "parent_id", "role", "author", "text", "tool_calls",
"tool_call_id", "created_at"}`. Ids are worth something in one database only, so that in a file a
`parent_id` is the *seq* of the message before: null or left out, the line before in the session; 0, none.
A line with `"head": true` ends the current branch; without one that is the session's last line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import text

from storage.errors import StorageError
from storage.history import call_of, rows_of
from storage.records import Message, Origin, Role
from storage.sessions import Locked, advance, get, insert, lock, open_session, row_of
from storage.storable import storable
from storage.store import Db, Store

_IMPORT_S = 600.0  # seconds one session may take
_TITLE = 80
_INT = 2**31 - 1


class ImportFault(StorageError):
    """The file cannot be imported."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file, checked. number: from 1. parent: a seq, None the line before, 0 none."""

    number: int
    session: str
    seq: int
    role: Role
    text: str
    parent: int | None = None
    author: str = ""
    tool_calls: tuple[Any, ...] = field(default=(), hash=False)
    tool_call_id: str | None = None
    created_at: datetime | None = None
    head: bool = False


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of one session of a file. different: seqs that were there with another text, left alone."""

    session_id: int
    key: str
    added: int
    skipped: int
    different: tuple[int, ...]


def parse(lines: Iterable[str]) -> list[Line]:
    """Read a file's lines. Raises ImportFault that names the first faulty line; nothing is stored yet."""
    found: list[Line] = []
    places: dict[tuple[str, int], int] = {}
    for number, raw in enumerate(lines, 1):
        if not raw.strip():
            continue
        line = _line(number, raw)
        first = places.setdefault((line.session, line.seq), number)
        if first != number:
            raise _fault(number, f"session {line.session!r} has seq {line.seq} in line {first} already")
        found.append(line)
    for line in found:
        if line.parent and (line.parent >= line.seq or (line.session, line.parent) not in places):
            raise _fault(
                line.number, f"parent_id {line.parent} is not the seq of an earlier message of its session"
            )
    return found


def _line(number: int, raw: str) -> Line:
    try:
        values = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise _fault(number, f"this is not JSON ({error})") from None
    if not isinstance(values, dict):
        raise _fault(number, "this is not a JSON object")
    for name in ("session", "seq", "role"):
        if values.get(name) is None:
            raise _fault(number, f"{name} is missing")
    if not isinstance(values["session"], str) or not values["session"].strip():
        raise _fault(number, "session is not a name")
    return Line(
        number=number,
        session=storable(values["session"]),
        seq=_integer(number, "seq", values["seq"], least=1),
        role=_role(number, values["role"]),
        text=_text(number, "text", values),
        parent=None
        if values.get("parent_id") is None
        else _integer(number, "parent_id", values["parent_id"], least=0),
        author=_text(number, "author", values, default=""),
        tool_calls=_calls(number, values.get("tool_calls")),
        tool_call_id=None if values.get("tool_call_id") is None else _text(number, "tool_call_id", values),
        created_at=_time(number, values.get("created_at")),
        head=values.get("head") is True,
    )


def _fault(number: int, what: str) -> ImportFault:
    return ImportFault(f"line {number}: {what}; nothing was imported")


def _integer(number: int, name: str, value: object, *, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _INT:
        raise _fault(number, f"{name} {value!r} is not a whole number from {least}")
    return value


def _role(number: int, value: object) -> Role:
    try:
        return Role(str(value))
    except ValueError:
        roles = ", ".join(role.value for role in Role)
        raise _fault(number, f"unknown role {value!r} (known: {roles})") from None


def _text(number: int, name: str, values: dict[str, Any], *, default: str | None = None) -> str:
    value = values.get(name, default)
    if value is None and (name in values or default is not None):
        value = ""  # null: an assistant that only calls tools
    if not isinstance(value, str):
        raise _fault(number, f"{name} is {'missing' if value is None else 'not a text'}")
    return storable(value)


def _calls(number: int, value: object) -> tuple[Any, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(
        isinstance(call, dict) and call_of(call).name for call in value
    ):
        raise _fault(number, "tool_calls is not a list of calls with a name")
    return tuple(_storable(value))


def _storable(value: Any) -> Any:
    match value:
        case str():
            return storable(value)
        case dict():
            return {storable(key): _storable(part) for key, part in value.items()}
        case list():
            return [_storable(part) for part in value]
        case _:
            return value


def _time(number: int, value: object) -> datetime | None:
    if value is None:
        return None
    try:
        found = datetime.fromisoformat(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise _fault(
            number, f"created_at {value!r} is not a time such as 2026-05-01T12:00:00+00:00"
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


async def import_(store: Store, lines: Sequence[Line], *, team: str, owner: str) -> list[Imported]:
    """Store checked lines, one transaction a session; the sessions belong to `owner`.

    A session with the same key of the same owner gets only the seqs that it lacks.
    """
    by_session: dict[str, list[Line]] = {}
    for line in lines:
        by_session.setdefault(line.session, []).append(line)
    done: list[Imported] = []
    for key, part in by_session.items():
        async with store.begin(limit_s=_IMPORT_S) as db:
            part.sort(key=lambda line: line.seq)
            done.append(await _import_one(db, part, team=team, owner=owner, key=key))
    return done


async def _import_one(db: Db, lines: Sequence[Line], *, team: str, owner: str, key: str) -> Imported:
    title = next((" ".join(line.text.split()) for line in lines if line.role is Role.USER), "")
    session, _ = await open_session(
        db, team=team, origin=Origin.IMPORT, key=key, owner=owner, channel="import", title=title[:_TITLE]
    )
    held = await lock(db, session.id, epoch=None, count=len(lines))
    rows = await db.execute(
        text("SELECT seq, id, role, content FROM chat_message WHERE session_id = :id ORDER BY seq"),
        {"id": session.id},
    )
    stored = {row.seq: row for row in rows}
    ids = {seq: row.id for seq, row in stored.items()}
    new = [line for line in lines if line.seq not in stored]
    ids.update(zip([line.seq for line in new], held.ids, strict=False))
    if new:
        parents = _parents(lines, ids)
        await insert(db, held, [_row(line, ids[line.seq], parents[line.seq]) for line in new])
        await advance(
            db,
            held,
            head_id=_head(held, lines, new, ids=ids, parents=parents),
            last_seq=max(held.last_seq, new[-1].seq),
            people=[line.author for line in new if line.role is Role.USER],
        )
    different = [
        line.seq
        for line in lines
        if line.seq in stored and (stored[line.seq].role, stored[line.seq].content) != (line.role, line.text)
    ]
    return Imported(session.id, key, len(new), len(lines) - len(new), tuple(different))


def _parents(lines: Sequence[Line], ids: dict[int, int]) -> dict[int, int | None]:
    """The parent's id of each line. Lines that say nothing follow the one before, in the session or the file."""
    order = sorted(ids)
    before = dict(zip(order[1:], order, strict=False))
    parents: dict[int, int | None] = {}
    for line in lines:
        seq = before.get(line.seq) if line.parent is None else line.parent
        parents[line.seq] = ids[seq] if seq else None
    return parents


def _row(line: Line, id_: int, parent_id: int | None) -> dict[str, Any]:
    message = Message(
        role=line.role,
        text=line.text,
        author=line.author,
        tool_call_id=line.tool_call_id,
        id=id_,
        seq=line.seq,
        parent_id=parent_id,
        created_at=line.created_at,
    )
    return row_of(message, tool_calls=list(line.tool_calls))


def _head(
    held: Locked,
    lines: Sequence[Line],
    new: Sequence[Line],
    *,
    ids: dict[int, int],
    parents: dict[int, int | None],
) -> int | None:
    """Where the session goes on: the file's mark, or its last line, if that carries the present head on."""
    marked = next((line for line in lines if line.head), lines[-1])
    goal = ids[marked.seq]
    if held.head_id is None:
        return goal
    if marked not in new:
        return held.head_id
    up = {ids[seq]: parent for seq, parent in parents.items()}
    at: int | None = goal
    while at is not None and at != held.head_id:
        at = up.get(at)
    return held.head_id if at is None else goal


async def export(db: Db, session_id: int) -> list[dict[str, Any]]:
    """A session's messages of every branch as a file's lines, in the order of seq. Raises NotFound."""
    session = await get(db, session_id)
    rows = await rows_of(db, session_id, all_branches=True)
    seqs = {row.id: row.seq for row in rows}
    lines: list[dict[str, Any]] = []
    before: int | None = None
    for row in rows:
        parent = seqs[row.parent_id] if row.parent_id is not None else (None if before is None else 0)
        line = {
            "session": session.key,
            "seq": row.seq,
            "parent_id": parent,
            "role": row.role,
            "author": row.author,
            "text": row.text,
            "tool_calls": row.tool_calls,
            "tool_call_id": row.tool_call_id,
            "created_at": row.created_at.isoformat(),
        }
        if row.id == session.head_id and row.id != rows[-1].id:
            line["head"] = True
        lines.append(line)
        before = row.seq
    return lines
