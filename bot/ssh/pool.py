"""The connections: one a host, shared, through shared bastions, with the key always checked by name."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import asyncssh

from bot import log
from bot.errors import HostError, HostKeyMismatch, HostUnreachable
from bot.ssh import known
from bot.ssh.records import Host

T = TypeVar("T")
CONNECT_S = 15.0
KEEPALIVE_S, KEEPALIVES = 15.0, 3
CHANNELS = 8  # a connection; sshd's MaxSessions is 10 and it frees them late
SLOT_S = 300.0  # to wait for a free one of them
IDLE_S = 600.0
JITTER_S = 0.1  # for each other connect under way
CLOSE_S = 2.0


@dataclass(eq=False)
class Link:
    """A live connection. users: commands on it and connections through it; at 0 it may be closed."""

    host: Host
    connection: asyncssh.SSHClientConnection
    fingerprint: str
    via: Link | None
    slots: asyncio.Semaphore
    proved: bool = False
    users: int = 0
    retired: bool = False
    idle: asyncio.TimerHandle | None = field(default=None, repr=False)

    @property
    def usable(self) -> bool:
        return not self.retired and not self.connection.is_closed()


class _Client(asyncssh.SSHClient):
    """Remembers the key that was offered and not accepted, for the error that names both."""

    offered = ""

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.offered = key.get_fingerprint()
        return False

    def validate_host_ca_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.offered = f"a certificate of {key.get_fingerprint()}"
        return False


class Pool:
    """Opens, shares, retires and closes connections. Raises HostUnreachable and HostKeyMismatch."""

    def __init__(
        self, *, connect_s: float = CONNECT_S, keepalive_s: float = KEEPALIVE_S, idle_s: float = IDLE_S
    ) -> None:
        self._connect_s, self._keepalive_s, self._idle_s = connect_s, keepalive_s, idle_s
        self._links: dict[Host, Link] = {}
        self._locks: dict[Host, asyncio.Lock] = {}
        self._blocked: dict[Host, tuple[tuple[int, int], str]] = {}
        self._connecting = 0
        self._closed = False
        self._log = log.get("ssh")

    @asynccontextmanager
    async def link(self, host: Host, *, slot: bool = True) -> AsyncIterator[Link]:
        """The host's connection, kept open for the block; with slot, one of its 8 channels as well."""
        link = await self._get(host)
        self._hold(link)
        try:
            if slot:
                await self._slot(link)
            try:
                yield link
            finally:
                if slot:
                    link.slots.release()
        finally:
            self._release(link)

    def retire(self, link: Link) -> None:
        """No new commands on it; it is closed when the last one that runs on it has ended."""
        link.retired = True
        if self._links.get(link.host) is link:
            del self._links[link.host]

    async def offered(self, host: Host, algorithm: str | None = None) -> asyncssh.SSHKey | None:
        """The key a host offers, unchecked; only to compare it. None: it has none of this algorithm."""
        options: dict[str, Any] = {"config": None}
        if algorithm:
            options["server_host_key_algs"] = [algorithm]
        try:
            if host.via is None:
                return await self._in_time(asyncssh.get_server_host_key(host.address, host.port, **options))
            async with self.link(host.via, slot=False) as via:
                options["tunnel"] = via.connection
                return await self._in_time(asyncssh.get_server_host_key(host.address, host.port, **options))
        except asyncssh.KeyExchangeFailed:
            return None
        except (OSError, asyncssh.Error) as error:
            raise _unreachable(host, error) from None

    async def close(self) -> None:
        """Close everything; waits at most 2 s for the other side."""
        self._closed = True
        links, self._links = list(self._links.values()), {}
        for link in links:
            self._drop(link)
        waits = [link.connection.wait_closed() for link in links]
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await asyncio.gather(*waits, return_exceptions=True)

    async def _in_time(self, work: Awaitable[T]) -> T:
        async with asyncio.timeout(self._connect_s):
            return await work

    async def _get(self, host: Host) -> Link:
        async with self._locks.setdefault(host, asyncio.Lock()):
            if self._closed:
                raise HostError("the connections are being closed; nothing was sent")
            link = self._links.get(host)
            if link is not None and link.usable:
                return link
            if link is not None:
                self.retire(link)
                self._drop(link)
            self._refuse_blocked(host)
            self._connecting += 1
            try:
                if self._connecting > 1:  # a fleet's connects are spread, a single one is not held up
                    await asyncio.sleep(random.uniform(0, JITTER_S * (self._connecting - 1)))  # noqa: S311
                link = await self._open(host)
            finally:
                self._connecting -= 1
            self._links[host] = link
            return link

    def _refuse_blocked(self, host: Host) -> None:
        """A wrong key blocks the host until known_hosts has changed."""
        stamp, message = self._blocked.get(host, ((-1, -1), ""))
        if message and stamp == known.stamp(host.known_hosts):
            raise HostKeyMismatch(message)
        self._blocked.pop(host, None)

    async def _open(self, host: Host) -> Link:
        if host.jump is None:
            return await self._connect(host, None)
        if host.via is None:
            raise HostUnreachable(
                f"{host.name} is reached through {host.jump}, which is not in the inventory"
            )
        async with self.link(host.via, slot=False) as via:
            link = await self._connect(host, via)
            self._hold(via)  # for as long as the connection through it lives
            return link

    async def _connect(self, host: Host, via: Link | None) -> Link:
        stamp = known.stamp(host.known_hosts)
        found = known.lookup(host)
        client = _Client()
        try:
            connection: asyncssh.SSHClientConnection = await self._in_time(
                asyncssh.connect(
                    host.address,
                    host.port,
                    tunnel=via.connection if via else (),
                    client_factory=lambda: client,
                    known_hosts=lambda *_: found,
                    host_key_alias=host.name,
                    **self._options(host),
                )
            )
        except (OSError, ValueError, asyncssh.Error) as error:
            offered = await self._refused_key(host, error, client=client, found=found)
            if not offered:
                raise _unreachable(host, error) from None
            refusal = known.mismatch(host, offered)
            self._blocked[host] = (stamp, str(refusal))
            self._log.error("host key refused", host=host.name, offered=offered)
            raise refusal from None
        key = connection.get_server_host_key()
        fingerprint = key.get_fingerprint() if key else ""
        self._log.info("connected", host=host.name, fingerprint=fingerprint)
        return Link(host, connection, fingerprint, via, asyncio.Semaphore(CHANNELS))

    def _options(self, host: Host) -> dict[str, Any]:
        return {
            "config": None,  # ~/.ssh/config may name local programs to run
            "username": host.user,
            "client_keys": [str(path) for path in host.identity],
            "agent_path": None,
            "agent_forwarding": False,
            "x509_trusted_certs": None,
            "preferred_auth": ["publickey"],
            "password_auth": False,
            "kbdint_auth": False,
            "host_based_auth": False,
            "gss_auth": False,
            "gss_kex": False,
            "keepalive_interval": self._keepalive_s,
            "keepalive_count_max": KEEPALIVES,
            "connect_timeout": self._connect_s,
            "login_timeout": self._connect_s,
            "compression_algs": None,
        }

    async def _refused_key(self, host: Host, error: Exception, *, client: _Client, found: known.Found) -> str:
        """The fingerprint of the key that made the connect fail; empty when something else did.

        A host that no longer has the known *kind* of key fails earlier than at the comparison, and some
        servers just hang up then; so its present key is asked for.
        """
        if client.offered:
            return client.offered
        if not isinstance(error, asyncssh.DisconnectError | ConnectionResetError):
            return ""
        keys, authorities = found[:2]
        early = isinstance(error, asyncssh.HostKeyNotVerifiable | asyncssh.KeyExchangeFailed)
        if isinstance(error, asyncssh.PermissionDenied) or not (early or (keys and not authorities)):
            return ""
        try:
            key = await self.offered(host)
        except HostError:
            return ""
        return "" if key is None or key in keys else key.get_fingerprint()

    async def _slot(self, link: Link) -> None:
        try:
            async with asyncio.timeout(SLOT_S):
                await link.slots.acquire()
        except TimeoutError:
            raise HostError(
                f"{link.host.name} is busy: {CHANNELS} commands run there and none ended in {SLOT_S:.0f} s; "
                "nothing was sent, try again later"
            ) from None

    def _hold(self, link: Link) -> None:
        link.users += 1
        if link.idle is not None:
            link.idle.cancel()
            link.idle = None

    def _release(self, link: Link) -> None:
        link.users -= 1
        if link.users:
            return
        if not link.usable:
            self._drop(link)
        else:
            link.idle = asyncio.get_running_loop().call_later(self._idle_s, self._idled, link)

    def _idled(self, link: Link) -> None:
        if not link.users:
            self.retire(link)
            self._drop(link)

    def _drop(self, link: Link) -> None:
        if link.idle is not None:
            link.idle.cancel()
            link.idle = None
        link.connection.close()
        if link.via is not None:
            via, link.via = link.via, None
            self._release(via)


def _unreachable(host: Host, error: Exception) -> HostUnreachable:
    """A library's error as one line that says what to do."""
    where = (
        f"{host.name} ({host.user}@{host.address}:{host.port}{f' through {host.jump}' if host.jump else ''})"
    )
    if isinstance(error, asyncssh.PermissionDenied):
        keys = ", ".join(str(path) for path in host.identity)
        return HostUnreachable(
            f"{where} refused the log-in with {keys}; add its public half to ~{host.user}/.ssh/authorized_keys "
            "there, or mend `user` and `identity` in hosts.yml"
        )
    if isinstance(error, TimeoutError):
        return HostUnreachable(f"{where} did not answer in time; check address, port and firewall")
    if isinstance(error, asyncssh.KeyImportError | asyncssh.KeyEncryptionError):
        return HostUnreachable(f"the identity of {where} cannot be used: {error}; it must have no passphrase")
    reason = (
        getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error) or "no reason given"
    )
    return HostUnreachable(f"{where} cannot be reached: {reason}; check address, port and that sshd runs")
