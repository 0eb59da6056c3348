"""Pure: the walk along the chain that finds the first broken link, whatever the rows and heads come from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from bot.audit.signing import valid
from storage.audit.digest import GENESIS, link_hash
from storage.audit.events import AuditEvent
from storage.audit.heads import Head
from storage.audit.rows import ERASED, AuditRow


class FaultKind(StrEnum):
    """What does not hold."""

    PAYLOAD = "payload"  # who, or what was done, is not what was sealed
    ROW = "row"  # another field, or the digest of the payload, is not what was sealed
    LINK = "link"  # the link does not follow the one before it: order, row or link was changed
    MISSING = "missing"  # links in the middle have no row
    DOUBLE = "double"  # two rows have one link
    ERASED = "erased"  # a payload is gone and no event tells of it
    HEAD = "head"  # the chain is whole in itself, and not the one that was vouched for
    SIGNATURE = "signature"  # a head is not signed as it must be
    TAIL = "tail"  # a head was vouched for that the chain does not reach


@dataclass(frozen=True, slots=True)
class Fault:
    """The first broken link. row: the number of the row in the table, None where there is none."""

    kind: FaultKind
    link: int
    row: int | None
    what: str


@dataclass(slots=True)
class _Trail:
    """Heads of one source so far."""

    heads: int = 0
    last: Head | None = None
    signed: Head | None = None


@dataclass(slots=True)
class Walk:
    """Rows in the order of the chain, each head when its link was reached; the answer of each is a Fault or None.

    keys: public keys whose signatures count. Empty: signatures are checked against the key the head names,
    which proves that heads are of one key, not whose key that is.
    """

    keys: frozenset[str] = frozenset()
    link: int = 0
    hash: bytes = GENESIS
    row_id: int | None = None
    rows: int = 0
    erased: dict[int, int] = field(default_factory=dict)  # row -> link, until an event tells of it
    erasures: int = 0
    trails: dict[str, _Trail] = field(default_factory=dict)

    def row(self, row: AuditRow) -> Fault | None:
        """The next row of the chain."""
        assert row.link is not None
        place = self._place(row, row.link)
        if place:
            return place
        payload = row.payload_digest or b""
        if row.erased_at is None and row.payload_digest_now() != payload:
            return self._at(FaultKind.PAYLOAD, row, "its person, account or detail was changed after sealing")
        if row.erased_at is not None:
            if (row.person, row.os_account, row.detail, row.salt) != (ERASED, "", {}, None):
                return self._at(FaultKind.PAYLOAD, row, "it is marked as erased and holds something else")
            self.erased[row.id] = row.link
            self.erasures += 1
        digest = row.digest_over(payload)
        if digest != row.digest:
            return self._at(
                FaultKind.ROW,
                row,
                "its team, time, event, session, turn, host or the digest of its payload was changed",
            )
        hash_ = link_hash(self.hash, digest)
        if hash_ != row.hash:
            return self._at(
                FaultKind.LINK, row, f"it does not follow link {self.link}: the order or the row was changed"
            )
        self.link, self.hash, self.row_id = row.link, hash_, row.id
        self.rows += 1
        if row.event == AuditEvent.AUDIT_ERASED:
            self.tells_of_erasing([row.detail])
        return None

    def _place(self, row: AuditRow, link: int) -> Fault | None:
        if link == self.link:
            return self._at(
                FaultKind.DOUBLE, row, f"row {self.row_id} has the same link: one of them is forged"
            )
        if link < self.link or link < 1:
            return self._at(FaultKind.LINK, row, f"it comes after link {self.link}")
        if link > self.link + 1:
            first, last = self.link + 1, link - 1
            links = f"link {first} has" if first == last else f"links {first} to {last} have"
            what = f"{links} no row: deleted between row {self.row_id} (link {self.link}) and row {row.id} (link {link})"
            return Fault(FaultKind.MISSING, first, None, what)
        return None

    def head(self, source: str, head: Head) -> Fault | None:
        """A head of a source (`the database`, `the sink …`), once the walk stands on its link."""
        trail = self.trails.setdefault(source, _Trail())
        before, trail.heads, trail.last = trail.last, trail.heads + 1, head
        said = f"the head of {head.at} in {source}"
        if head.link > self.link:
            lost = head.link - self.link
            rows = "1 row is" if lost == 1 else f"{lost} rows are"
            what = f"{said} vouches for link {head.link}; the chain ends with link {self.link}: the last {rows} missing"
            return Fault(FaultKind.TAIL, self.link + 1, None, what)
        if head.link < self.link:
            reached = before.link if before else self.link
            what = f"{said} comes after one of link {reached}: the chain was cut back and went on from there"
            return Fault(FaultKind.HEAD, head.link, None, what)
        signature = self._signature(trail, head, said)
        if signature:
            return signature
        if head.hash != self.hash.hex():
            since = f"after link {trail.signed.link}" if trail.signed else "before it"
            what = f"{said} vouches for another chain: rows were changed and linked anew somewhere {since}"
            return Fault(FaultKind.HEAD, head.link, self.row_id, what)
        if head.signature:
            trail.signed = head
        return None

    def _signature(self, trail: _Trail, head: Head, said: str) -> Fault | None:
        if not head.signature and not head.key:
            if trail.signed is None:
                return None
            what = f"{said} is not signed, and those before it are"
        elif self.keys and head.key not in self.keys:
            what = (
                f"{said} is signed with {head.key}, which is not the key of this installation;"
                " name it with --key if it was an earlier one"
            )
        elif not self.keys and trail.signed and trail.signed.key != head.key:
            what = f"{said} is signed with another key than those before it; set OPSTHREAD_SECRET_KEY or name both with --key"
        elif not valid(head):
            what = f"{said} does not bear a valid signature: the head was changed"
        else:
            return None
        return Fault(FaultKind.SIGNATURE, head.link, self.row_id, what)

    def tells_of_erasing(self, details: Iterable[Any]) -> None:
        """Details of `audit.erased`: the payloads of these rows are gone with notice."""
        for detail in details:
            rows = detail.get("rows") if isinstance(detail, dict) else None
            for row in rows if isinstance(rows, list) else []:
                self.erased.pop(row, None) if isinstance(row, int) else None

    def end(self) -> Fault | None:
        """After the last row, head and event of erasing."""
        if not self.erased:
            return None
        row, link = min(self.erased.items(), key=lambda item: item[1])
        return Fault(
            FaultKind.ERASED, link, row, f"row {row}: its payload was erased, and no event tells of it"
        )

    @staticmethod
    def _at(kind: FaultKind, row: AuditRow, what: str) -> Fault:
        assert row.link is not None
        return Fault(kind, row.link, row.id, f"row {row.id}: {what}")
