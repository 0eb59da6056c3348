"""Which turns still have something to teach, and what was said and run in them.

A turn is learnt from twice: from its person's words as soon as they stand in the history, and from what was
found when it is over. Each is one transaction with what it taught, so that a killed process repeats or skips
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import text

from storage import commands
from storage.history import COLUMNS, OURS, message_of
from storage.records import Command, Message, Output, Turn
from storage.store import Db
from storage.turns import get

READ = 200  # messages of a session that are read for one turn, the newest before its end


@dataclass(frozen=True, slots=True)
class Due:
    """words, findings: which of the two have not been learnt from and can be now."""

    turn: Turn
    words: bool
    findings: bool


@dataclass(frozen=True, slots=True)
class Lesson:
    """messages: of the branch up to the turn's newest, oldest first. ran: what its turns ran. outputs: of this turn."""

    messages: tuple[Message, ...]
    ran: tuple[Command, ...]
    outputs: dict[int, Output]


async def due(db: Db, *, of: tuple[str, str] | None = None) -> Due | None:
    """The oldest turn with something to learn from; `of`, a team and an owner: only theirs."""
    team, owner = of or (None, None)
    row = (await db.execute(_DUE, {"team": team, "owner": owner, "ours": OURS})).one_or_none()
    if row is None:
        return None
    turn = await get(db, row.id)
    return Due(turn, words=row.heard_at is None, findings=turn.finished_at is not None)


_DUE = text("""
SELECT t.id, t.heard_at FROM turn t
WHERE t.learnt_at IS NULL AND (t.finished_at IS NOT NULL OR t.heard_at IS NULL AND EXISTS
    (SELECT 1 FROM chat_message m WHERE m.session_id = t.session_id AND m.turn_id = t.id
      AND m.role = 'user' AND m.author <> :ours))
  AND (CAST(:team AS text) IS NULL OR t.team = :team AND t.owner = :owner)
ORDER BY t.id LIMIT 1
""")


async def lesson(db: Db, turn: Turn) -> Lesson:
    """What a turn can be learnt from. An outcome that is not known yet is no part of it."""
    rows = await db.execute(_BRANCH, {"turn": turn.id, "session": turn.session_id, "most": READ})
    messages = [message_of(row) for row in rows]
    messages.reverse()
    ran = await commands.of_turns(db, {m.turn_id for m in messages if m.turn_id is not None})
    return Lesson(
        messages=tuple(messages),
        ran=tuple(ran),
        outputs=await _outputs(db, [c.id for c in ran if c.turn_id == turn.id]),
    )


_BRANCH = text(f"""
WITH RECURSIVE walk AS (
  SELECT m.*, 1 AS depth FROM chat_message m WHERE m.id = (
    SELECT id FROM chat_message WHERE session_id = :session AND turn_id = :turn ORDER BY seq DESC LIMIT 1)
  UNION ALL
  SELECT m.*, w.depth + 1 FROM walk w JOIN chat_message m ON m.id = w.parent_id WHERE w.depth < :most
)
SELECT {COLUMNS} FROM walk ORDER BY depth
""")


async def _outputs(db: Db, command_ids: Sequence[int]) -> dict[int, Output]:
    rows = await db.execute(
        text("SELECT command_id, stdout, stderr FROM output WHERE command_id = ANY(CAST(:ids AS bigint[]))"),
        {"ids": list(command_ids)},
    )
    return {row.command_id: Output(row.command_id, row.stdout, row.stderr) for row in rows}


async def claim(db: Db, due: Due) -> bool:
    """Note, with the transaction, that this was learnt from. False: another process has done it meanwhile."""
    row = await db.execute(
        text(
            """UPDATE turn SET heard_at = coalesce(heard_at, now()), learnt_at = CASE WHEN :findings THEN now() END
            WHERE id = :id AND learnt_at IS NULL AND (heard_at IS NULL) = :words RETURNING id"""
        ),
        {"id": due.turn.id, "words": due.words, "findings": due.findings},
    )
    return row.first() is not None
