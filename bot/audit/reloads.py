"""Tells the audit log of what a process read anew by itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from bot import log
from bot.account import os_account
from storage import audit
from storage.audit import AuditEvent
from storage.audit.events import ITSELF
from storage.errors import StorageError
from storage.records import LOCAL_TEAM
from storage.store import Store

logger = log.get(__name__)


def inventory_reloads(store: Store, path: Path) -> Callable[[str], Awaitable[None]]:
    """What LiveInventory is to call. A database that cannot be reached keeps no change of access back."""

    async def told(fault: str) -> None:
        event = AuditEvent.INVENTORY_REFUSED if fault else AuditEvent.INVENTORY_RELOADED
        detail = {"path": str(path), **({"note": fault} if fault else {})}
        try:
            async with store.begin() as db:
                await audit.add(
                    db,
                    event,
                    team=LOCAL_TEAM,
                    person=ITSELF,
                    os_account=os_account(),
                    detail=detail,
                )
        except StorageError as error:
            logger.error("a reload is missing in the audit log", event_name=event, error=str(error))

    return told
