"""Runs commands on hosts: reads that die with us, approved changes that do not, and never a guess about either."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import asyncssh

from bot import log
from bot.errors import HostError, HostKeyMismatch, HostUnreachable
from bot.ssh import detached, known, wrapper
from bot.ssh.channel import Exchange, start
from bot.ssh.output import KEEP_BYTES, Kept, Marked, Sink
from bot.ssh.pool import Link, Pool
from bot.ssh.records import Host

PROGRESS_S = 30.0
GRACE_S = 8.0  # beyond the limit: KILL after 2 s, then the way back; later than that nobody answers
OPEN_S = 10.0  # for a channel on a connection that was alive a moment ago
BUSY_S = 0.1  # before a channel is asked for again
PROOF_LIMIT_S = 10
FOLLOW_S = 15  # beyond a change's limit, for its last output to be written and fetched
ALGORITHMS = ("ssh-ed25519", "ecdsa-sha2-nistp256", "rsa-sha2-512")

Progress = Callable[[float, int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended. seconds of wall clock; bytes as printed, before anything was left out.

    exit_status None: it was ended at its limit (timed_out, signal says by what) or nobody knows: then
    `unknown` is the plain reason, for people. An unknown outcome is never a success and never run again.
    """

    exit_status: int | None
    signal: str | None = None
    stdout: str = ""
    stderr: str = ""
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    truncated: bool = False
    seconds: float = 0.0
    unknown: str = ""
    timed_out: bool = False


@dataclass(frozen=True, slots=True)
class HostReport:
    """What `hosts check` found. sudo None: the inventory does not use it there. Times in milliseconds."""

    host: str
    ok: bool
    reason: str = ""
    fingerprint: str = ""
    connect_ms: float = 0.0
    run_ms: float = 0.0
    sudo: bool | None = None


