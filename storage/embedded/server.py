"""The supervisor: one Postgres a data folder, started by the first process and stopped by the last.

Every process that uses the folder holds a shared flock on `users.lock`; the kernel lets go of it however
the process ends. Starting and stopping happen under `start.lock`. The server is our child but in a
session of its own, so that it outlives a starter that is killed. The price: when the *last* user is
killed with -9 nobody is left to stop the server, and it idles until a later process takes it over and
ends in order.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Self
from urllib.parse import quote

import psycopg

from storage.embedded import account as accounts
from storage.embedded.binaries import Binaries, find
from storage.embedded.process import is_ready, last_words, server_pid, tail
from storage.errors import EmbeddedPostgresError

START_S = 120.0  # seconds for starting, recovery after a crash included, and for a neighbour that starts
STOP_S = 30.0  # seconds for an orderly stop before the server is told to drop everything
_SOCKET = ".s.PGSQL.5432"
_LONGEST = 107  # bytes of a unix socket's path, the kernel's limit
_USER = "opsthread"

_SETTINGS = {
    "listen_addresses": "",  # no TCP: whoever may enter the private folder of the socket may connect
    "port": "5432",  # only part of the socket's name
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "32MB",
    "max_wal_size": "256MB",
    "jit": "off",
    "cluster_name": "opsthread",
    # A week of small logs, one file a weekday; no statements or values of rows in them.
    "logging_collector": "on",
    "log_filename": "server-%w.log",
    "log_rotation_age": "1440",
    "log_rotation_size": "0",
    "log_truncate_on_rotation": "on",
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_checkpoints": "off",
}
_children: list[subprocess.Popen[bytes]] = []  # servers that outlive us; kept so that they can be reaped


class EmbeddedPostgres:
    """The Postgres under `data_dir/postgres`.

    settings: more of postgresql.conf (tests switch fsync off). prefer and system_dir: see account.settle.
    Use as `async with EmbeddedPostgres(folder) as pg: Store(pg.url)`, or start() and stop().
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        settings: Mapping[str, str] | None = None,
        prefer: accounts.Mode | None = None,
        system_dir: Path = accounts.SYSTEM_DIR,
    ) -> None:
        self._folder = data_dir.expanduser().resolve() / "postgres"
        self._settings = dict(settings or {})
        self._prefer = prefer
        self._system_dir = system_dir
        self._account: accounts.Account | None = None
        self._users: int | None = None
        self._child: subprocess.Popen[bytes] | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def url(self) -> str:
        """Where it listens, for Store."""
        return f"postgresql://{_USER}@/postgres?host={quote(str(self._sockets()), safe='')}"

    async def start(self) -> str:
        """Take part in the running server, or start one; answers its URL. Raises EmbeddedPostgresError."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            async with self._locked():
                self._account = accounts.settle(
                    self._folder, system_dir=self._system_dir, prefer=self._prefer
                )
                if self._users is None:
                    self._users = os.open(self._folder / "users.lock", os.O_RDWR | os.O_CREAT, 0o600)
                    fcntl.flock(self._users, fcntl.LOCK_SH)
                await self._serve()
        except OSError as error:
            self._leave()
            raise EmbeddedPostgresError(
                f"the embedded Postgres under {self._folder} could not be started"
                f" ({error.filename or 'it'}: {error.strerror}); mend that, or set OPSTHREAD_DATA_DIR"
            ) from error
        except BaseException:
            self._leave()
            raise
        return self.url

    async def ensure(self) -> str:
        """The same server again if it died meanwhile (its crash recovery included); cheap while it lives."""
        if self._users is None:
            return await self.start()
        if not await self._answers():
            async with self._locked():
                await self._serve()
        return self.url

    async def stop(self) -> None:
        """Leave; the last one to leave stops the server in order. Harmless when not started."""
        if self._users is None:
            return
        if not self._folder.exists():  # removed under the server, which ends by itself when it notices
            self._leave()
            return
        async with self._locked():
            self._leave()
            if not self._others():
                await self._shut_down()

    # -- the server ---------------------------------------------------------------------------------

    async def _serve(self) -> None:
        """Under the lock: wait for the server that is there, or start one, until it takes connections."""
        end = time.monotonic() + START_S
        launched = False
        while not await self._answers():
            if self._child is not None and self._child.poll() is not None:
                self._child = None
                told = last_words(self._home / "log")
                # Children of a killed server may live a moment longer and hold its memory.
                if launched and ("shared memory block" not in told or time.monotonic() > end):
                    raise EmbeddedPostgresError(f"the embedded Postgres did not start: {told}")
                await asyncio.sleep(0.1)
            if self._child is None and server_pid(self._data) is None:
                await self._launch()
                launched = True
            if time.monotonic() > end:
                raise EmbeddedPostgresError(
                    f"the embedded Postgres (pid {server_pid(self._data)}) does not answer within"
                    f" {START_S:.0f} s: {last_words(self._home / 'log')}"
                )
            await asyncio.sleep(0.02)

    async def _launch(self) -> None:
        """Start the server as our child, making its data folder first when there is none."""
        made_by = self._made_by()
        binaries = find(made_by)
        programs = accounts.reachable_binaries(self._needed, binaries.folder)
        sockets, log = self._sockets(), self._home / "log"
        self._private(sockets)
        log.mkdir(mode=0o700, exist_ok=True)
        self._needed.own(log)
        if made_by is None:
            await self._make_data(Binaries(programs, binaries.major))
        # No process has these files now: left over from a kill -9, perhaps with a zombie's number in them.
        for left in (self._data / "postmaster.pid", sockets / f"{_SOCKET}.lock"):
            left.unlink(missing_ok=True)
        settings = {
            **_SETTINGS,
            "unix_socket_directories": str(sockets),
            "log_directory": str(log),
            **self._settings,
        }
        words: list[str | Path] = [programs / "postgres", "-D", self._data]
        for name, value in settings.items():
            words += ["-c", f"{name}={value}"]
        with (log / "start.log").open("wb") as out:
            self._child = self._needed.popen(words, stdout=out, stderr=out)
        _children.append(self._child)

    async def _make_data(self, binaries: Binaries) -> None:
        """initdb beside the real place, then one rename: a kill in the middle leaves nothing half made."""
        fresh = self._home / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        words: list[str | Path] = [binaries.folder / "initdb", "-D", fresh, "-U", _USER]
        words += ["--auth=trust", "--encoding=UTF8", "--no-locale", "--no-instructions"]
        if binaries.major >= 17:  # upper and lower case beyond ASCII, the same on every machine
            words += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        if self._settings.get("fsync") == "off":
            words.append("--no-sync")
        log = self._home / "log" / "initdb.log"
        with log.open("wb") as out:
            child = self._needed.popen(words, stdout=out, stderr=out)
        end = time.monotonic() + START_S
        try:
            while child.poll() is None and time.monotonic() < end:  # noqa: ASYNC110 - a process, no event
                await asyncio.sleep(0.02)
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        if child.returncode != 0:
            raise EmbeddedPostgresError(f"initdb failed: {tail(log)}")
        log.unlink()
        fresh.rename(self._data)

    async def _shut_down(self) -> None:
        """SIGINT ends all connections and writes a checkpoint; SIGQUIT leaves that to the next start."""
        for number, seconds in ((signal.SIGINT, STOP_S), (signal.SIGQUIT, 10.0)):
            pid = server_pid(self._data)
            if pid is None:
                break
            with suppress(ProcessLookupError):
                os.kill(pid, number)
            end = time.monotonic() + seconds
            while self._still_there(end):  # noqa: ASYNC110 - a process, perhaps not our child
                await asyncio.sleep(0.01)
        if self._child is not None and self._child.poll() is not None:
            self._child = None

    def _still_there(self, end: float) -> bool:
        for child in [child for child in _children if child.poll() is not None]:
            _children.remove(child)
        return server_pid(self._data) is not None and time.monotonic() < end

    async def _answers(self) -> bool:
        if not self._alive():
            return False
        try:
            connection = await psycopg.AsyncConnection.connect(self.url, connect_timeout=5)
        except psycopg.OperationalError as error:
            return "too many clients" in str(error) or "remaining connection slots" in str(error)
        await connection.close()
        return True

    def _alive(self) -> bool:
        if self._child is not None:
            self._child.poll()  # a dead child stays a zombie until somebody asks
        return server_pid(self._data) is not None and is_ready(self._data)

    # -- folders and locks --------------------------------------------------------------------------

    @property
    def _needed(self) -> accounts.Account:
        assert self._account is not None, "start() comes first"
        return self._account

    @property
    def _home(self) -> Path:
        return self._needed.home

    @property
    def _data(self) -> Path:
        return self._home / "data"

    def _made_by(self) -> int | None:
        try:
            return int((self._data / "PG_VERSION").read_text(encoding="ascii"))
        except FileNotFoundError:
            return None

    def _sockets(self) -> Path:
        """The socket's folder: in the home, or under /tmp (the same for every process) if that is too long."""
        near = self._home / "run"
        if len(os.fsencode(near / _SOCKET)) <= _LONGEST:
            return near
        name = hashlib.sha256(os.fsencode(self._home)).hexdigest()[:16]
        return Path("/tmp") / f"opsthread-{self._needed.uid}-{name}"  # noqa: S108 - checked by _private

    def _private(self, folder: Path) -> None:
        """Make the folder for the account alone; refuse one that somebody else put there."""
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
            self._needed.own(folder)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != self._needed.uid or found.st_mode & 0o077:
            raise EmbeddedPostgresError(f"{folder} is not a private folder of this account; remove it")

    @asynccontextmanager
    async def _locked(self) -> AsyncGenerator[None]:
        """One process at a time starts or stops; a process that dies lets go by itself."""
        lock = os.open(self._folder / "start.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            end = time.monotonic() + START_S + STOP_S
            while not _taken(lock, fcntl.LOCK_EX):
                if time.monotonic() > end:
                    raise EmbeddedPostgresError(
                        f"another process has been starting the database under {self._folder} for"
                        f" {START_S + STOP_S:.0f} s; end it and try again"
                    )
                await asyncio.sleep(0.02)
            yield
        finally:
            os.close(lock)

    def _leave(self) -> None:
        if self._users is not None:
            os.close(self._users)
            self._users = None

    def _others(self) -> bool:
        lock = os.open(self._folder / "users.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            return not _taken(lock, fcntl.LOCK_EX)
        finally:
            os.close(lock)


def _taken(lock: int, kind: int) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
