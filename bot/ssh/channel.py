"""One command on one channel: feeds both streams to their cutters and tells when, and how, it ended.

Waits here and in the pool use asyncio.timeout: up to Python 3.11 asyncio.wait_for swallows a cancellation
that comes in the moment its future is done, and a cancelled read would run on to its limit.
"""

from __future__ import annotations

import asyncio
from typing import Any

import asyncssh

from bot.ssh.output import Marked

SETTLE_S = 1.0  # for the rest of stderr, and for the server to close, after the end marker was seen


class Exchange(asyncssh.SSHClientSession[bytes]):
    """The client's side of an exec channel. Bytes only: text decoding in asyncssh drops the connection.

    opened: the channel is there, so the command may have been sent; before that nothing was.
    """

    def __init__(self, out: Marked, err: Marked) -> None:
        self.out, self.err = out, err
        self.opened = False
        self.closed = False
        self.lost: Exception | None = None
        self.exit_status: int | None = None  # of the login shell; the command's own is in the markers
        self.exit_signal = ""
        self.silent = False  # nothing came within limit and grace
        self.began = 0.0  # monotonic seconds: sent, and end marker seen
        self.ended = 0.0
        self.bytes_so_far = 0
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._over = asyncio.Event()
        self._gone = asyncio.Event()

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self.opened, self._channel = True, chan

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        self.bytes_so_far += len(data)
        stream = self.err if datatype == asyncssh.EXTENDED_DATA_STDERR else self.out
        stream.feed(data)
        if self.out.status is not None:
            self._over.set()

    def eof_received(self) -> bool:
        return True  # stdin stays open: its EOF is the death signal

    def exit_status_received(self, status: int) -> None:
        self.exit_status = status

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        self.exit_signal = signal

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed, self.lost = True, exc
        self.out.finish()
        self.err.finish()
        self._over.set()
        self._gone.set()

    async def wait(self, timeout_s: float) -> bool:
        """Until the command has ended or the channel is gone; False: neither within the time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._over.wait()
        except TimeoutError:
            return False
        return True

    async def settle(self) -> None:
        """After the end: let the rest of stderr come and the server free its slot, but not for long.

        A child that called setsid may hold the channel open for ever; it does not hold us.
        """
        try:
            async with asyncio.timeout(SETTLE_S):
                await self._gone.wait()
        except TimeoutError:
            self.err.finish()

    def close(self) -> None:
        """End the channel; the wrapper on the host sees EOF and ends its command."""
        if self._channel is not None and not self.closed:
            self._channel.close()


async def start(connection: asyncssh.SSHClientConnection, text: str, exchange: Exchange) -> None:
    """Send the text. On any error look at `exchange.opened`: only before that was nothing sent."""
    options: dict[str, Any] = {"encoding": None, "env": {}, "send_env": None, "request_pty": False}
    await connection.create_session(lambda: exchange, text, **options)