class Remote:
    """All hosts, over one shared connection each. Raises HostError (nothing was run) or returns an Outcome.

    keep_bytes: kept of each stream, half from its begin, half from its end. progress_s: between calls of
    on_progress(seconds, bytes_so_far), which must not raise. Cancelling `run` ends the command on the host;
    cancelling `change` leaves it running.
    """

    def __init__(
        self,
        *,
        keep_bytes: int = KEEP_BYTES,
        progress_s: float = PROGRESS_S,
        grace_s: float = GRACE_S,
        open_s: float = OPEN_S,
        pool: Pool | None = None,
    ) -> None:
        self._keep, self._progress_s, self._grace_s = keep_bytes, progress_s, grace_s
        self._open_s = open_s
        self._pool = pool or Pool()
        self._log = log.get("remote")

    async def run(
        self, host: Host, run: str, *, limit_s: int, on_progress: Progress | None = None
    ) -> Outcome:
        """A read. It is killed at limit_s, when this is cancelled, and when the connection breaks."""
        out, err = Kept(self._keep), Kept(self._keep)
        began = time.monotonic()
        exchange = await self._exchange(host, run, limit_s=limit_s, out=out, err=err, progress=on_progress)
        outcome = Outcome(
            None,
            stdout=out.text(),
            stderr=err.text(),
            stdout_bytes=out.total,
            stderr_bytes=err.total,
            truncated=out.truncated or err.truncated,
            seconds=time.monotonic() - (exchange.began or began),
        )
        return _ended(outcome, exchange, host=host, run=run, limit_s=limit_s)

    async def change(
        self, host: Host, run: str, *, key: str, limit_s: int, on_progress: Progress | None = None
    ) -> Outcome:
        """An approved change, started at most once for its key on this host, by this or any process.

        It runs to limit_s whatever becomes of us. key: unique for the call among all that use the account.
        When the connection breaks it is taken up again; what cannot be learned is `unknown`.
        """
        try:
            text = detached.launch(run, key=key, limit_s=limit_s)
        except ValueError as error:
            raise HostError(f"nothing was sent to {host.name}: {error}") from None
        ends = time.monotonic() + limit_s + FOLLOW_S
        report = await self._follow(host, text, limit_s=limit_s + FOLLOW_S, progress=on_progress)
        while not report.whole and report.state != "refused":
            left = ends - time.monotonic()
            if left < 1:
                break
            await asyncio.sleep(min(1.0, left))
            try:  # only followed, never started a second time
                report = await self._follow(
                    host, detached.follow(key=key), limit_s=int(left) + 1, progress=on_progress
                )
            except HostError:
                continue
            if report.state == "none":
                return Outcome(None, unknown=f"the connection broke while `{run}` was being started on "
                               f"{host.name} and it left no trace there; I did not start it again")  # fmt: skip
        return await self._settled(host, report, key=key, what=f"`{run}`")

    async def collect(self, host: Host, *, key: str, limit_s: int) -> Outcome | None:
        """Take up a change that another process started: waits for it up to limit_s seconds.

        None: it never started on this host. Still running then: `unknown` says so, ask again later.
        """
        report = await self._follow(host, detached.follow(key=key), limit_s=limit_s, progress=None)
        if report.state == "none":
            return None
        return await self._settled(host, report, key=key, what="the change")

    async def fingerprint(self, host: Host) -> str:
        """SHA256:… of the host's verified key."""
        async with self._pool.link(host, slot=False) as link:
            return link.fingerprint

    async def check(self, host: Host) -> HostReport:
        """Connect, verify the key, run the wrapper itself, measure. Never raises for a host that fails."""
        began = time.monotonic()
        report = HostReport(host.name, False)
        try:
            report = replace(report, fingerprint=await self.fingerprint(host))
            report = replace(report, connect_ms=(time.monotonic() - began) * 1000)
            await self.run(host, "true", limit_s=PROOF_LIMIT_S)  # proves the wrapper on first use
            began = time.monotonic()
            outcome = await self.run(host, "true", limit_s=PROOF_LIMIT_S)
            report = replace(report, run_ms=(time.monotonic() - began) * 1000)
            if outcome.exit_status != 0:
                said = outcome.unknown or f"`true` ended with {outcome.exit_status}: {outcome.stderr.strip()}"
                return replace(report, reason=said)
            if host.sudo:
                sudo = await self.run(host, "sudo -n true", limit_s=PROOF_LIMIT_S)
                report = replace(report, sudo=sudo.exit_status == 0)
        except HostError as error:
            return replace(report, reason=str(error))
        return replace(report, ok=True)

    async def trust(self, host: Host, fingerprint: str) -> None:
        """Take the host's key into known_hosts if it is the one with this fingerprint, else HostKeyMismatch."""
        seen: list[str] = []
        absent: HostUnreachable | None = None
        for algorithm in ALGORITHMS:
            try:
                key = await self._pool.offered(host, algorithm)
            except HostUnreachable as error:  # servers hang up on a kind of key that they do not have
                absent = error
                continue
            if key is None:
                continue
            seen.append(key.get_fingerprint())
            if seen[-1] == fingerprint:
                await asyncio.to_thread(known.trust, host, key)
                return
        if absent is not None and not seen:
            raise absent
        offered = ", ".join(seen) or "no key of a kind that is supported"
        raise HostKeyMismatch(f"{host.name} offers {offered}, not {fingerprint}; nothing was written")

    async def close(self) -> None:
        """Close every connection: reads that still run are ended by it, changes are not."""
        await self._pool.close()

    async def _follow(
        self, host: Host, text: str, *, limit_s: int, progress: Progress | None
    ) -> detached.Report:
        report = detached.Report()

        async def told(seconds: float, _: int) -> None:
            if progress is not None:
                await progress(seconds, report.bytes_so_far)

        await self._exchange(host, text, limit_s=limit_s, out=report, err=Kept(4_096), progress=told)
        return report

    async def _settled(self, host: Host, report: detached.Report, *, key: str, what: str) -> Outcome:
        """The outcome of a change, and its output removed from the host once we hold it."""
        if report.state == "refused":
            raise HostError(f"{host.name} did not start {what}: {report.why}; nothing was run")
        out, err = report.streams()
        outcome = Outcome(
            None,
            stdout=out.text,
            stderr=err.text,
            stdout_bytes=out.total,
            stderr_bytes=err.total,
            truncated=out.truncated or err.truncated or report.state == "collected",
            seconds=report.seconds,
            unknown=_lost(report, what, host),
        )
        if outcome.unknown:
            return outcome
        await self._forget(host, key)
        if report.timed_out:
            return replace(outcome, timed_out=True, signal="KILL" if report.status == 137 else "TERM")
        return replace(outcome, exit_status=report.status)

    async def _forget(self, host: Host, key: str) -> None:
        try:
            await self.run(host, detached.forget(key=key), limit_s=PROOF_LIMIT_S)
        except HostError as error:
            self._log.warning("output left on the host", host=host.name, reason=str(error))

    async def _exchange(
        self, host: Host, run: str, *, limit_s: int, out: Sink, err: Sink, progress: Progress | None
    ) -> Exchange:
        """Send one wrapped command and wait for its end; reconnects once, and only before it was sent."""
        for last in (False, True):
            async with self._pool.link(host) as link:
                nonce = secrets.token_hex(12)
                exchange = Exchange(Marked(nonce, out), Marked(nonce, err))
                text = _wrapped(host, run, nonce, limit_s=limit_s)
                try:
                    await self._prove(link, host)
                    await self._converse(link, text, exchange, limit_s=limit_s, progress=progress)
                except HostUnreachable:
                    self._pool.retire(link)
                    if last:
                        raise
                    continue
                return exchange
        raise AssertionError("unreachable")

    async def _converse(
        self, link: Link, text: str, exchange: Exchange, *, limit_s: float, progress: Progress | None
    ) -> None:
        """Raises HostUnreachable when nothing was sent. Whatever happens, the channel is closed after."""
        try:
            await self._send(link, text, exchange)
            if exchange.closed:
                return
            exchange.began = began = time.monotonic()
            ends = began + limit_s + wrapper.KILL_AFTER_S + self._grace_s
            while not await exchange.wait(min(self._progress_s, max(0.0, ends - time.monotonic()))):
                now = time.monotonic()
                if now >= ends:
                    exchange.silent = True
                    self._pool.retire(link)  # half-open, or a child that cannot be killed: begin anew
                    return
                if progress is not None:
                    await progress(now - began, exchange.bytes_so_far)
            exchange.ended = time.monotonic()
            await exchange.settle()
        finally:
            exchange.close()

    async def _send(self, link: Link, text: str, exchange: Exchange) -> None:
        ends = time.monotonic() + self._open_s
        while True:
            try:
                async with asyncio.timeout(self._open_s):
                    await start(link.connection, text, exchange)
                return
            except asyncio.CancelledError:
                if not exchange.opened:  # the server may hold a channel that nobody will close
                    self._pool.retire(link)
                raise
            except (OSError, asyncssh.Error) as error:
                alive = isinstance(error, asyncssh.ChannelOpenError) and not link.connection.is_closed()
                if exchange.opened and not alive:  # it may have been sent
                    exchange.silent = not exchange.closed
                    self._pool.retire(link)
                    return
                if exchange.opened:
                    raise HostError(f"{link.host.name} refused to run a command: {error}") from None
                if not alive or time.monotonic() > ends:
                    raise HostUnreachable(
                        f"{link.host.name} opened no channel: {str(error) or 'no answer'}; nothing was sent"
                    ) from None
            await asyncio.sleep(BUSY_S)  # its MaxSessions is below our eight, or it frees them late

    async def _prove(self, link: Link, host: Host) -> None:
        """The wrapper itself, once a connection: an account where it fails must not be used at all."""
        if link.proved:
            return
        nonce, out, err = secrets.token_hex(12), Kept(4_096), Kept(4_096)
        exchange = Exchange(Marked(nonce, out), Marked(nonce, err))
        text = _wrapped(host, 'printf %s "$0"', nonce, limit_s=PROOF_LIMIT_S)
        await self._converse(link, text, exchange, limit_s=PROOF_LIMIT_S, progress=None)
        if exchange.out.status == 0 and out.text() == "/bin/sh":
            link.proved = True
            return
        if exchange.silent or exchange.lost is not None:
            raise HostUnreachable(f"the connection to {host.name} broke at its first use; nothing was sent")
        said = " ".join((exchange.err.noise or err.text() or exchange.out.noise).split())[:200]
        raise HostError(
            f"{host.name} cannot run commands safely: its shell, setsid -w or timeout does not do what is "
            f"needed ({said or 'it said nothing'}); the account needs a POSIX login shell and util-linux"
        )


