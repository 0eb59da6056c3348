"""The way to Postgres: one `begin()` block is one transaction; the driver's errors are mapped here, once."""

from __future__ import annotations

import asyncio
import os
import re
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.sql import SQL, Identifier
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from storage.errors import DatabaseUnavailable, StorageError

Db = AsyncConnection  # an open transaction; functions of storage take it as their first argument

LIMIT_S = 30.0  # seconds a transaction may last; after that its connection is cut
CONNECT_S = 5  # seconds to connect, and for an idle connection to show that it lives
_LOCK_S = 10.0  # seconds to wait for a row somebody else holds
_PING_S = 15.0  # seconds after which a silent LISTEN connection is tested
_REPEATED = 5  # times a statement runs on a connection before it is prepared there
_OLDEST = 15  # the schema uses UNIQUE NULLS NOT DISTINCT

_DEFAULTS: dict[str, Any] = {
    "application_name": "opsthread",
    "connect_timeout": CONNECT_S,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # milliseconds
}
_BUSY = {"57014", "55P03", "40P01", "40001"}  # cancelled by a timeout, lock timeout, deadlock, serialization
_MENDS = {
    "42P01": "the database has no schema yet, or an older one; run `opsthread db upgrade`",
    "53100": "the disk of the database server is full; make room there",
    "25006": "the database takes no writes now (a standby?); check DATABASE_URL",
    "3D000": "the database named in DATABASE_URL does not exist; create it there",
    "28P01": "the database refused the user or password of DATABASE_URL",
    "28000": "the database refused the user of DATABASE_URL",
}


class Store:
    """A small pool of connections to one database.

    url: `postgresql://…` or `postgres://…` with everything libpq takes (`?host=/a/socket/folder`,
    sslmode, several hosts). Nothing that hangs on the server's side hangs here: connecting takes at most
    CONNECT_S seconds a host, a statement and a transaction at most `limit_s`. Safe behind pgbouncer in
    transaction mode, except for `listen`. A connection that died while idle is replaced without notice.
    """

    def __init__(self, url: str, *, pool_size: int = 5) -> None:
        self._conninfo = conninfo(url)
        self._password = str(conninfo_to_dict(self._conninfo).get("password") or "")
        self._engine: AsyncEngine = create_async_engine(
            "postgresql+psycopg://",
            async_creator=self._connect,
            pool_size=pool_size,
            max_overflow=pool_size,
            pool_timeout=CONNECT_S * 2,
            pool_use_lifo=True,
            hide_parameters=True,
            use_native_hstore=False,
        )

    async def _connect(self) -> psycopg.AsyncConnection[Any]:
        """Statements that come again are prepared, which saves a third of a write, unless a pooler is between.

        Behind pgbouncer the next transaction may run on another server connection, which knows nothing of them.
        A pooler answers with a process number of its own, as it has no one process to answer with.
        """
        connection = await psycopg.AsyncConnection.connect(
            self._conninfo, autocommit=True, prepare_threshold=None
        )
        watch = asyncio.get_running_loop().call_later(CONNECT_S, _cut, connection)
        try:
            row = await (await connection.execute("SELECT pg_backend_pid()")).fetchone()
            await connection.set_autocommit(False)
        except BaseException:
            await connection.close()
            raise
        finally:
            watch.cancel()
        if row == (connection.info.backend_pid,):
            connection.prepare_threshold = _REPEATED
        return connection

    async def open(self) -> None:
        """See that the server answers and is new enough. Raises DatabaseUnavailable."""
        async with self.begin() as db:
            number = (
                await db.execute(text("SELECT current_setting('server_version_num')::int"))
            ).scalar_one()
        check_version(number)

    async def close(self) -> None:
        """Close all idle connections; one in use closes when its block ends."""
        await self._engine.dispose()

    @asynccontextmanager
    async def begin(self, *, limit_s: float = LIMIT_S) -> AsyncGenerator[Db]:
        """One transaction: committed when the block ends, rolled back when it raises.

        limit_s: seconds for the whole block, after which its connection is cut. No other network inside.
        Raises DatabaseUnavailable when the server cannot be reached or does not answer in time; whether a
        commit that was under way then took place is not known. Raises StorageError for a refused statement.
        """
        try:
            connection, watch = await self._checkout(limit_s)
            try:
                yield connection
                await connection.commit()
            finally:
                try:
                    await connection.close()
                finally:
                    watch.cancel()
        except (OperationalError, InterfaceError, PoolTimeout) as error:
            raise unavailable(error, password=self._password) from error
        except DBAPIError as error:
            if error.connection_invalidated or _sqlstate(error) in _MENDS:
                raise unavailable(error, password=self._password) from error
            # A fault of ours (a constraint, a value): its text may hold values, so only its kind is told.
            raise StorageError(f"the database refused a statement ({type(error.orig).__name__})") from error

    async def _checkout(self, limit_s: float) -> tuple[Db, asyncio.TimerHandle]:
        """A connection that has just answered, with its limits set, and the timer that cuts it."""
        loop = asyncio.get_running_loop()
        statement_ms, lock_ms = int(limit_s * 1000), int(min(limit_s, _LOCK_S) * 1000)
        first = (
            f"SELECT set_config('statement_timeout', '{statement_ms}', true),"
            f" set_config('lock_timeout', '{lock_ms}', true)"
        )
        for last in (False, True):
            connection = await self._engine.connect()
            raw = (await connection.get_raw_connection()).driver_connection
            watch = loop.call_later(CONNECT_S, _cut, raw)
            try:
                await connection.exec_driver_sql(first)
            except BaseException as error:
                # The server was restarted while the connection was idle: the pool is fresh now, once more.
                await connection.close()
                watch.cancel()
                if last or not (isinstance(error, DBAPIError) and error.connection_invalidated):
                    raise
                continue
            watch.cancel()
            return connection, loop.call_later(limit_s, _cut, raw)
        raise AssertionError("unreachable")

    async def listen(self, channel: str) -> AsyncIterator[str]:
        """Payloads of a NOTIFY channel, for ever, on a connection of its own that reconnects.

        What is sent while there is no connection is lost: whoever listens must also poll now and then.
        """
        pause = 0.1
        while True:
            with suppress(psycopg.OperationalError, psycopg.InterfaceError):
                connection = await psycopg.AsyncConnection.connect(
                    self._conninfo, autocommit=True, prepare_threshold=None
                )
                async with connection:
                    await connection.execute(SQL("LISTEN {}").format(Identifier(channel)))
                    pause = 0.1
                    while True:
                        async for notice in connection.notifies(timeout=_PING_S):
                            yield notice.payload
                        await _ping(connection)
            await asyncio.sleep(pause)
            pause = min(pause * 2, 5.0)


