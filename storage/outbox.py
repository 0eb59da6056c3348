"""Posts on their way to a front end: written with the event they tell of, delivered once and in order."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import text

from storage.records import NewPost, Post, PostState
from storage.storable import storable_json
from storage.store import Db

CHANNEL = "opsthread_outbox"  # NOTIFY: there is something to send


async def add(db: Db, *, team: str, session_id: int | None, posts: Sequence[NewPost]) -> int:
    """Queue posts in order; a key that was queued before is passed over. Answers how many are new."""
    added = 0
    for post in posts:
        row = await db.execute(
            text("""
                INSERT INTO outbox (team, session_id, key, channel, thread_ts, payload)
                VALUES (:team, :session_id, :key, :channel, :thread_ts, CAST(:payload AS jsonb))
                ON CONFLICT (key) DO NOTHING RETURNING id
            """),
            {
                "team": team,
                "session_id": session_id,
                "key": post.key,
                "channel": post.channel,
                "thread_ts": post.thread_ts,
                "payload": storable_json(post.payload),
            },
        )
        added += row.first() is not None
    if added:
        await db.execute(text("SELECT pg_notify(:channel, '')"), {"channel": CHANNEL})
    return added


async def claim(
    db: Db, *, owner: str, team: str | None = None, limit: int = 20, lease_s: float = 60.0
) -> list[Post]:
    """Take due posts of a team (None: of any), at most one a thread (its first unsent), so that a thread's order always holds.

    A taken post belongs to `owner` for lease_s seconds; after that another process takes it over. A Post
    in state SENDING was taken before and may have been delivered: look before sending it again.
    """
    rows = await db.execute(_CLAIM, {"owner": owner, "team": team, "limit": limit, "lease": lease_s})
    posts = [
        Post(
            id=row.id,
            team=row.team,
            session_id=row.session_id,
            key=row.key,
            channel=row.channel,
            thread_ts=row.thread_ts,
            payload=row.payload,
            state=PostState(row.was),
            attempts=row.attempts,
        )
        for row in rows
    ]
    return sorted(posts, key=lambda post: post.id)


_CLAIM = text("""
WITH due AS (
  SELECT o.id, o.state AS was FROM outbox o
  WHERE o.state IN ('new', 'sending') AND o.try_at <= now()
    AND (CAST(:team AS text) IS NULL OR o.team = :team)
    AND NOT EXISTS (
      SELECT 1 FROM outbox e
      WHERE e.state IN ('new', 'sending') AND e.id < o.id AND e.team = o.team AND e.channel = o.channel
        AND e.thread_ts IS NOT DISTINCT FROM o.thread_ts)
  ORDER BY o.id LIMIT :limit
  FOR UPDATE SKIP LOCKED
)
UPDATE outbox o SET state = 'sending', lease_owner = :owner, attempts = o.attempts + 1,
  try_at = now() + make_interval(secs => :lease)
FROM due WHERE o.id = due.id
RETURNING o.id, o.team, o.session_id, o.key, o.channel, o.thread_ts, o.payload, due.was, o.attempts
""")


async def extend(db: Db, *, owner: str, ids: Sequence[int], lease_s: float) -> None:
    """Keep posts that are still under way in this process; those that were taken over stay with the other."""
    await db.execute(
        text("""
            UPDATE outbox SET try_at = now() + make_interval(secs => :lease)
            WHERE id = ANY(:ids) AND state = 'sending' AND lease_owner = :owner
        """),
        {"ids": list(ids), "owner": owner, "lease": lease_s},
    )


async def sent(db: Db, id: int, *, external_ts: str | None) -> None:  # noqa: A002
    """It is delivered. external_ts: what Slack calls the new message; None when it made none (an edit)."""
    await db.execute(
        text("""
            UPDATE outbox
            SET state = 'sent', external_ts = :ts, sent_at = now(), lease_owner = NULL, error = ''
            WHERE id = :id AND state IN ('new', 'sending')
        """),
        {"id": id, "ts": external_ts},
    )


async def retry(db: Db, id: int, *, at: datetime, error: str, unsure: bool = False) -> None:  # noqa: A002
    """It was not delivered; try again at `at`. unsure: it may have been, so the next one looks first."""
    await db.execute(
        text("""
            UPDATE outbox SET state = :state, try_at = :at, error = :error, lease_owner = NULL
            WHERE id = :id AND state = 'sending'
        """),
        {"id": id, "at": at, "error": error, "state": PostState.SENDING if unsure else PostState.NEW},
    )


async def failed(db: Db, id: int, *, error: str) -> None:  # noqa: A002
    """It can never be delivered; the posts after it go on."""
    await db.execute(
        text("""
            UPDATE outbox SET state = 'failed', error = :error, lease_owner = NULL
            WHERE id = :id AND state IN ('new', 'sending')
        """),
        {"id": id, "error": error},
    )


async def external_ts(db: Db, key: str) -> str | None:
    """What Slack calls the message of this post; None while it is not delivered."""
    row = (await db.execute(text("SELECT external_ts FROM outbox WHERE key = :key"), {"key": key})).first()
    return row.external_ts if row else None


async def state(db: Db, key: str) -> PostState | None:
    """Where a post is on its way; None: never queued."""
    row = (await db.execute(text("SELECT state FROM outbox WHERE key = :key"), {"key": key})).first()
    return PostState(row.state) if row else None


async def place(db: Db, key: str) -> tuple[str, str | None] | None:
    """(channel, external_ts) of a post that may still be delivered or is; None: never queued, or failed."""
    row = (
        await db.execute(
            text("SELECT channel, external_ts FROM outbox WHERE key = :key AND state <> 'failed'"),
            {"key": key},
        )
    ).first()
    return (row.channel, row.external_ts) if row else None


async def sent_before(db: Db, id: int) -> str | None:  # noqa: A002
    """external_ts of the thread's last delivered message before this post: a search need not go back further."""
    row = (
        await db.execute(
            text("""
                SELECT o.external_ts FROM outbox p JOIN outbox o
                  ON o.channel = p.channel AND o.thread_ts IS NOT DISTINCT FROM p.thread_ts AND o.team = p.team
                WHERE p.id = :id AND o.id < p.id AND o.external_ts IS NOT NULL
                ORDER BY o.id DESC LIMIT 1
            """),
            {"id": id},
        )
    ).first()
    return row.external_ts if row else None
