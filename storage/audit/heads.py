"""Heads of the chain as the database keeps them: link, hash, time and signature. Making one is not storage's."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import text

from storage.store import Db


@dataclass(frozen=True, slots=True)
class Head:
    """The chain up to a link, vouched for by a key. An unsigned head has empty key and signature."""

    link: int
    hash: str  # hex
    at: str  # UTC, as it was signed
    key: str = ""  # the public key, `ed25519:<base64>`
    signature: str = ""  # base64


_COLUMNS = "link, encode(hash, 'hex') AS hash, at, key, signature"


async def add(db: Db, head: Head) -> None:
    """Keep a head; one of the same link that is there already stays."""
    await db.execute(
        text(
            """INSERT INTO audit_head (link, hash, at, key, signature)
            VALUES (:link, decode(:hash, 'hex'), :at, :key, :signature) ON CONFLICT DO NOTHING"""
        ),
        {
            "link": head.link,
            "hash": head.hash,
            "at": head.at,
            "key": head.key,
            "signature": head.signature,
        },
    )


async def last(db: Db) -> Head | None:
    """The head of the highest link."""
    found = await db.execute(text(f"SELECT {_COLUMNS} FROM audit_head ORDER BY link DESC LIMIT 1"))
    row = found.one_or_none()
    return Head(**row._mapping) if row else None


async def page(db: Db, after: int, upto: int) -> list[Head]:
    """Heads behind a link, up to another one, in the order of their links."""
    found = await db.execute(
        text(
            f"SELECT {_COLUMNS} FROM audit_head WHERE link > :after AND link <= :upto ORDER BY link, signature"
        ),
        {"after": after, "upto": upto},
    )
    return [Head(**row._mapping) for row in found]
