"""Sessions and their messages: append-only, ordered by seq, fenced by the session's epoch.

The session row is the lock: whoever appends holds it, takes the next seq under it and moves the head.
Nothing of a history is ever rewritten, so that a turn costs the same in a long session as in a short one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import text

from storage.errors import Conflict, LeaseLost, NotFound
from storage.history import OURS, history, message, messages
from storage.records import Message, Origin, Role, Session, ToolCall
from storage.storable import storable
from storage.store import Db

__all__ = [
    "Locked",
    "advance",
    "append",
    "archive",
    "at_rest",
    "find",
    "get",
    "history",
    "insert",
    "list_",
    "lock",
    "message",
    "messages",
    "open_session",
    "own_key",
    "row_of",
]

_BETWEEN = (
    "\x1f"  # in chat_session.key of an import: owner, this, the file's key (two people may use one key)
)
_AT_ONCE = 500  # messages in one INSERT

# A running turn whose lease is over lost its process: it waits to be taken up.
_STATE = """coalesce((
    SELECT CASE min(CASE
        WHEN t.state = 'running' AND s.lease_until > clock_timestamp() THEN 1
        WHEN t.state = 'waiting' THEN 2 ELSE 3 END)
      WHEN 1 THEN 'running' WHEN 2 THEN 'waiting' WHEN 3 THEN 'queued' END
    FROM turn t WHERE t.session_id = s.id AND t.state IN ('queued', 'running', 'waiting', 'ready')),
  CASE WHEN s.archived THEN 'archived' ELSE 'idle' END) AS state"""
_COLUMNS = f"""s.id, s.team, s.origin, s.key, s.title, s.owner, s.channel, s.thread_ts, s.head_id, s.last_seq,
  s.people, s.hosts, s.archived, s.created_at, s.updated_at, {_STATE}"""


def _session(row: Any) -> Session:
    values = dict(row._mapping)
    origin = Origin(values["origin"])
    return Session(
        **{
            **values,
            "origin": origin,
            "key": own_key(origin, values["key"]),
            "people": tuple(values["people"]),
            "hosts": tuple(values["hosts"]),
        }
    )


def own_key(origin: Origin, stored: str) -> str:
    """The key as people know it: an import's is stored with its owner in front."""
    return stored.partition(_BETWEEN)[2] if origin is Origin.IMPORT else stored


def _stored_key(origin: Origin, key: str, owner: str) -> str:
    return f"{owner}{_BETWEEN}{key}" if origin is Origin.IMPORT else key


async def open_session(
    db: Db,
    *,
    team: str,
    origin: Origin,
    key: str,
    owner: str,
    channel: str,
    thread_ts: str | None = None,
    title: str = "",
) -> tuple[Session, bool]:
    """The session of this key, made if there is none; True: it was made by this call.

    Two processes that open it at once get the same one: the second waits for the first one's commit.
    """
    values = {
        "team": team,
        "origin": origin,
        "key": _stored_key(origin, key, owner),
        "owner": owner,
        "channel": channel,
        "thread_ts": thread_ts,
        "title": storable(title),
    }
    made = await db.execute(
        text("""
            INSERT INTO chat_session (team, origin, key, owner, channel, thread_ts, title)
            VALUES (:team, :origin, :key, :owner, :channel, :thread_ts, :title)
            ON CONFLICT (team, origin, key) DO NOTHING RETURNING id
        """),
        values,
    )
    created = made.first() is not None
    session = await find(db, team, origin, key=key, owner=owner)
    assert session is not None, "it was made, or it was there"
    return session, created


async def find(db: Db, team: str, origin: Origin, *, key: str, owner: str = "") -> Session | None:
    """The session of a key; None when there is none. owner: needed for imports, whose keys are each person's own."""
    return await _one(
        db,
        "s.team = :team AND s.origin = :origin AND s.key = :key",
        {"team": team, "origin": origin, "key": _stored_key(origin, key, owner)},
    )


async def get(db: Db, session_id: int) -> Session:
    """One session. Raises NotFound."""
    session = await _one(db, "s.id = :id", {"id": session_id})
    if session is None:
        raise NotFound(f"there is no session {session_id}; see `opsthread sessions list`")
    return session


async def _one(db: Db, where: str, values: dict[str, Any]) -> Session | None:
    row = (await db.execute(text(f"SELECT {_COLUMNS} FROM chat_session s WHERE {where}"), values)).first()
    return None if row is None else _session(row)


async def list_(
    db: Db,
    *,
    team: str | None = None,
    owner: str | None = None,
    person: str | None = None,
    archived: bool = False,
    limit: int = 50,
) -> list[Session]:
    """Sessions, the last used first.

    owner: only this person's. person: theirs, or those they have written in under this name.
    archived: those that were put away as well.
    """
    rows = await db.execute(
        text(f"""
            SELECT {_COLUMNS} FROM chat_session s
            WHERE (CAST(:team AS text) IS NULL OR s.team = :team)
              AND (CAST(:owner AS text) IS NULL OR s.owner = :owner)
              AND (CAST(:person AS text) IS NULL OR s.owner = :person OR :person = ANY(s.people))
              AND (:archived OR NOT s.archived)
            ORDER BY s.updated_at DESC, s.id DESC LIMIT :limit
        """),
        {"team": team, "owner": owner, "person": person, "archived": archived, "limit": limit},
    )
    return [_session(row) for row in rows]


@dataclass(frozen=True, slots=True)
class Locked:
    """What a writer needs of the session row it has locked. ids: fresh ids for its messages."""

    id: int
    team: str
    head_id: int | None
    last_seq: int
    people: tuple[str, ...]
    ids: tuple[int, ...]


