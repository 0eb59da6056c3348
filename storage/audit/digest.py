"""Pure: the digests of the audit log, exact enough to be computed by another program (docs/safety.md).

payload digest = sha256(canonical JSON of who and what, with the row's salt)
row digest     = sha256(canonical JSON of the row's other fields and its payload digest)
link hash      = sha256(hash of the link before | row digest), 64 bytes in

So a payload can be erased and every digest after it stays what it was. The salt goes with the payload:
without it, a digest of few possible texts would tell which of them it was.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

GENESIS = bytes(32)  # the hash before link 1
_LONGEST_INT = 4000  # digits; Python reads no longer ones


def _int(digits: str) -> int | str:
    return int(digits) if len(digits) < _LONGEST_INT else digits


_encoder = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
_decoder = json.JSONDecoder(parse_int=_int)


def canonical(value: Any) -> bytes:
    """JSON in UTF-8: keys by code point, no spaces, no escapes but those JSON demands.

    A number with a point or an exponent is the shortest text that reads back as the same double.
    """
    return _encoder.encode(value).encode()


def parsed(detail: str) -> Any:
    """The value of a jsonb's text. A number too long to be read is kept as text, so that it stops nothing."""
    return _decoder.decode(detail)


def payload_digest(*, person: str, os_account: str, detail: Any, salt: str | None) -> bytes:
    """32 bytes over what can be erased. salt: the uuid of the row, as Postgres writes it."""
    payload = {"person": person, "os_account": os_account, "detail": detail, "salt": salt}
    return sha256(canonical(payload)).digest()


def row_digest(
    *,
    id_: int,
    team: str,
    at: str | None,
    event: str,
    session_id: int | None,
    turn_id: int | None,
    host: str,
    payload: bytes,
) -> bytes:
    """32 bytes over what stays for ever. at: UTC with microseconds, `2026-05-01T12:00:00.000000Z`."""
    row = {
        "id": id_,
        "team": team,
        "at": at,
        "event": event,
        "session": session_id,
        "turn": turn_id,
        "host": host,
        "payload": payload.hex(),
    }
    return sha256(canonical(row)).digest()


def link_hash(before: bytes, digest: bytes) -> bytes:
    """The hash of a link: it stands for its row and for every row before it."""
    return sha256(before + digest).digest()
