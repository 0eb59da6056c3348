"""Ends memories: forgotten at a person's word, shared and taken back, closed when nobody needed them for long."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy import text

from storage.errors import Conflict, MemoryRefused
from storage.memories.keeping import close
from storage.memories.rows import COLUMNS, get, memory_of
from storage.recall import postings, scopes
from storage.recall.postings import Postings
from storage.recall.scopes import ScopeKind
from storage.recall.tokens import tokens
from storage.records import Memory, MemoryKind, NewMemory
from storage.store import Db, Store

UNUSED = timedelta(days=180)  # after which a case that was neither used nor seen again no longer holds


async def forget(db: Db, memory_id: int, *, team: str, owner: str) -> list[int]:
    """Erase a memory and the values that it superseded; answers their ids. Raises NotFound.

    What they said is gone from the rows and from recall when the transaction ends. The rows keep only what
    they were learnt from, so that it is not learnt from there again.
    """
    await scopes.hold(db, team=team, kind=ScopeKind.PERSON, owner=owner)
    memory = await get(db, memory_id, team=team, owner=owner)
    gone = await _with_earlier(db, memory)
    by_scope: dict[int, list[Memory]] = {}
    for one in gone:
        if one.scope_id is not None:
            by_scope.setdefault(one.scope_id, []).append(one)
    for scope_id, part in by_scope.items():
        await postings.take(db, Postings.MEMORIES, scope_id, [one.id for one in part])
        await scopes.grow(db, scope_id, docs=-len(part), words=-sum(one.words for one in part))
    await db.execute(
        text(
            """UPDATE long_term_memory SET text = '', subject = NULL, attribute = NULL, value = NULL, host = NULL,
              ref = NULL, source = NULL, words = 0, scope_id = NULL, shared = false,
              valid_to = coalesce(valid_to, now()), forgotten_at = now()
            WHERE id = ANY(CAST(:ids AS bigint[]))"""
        ),
        {"ids": [one.id for one in gone]},
    )
    return [one.id for one in gone]


async def _with_earlier(db: Db, memory: Memory) -> list[Memory]:
    """It, and what it superseded, and what that superseded."""
    if memory.subject is None or memory.attribute is None:
        return [memory]
    rows = await db.execute(
        text(
            f"""SELECT {COLUMNS} FROM long_term_memory WHERE team = :team AND owner = :owner AND kind = :kind
              AND subject = :subject AND attribute = :attribute AND superseded_by IS NOT NULL"""
        ),
        {
            "team": memory.team,
            "owner": memory.owner,
            "kind": memory.kind,
            "subject": memory.subject,
            "attribute": memory.attribute,
        },
    )
    earlier: dict[int, list[Memory]] = {}
    for row in rows:
        earlier.setdefault(row.superseded_by, []).append(memory_of(row))
    gone = [memory]
    for one in gone:  # grows while it is walked
        gone += earlier.pop(one.id, [])
    return gone


async def share(db: Db, memory_id: int, *, team: str, owner: str, wording: str) -> None:
    """Show a fact or a case to the team; `wording` is the text the person saw. Raises NotFound, Conflict, MemoryRefused.

    About a host it reaches only those who may use that host. A new value is not shared by itself.
    """
    await scopes.hold(db, team=team, kind=ScopeKind.PERSON, owner=owner)
    memory = await get(db, memory_id, team=team, owner=owner)
    if memory.kind is MemoryKind.USER_PREFERENCE:
        raise MemoryRefused("a preference is its person's own and is not shared")
    if memory.host is not None and memory.subject is not None and ", " in memory.subject:
        raise MemoryRefused(
            f"it is about several hosts ({memory.subject}), and a shared memory reaches those who may use its"
            " host; tell it in words, or share what you know of one host"
        )
    if memory.text != wording or memory.valid_to is not None:
        raise Conflict(f"memory {memory_id} says something else by now; look at it again")
    if not memory.shared:
        to, _ = await scopes.hold(db, team=team, kind=ScopeKind.TEAM, place=memory.host or "")
        await _move(db, memory, to=to, shared=True)


async def unshare(db: Db, memory_id: int, *, team: str, owner: str) -> None:
    """Make it the person's own again. Raises NotFound."""
    own, _ = await scopes.hold(db, team=team, kind=ScopeKind.PERSON, owner=owner)
    memory = await get(db, memory_id, team=team, owner=owner)
    if memory.shared:
        await _move(db, memory, to=own, shared=False)


