"""What people wrote: each message once, which turn it started, and who spoke when in a thread."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text

from storage.records import ThreadLine
from storage.storable import storable
from storage.store import Db

BOT = "bot"  # `by` of our own posts, in place of a person's id
_LOOK_BACK = 50  # rows of a thread looked at for the line before a message: late ones are rarely later


@dataclass(frozen=True, slots=True)
class ThreadState:
    """A thread as it stood before a message.

    session_id: the Slack session of the thread, None when it has none. last_by: a person's id, BOT, or
    '' when nothing is known. people: everybody who has written in it. in_flight: a post of ours is on
    its way to the thread at this moment, so `last_by` may be about to become BOT.
    """

    session_id: int | None
    last_by: str
    people: tuple[str, ...]
    in_flight: bool = False


@dataclass(frozen=True, slots=True)
class SeenThread:
    """How far a thread has been read. thread_ts '' is the channel itself; last_ts '' is: nothing yet."""

    channel: str
    thread_ts: str
    last_ts: str
    session_id: int | None = None


async def add(
    db: Db,
    *,
    team: str,
    event_key: str | None,
    message_key: str,
    channel: str,
    thread_ts: str,
    ts: str,
    author: str,
    author_name: str,
    text: str,
    session_id: int | None,
    turn_id: int | None,
) -> bool:
    """Store a message once. False: it was received before, as this event or as another of the same message.

    text '': the message was answered without being kept; it is no context for anything.

    A second process that adds the same message at the same time waits for the first one's commit and
    then gets False.
    """
    found = await db.execute(
        _ADD,
        {
            "team": team,
            "event_key": event_key,
            "message_key": message_key,
            "channel": channel,
            "thread_ts": thread_ts,
            "ts": ts,
            "author": author,
            "author_name": storable(author_name),
            "text": storable(text),
            "session_id": session_id,
            "turn_id": turn_id,
        },
    )
    return found.first() is not None


_ADD = text("""
INSERT INTO inbox (team, event_key, message_key, channel, thread_ts, ts, author, author_name, text,
                   session_id, turn_id)
VALUES (:team, :event_key, :message_key, :channel, :thread_ts, :ts, :author, :author_name, :text,
        :session_id, :turn_id)
ON CONFLICT DO NOTHING
RETURNING id
""")


async def known(db: Db, *, message_key: str) -> bool:
    """Whether the message was received before: a cheap look that saves work, `add` has the last word."""
    found = await db.execute(
        text("SELECT 1 FROM inbox WHERE message_key = :message_key"), {"message_key": message_key}
    )
    return found.first() is not None


async def turn_of(db: Db, *, message_key: str) -> int | None:
    """The turn that a message started, if it started one."""
    found: int | None = (
        await db.execute(text("SELECT turn_id FROM inbox WHERE message_key = :key"), {"key": message_key})
    ).scalar_one_or_none()
    return found


async def attach(db: Db, *, message_key: str, session_id: int, turn_id: int | None) -> None:
    """Say afterwards which session and turn a stored message belongs to."""
    await db.execute(
        text(
            "UPDATE inbox SET session_id = :session_id, turn_id = :turn_id WHERE message_key = :message_key"
        ),
        {"message_key": message_key, "session_id": session_id, "turn_id": turn_id},
    )


async def idle_lines(
    db: Db, *, team: str, channel: str, thread_ts: str, turn_id: int | None = None
) -> list[ThreadLine]:
    """Kept lines that started no turn, between the previous turn's message and this turn's, oldest first.

    Order is that of arrival: a line that came late is context for the next turn, never lost. Without
    turn_id: everything since the last message that started a turn.
    """
    rows = await db.execute(
        _IDLE, {"team": team, "channel": channel, "thread_ts": thread_ts, "turn_id": turn_id}
    )
    lines = [ThreadLine(row.author, row.author_name, row.text, row.ts) for row in rows]
    return sorted(lines, key=lambda line: line.ts)


_IDLE = text("""
WITH own AS (
  SELECT min(id) AS id FROM inbox WHERE team = :team AND channel = :channel AND thread_ts = :thread_ts
    AND turn_id = CAST(:turn_id AS bigint)
), before AS (
  SELECT coalesce(max(i.id), 0) AS id FROM inbox i, own
  WHERE i.team = :team AND i.channel = :channel AND i.thread_ts = :thread_ts
    AND i.turn_id IS NOT NULL AND (own.id IS NULL OR i.id < own.id)
)
SELECT i.author, i.author_name, i.text, i.ts FROM inbox i, own, before
WHERE i.team = :team AND i.channel = :channel AND i.thread_ts = :thread_ts AND i.turn_id IS NULL
  AND i.id > before.id AND (own.id IS NULL OR i.id < own.id) AND i.text <> ''
