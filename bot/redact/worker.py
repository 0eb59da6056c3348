"""Redacts long texts in a process of its own, so that the event loop stays free: a thread would hold the GIL."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import structlog

import bot
from bot.redact.frames import LENGTH, decoded, frames, size
from bot.redact.redactor import Redacted, Redactor

INLINE = 32_768  # characters; shorter texts take 2 ms, hostile ones up to 0.2 s, and are redacted at once
_TRIES = 2
_BUFFER = 1 << 20  # bytes read ahead from the process
_ROOT = Path(bot.__file__).parents[1]  # where `-m bot.redact.child` is found

log = structlog.get_logger("bot.redact")


class RedactionWorker:
    """A redactor for texts of any length. One process, started at the first long text; one text at a time.

    A process that fails is replaced once for that text; when the new one fails too, the text is redacted in a
    thread. It is never given back as it is. limit_s: seconds for one text in the process.
    """

    def __init__(self, redactor: Redactor, *, limit_s: float = 60.0) -> None:
        self.redactor = redactor
        self._limit_s = limit_s
        self._turn = asyncio.Lock()
        self._process: Process | None = None

    async def text(self, text: str) -> Redacted:
        """Like Redactor.text, without keeping the event loop for long."""
        if len(text) <= INLINE:
            return self.redactor.text(text)
        async with self._turn:
            for _ in range(_TRIES):
                try:
                    async with asyncio.timeout(self._limit_s):
                        return await self._ask(text)
                except (OSError, EOFError, TimeoutError, ValueError) as error:
                    log.warning("the redaction process failed", error=type(error).__name__)
                    await self._end()
                except BaseException:
                    # Its answer to this text would be taken for the answer to the next.
                    await self._end()
                    raise
        return await asyncio.to_thread(self.redactor.text, text)

    async def aclose(self) -> None:
        """End the process, after the text that is under way. A later long text would start another."""
        async with self._turn:
            await self._end()

    async def _ask(self, text: str) -> Redacted:
        process = self._process or await self._start()
        await self._send(process, text)
        found = tuple(json.loads(await self._receive(process)))
        return Redacted(await self._receive(process) if found else text, found)

    async def _start(self) -> Process:
        # A session of its own: Ctrl-C in a terminal is for us, and we end it by closing its stdin.
        self._process = process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bot.redact.child",
            stdin=PIPE, stdout=PIPE, limit=_BUFFER, cwd=_ROOT, start_new_session=True,
        )  # fmt: skip
        values, extra = self.redactor.recipe
        await self._send(process, json.dumps({"values": values, "extra": extra}))
        return process

    async def _send(self, process: Process, text: str) -> None:
        assert process.stdin
        for frame in frames(text):
            process.stdin.write(frame)
            await process.stdin.drain()

    async def _receive(self, process: Process) -> str:
        assert process.stdout
        pieces = []
        while follow := size(await process.stdout.readexactly(LENGTH)):
            pieces.append(decoded(await process.stdout.readexactly(follow)))
        return "".join(pieces)

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await process.wait()
        if process.stdin:
            process.stdin.close()