async def lock(db: Db, session_id: int, *, epoch: int | None, count: int = 0) -> Locked:
    """Hold the session's row until the transaction ends. Raises NotFound, LeaseLost."""
    row = (
        await db.execute(
            text("""
                SELECT id, team, head_id, last_seq, people, epoch,
                  ARRAY(SELECT nextval(pg_get_serial_sequence('chat_message', 'id'))
                    FROM generate_series(1, :count)) AS ids
                FROM chat_session WHERE id = :id FOR UPDATE
            """),
            {"id": session_id, "count": count},
        )
    ).first()
    if row is None:
        raise NotFound(f"there is no session {session_id}")
    if epoch is not None and row.epoch != epoch:
        raise LeaseLost(f"another process works on session {session_id} now")
    return Locked(row.id, row.team, row.head_id, row.last_seq, tuple(row.people), tuple(row.ids))


async def append(db: Db, session_id: int, epoch: int | None, new: Sequence[Message]) -> list[Message]:
    """Put messages behind the head, in order; answers them with id, seq, parent_id and created_at.

    epoch: the claim's; None for a writer without a lease (an import, the command line), which still waits
    for the row. Text that Postgres cannot hold is mended (`storable`). Raises NotFound, LeaseLost.
    """
    if not new:
        return []
    held = await lock(db, session_id, epoch=epoch, count=len(new))
    parents = (held.head_id, *held.ids)
    numbered = [
        replace(
            message,
            id=id_,
            parent_id=parent,
            seq=held.last_seq + number,
            text=storable(message.text),
            author=storable(message.author),
        )
        for number, (message, id_, parent) in enumerate(zip(new, held.ids, parents, strict=False), 1)
    ]
    times = await insert(db, held, [row_of(message) for message in numbered])
    await advance(
        db,
        held,
        head_id=held.ids[-1],
        last_seq=held.last_seq + len(new),
        people=[m.author for m in numbered if m.role is Role.USER],
    )
    return [replace(message, created_at=times[message.id or 0]) for message in numbered]


def row_of(message: Message, *, tool_calls: list[Any] | None = None) -> dict[str, Any]:
    """A message as `insert` takes it. tool_calls: as they came, in place of the record's."""
    calls = tool_calls if tool_calls is not None else [_call(call) for call in message.tool_calls]
    return {
        "id": message.id,
        "seq": message.seq,
        "parent_id": message.parent_id,
        "turn_id": message.turn_id,
        "role": message.role,
        "author": message.author,
        "content": message.text,
        "tool_calls": calls or None,
        "tool_call_id": None if message.tool_call_id is None else storable(message.tool_call_id),
        "created_at": message.created_at.isoformat() if message.created_at else None,
    }


def _call(call: ToolCall) -> dict[str, str]:
    parts = {"id": call.id, "name": call.name, "arguments": call.arguments}
    return {name: storable(value) for name, value in parts.items()}


async def insert(db: Db, held: Locked, rows: Sequence[dict[str, Any]]) -> dict[int, datetime]:
    """Insert numbered messages under the lock; answers when each was made, by id."""
    times: dict[int, datetime] = {}
    for start in range(0, len(rows), _AT_ONCE):
        made = await db.execute(
            text("""
                INSERT INTO chat_message (id, team, session_id, seq, parent_id, turn_id, role, author, content,
                                          tool_calls, tool_call_id, created_at)
                OVERRIDING SYSTEM VALUE
                SELECT id, :team, :session_id, seq, parent_id, turn_id, role, author, content,
                  CASE WHEN jsonb_typeof(tool_calls) = 'null' THEN NULL ELSE tool_calls END,
                  tool_call_id, coalesce(created_at, now())
                FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS m(
                  id bigint, seq integer, parent_id bigint, turn_id bigint, role text, author text, content text,
                  tool_calls jsonb, tool_call_id text, created_at timestamptz)
                ORDER BY seq
                RETURNING id, created_at
            """),
            {
                "team": held.team,
                "session_id": held.id,
                "rows": json.dumps(rows[start : start + _AT_ONCE], ensure_ascii=False),
            },
        )
        times.update({row.id: row.created_at for row in made})
    return times


async def advance(
    db: Db, held: Locked, *, head_id: int | None, last_seq: int, people: Sequence[str] = ()
) -> None:
    """Move the head. No column of an index changes, so that the row is updated within its page."""
    known = list(held.people)
    known += [name for name in dict.fromkeys(people) if name and name != OURS and name not in known]
    await db.execute(
        text("""
            UPDATE chat_session SET head_id = :head_id, last_seq = :last_seq, people = :people,
              updated_at = greatest(updated_at, clock_timestamp())
            WHERE id = :id
        """),
        {"id": held.id, "head_id": head_id, "last_seq": last_seq, "people": known},
    )


async def archive(db: Db, session_id: int, *, archived: bool = True) -> Session:
    """Put a session away, or fetch it back; nothing is deleted. Raises NotFound."""
    await lock(db, session_id, epoch=None)
    await db.execute(
        text("UPDATE chat_session SET archived = :archived WHERE id = :id"),
        {"id": session_id, "archived": archived},
    )
    return await get(db, session_id)


async def at_rest(db: Db, session_id: int) -> None:
    """Raises Conflict while a turn is at work in the session: its next message would land on another branch."""
    busy = await db.execute(
        text("""
            SELECT id FROM turn WHERE session_id = :id AND state IN ('running', 'waiting', 'ready') LIMIT 1
        """),
        {"id": session_id},
    )
    if busy.first() is not None:
        raise Conflict(f"a turn is at work in session {session_id}; wait for it, or stop it, and try again")
