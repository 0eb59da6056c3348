"""Real processes of the product, with nothing but the given settings, ended by pid."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.acceptance.forking import Forked, fork

ROOT = Path(__file__).parents[2]
PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR", "USER", "LOGNAME", "VIRTUAL_ENV")


@dataclass
class Process:
    """A running `opsthread …`; its lines are collected while it runs."""

    pid: int
    status: asyncio.Future[int]
    out: list[str] = field(default_factory=list)
    err: list[str] = field(default_factory=list)
    readers: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def returncode(self) -> int | None:
        return self.status.result() if self.status.done() else None

    async def line(self, needle: str, *, timeout_s: float = 40.0) -> str:
        """The first line on stdout or stderr that holds `needle`."""
        async with asyncio.timeout(timeout_s):
            while True:
                for line in [*self.out, *self.err]:
                    if needle in line:
                        return line
                if self.status.done() and all(r.done() for r in self.readers):
                    raise AssertionError(f"ended with {self.returncode} before {needle!r}: {self.text()}")
                await asyncio.sleep(0.02)

    async def wait(self, *, timeout_s: float = 90.0) -> int:
        try:
            status = await asyncio.wait_for(asyncio.shield(self.status), timeout_s)
        except TimeoutError:
            raise AssertionError(f"still running after {timeout_s} s: {self.text()}") from None
        await asyncio.gather(*self.readers)
        return status

    def send(self, number: signal.Signals) -> None:
        if not self.status.done():
            os.kill(self.pid, number)

    async def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        self.send(signal.SIGKILL)
        await self.wait()

    async def terminate(self) -> int:
        self.send(signal.SIGTERM)
        return await self.wait()

    def text(self) -> str:
        return "\n".join([*self.out, *self.err])

    def events(self) -> list[dict[str, Any]]:
        """The lines of `--json`."""
        return [json.loads(line) for line in self.out if line.startswith("{")]

    def last(self, event: str) -> dict[str, Any]:
        return [e for e in self.events() if e["event"] == event][-1]


@asynccontextmanager
async def started(
    *args: str,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    cwd: Path = ROOT,
    afresh: bool = False,
) -> AsyncIterator[Process]:
    """`opsthread args…` with only the given settings in its environment.

    afresh: by Python's own start, as people start it; else forked from a process that has loaded it.
    """
    whole = {**{k: v for k, v in os.environ.items() if k in PASSED_ON}, **(env or {})}
    given = None if stdin is None else stdin.encode()
    begin = _afresh if afresh else fork
    begun = await begin(args, env=whole, cwd=cwd, stdin=given)
    process = Process(begun.pid, begun.status)
    process.readers = [
        asyncio.create_task(_collect(begun.out, process.out)),
        asyncio.create_task(_collect(begun.err, process.err)),
    ]
    try:
        yield process
    finally:
        await process.kill()


async def run(
    *args: str,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    cwd: Path = ROOT,
    afresh: bool = False,
) -> tuple[int, Process]:
    """Start, wait for the end, give back the exit status and what was printed."""
    async with started(*args, env=env, stdin=stdin, cwd=cwd, afresh=afresh) as process:
        return await process.wait(), process


async def _afresh(
    words: tuple[str, ...], *, env: Mapping[str, str], cwd: Path, stdin: bytes | None
) -> Forked:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bot",
        *words,
        cwd=cwd,
        env={**env, "PYTHONPATH": str(ROOT)},
        stdin=PIPE if stdin is not None else DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        limit=2**22,
    )
    assert child.stdout
    assert child.stderr
    if child.stdin:
        child.stdin.write(stdin or b"")
        child.stdin.close()
    return Forked(child.pid, child.stdout, child.stderr, asyncio.ensure_future(child.wait()))


async def _collect(stream: asyncio.StreamReader, lines: list[str]) -> None:
    while line := await stream.readline():
        lines.append(line.decode("utf-8", "replace").rstrip("\n"))
