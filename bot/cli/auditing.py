"""What the commands of a terminal leave in the audit log: who, by their OS account, looked at or changed what."""

from __future__ import annotations

from typing import Any

from bot.account import os_account
from storage import audit
from storage.audit import AuditEvent
from storage.records import LOCAL_TEAM
from storage.store import Db


async def record(
    db: Db,
    event: AuditEvent,
    *,
    team: str = LOCAL_TEAM,
    session_id: int | None = None,
    host: str = "",
    detail: dict[str, Any] | None = None,
) -> None:
    """Add a row for the account that runs this command, in the transaction that reads or changes."""
    account = os_account()
    await audit.add(
        db,
        event,
        team=team,
        person=f"local:{account}",
        os_account=account,
        session_id=session_id,
        host=host,
        detail=detail,
    )
