"""Finds past messages by words: any of them, the rare ones counting most. English and Chinese alike."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Literal

from sqlalchemy import text

from storage.records import Origin, SearchHit
from storage.sessions import own_key
from storage.store import Db

By = Literal["message", "session"]

_MOST_WORDS = 40
_RUN = re.compile(r"[\w./:@+-]+")
# Han, kana, hangul: written without spaces, so pairs of characters stand for words.
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be been but by can could did do does for from had has have he her him his how i if in is"
        " it its me my of on or our she so than that the their them then there they this to was we were what when"
        " where which who why will with would you your",
    )
)


def words(query: str) -> tuple[str, ...]:
    """What is looked for: lower-case words and pairs of unspaced characters, without the most common ones."""
    plain = unicodedata.normalize("NFKC", query).lower()
    found: list[str] = []
    for run in _UNSPACED.findall(plain):
        found += [run[i : i + 2] for i in range(len(run) - 1)] or [run]
    found += [word.strip(".:/-+") for word in _RUN.findall(_UNSPACED.sub(" ", plain))]
    distinct = [word for word in dict.fromkeys(found) if word]
    return tuple([word for word in distinct if word not in _COMMON] or distinct)[:_MOST_WORDS]


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
    compares hits of one query only. Archived sessions are searched too.
    """
    wanted = words(query)
    if not wanted or limit < 1:
        return []
    rows = await db.execute(
        _BY_SESSION if by == "session" else _BY_MESSAGE,
        {
            "words": list(wanted),
            "owner": owner,
            "channels": None if channels is None else list(channels),
            "team": team,
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


# One pass over what the caller may see, which is enough for tens of thousands of messages.
_SCORED = """
WITH visible AS MATERIALIZED (
  SELECT m.id, m.session_id, m.seq, s.key, s.origin,
    lower(normalize(m.author || ' ' || m.content, NFKC)) AS body
  FROM chat_message m JOIN chat_session s ON s.id = m.session_id
  WHERE (CAST(:owner AS text) IS NULL OR s.owner = :owner)
    AND (CAST(:channels AS text[]) IS NULL OR s.channel = ANY(CAST(:channels AS text[])))
    AND (CAST(:team AS text) IS NULL OR s.team = :team)
), hit AS MATERIALIZED (
  SELECT v.id, w.word FROM visible v, unnest(CAST(:words AS text[])) AS w(word)
  WHERE strpos(v.body, w.word) > 0
), weight AS (
  SELECT word, ln(1e0::float8 + (SELECT count(*) FROM visible)::float8 / count(*)::float8) AS weight
  FROM hit GROUP BY word
), scored AS (
  SELECT h.id, sum(weight) AS score FROM hit h JOIN weight USING (word) GROUP BY h.id
)"""
_BY_MESSAGE = text(f"""{_SCORED}
SELECT v.id, v.session_id, v.seq, v.key, v.origin, c.score FROM scored c JOIN visible v USING (id)
ORDER BY c.score DESC, v.id DESC LIMIT :limit
""")
_BY_SESSION = text(f"""{_SCORED}
SELECT * FROM (
  SELECT DISTINCT ON (v.session_id) v.id, v.session_id, v.seq, v.key, v.origin, c.score
  FROM scored c JOIN visible v USING (id) ORDER BY v.session_id, c.score DESC, v.id DESC) best
ORDER BY score DESC, id DESC LIMIT :limit
""")
