"""Keeps a memory: under its key one value holds at a time, and what held before stays as history.

Whoever writes holds the person's scope, so that two processes write one after the other; a unique index on
the key stands behind that. One transaction: a process that dies between leaves the old value in force.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import text

from storage.errors import MemoryRefused
from storage.memories import likeness
from storage.memories.rows import COLUMNS, memory_of
from storage.recall import postings, scopes
from storage.recall.postings import Postings
from storage.recall.scopes import ScopeKind
from storage.recall.tokens import tokens
from storage.records import Memory, NewMemory
from storage.storable import storable, storable_json
from storage.store import Db

LONGEST = 10_000  # characters of a memory that a person adds or imports
LONGEST_LEARNT = 1_000  # of one that was learnt
LONGEST_FIELD = 500  # of subject, attribute, value, host and ref
LONGEST_KEY = 1_500  # bytes of subject and attribute together, which stand in an index
MOST = 50_000  # memories of one person that hold


class Outcome(StrEnum):
    """What became of a memory that was to be kept."""

    NEW = "new"
    SUPERSEDED = "superseded"  # it took the place of another value
    REFRESHED = "refreshed"  # the same was known
    HISTORY = "history"  # it held once; something newer is known


@dataclass(frozen=True, slots=True)
class Kept:
    """id: of the row that now tells it."""

    id: int
    outcome: Outcome


async def add(
    db: Db, new: NewMemory, *, team: str, owner: str, now: datetime | None = None, learnt: bool = False
) -> Kept | None:
    """Keep one memory. Only the same kind, subject and attribute supersede; without them nothing does.

    learnt: by extraction; then nearly the same sentence is not kept twice, nothing is learnt again from where
    something was forgotten, and a person who opted out is no error: answers None. Raises MemoryRefused.
    """
    now = now or datetime.now(UTC)
    new = checked(new, longest=LONGEST_LEARNT if learnt else LONGEST)
    scope_id, docs = await scopes.hold(db, team=team, kind=ScopeKind.PERSON, owner=owner)
    # Asked only when the scope is held: what another writer of this person did must be seen.
    opted_out, forgotten, old = await _known(db, new, team=team, owner=owner)
    if learnt and (opted_out or forgotten):
        return None
    if opted_out:
        raise MemoryRefused(f"{owner} wants no memories kept; `opsthread memory opt-out --undo` changes that")
    if old is None and learnt and not _keyed(new):
        old = await _nearly(db, new, scope_id=scope_id)
        if old is not None:
            return await _refresh(db, old, now=new.at or now)
    if old is not None and _same(old, new):
        return await _refresh(db, old, now=new.at or now)
    if old is not None and new.at is not None and new.at < old.confirmed_at and new.valid_to is None:
        until = max(new.at, old.valid_from)  # the later look found the old value: this one did not last
        made = await insert(db, new, team=team, owner=owner, now=now, until=until, by=old.id)
        return Kept(made, Outcome.HISTORY)
    if old is None and new.valid_to is None and docs >= MOST:
        raise MemoryRefused(f"{owner} has {docs:,} memories, which is the limit; forget some first")
    made = await insert(db, new, team=team, owner=owner, now=now, scope_id=scope_id, instead_of=old)
    outcome = Outcome.HISTORY if new.valid_to else Outcome.NEW if old is None else Outcome.SUPERSEDED
    return Kept(made, outcome)


def checked(new: NewMemory, *, longest: int = LONGEST) -> NewMemory:
    """As Postgres can hold it. Raises MemoryRefused for what is empty or too long."""
    if not new.text.strip():
        raise MemoryRefused("a memory needs a text")
    if len(new.text) > longest:
        raise MemoryRefused(f"a memory has at most {longest:,} characters, this one {len(new.text):,}")
    fields: dict[str, Any] = {}
    for name in ("subject", "attribute", "value", "host", "ref"):
        value = getattr(new, name)
        if value is not None and len(value) > LONGEST_FIELD:
            raise MemoryRefused(f"{name} has at most {LONGEST_FIELD} characters, this one {len(value):,}")
        fields[name] = storable(value) if value else None
    if len((fields["subject"] or "").encode()) + len((fields["attribute"] or "").encode()) > LONGEST_KEY:
        raise MemoryRefused(f"subject and attribute have at most {LONGEST_KEY:,} bytes together")
    return NewMemory(
        kind=new.kind,
        text=storable(new.text),
        message_id=new.message_id,
        command_id=new.command_id,
        source=new.source,
        at=new.at,
        valid_to=new.valid_to,
        **fields,
    )


def _keyed(new: NewMemory) -> bool:
    return new.subject is not None and new.attribute is not None


def _same(old: Memory, new: NewMemory) -> bool:
    if old.value is None and new.value is None:
        return likeness.plain(old.text) == likeness.plain(new.text)
    return likeness.plain(old.value) == likeness.plain(new.value)


async def _known(db: Db, new: NewMemory, *, team: str, owner: str) -> tuple[bool, bool, Memory | None]:
    """Whether this person opted out, whether it was forgotten before, and what holds under the same key."""
    keyed = _keyed(new) and new.valid_to is None
    row = await db.execute(
        _KNOWN,
        {
            "team": team,
            "owner": owner,
            "kind": new.kind,
            "message_id": new.message_id,
            "command_id": new.command_id,
            "subject": new.subject if keyed else None,
            "attribute": new.attribute if keyed else None,
        },
    )
    opted_out, forgotten, *old = row.one()
    return opted_out, forgotten, None if old[0] is None else memory_of(old)


_KNOWN = text(f"""
SELECT EXISTS (SELECT 1 FROM person WHERE team = :team AND id = :owner AND memory_opt_out),
  EXISTS (SELECT 1 FROM long_term_memory WHERE team = :team AND owner = :owner AND forgotten_at IS NOT NULL
    AND kind = :kind AND (message_id = :message_id OR command_id = :command_id)),
  {COLUMNS}
