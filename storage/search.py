"""Finds past messages by words: any of them, the rare ones counting most. English and Chinese alike.

The turn before and the one after lend a message part of their score, as an answer need not repeat what was
asked. A session is told by its best messages, each counting half of the one before, and a little by all of them,
which parts those whose best ones share the same one word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sqlalchemy import text

from storage.recall import messages, postings, scopes
from storage.recall.postings import Postings
from storage.recall.tokens import tokens
from storage.records import Origin, SearchHit
from storage.sessions import own_key
from storage.store import Db

By = Literal["message", "session"]

_MOST = 2_000  # messages that are looked at more closely
_IN_SESSION = 8  # messages that speak for a session


async def search(
    db: Db,
    query: str,
    *,
    by: By = "message",
    owner: str | None = None,
    channels: Sequence[str] | None = None,
    team: str | None = None,
    limit: int = 10,
) -> list[SearchHit]:
    """The best messages of every branch, best first, or the best message of each of the best sessions.

    owner: only sessions that are this person's. channels: only sessions of these channels. A score
    compares hits of one query only. Archived sessions are searched too. What was said since the last
    search is indexed first; after a long pause call `messages.catch_up`, which does it in batches.
    """
    wanted = tokens(query)
    if not wanted or limit < 1:
        return []
    await messages.index(db)
    rows = await db.execute(
        _BY_SESSION if by == "session" else _BY_MESSAGE,
        {
            "team": team,
            "owner": owner,
            "channels": None if channels is None else list(channels),
            "tokens": list(wanted[: postings.ASKED]),
            "most": max(_MOST, limit),
            "limit": limit,
        },
    )
    return [
        SearchHit(
            session_id=row.session_id,
            session_key=own_key(Origin.IMPORT, row.key) if row.origin == Origin.IMPORT else None,
            message_id=row.id,
            seq=row.seq,
            score=round(row.score, 6),
        )
        for row in rows
    ]


_BEST = f"""WITH {scopes.OF_MESSAGES}, {postings.scored(Postings.MESSAGES)}, best AS MATERIALIZED (
  SELECT m.id, m.session_id, m.seq, m.parent_id, b.score
  FROM (SELECT id, score FROM scored ORDER BY score DESC, id DESC LIMIT :most) b JOIN chat_message m USING (id)
)"""
_BY_MESSAGE = text(f"""{_BEST}
SELECT b.id, b.session_id, b.seq, s.key, s.origin,
  b.score + 0.4e0::float8 * coalesce(before.score, 0) + 0.2e0::float8 * coalesce(after.score, 0) AS score
FROM best b JOIN chat_session s ON s.id = b.session_id
LEFT JOIN scored before ON before.id = b.parent_id
LEFT JOIN LATERAL (
  SELECT n.id, n.parent_id FROM chat_message n WHERE n.session_id = b.session_id AND n.seq > b.seq
  ORDER BY n.seq LIMIT 1) next ON next.parent_id = b.id
LEFT JOIN scored after ON after.id = next.id
ORDER BY score DESC, b.id DESC LIMIT :limit
""")
_BY_SESSION = text(f"""{_BEST}, placed AS (
  SELECT b.*, row_number() OVER (PARTITION BY session_id ORDER BY score DESC, id DESC) AS place FROM best b
), told AS (
  SELECT session_id, sum(score * (0.01e0::float8
      + CASE WHEN place <= {_IN_SESSION} THEN power(0.5e0::float8, place - 1) ELSE 0 END)) AS score
  FROM placed GROUP BY session_id
)
SELECT p.id, p.session_id, p.seq, s.key, s.origin, t.score
FROM told t JOIN placed p ON p.session_id = t.session_id AND p.place = 1
JOIN chat_session s ON s.id = t.session_id
ORDER BY t.score DESC, p.id DESC LIMIT :limit
""")