def _wrapped(host: Host, run: str, nonce: str, *, limit_s: int) -> str:
    try:
        return wrapper.read_command(run, nonce, limit_s=limit_s, home=host.home, env=host.env)
    except ValueError as error:
        raise HostError(f"nothing was sent to {host.name}: {error}") from None


def _ended(outcome: Outcome, exchange: Exchange, *, host: Host, run: str, limit_s: int) -> Outcome:
    """What the end of the channel means for a read."""
    status = exchange.out.status
    if status is not None:
        ran = outcome.seconds if not exchange.ended else exchange.ended - exchange.began
        outcome = replace(outcome, seconds=ran)
        if status in {124, 137} and ran >= limit_s - 0.05:
            return replace(outcome, timed_out=True, signal="KILL" if status == 137 else "TERM")
        return replace(outcome, exit_status=status)
    if exchange.silent:
        why = f"`{run}` did not end on {host.name} at its limit of {limit_s} s and may still run there"
        return replace(outcome, unknown=why, timed_out=True)
    if exchange.lost is not None or exchange.exit_status is None:
        why = f"the connection broke while `{run}` ran on {host.name}; I do not know whether it finished"
        return replace(outcome, unknown=why)
    how = exchange.exit_signal or f"status {exchange.exit_status}"
    why = f"the shell around `{run}` on {host.name} was ended ({how}); I do not know whether it finished"
    return replace(outcome, unknown=why)


def _lost(report: detached.Report, what: str, host: Host) -> str:
    """Why the outcome of a change is not known; empty when it is."""
    match report.state:
        case "done" | "collected":
            return "" if report.whole else f"{what} has ended on {host.name}, but its output did not arrive"
        case "rebooted":
            return f"{host.name} was restarted while {what} ran; I do not know whether it finished"
        case "died":
            return f"{what} was ended on {host.name} before it could report; I do not know how far it came"
        case "unborn":
            return f"{what} was claimed on {host.name} but gave no sign of having begun; I did not start it again"
        case "following" if report.started:
            return f"{what} still runs on {host.name}, or cannot be reached there; its end is not known yet"
        case _:
            return f"the connection broke while {what} was being started on {host.name}; I do not know whether it ran"
