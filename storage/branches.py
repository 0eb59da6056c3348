"""The tree of a session: going back to a message, the branches that came of it, and changing between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import text

from storage.errors import NotFound
from storage.history import COLUMNS, message_of
from storage.records import Message, Session
from storage.sessions import advance, at_rest, get, lock
from storage.store import Db


@dataclass(frozen=True, slots=True)
class Branch:
    """A way through the tree. seq: of its last message, by which it is named.

    first: the first message that is in no other branch; of an only branch, its root. current: the
    history is this one.
    """

    seq: int
    message_id: int
    first: Message
    messages: int
    last_at: datetime
    current: bool


async def rewind(db: Db, session_id: int, seq: int, *, epoch: int | None = None) -> Session:
    """Go back to before message `seq`: what is appended next takes its place. The old branch stays.

    epoch: the claim's, when a turn rewinds. Raises NotFound, LeaseLost, and Conflict while a turn of
    another is at work.
    """
    held = await lock(db, session_id, epoch=epoch)
    if epoch is None:
        await at_rest(db, session_id)
    row = (
        await db.execute(
            text("SELECT parent_id FROM chat_message WHERE session_id = :id AND seq = :seq"),
            {"id": session_id, "seq": seq},
        )
    ).first()
    if row is None:
        raise NotFound(
            f"session {session_id} has no message {seq}; see `opsthread sessions show {session_id} --all`"
        )
    await advance(db, held, head_id=row.parent_id, last_seq=held.last_seq)
    return await get(db, session_id)


async def switch(db: Db, session_id: int, seq: int) -> Session:
    """Make the branch that ends with message `seq` the current one; of a message inside, its newest end.

    Raises NotFound, and Conflict while a turn is at work.
    """
    held = await lock(db, session_id, epoch=None)
    await at_rest(db, session_id)
    tree = await _tree(db, session_id)
    found = next((id_ for id_, node in tree.items() if node.seq == seq), None)
    if found is None:
        raise NotFound(
            f"session {session_id} has no message {seq}; see `opsthread sessions branches {session_id}`"
        )
    while tree[found].children:
        found = max(tree[found].children, key=lambda id_: tree[id_].seq)
    await advance(db, held, head_id=found, last_seq=held.last_seq)
    return await get(db, session_id)


async def branches(db: Db, session_id: int) -> list[Branch]:
    """The branches of a session, the newest first.

    After a rewind with nothing appended yet, the place it went back to is listed as the current one.
    """
    session = await get(db, session_id)
    tree = await _tree(db, session_id)
    ends = {id_ for id_, node in tree.items() if not node.children}
    if session.head_id is not None:
        ends.add(session.head_id)
    ordered = sorted(ends, key=lambda id_: tree[id_].seq, reverse=True)
    roots = sum(node.parent_id is None for node in tree.values())
    firsts = {end: _first(tree, end, roots=roots) for end in ordered}
    rows = await db.execute(
        text(f"SELECT {COLUMNS} FROM chat_message WHERE id = ANY(:ids)"), {"ids": list(firsts.values())}
    )
    found = {row.id: message_of(row) for row in rows}
    return [
        Branch(
            seq=tree[end].seq,
            message_id=end,
            first=found[firsts[end]],
            messages=sum(1 for _ in _up(tree, end)),
            last_at=tree[end].created_at,
            current=end == session.head_id,
        )
        for end in ordered
    ]


@dataclass(slots=True)
class _Node:
    seq: int
    parent_id: int | None
    created_at: datetime
    children: list[int]


async def _tree(db: Db, session_id: int) -> dict[int, _Node]:
    rows: Any = await db.execute(
        text("SELECT id, seq, parent_id, created_at FROM chat_message WHERE session_id = :id ORDER BY seq"),
        {"id": session_id},
    )
    tree = {row.id: _Node(row.seq, row.parent_id, row.created_at, []) for row in rows}
    for id_, node in tree.items():
        if node.parent_id is not None:
            tree[node.parent_id].children.append(id_)
    return tree


def _up(tree: dict[int, _Node], end: int) -> Iterator[int]:
    at: int | None = end
    while at is not None:
        yield at
        at = tree[at].parent_id


def _first(tree: dict[int, _Node], end: int, *, roots: int) -> int:
    """Upward from the end until the place where the tree forks."""
    for id_ in _up(tree, end):
        parent = tree[id_].parent_id
        siblings = roots if parent is None else len(tree[parent].children)
        if siblings > 1 or parent is None:
            return id_
    raise AssertionError("a branch has a root")