async def notify(db: Db, channel: str, payload: str) -> None:
    """Wake whoever listens, when this transaction commits. payload: at most 8,000 bytes."""
    await db.execute(text("SELECT pg_notify(:channel, :payload)"), {"channel": channel, "payload": payload})


def conninfo(url: str) -> str:
    """libpq's connection string for a URL, with our defaults under it. Raises DatabaseUnavailable."""
    if url.startswith("postgresql+psycopg://"):
        url = "postgresql" + url.removeprefix("postgresql+psycopg")
    try:
        parts = conninfo_to_dict(url)
        # A password with an unescaped sign spills into host or port, and from there into messages.
        if not re.fullmatch(r"[0-9,]*", str(parts.get("port", ""))) or "@" in str(parts.get("host", ""))[1:]:
            raise psycopg.ProgrammingError
        return make_conninfo(**{**_DEFAULTS, **parts})
    except psycopg.ProgrammingError:
        # libpq's own message quotes the URL, and with it perhaps the password.
        raise DatabaseUnavailable(
            "DATABASE_URL cannot be read; it looks like postgresql://user:****@host:5432/database"
            " (special characters in the password as %XX)"
        ) from None


def check_version(number: int) -> None:
    """Raises DatabaseUnavailable when the server is older than the schema allows."""
    if number // 10_000 < _OLDEST:
        raise DatabaseUnavailable(
            f"the server is PostgreSQL {number // 10_000}; opsthread needs {_OLDEST} or newer:"
            " set DATABASE_URL to a newer one, or leave it empty to use the embedded one"
        )


def unavailable(error: Exception, *, password: str = "") -> DatabaseUnavailable:
    """One line that says what to do, without the password."""
    if isinstance(error, PoolTimeout):
        return DatabaseUnavailable("all connections to the database are in use; try again")
    state = _sqlstate(error)
    if state in _MENDS:
        return DatabaseUnavailable(_MENDS[state])
    if state in _BUSY:
        return DatabaseUnavailable("the database was busy for too long; try again")
    cause = getattr(error, "orig", None) or error
    line = (str(cause).strip().splitlines() or [type(cause).__name__])[0].strip()
    if password:
        line = line.replace(password, "***")
    return DatabaseUnavailable(
        f"the database cannot be reached ({line}); check DATABASE_URL and that Postgres is running"
    )


def _sqlstate(error: Exception) -> str | None:
    state = getattr(getattr(error, "orig", None) or error, "sqlstate", None)
    return state if isinstance(state, str) else None


def _cut(connection: Any) -> None:
    """End a connection's socket, so that whatever waits on it fails at once; cancelling could wait too."""
    with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(connection.pgconn.socket)) as twin:
        twin.shutdown(socket.SHUT_RDWR)


async def _ping(connection: psycopg.AsyncConnection[Any]) -> None:
    watch = asyncio.get_running_loop().call_later(CONNECT_S, _cut, connection)
    try:
        await connection.execute("SELECT 1")
    finally:
        watch.cancel()
