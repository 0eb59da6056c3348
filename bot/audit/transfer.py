"""Pure: rows of the audit log as JSON objects that hold all it takes to verify them, and back."""

from __future__ import annotations

from typing import Any

from storage.audit.rows import AuditRow


def as_json(row: AuditRow) -> dict[str, Any]:
    """A row as `audit list --json` and `audit export` print it; digests in hex."""
    return {
        "id": row.id,
        "at": row.at,
        "event": row.event,
        "team": row.team,
        "person": row.person,
        "os_account": row.os_account,
        "session": row.session_id,
        "turn": row.turn_id,
        "host": row.host,
        "detail": row.detail,
        "salt": row.salt,
        "erased_at": row.erased_at,
        "link": row.link,
        "payload_digest": _hex(row.payload_digest),
        "digest": _hex(row.digest),
        "hash": _hex(row.hash),
    }


def from_json(value: dict[str, Any]) -> AuditRow:
    """A sealed row from its JSON object. Raises ValueError that says which field is wrong."""
    return AuditRow(
        id=_of(value, "id", int),
        team=_of(value, "team", str),
        at=_of(value, "at", str, none=True),
        event=_of(value, "event", str),
        person=_of(value, "person", str),
        os_account=_of(value, "os_account", str),
        session_id=_of(value, "session", int, none=True),
        turn_id=_of(value, "turn", int, none=True),
        host=_of(value, "host", str),
        detail=value.get("detail"),
        salt=_of(value, "salt", str, none=True),
        erased_at=_of(value, "erased_at", str, none=True),
        link=_of(value, "link", int),
        payload_digest=bytes.fromhex(_of(value, "payload_digest", str)),
        digest=bytes.fromhex(_of(value, "digest", str)),
        hash=bytes.fromhex(_of(value, "hash", str)),
    )


def _of(value: dict[str, Any], name: str, kind: type, *, none: bool = False) -> Any:
    found = value.get(name)
    if (found is None and none) or (isinstance(found, kind) and not isinstance(found, bool)):
        return found
    raise ValueError(f'"{name}" is missing or not what it must be')


def _hex(value: bytes | None) -> str | None:
    return value.hex() if value is not None else None