FROM (SELECT 1) always LEFT JOIN long_term_memory ON team = :team AND owner = :owner AND kind = :kind
  AND subject = :subject AND attribute = :attribute AND valid_to IS NULL
""")


async def _nearly(db: Db, new: NewMemory, *, scope_id: int) -> Memory | None:
    """A memory of the same kind without a key that says nearly the same of the same host."""
    words = list(tokens(new.text)[: postings.ASKED])
    rows = await db.execute(_NEARLY, {"scope": scope_id, "tokens": words, "kind": new.kind, "host": new.host})
    return next((memory for memory in map(memory_of, rows) if likeness.alike(memory.text, new.text)), None)


_NEARLY = text(f"""
WITH {scopes.ONE}, {postings.scored(Postings.MEMORIES)}, best AS (
  SELECT id FROM scored ORDER BY score DESC, id DESC LIMIT 5
)
SELECT {COLUMNS} FROM best JOIN long_term_memory USING (id)
WHERE kind = :kind AND valid_to IS NULL AND subject IS NULL AND host IS NOT DISTINCT FROM CAST(:host AS text)
ORDER BY id
""")


async def _refresh(db: Db, old: Memory, *, now: datetime) -> Kept:
    await db.execute(
        text("UPDATE long_term_memory SET confirmed_at = greatest(confirmed_at, :now) WHERE id = :id"),
        {"id": old.id, "now": now},
    )
    return Kept(old.id, Outcome.REFRESHED)


async def close(db: Db, old: Memory, *, at: datetime) -> None:
    """It no longer holds, and is no longer found."""
    await db.execute(
        text(
            """WITH untold AS (
              DELETE FROM memory_token WHERE scope_id = :scope AND memory_id = :id
                AND token = ANY(CAST(:tokens AS text[]))
            ), counted AS (
              UPDATE recall_scope SET docs = docs - 1, words = words - :words WHERE id = :scope
            )
            UPDATE long_term_memory SET valid_to = greatest(valid_from, :at), scope_id = NULL, shared = false
            WHERE id = :id"""
        ),
        {
            "id": old.id,
            "at": at,
            "scope": old.scope_id,
            "words": old.words,
            "tokens": [] if old.scope_id is None else list(tokens(old.text)),
        },
    )


async def insert(
    db: Db,
    new: NewMemory,
    *,
    team: str,
    owner: str,
    now: datetime,
    scope_id: int | None = None,
    instead_of: Memory | None = None,
    until: datetime | None = None,
    by: int | None = None,
) -> int:
    """One row with its tokens; without them when it no longer holds. The scope is held.

    instead_of: what it supersedes, which is closed as `close` does, in the same statement.
    """
    valid_to = until or new.valid_to
    held = scope_id if valid_to is None else None
    words = list(tokens(new.text)) if held is not None else []
    old = instead_of
    # What leaves the new one's own scope; a shared value leaves another.
    here = old.words if old is not None and old.scope_id == held else None
    row = await db.execute(
        _INSERT,
        {
            "team": team, "owner": owner, "kind": new.kind, "subject": new.subject, "attribute": new.attribute,
            "value": new.value, "text": new.text, "host": new.host, "message_id": new.message_id,
            "command_id": new.command_id, "ref": new.ref, "at": new.at or now, "valid_to": valid_to, "by": by,
            "source": None if new.source is None else storable_json(new.source), "scope": held,
            "tokens": words, "words": len(words),
            "more_docs": 1 if here is None else 0, "more_words": len(words) - (here or 0),
            "old": None if old is None else old.id, "old_scope": None if old is None else old.scope_id,
            "old_words": 0 if old is None else old.words,
            "old_tokens": [] if old is None or old.scope_id is None else list(tokens(old.text)),
        },
    )  # fmt: skip
    return int(row.scalar_one())


# The new row asks whether the old one is closed: the parts of a statement have no order by themselves, and two
# values may not hold under one key. An old value that was shared stood under another scope.
_INSERT = text("""
WITH next AS MATERIALIZED (
  SELECT nextval('long_term_memory_id_seq') AS id
), closed AS (
  UPDATE long_term_memory SET valid_to = greatest(valid_from, :at), scope_id = NULL, shared = false,
    superseded_by = next.id
  FROM next WHERE long_term_memory.id = :old RETURNING 1
), untold AS (
  DELETE FROM memory_token WHERE scope_id = :old_scope AND memory_id = :old
    AND token = ANY(CAST(:old_tokens AS text[]))
), made AS (
  INSERT INTO long_term_memory (id, team, owner, kind, subject, attribute, value, text, host, message_id,
    command_id, ref, created_at, valid_from, valid_to, superseded_by, confirmed_at, source, scope_id, words)
  OVERRIDING SYSTEM VALUE
  SELECT next.id, :team, :owner, :kind, :subject, :attribute, :value, :text, :host, :message_id,
    :command_id, :ref, :at, :at, :valid_to, :by, :at, CAST(:source AS jsonb), :scope, :words
  FROM next CROSS JOIN (SELECT count(*) FROM closed) after
  RETURNING id
), told AS (
  INSERT INTO memory_token (scope_id, token, memory_id)
  SELECT :scope, token, made.id FROM made CROSS JOIN unnest(CAST(:tokens AS text[])) AS t(token)
), counted AS (
  UPDATE recall_scope SET docs = docs + :more_docs, words = words + :more_words WHERE id = :scope
), elsewhere AS (
  UPDATE recall_scope SET docs = docs - 1, words = words - :old_words WHERE id = :old_scope AND id IS DISTINCT FROM :scope
)
SELECT id FROM made
""")