async def _move(db: Db, memory: Memory, *, to: int, shared: bool) -> None:
    """A shared memory's tokens stand under the team's scope alone, so that they count once."""
    words = tokens(memory.text)
    if memory.scope_id is not None:
        await postings.take(db, Postings.MEMORIES, memory.scope_id, [memory.id])
        await scopes.grow(db, memory.scope_id, docs=-1, words=-memory.words)
    await postings.put(db, Postings.MEMORIES, to, texts=[(memory.id, words)])
    await scopes.grow(db, to, docs=1, words=memory.words)
    await db.execute(
        text("UPDATE long_term_memory SET scope_id = :to, shared = :shared WHERE id = :id"),
        {"id": memory.id, "to": to, "shared": shared},
    )


async def outdate(store: Store, new: NewMemory, *, team: str, owner: str) -> int:
    """Close what others shared under the key of a fact that somebody has now seen to be otherwise; answers how many.

    A shared fact is believed by people who did not see it: it must not outlive what a colleague saw.
    """
    values = {
        "team": team,
        "owner": owner,
        "kind": new.kind,
        "subject": new.subject,
        "attribute": new.attribute,
        "value": new.value,
        "at": new.at,
    }
    async with store.begin() as db:
        others = [row.owner for row in await db.execute(_OUTDATED_OF, values)]
    done = 0
    for other in others:
        async with store.begin() as db:  # one person at a time: nobody waits for two scopes
            await scopes.hold(db, team=team, kind=ScopeKind.PERSON, owner=other)
            for memory in [memory_of(row) for row in await db.execute(_OUTDATED, {**values, "other": other})]:
                await close(db, memory, at=new.at or datetime.now(UTC))
                done += 1
    return done


_CONTRADICTED = """team = :team AND owner <> :owner AND shared AND valid_to IS NULL AND kind = :kind
  AND subject = :subject AND attribute = :attribute AND value <> :value AND confirmed_at < :at"""
_OUTDATED_OF = text(f"SELECT DISTINCT owner FROM long_term_memory WHERE {_CONTRADICTED}")
_OUTDATED = text(f"SELECT {COLUMNS} FROM long_term_memory WHERE {_CONTRADICTED} AND owner = :other")


async def used(db: Db, ids: Sequence[int], *, team: str, owner: str, now: datetime | None = None) -> None:
    """Note that these were put before the model in a turn of this person. Those of others are passed over."""
    await db.execute(
        text(
            """UPDATE long_term_memory SET last_used_at = :now, use_count = use_count + 1
            WHERE id = ANY(CAST(:ids AS bigint[])) AND team = :team AND (owner = :owner OR shared)
              AND forgotten_at IS NULL"""
        ),
        {"ids": list(ids), "team": team, "owner": owner, "now": now or datetime.now(UTC)},
    )


async def decay(
    store: Store, *, now: datetime | None = None, unused: timedelta = UNUSED, most: int = 500
) -> int:
    """Close cases that were neither used nor seen again for so long, for every person; answers how many."""
    now = now or datetime.now(UTC)
    async with store.begin() as db:
        rows = (await db.execute(_UNUSED, {"before": now - unused, "most": most})).all()
    people: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        people.setdefault((row.team, row.owner), []).append(row.id)
    done = 0
    for (team, owner), ids in people.items():
        async with store.begin() as db:  # one person at a time: nobody waits for two scopes
            await scopes.hold(db, team=team, kind=ScopeKind.PERSON, owner=owner)
            found = await db.execute(_STILL_UNUSED, {"before": now - unused, "ids": ids})
            for memory in [memory_of(row) for row in found]:
                await close(db, memory, at=now)
                done += 1
    return done


_WHERE = """kind = 'TROUBLESHOOTING_CASE' AND valid_to IS NULL
  AND greatest(confirmed_at, coalesce(last_used_at, confirmed_at)) < :before"""
_UNUSED = text(f"SELECT id, team, owner FROM long_term_memory WHERE {_WHERE} ORDER BY id LIMIT :most")
_STILL_UNUSED = text(
    f"SELECT {COLUMNS} FROM long_term_memory WHERE {_WHERE} AND id = ANY(CAST(:ids AS bigint[]))"
)
