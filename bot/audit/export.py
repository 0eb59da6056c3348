"""Everything it takes to verify the chain elsewhere: a first line that says how far it goes, rows, heads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

from bot.audit import transfer
from storage import audit
from storage.audit import heads
from storage.audit.sealing import tip
from storage.store import Store

PAGE = 2000  # rows read at once
FORMAT = 1


async def export(store: Store) -> AsyncIterator[dict[str, Any]]:
    """Records in the order of the chain, each head behind its row, up to what is sealed now."""
    async with store.begin() as db:
        last, hash_ = await tip(db)
    yield {"record": "export", "format": FORMAT, "link": last, "hash": hash_.hex()}
    after = (0, 0)
    while after[0] < last:
        async with store.begin() as db:
            rows = [row for row in await audit.page(db, after, limit=PAGE) if (row.link or 0) <= last]
            if not rows:
                return
            vouched = await heads.page(db, after[0], rows[-1].link or 0)
        by_link = {head.link: head for head in vouched}
        for row in rows:
            yield {"record": "row", **transfer.as_json(row)}
            if row.link in by_link:
                yield {"record": "head", **asdict(by_link[row.link])}
        after = (rows[-1].link or 0, rows[-1].id)
