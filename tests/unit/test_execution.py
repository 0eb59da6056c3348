"""Commands side by side: one that fails neither hides what the others did nor leaves them unwatched."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bot.journal import Wanted
from bot.tools.execution import Executor, side_by_side
from storage.errors import DatabaseUnavailable, LeaseLost


class Silent:
    """A journal without a database, its ledger, and a host that would answer."""

    @property
    def ledger(self) -> Silent:
        return self

    async def fingerprint(self, _host: object) -> str:
        return "SHA256:x"

    async def started(self, _wanted: Wanted) -> None:
        raise DatabaseUnavailable


async def test_a_host_whose_command_cannot_be_recorded_is_told_as_not_run() -> None:
    silent = cast(Any, Silent())
    part = await Executor(remote=silent, journal=silent).read(
        cast(Any, SimpleNamespace(name="web-1")),
        Wanted("c", "web-1", "", "", "'uptime'", reason="", purpose="", policy="", limit_s=5),
    )
    assert part.host == "web-1"
    assert part.headline.startswith("not run: the audit log is unavailable")


async def test_what_runs_beside_a_failure_is_ended_and_waited_for() -> None:
    ended: list[str] = []

    async def works() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("works")

    async def fails() -> None:
        await asyncio.sleep(0)
        raise LeaseLost

    with pytest.raises(LeaseLost):
        await side_by_side([works(), fails()])
    assert ended == ["works"]
