"""Reads a session's messages: the active branch from head to root, or all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import text

from storage.errors import NotFound
from storage.records import Message, Role, ToolCall
from storage.store import Db

OURS = "opsthread"  # the author of notes that the bot itself puts into a history; no person, opens no turn
_LONGEST = 10_000  # messages walked at most, however long a turn is

COLUMNS = "id, seq, parent_id, turn_id, role, author, content AS text, tool_calls, tool_call_id, created_at"


def message_of(row: Any) -> Message:
    """A row with COLUMNS as a record. An unknown role is an error (ValueError), never passed over."""
    values = dict(row._mapping)
    calls = tuple(call_of(call) for call in values.pop("tool_calls") or ())
    return Message(**{**values, "role": Role(values["role"]), "tool_calls": calls})


def call_of(call: dict[str, Any]) -> ToolCall:
    """Ours are stored flat, imported ones as they came: often `{"id", "type", "function": {…}}`."""
    inner = call.get("function") if isinstance(call.get("function"), dict) else call
    arguments = inner.get("arguments", "") if inner else ""
    if not isinstance(arguments, str):
        import json

        arguments = json.dumps(arguments, ensure_ascii=False)
    return ToolCall(
        id=str(call.get("id") or ""), name=str((inner or {}).get("name") or ""), arguments=arguments
    )


async def history(db: Db, session_id: int, *, limit: int = 50) -> list[Message]:
    """The newest messages of the active branch, oldest first, beginning where a person speaks.

    At most `limit`, except that the last turn is always whole. A branch of at most `limit` messages is
    whole, whatever it begins with. Results and calls are as stored: repairing them is the reader's work.
    """
    rows = await db.execute(_WALK, {"id": session_id, "limit": limit, "ours": OURS, "longest": _LONGEST})
    walked = [message_of(row) for row in rows]
    walked.reverse()
    return list(_cut(walked, limit))


# Goes on above the limit until a person's message is found: the beginning of the last turn.
_WALK = text("""
WITH RECURSIVE walk AS (
  SELECT m.*, 1 AS depth, (m.role = 'user' AND m.author <> :ours) AS spoken
  FROM chat_session s JOIN chat_message m ON m.id = s.head_id WHERE s.id = :id
  UNION ALL
  SELECT m.*, w.depth + 1, w.spoken OR (m.role = 'user' AND m.author <> :ours)
  FROM walk w JOIN chat_message m ON m.id = w.parent_id
  WHERE (w.depth < :limit OR NOT w.spoken) AND w.depth < :longest
)
SELECT id, seq, parent_id, turn_id, role, author, content AS text, tool_calls, tool_call_id, created_at
FROM walk ORDER BY depth
""")


def _cut(walked: Sequence[Message], limit: int) -> Sequence[Message]:
    if not walked or (walked[0].parent_id is None and len(walked) <= limit):
        return walked
    starts = [i for i, m in enumerate(walked) if m.role is Role.USER and m.author != OURS]
    fitting = [i for i in starts if len(walked) - i <= limit]
    return walked[fitting[0] if fitting else (starts[-1] if starts else 0) :]


async def messages(db: Db, session_id: int, *, all_branches: bool = False) -> list[Message]:
    """All messages of the active branch from its root, or of every branch, in the order of seq."""
    return [message_of(row) for row in await rows_of(db, session_id, all_branches=all_branches)]


async def message(db: Db, message_id: int) -> Message:
    """One message by its id. Raises NotFound."""
    row = (
        await db.execute(text(f"SELECT {COLUMNS} FROM chat_message WHERE id = :id"), {"id": message_id})
    ).first()
    if row is None:
        raise NotFound(f"there is no message {message_id}")
    return message_of(row)


async def rows_of(db: Db, session_id: int, *, all_branches: bool) -> Sequence[Any]:
    """The same as rows with COLUMNS, tool calls as they are stored."""
    if all_branches:
        query = f"SELECT {COLUMNS} FROM chat_message WHERE session_id = :id ORDER BY seq"
    else:
        query = f"""
            WITH RECURSIVE walk AS (
              SELECT m.* FROM chat_session s JOIN chat_message m ON m.id = s.head_id WHERE s.id = :id
              UNION ALL
              SELECT m.* FROM walk w JOIN chat_message m ON m.id = w.parent_id)
            SELECT {COLUMNS} FROM walk ORDER BY seq"""
    return (await db.execute(text(query), {"id": session_id})).all()
