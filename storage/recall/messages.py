"""Gives stored messages their tokens, afterwards: the turn that appends a message writes none.

A session row tells by `last_seq` and `updated_at`, which every append moves, whether there is something new.
One process at a time works, under an advisory lock, so that no order of locks can tie two up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from sqlalchemy import text

from storage.recall import postings, scopes
from storage.recall.postings import Postings
from storage.recall.scopes import ScopeKind
from storage.recall.tokens import tokens
from storage.store import Db, Store

BATCH = 200  # messages of one transaction
_LOCK = 0x6F70_7365  # "opse": the advisory lock of whoever indexes


async def catch_up(store: Store) -> int:
    """Index all that is new, a batch in each transaction; answers how many messages that were."""
    done = 0
    while True:
        async with store.begin() as db:
            more = await index(db, most=BATCH)
        if not more:
            return done
        done += more


async def index(db: Db, *, most: int | None = None) -> int:
    """Index what is new, oldest sessions first, until `most` messages are done; answers how many.

    A session whose messages are more than that is done in parts.
    """
    if not await _behind(db, limit=1):
        return 0
    await db.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    done = 0
    for row in await _behind(db, limit=most):
        done += await _session(db, row.id, most=None if most is None else most - done)
        if most is not None and done >= most:
            break
    return done


async def _behind(db: Db, *, limit: int | None) -> Sequence[Any]:
    return (
        await db.execute(
            text("""
                SELECT s.id FROM chat_session s LEFT JOIN recall_session r ON r.session_id = s.id
                WHERE s.last_seq > 0
                  AND (r.session_id IS NULL OR r.last_seq <> s.last_seq OR r.updated_at <> s.updated_at)
                ORDER BY s.id LIMIT :limit
            """),
            {"limit": limit},
        )
    ).all()


# One statement, one snapshot: the marks are those of exactly the messages that are read.
_READ = text("""
WITH s AS (
  SELECT s.id, s.team, s.owner, s.channel, s.last_seq, s.updated_at,
    coalesce(r.last_seq, 0) AS done_seq, coalesce(r.docs, 0) AS done,
    (SELECT count(*) FROM chat_message m WHERE m.session_id = s.id) AS all_docs,
    (SELECT count(*) FROM chat_message m WHERE m.session_id = s.id AND m.seq > coalesce(r.last_seq, 0)) AS new_docs
  FROM chat_session s LEFT JOIN recall_session r ON r.session_id = s.id WHERE s.id = :id
)
SELECT s.*, m.id AS message_id, m.seq, m.author, m.content
FROM s LEFT JOIN chat_message m ON m.session_id = s.id
  AND (m.seq > s.done_seq OR s.done + s.new_docs <> s.all_docs)
ORDER BY m.seq
LIMIT (SELECT CASE WHEN s.done + s.new_docs <> s.all_docs THEN NULL ELSE CAST(:limit AS bigint) END FROM s)
""")


async def _session(db: Db, session_id: int, *, most: int | None) -> int:
    """The new messages of a session; all of them when some came between those that were there (an import)."""
    rows = (await db.execute(_READ, {"id": session_id, "limit": most})).all()
    head = rows[0]
    new = [row for row in rows if row.message_id is not None]
    filled = head.done + head.new_docs != head.all_docs  # old and new are not told apart
    docs = head.all_docs if filled else head.done + len(new)
    whole = docs == head.all_docs
    scope_id, _ = await scopes.hold(
        db, team=head.team, kind=ScopeKind.MESSAGES, owner=head.owner, place=head.channel
    )
    # In a thread: long outputs take milliseconds each, in which turns go on.
    texts = await asyncio.to_thread(
        lambda: [(row.message_id, tokens(f"{row.author} {row.content}")) for row in new]
    )
    await postings.put(db, Postings.MESSAGES, scope_id, texts=texts)
    await scopes.grow(db, scope_id, docs=docs - head.done, words=sum(len(words) for _, words in texts))
    await db.execute(
        text("""
            INSERT INTO recall_session (session_id, team, scope_id, last_seq, updated_at, docs)
            VALUES (:id, :team, :scope, :last_seq, :updated_at, :docs)
            ON CONFLICT (session_id) DO UPDATE
            SET last_seq = excluded.last_seq, updated_at = excluded.updated_at, docs = excluded.docs
        """),
        {
            "id": session_id,
            "team": head.team,
            "scope": scope_id,
            "last_seq": head.last_seq if whole else new[-1].seq,
            "updated_at": head.updated_at,
            "docs": docs,
        },
    )
    return len(new)
