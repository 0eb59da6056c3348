"""Asks a person at a terminal: chat lines, and yes or no to an approval.

Ctrl-C and expiry are safe at any time: lines are read from the event loop, so no thread can hang in
input() when an approval expires.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime
from enum import StrEnum
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.text import Text

from bot.events import ApprovalAsked
from bot.terminal import wording
from bot.terminal.safe_text import one_line

CHUNK = 65_536  # bytes read at once; a terminal gives one line a read


class Choice(StrEnum):
    """What the person said. open: nothing; the approval stays as it is and can be answered elsewhere."""

    APPROVE = "approve"
    DENY = "deny"
    OPEN = "open"


class Lines:
    """Lines of a file descriptor, without blocking the loop. A cancelled read loses nothing."""

    def __init__(self, fd: int = 0) -> None:
        self._fd = fd
        self._buffer = b""
        self._ended = False

    async def read(self) -> str | None:
        """The next line without its end, or None at the end of the input. Bad UTF-8 becomes �."""
        while b"\n" not in self._buffer and not self._ended:
            await self._readable()
            piece = os.read(self._fd, CHUNK)
            self._buffer += piece
            self._ended = not piece
        if not self._buffer:
            self._ended = False  # Ctrl-D at a terminal ends one read, not the terminal
            return None
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(errors="replace").rstrip("\r")

    def drop(self) -> None:
        """Forget what was typed ahead: an answer must come after its question."""
        self._buffer = b""
        if os.isatty(self._fd):
            import termios

            termios.tcflush(self._fd, termios.TCIFLUSH)

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        try:
            loop.add_reader(self._fd, _set, ready)
        except (PermissionError, NotImplementedError):
            return  # a plain file or /dev/null: reading it never waits
        try:
            await ready
        finally:
            loop.remove_reader(self._fd)


class Interrupts:
    """Ctrl-C while the block is open goes to the innermost waiter; without one it is kept for the next."""

    def __init__(self) -> None:
        self._waiters: list[asyncio.Future[None]] = []
        self._pending = False

    def __enter__(self) -> Self:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self.press)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)

    def press(self) -> None:
        for waiter in reversed(self._waiters):
            if not waiter.done():
                waiter.set_result(None)
                return
        self._pending = True

    def forget(self) -> None:
        self._pending = False

    async def wait(self) -> None:
        """Until Ctrl-C is pressed. The latest wait gets it."""
        if self._pending:
            self._pending = False
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            self._waiters.remove(waiter)


async def ask_approval(
    event: ApprovalAsked, lines: Lines, *, console: Console, interrupts: Interrupts, now: datetime
) -> Choice:
    """Ask y/N with the exact command shown. Enter alone denies.

    Ctrl-C, the end of the input and the expiry leave the approval open and say how to answer it.
    """
    _print(console, *_question(event))
    lines.drop()
    left = (event.approval.expires_at - now).total_seconds()
    try:
        async with asyncio.timeout(max(left, 0)):
            while True:
                _prompt(console, "Approve? [y/N] ")
                line = await _unless_interrupted(lines.read(), interrupts)
                if line is None:
                    break
                if (choice := read_choice(line)) is not None:
                    return choice
                _print(console, "Please answer y or n.")
    except TimeoutError:
        _print(console, "", f"Approval {event.approval.id} expired before it was answered.")
        return Choice.OPEN
    _print(console, "", f"Left open. {wording.how_to_answer(event.approval.id)}")
    return Choice.OPEN


def read_choice(line: str) -> Choice | None:
    """y and yes approve, n, no and nothing deny; anything else is asked again."""
    match line.strip().lower():
        case "y" | "yes":
            return Choice.APPROVE
        case "" | "n" | "no":
            return Choice.DENY
        case _:
            return None


async def chat(
    lines: Lines,
    *,
    console: Console,
    interrupts: Interrupts,
    turn: Callable[[str], Coroutine[Any, Any, None]],
    stop: Callable[[], Awaitable[None]],
) -> None:
    """Read lines and run a turn for each until the input ends or Ctrl-C is pressed at the prompt.

    Ctrl-C during a turn calls `stop` once and waits for the turn to end in order; a second one leaves.
    """
    while True:
        interrupts.forget()
        _prompt(console, "> ")
        line = await _unless_interrupted(lines.read(), interrupts)
        if line is None:
            _print(console, "")
            return
        if line.strip() and not await _run_turn(turn(line), interrupts, stop):
            return


async def _run_turn(
    turn: Coroutine[Any, Any, None], interrupts: Interrupts, stop: Callable[[], Awaitable[None]]
) -> bool:
    """False: the person pressed Ctrl-C twice, the turn was cancelled."""
    task = asyncio.create_task(turn)
    presses = 0
    try:
        while not task.done():
            pressed = asyncio.create_task(interrupts.wait())
            try:
                await asyncio.wait({task, pressed}, return_when=asyncio.FIRST_COMPLETED)
                hit = pressed.done()
            finally:
                pressed.cancel()
            if not hit or task.done():
                continue
            presses += 1
            if presses > 1:
                return False
            await stop()
        await task  # a turn's error is the caller's
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
    return True


async def _unless_interrupted(reading: Coroutine[Any, Any, str | None], interrupts: Interrupts) -> str | None:
    """A line, or None at the end of the input or at Ctrl-C."""
    read = asyncio.create_task(reading)
    pressed = asyncio.create_task(interrupts.wait())
    try:
        await asyncio.wait({read, pressed}, return_when=asyncio.FIRST_COMPLETED)
        return read.result() if read.done() else None
    finally:
        pressed.cancel()
        read.cancel()
        await asyncio.wait({read, pressed})


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _question(event: ApprovalAsked) -> tuple[str, ...]:
    names = ", ".join(one_line(host.name) for host in event.approval.hosts)
    return (f"On {names}, exactly:", *(f"    {line}" for line in wording.approval_text(event)))


def _print(console: Console, *texts: str) -> None:
    for text in texts:
        console.print(Text(text), soft_wrap=True)


def _prompt(console: Console, text: str) -> None:
    console.print(Text(text), end="", soft_wrap=True)
    console.file.flush()
