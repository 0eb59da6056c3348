"""Sealing: committed rows get their place in the chain, one process at a time, and nobody waits for it.

Writers only insert. Whoever seals takes what is committed and has no link yet, by id, and links it behind
the last. A transaction that commits late is linked late: the chain follows the sealing, not the ids.
"""

from __future__ import annotations

from sqlalchemy import text

from storage.audit.digest import GENESIS, link_hash
from storage.audit.rows import COLUMNS, record
from storage.errors import Conflict
from storage.store import Db

BATCH = 500  # rows of one transaction
# The planner takes unsealed rows to be few. After an upgrade all are, and it must not sort them for each batch.
_IN_ORDER = text(
    "SELECT set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true)"
)
_LOCK = 0x6F70_6175  # "opau": the advisory lock of whoever seals or signs; gone with its transaction


async def alone(db: Db) -> bool:
    """Whether this transaction may seal and sign now; False: another one does, and is not waited for."""
    return bool((await db.execute(text("SELECT pg_try_advisory_xact_lock(:lock)"), {"lock": _LOCK})).scalar())


async def tip(db: Db) -> tuple[int, bytes]:
    """The last link and its hash; (0, GENESIS) before the first."""
    found = await db.execute(
        text("SELECT link, hash FROM audit WHERE link IS NOT NULL ORDER BY link DESC LIMIT 1")
    )
    row = found.one_or_none()
    return (row.link, row.hash) if row else (0, GENESIS)


async def hash_at(db: Db, link: int) -> bytes | None:
    """The hash of a link; None: there is no such link."""
    found: bytes | None = (
        await db.execute(text("SELECT hash FROM audit WHERE link = :link"), {"link": link})
    ).scalar()
    return found


async def seal(db: Db, *, limit: int = BATCH) -> int | None:
    """Link what is committed, at most `limit` rows; how many. None: another process seals now."""
    found = await db.execute(text("SELECT 1 FROM audit WHERE link IS NULL LIMIT 1"))
    if found.one_or_none() is None:
        return 0
    if not await alone(db):
        return None
    await db.execute(_IN_ORDER)
    # Read after the lock: the transaction that held it before has committed its links by now.
    link, before = await tip(db)
    rows = await db.execute(
        text(f"SELECT {COLUMNS} FROM audit WHERE link IS NULL ORDER BY id LIMIT :limit"), {"limit": limit}
    )
    sealed = []
    for row in map(record, rows):
        payload = row.payload_digest_now()
        digest = row.digest_over(payload)
        link, before = link + 1, link_hash(before, digest)
        sealed.append((row.id, link, payload, digest, before))
    if sealed:
        await _write(db, sealed)
    return len(sealed)


async def _write(db: Db, sealed: list[tuple[int, int, bytes, bytes, bytes]]) -> None:
    ids, links, payloads, digests, hashes = map(list, zip(*sealed, strict=True))
    done = await db.execute(
        text(
            """UPDATE audit SET link = s.link, payload_digest = s.payload, digest = s.digest, hash = s.hash
            FROM unnest(CAST(:ids AS bigint[]), CAST(:links AS bigint[]), CAST(:payloads AS bytea[]),
                        CAST(:digests AS bytea[]), CAST(:hashes AS bytea[])) AS s (id, link, payload, digest, hash)
            WHERE audit.id = s.id AND audit.link IS NULL"""
        ),
        {"ids": ids, "links": links, "payloads": payloads, "digests": digests, "hashes": hashes},
    )
    if done.rowcount != len(sealed):
        raise Conflict("rows of the audit log vanished while they were sealed; run `opsthread audit verify`")
