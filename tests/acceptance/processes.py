"""Real processes of the product, started as people start them, ended by pid."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR", "USER", "LOGNAME", "VIRTUAL_ENV")


@dataclass
class Process:
    """A running `opsthread …`; its lines are collected while it runs."""

    child: asyncio.subprocess.Process
    out: list[str] = field(default_factory=list)
    err: list[str] = field(default_factory=list)
    readers: list[asyncio.Task[None]] = field(default_factory=list)

    async def line(self, needle: str, *, timeout_s: float = 40.0) -> str:
        """The first line on stdout or stderr that holds `needle`."""
        async with asyncio.timeout(timeout_s):
            while True:
                for line in [*self.out, *self.err]:
                    if needle in line:
                        return line
                if self.child.returncode is not None and all(r.done() for r in self.readers):
                    raise AssertionError(
                        f"ended with {self.child.returncode} before {needle!r}: {self.text()}"
                    )
                await asyncio.sleep(0.02)

    async def wait(self, *, timeout_s: float = 90.0) -> int:
        try:
            status = await asyncio.wait_for(self.child.wait(), timeout_s)
        except TimeoutError:
            raise AssertionError(f"still running after {timeout_s} s: {self.text()}") from None
        await asyncio.gather(*self.readers)
        return status

    async def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        if self.child.returncode is None:
            self.child.kill()
        await self.wait()

    async def terminate(self) -> int:
        if self.child.returncode is None:
            self.child.send_signal(signal.SIGTERM)
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
    *args: str, env: Mapping[str, str] | None = None, stdin: str | None = None, cwd: Path | None = None
) -> AsyncIterator[Process]:
    """`opsthread args…` with only the given settings in its environment."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bot",
        *args,
        cwd=cwd or ROOT,
        env={
            **{k: v for k, v in os.environ.items() if k in PASSED_ON},
            "PYTHONPATH": str(ROOT),
            **(env or {}),
        },
        stdin=asyncio.subprocess.PIPE if stdin is not None else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=2**22,
    )
    process = Process(child)
    assert child.stdout
    assert child.stderr
    process.readers = [
        asyncio.create_task(_collect(child.stdout, process.out)),
        asyncio.create_task(_collect(child.stderr, process.err)),
    ]
    if stdin is not None:
        assert child.stdin
        child.stdin.write(stdin.encode())
        child.stdin.close()
    try:
        yield process
    finally:
        await process.kill()


async def run(
    *args: str, env: Mapping[str, str] | None = None, stdin: str | None = None, cwd: Path | None = None
) -> tuple[int, Process]:
    """Start, wait for the end, give back the exit status and what was printed."""
    async with started(*args, env=env, stdin=stdin, cwd=cwd) as process:
        return await process.wait(), process


async def _collect(stream: asyncio.StreamReader, lines: list[str]) -> None:
    while line := await stream.readline():
        lines.append(line.decode("utf-8", "replace").rstrip("\n"))
