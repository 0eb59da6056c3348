"""The practice host: an SSH server on loopback that runs what it is given on this very machine."""

from __future__ import annotations

import asyncio
import errno
import os
import pwd
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import asyncssh

from bot.demo import keys
from bot.errors import HostError
from bot.ssh.wrapper import PATH

NAME = "this-machine"
LOOPBACK = "127.0.0.1"
CHUNK = 65_536
LEAVE_S = 5.0  # for a command whose channel has closed to end by itself, and for others' commands at a stop


class DemoHost:
    """Serves one account, this process's own, and one key. All processes of a folder share port and host key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._listener: asyncssh.SSHAcceptor | None = None
        self._connections: set[asyncssh.SSHServerConnection] = set()
        self._running = 0
        self._quiet = asyncio.Event()
        self._quiet.set()

    async def start(self) -> int:
        """Listen and return the port: the folder's own unless a stranger took it. Raises HostError."""
        lack = await asyncio.to_thread(missing_tools)
        if lack:
            raise HostError(lack)
        await asyncio.to_thread(keys.prepare, self.folder)
        with keys.locked(self.folder):
            wanted = keys.stored_port(self.folder)
            try:
                self._listener = await self._listen(wanted)
            except OSError as error:
                if not wanted or error.errno not in {errno.EADDRINUSE, errno.EACCES}:
                    raise HostError(f"the practice host cannot listen on {LOOPBACK}: {error}") from None
                self._listener = await self._listen(0)
            port = self._listener.get_port()
            keys.store_port(self.folder, port)
        return port

    async def stop(self) -> None:
        """Stop listening, let what runs here for other processes end (5 s at most), close."""
        if self._listener is None:
            return
        self._listener.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                await self._quiet.wait()
        for connection in list(self._connections):
            connection.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                await self._listener.wait_closed()
        self._listener = None

    async def _listen(self, port: int) -> asyncssh.SSHAcceptor:
        return await asyncssh.listen(
            LOOPBACK,
            port,
            reuse_port=True,
            config=None,
            server_factory=lambda: _Server(self._connections, keys.public_key(self.folder)),
            server_host_keys=[str(keys.host_key(self.folder))],
            process_factory=self._serve,
            encoding=None,
            agent_forwarding=False,
            allow_scp=False,
            x11_forwarding=False,
        )

    async def _serve(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        """One exec request, as sshd does it: `sh -c` in a session of its own, three pipes."""
        if process.command is None:
            process.stderr.write(b"only commands are run here\n")
            process.exit(1)
            return
        self._running += 1
        self._quiet.clear()
        try:
            await _execute(process, process.command)
        finally:
            self._running -= 1
            if not self._running:
                self._quiet.set()


class _Server(asyncssh.SSHServer):
    """Lets in this account with the folder's key, and nobody else."""

    def __init__(self, connections: set[asyncssh.SSHServerConnection], key: asyncssh.SSHKey) -> None:
        self._connections, self._key = connections, key
        self._connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self._connections.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._connection is not None:
            self._connections.discard(self._connection)

    def begin_auth(self, username: str) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return username == account() and key == self._key


async def _execute(process: asyncssh.SSHServerProcess[bytes], command: str) -> None:
    child = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(),
        cwd="/",
        start_new_session=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    feeding = asyncio.create_task(_feed(process.stdin, child.stdin))
    pumps = [
        asyncio.create_task(_pump(child.stdout, process.stdout)),
        asyncio.create_task(_pump(child.stderr, process.stderr)),
    ]
    gone = asyncio.create_task(process.channel.wait_closed())
    ended = asyncio.create_task(_ended(child, pumps))
    try:
        await asyncio.wait([gone, ended], return_when=asyncio.FIRST_COMPLETED)
        if ended.done() and not gone.done():
            # Both streams are drained by now: leaving earlier would lose output and break the connection.
            process.exit(child.returncode if child.returncode is not None else 1)
    finally:
        feeding.cancel()
        child.stdin.close()  # EOF: the wrapper's sign to end its command
        await _reap(child)
        for task in (*pumps, gone, ended):
            task.cancel()
        await asyncio.gather(feeding, gone, ended, *pumps, return_exceptions=True)


async def _ended(child: asyncio.subprocess.Process, pumps: list[asyncio.Task[None]]) -> None:
    await child.wait()
    await asyncio.wait(pumps)


async def _feed(source: asyncssh.SSHReader[bytes], target: asyncio.StreamWriter) -> None:
    with suppress(OSError, asyncssh.Error):
        while data := await source.read(CHUNK):
            target.write(data)
            await target.drain()
    target.close()


async def _pump(source: asyncio.StreamReader, target: asyncssh.SSHWriter[bytes]) -> None:
    with suppress(OSError, asyncssh.Error):
        while data := await source.read(CHUNK):
            target.write(data)
            await target.drain()
        await target.drain()


async def _reap(child: asyncio.subprocess.Process) -> None:
    """Wait for the login shell; what does not leave in time is killed with its group."""
    if child.returncode is not None:
        return
    try:
        async with asyncio.timeout(LEAVE_S):
            await child.wait()
    except (TimeoutError, asyncio.CancelledError) as error:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        await child.wait()
        if isinstance(error, asyncio.CancelledError):
            raise


def account() -> str:
    """The name of the account this process runs as; its number where it has no name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def missing_tools() -> str:
    """What this machine lacks to be a host, as one line that says what to do; empty when nothing is missing."""
    for words, package in (
        (["setsid", "-w", "true"], "util-linux"),
        (["timeout", "-k", "1", "5", "true"], "coreutils"),
    ):
        try:
            found = subprocess.run(words, env={"PATH": PATH}, capture_output=True, timeout=10, check=False)
        except (OSError, subprocess.TimeoutExpired):
            found = None
        if found is None or found.returncode:
            return (
                f"this machine cannot be the practice host: `{' '.join(words)}` fails here; install {package}"
            )
    return ""


def write_hosts_yml(folder: Path, port: int) -> Path:
    """The inventory of the practice host, for whoever sits at this machine's terminal."""
    text = f"""# Written at every start of the practice host; changes are lost.
defaults: {{user: {account()}, known_hosts: {_yaml(folder / "known_hosts")}, identity: [{_yaml(keys.identity(folder))}]}}
hosts:
  - {{name: {NAME}, address: {LOOPBACK}, port: {port}, labels: {{env: demo}}, sudo: false, home: /nonexistent}}
targets: [localhost, 127.0.0.1]
access:
  - {{users: ["local:*"], channels: [terminal], hosts: [{NAME}], approvers: ["local:*"],
     self_approval: true, danger_approvals: 1}}
"""
    with keys.locked(folder):
        keys.write(folder / "known_hosts", f"{NAME} {keys.host_public_line(folder)}\n")
        keys.write(folder / "hosts.yml", text)
    return folder / "hosts.yml"


def _yaml(path: Path) -> str:
    return '"' + str(path.absolute()).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _environment() -> dict[str, str]:
    """What a log-in gives; never ours, where the keys of the model and of Slack stand."""
    name = account()
    return {"PATH": PATH, "HOME": "/", "USER": name, "LOGNAME": name, "SHELL": "/bin/sh"}
