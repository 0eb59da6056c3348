"""Verifies the chain of a database, or of an exported file: streams rows, and holds every head against them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from bot.audit import sink as sinks
from bot.audit import transfer
from bot.audit.walk import Fault, Walk
from bot.errors import OpsthreadError
from storage import audit
from storage.audit import heads as stored
from storage.audit.digest import parsed
from storage.audit.heads import Head
from storage.audit.rows import AuditRow
from storage.store import Store

PAGE = 2000  # rows read at once
DATABASE = "the database"
FILE = "the file"
_FIRST = (-(2**63), -(2**63))  # before every row, forged ones with a link below 1 too
_NOTHING = audit.Pending(0, None, ())

Progress = Callable[[int], None]  # told how many rows are verified so far


@dataclass(frozen=True, slots=True)
class Report:
    """What was found. head: the last one that agrees; signature: valid | unchecked | unsigned | none."""

    rows: int
    link: int
    hash: str
    erased: int
    unsealed: int
    unsealed_since: str | None
    head: Head | None
    signature: str
    sources: tuple[str, ...]
    unreadable: int  # lines of the sink that are no heads
    fault: Fault | None


class _Heads:
    """Heads of one source on their way to the walk, the next one in sight."""

    def __init__(self, name: str, heads: Iterable[Head] = ()) -> None:
        self.name = name
        self._left: Iterator[Head] = iter(heads)
        self._next = next(self._left, None)

    def feed(self, heads: Iterable[Head]) -> None:
        """More of them, behind those that are left."""
        self._left = chain([self._next] if self._next else [], self._left, heads)
        self._next = next(self._left, None)

    def upto(self, link: int | None) -> Iterator[Head]:
        """Those at a link or before, in their own order; None: all that are left."""
        while self._next is not None and (link is None or self._next.link <= link):
            head, self._next = self._next, next(self._left, None)
            yield head


async def verify_store(
    store: Store, *, keys: frozenset[str], sink: Path | None, progress: Progress
) -> Report:
    """The database's chain against its heads and those of the sink. Raises OpsthreadError, StorageError."""
    walk, unreadable = Walk(keys), _Unreadable()
    in_database = _Heads(DATABASE)
    sources = [in_database]
    async with store.begin() as db:
        newest = await stored.last(db)
    if sink is not None:
        sources.append(_of_sink(sink, unreadable, begun=newest is not None))
    after, heads_after, fault = _FIRST, _FIRST[0], None
    while not fault:
        async with store.begin() as db:
            rows = await audit.page(db, after, limit=PAGE)
            upto = (rows[-1].link or 0) if rows else (newest.link if newest else heads_after)
            in_database.feed(await stored.page(db, heads_after, upto))
        if not rows:
            fault = _heads(walk, sources, None)
            break
        after, heads_after = (rows[-1].link or 0, rows[-1].id), max(upto, heads_after)
        fault = _rows(walk, rows, sources)
        progress(walk.rows)
    async with store.begin() as db:
        pending = await audit.pending(db, walk.link)
    walk.tells_of_erasing(map(parsed, pending.erasures))
    return _report(walk, fault or walk.end(), sources, unreadable=unreadable.count, pending=pending)


def verify_lines(lines: Iterable[str], *, keys: frozenset[str], progress: Progress) -> Report:
    """An export, without any database. Raises OpsthreadError for a line that is no record."""
    walk = Walk(keys)
    promised: tuple[int, str] | None = None
    fault: Fault | None = None
    for number, line in enumerate(lines, 1):
        try:
            value = parsed(line)
            match value:
                case {"record": "export", "link": int(link), "hash": str(hash_)} if promised is None:
                    promised = link, hash_
                case {"record": "row"}:
                    fault = walk.row(transfer.from_json(value))
                case {"record": "head"} if (head := sinks.from_json(value)) is not None:
                    fault = walk.head(FILE, head)
                case _:
                    raise ValueError("no record of an export")
        except (ValueError, RecursionError) as error:
            raise OpsthreadError(
                f"line {number} cannot be read ({error}); the file must be what `opsthread audit export` printed"
            ) from None
        if fault:
            break
        if number % PAGE == 0:
            progress(walk.rows)
    if not fault and promised and promised[0] > walk.link:
        fault = walk.head(FILE, Head(*promised, at="the export"))
    return _report(walk, fault or walk.end(), [_Heads(FILE)])


def _of_sink(path: Path, unreadable: _Unreadable, *, begun: bool) -> _Heads:
    """begun: heads were made, so a file must be there."""
    if not begun and not path.exists():
        return _Heads(f"the sink {path} (no head was written yet)")
    return _Heads(f"the sink {path}", unreadable.passed(path))


def _rows(walk: Walk, rows: Iterable[AuditRow], sources: list[_Heads]) -> Fault | None:
    for row in rows:
        fault = walk.row(row) or _heads(walk, sources, walk.link)
        if fault:
            return fault
    return None


def _heads(walk: Walk, sources: list[_Heads], upto: int | None) -> Fault | None:
    for source in sources:
        for head in source.upto(upto):
            fault = walk.head(source.name, head)
            if fault:
                return fault
    return None


@dataclass(slots=True)
class _Unreadable:
    """Passes the heads of a sink on and counts the lines that are none."""

    count: int = 0

    def passed(self, path: Path) -> Iterator[Head]:
        try:
            for head in sinks.read(path):
                if head is None:
                    self.count += 1
                else:
                    yield head
        except OSError as error:
            raise OpsthreadError(
                f"the audit sink {path} cannot be read ({error.strerror}); without it a cut tail cannot be seen"
            ) from None


def _report(
    walk: Walk,
    fault: Fault | None,
    sources: list[_Heads],
    *,
    unreadable: int = 0,
    pending: audit.Pending = _NOTHING,
) -> Report:
    signed = [trail.signed for trail in walk.trails.values() if trail.signed]
    agreed = signed or [trail.last for trail in walk.trails.values() if trail.last]
    head = max(agreed, key=lambda head: head.link, default=None)
    signature = "none" if head is None else "unsigned"
    if signed:
        signature = "valid" if walk.keys else "unchecked"
    return Report(
        rows=walk.rows,
        link=walk.link,
        hash=walk.hash.hex(),
        erased=walk.erasures,
        unsealed=pending.rows,
        unsealed_since=pending.oldest,
        head=head,
        signature=signature,
        sources=tuple(source.name for source in sources),
        unreadable=unreadable,
        fault=fault,
    )