ORDER BY i.id
""")


async def thread_state(
    db: Db, team: str, channel: str, *, thread_ts: str, before_ts: str = "~"
) -> ThreadState:
    """Who spoke last before a message, and who takes part. before_ts '~' (it follows any digit): now."""
    row = (
        await db.execute(
            _STATE,
            {
                "team": team,
                "channel": channel,
                "thread_ts": thread_ts,
                "before": before_ts,
                "back": _LOOK_BACK,
                "key": f"{channel}:{thread_ts}",
            },
        )
    ).one()
    words = [(row.posted, BOT), (row.written, row.writer), (row.seen, row.seen_by)]
    last_by = max((ts, by) for ts, by in [*words, ("", "")] if ts is not None)[1]
    return ThreadState(row.session_id, last_by, tuple(row.people or ()), row.in_flight)


# Posts of a thread are sent in the order of their ids, so that the newest ones suffice for both looks.
_STATE = text("""
WITH posted AS (
  SELECT max(external_ts) AS ts FROM (
    SELECT external_ts FROM outbox
    WHERE team = :team AND channel = :channel AND thread_ts = :thread_ts AND external_ts < :before
    ORDER BY id DESC LIMIT :back) o
), written AS (
  SELECT ts, author FROM (
    SELECT ts, author FROM inbox
    WHERE team = :team AND channel = :channel AND thread_ts = :thread_ts AND ts < :before
    ORDER BY id DESC LIMIT :back) i
  ORDER BY ts DESC LIMIT 1
)
SELECT
  (SELECT id FROM chat_session WHERE team = :team AND origin = 'slack' AND key = :key) AS session_id,
  (SELECT ts FROM posted) AS posted,
  (SELECT ts FROM written) AS written,
  (SELECT author FROM written) AS writer,
  seen.people, CASE WHEN seen.last_ts < :before THEN seen.last_ts END AS seen, seen.last_by AS seen_by,
  EXISTS (SELECT 1 FROM outbox WHERE state = 'sending' AND team = :team AND channel = :channel
    AND thread_ts = :thread_ts AND lease_owner IS NOT NULL AND try_at > now()
    AND payload ->> 'method' = 'chat.postMessage') AS in_flight
FROM (SELECT 1) one LEFT JOIN thread_seen seen
  ON seen.team = :team AND seen.channel = :channel AND seen.thread_ts = :thread_ts
""")


async def note_seen(
    db: Db, team: str, channel: str, *, thread_ts: str, ts: str, by: str, person: str | None
) -> None:
    """Remember how far a thread (or, with thread_ts '', a channel) was read; an earlier ts changes nothing.

    person: added to the thread's people. Not for our own posts: what people wrote before one of them may
    still be unread.
    """
    await db.execute(
        _SEEN,
        {
            "team": team,
            "channel": channel,
            "thread_ts": thread_ts,
            "ts": ts,
            "by": by,
            "people": [person] if person else [],
        },
    )


_SEEN = text("""
INSERT INTO thread_seen AS s (team, channel, thread_ts, last_ts, last_by, people)
VALUES (:team, :channel, :thread_ts, :ts, :by, CAST(:people AS text[]))
ON CONFLICT (team, channel, thread_ts) DO UPDATE SET
  last_ts = greatest(s.last_ts, excluded.last_ts),
  last_by = CASE WHEN excluded.last_ts > s.last_ts THEN excluded.last_by ELSE s.last_by END,
  people = CASE WHEN s.people @> excluded.people THEN s.people ELSE s.people || excluded.people END,
  updated_at = now()
WHERE excluded.last_ts > s.last_ts OR NOT s.people @> excluded.people
""")


async def last_seen(db: Db, team: str, channel: str, *, thread_ts: str) -> str | None:
    """How far a thread or channel ('' as thread_ts) was read."""
    row = (
        await db.execute(
            text(
                "SELECT last_ts FROM thread_seen"
                " WHERE team = :team AND channel = :channel AND thread_ts = :thread_ts"
            ),
            {"team": team, "channel": channel, "thread_ts": thread_ts},
        )
    ).first()
    return row.last_ts if row else None


async def live_threads(db: Db, team: str, *, since: datetime, limit: int = 200) -> list[SeenThread]:
    """Threads of Slack sessions that moved since, newest first: what to read again after an absence."""
    rows = await db.execute(
        text("""
            SELECT s.channel, s.thread_ts, coalesce(t.last_ts, s.thread_ts) AS last_ts, s.id
            FROM chat_session s
            LEFT JOIN thread_seen t USING (team, channel, thread_ts)
            WHERE s.team = :team AND s.origin = 'slack' AND s.thread_ts IS NOT NULL AND NOT s.archived
              AND greatest(s.updated_at, t.updated_at) > :since
            ORDER BY greatest(s.updated_at, t.updated_at) DESC LIMIT :limit
        """),
        {"team": team, "since": since, "limit": limit},
    )
    return [SeenThread(row.channel, row.thread_ts, row.last_ts, row.id) for row in rows]


async def channels_seen(db: Db, team: str, *, limit: int = 200) -> list[SeenThread]:
    """Channels in which something was read, most recently read first."""
    rows = await db.execute(
        text("""
            SELECT channel, last_ts FROM thread_seen WHERE team = :team AND thread_ts = ''
            ORDER BY updated_at DESC LIMIT :limit
        """),
        {"team": team, "limit": limit},
    )
    return [SeenThread(row.channel, "", row.last_ts) for row in rows]


async def sessions_of(db: Db, *, team: str, person: str) -> frozenset[int]:
    """Ids of the sessions in whose threads this person has written."""
    rows = await db.execute(
        text("""
            SELECT DISTINCT session_id FROM inbox
            WHERE team = :team AND author = :person AND session_id IS NOT NULL
        """),
        {"team": team, "person": person},
    )
    return frozenset(row.session_id for row in rows)
