"""Brings a database's schema up to what this version of the program needs.

Alembic is imported only when there is something to do: most starts find the schema as it should be.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from sqlalchemy import Connection, create_engine
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.pool import NullPool

from storage.errors import DatabaseUnavailable
from storage.store import check_version, conninfo, unavailable

if TYPE_CHECKING:
    from alembic.config import Config

MIGRATIONS = Path(__file__).parent / "migrations"
_LOCK = 0x6F70_7374  # "opst": the advisory lock under which one process upgrades and others wait
_WAIT_S = 300  # seconds a process waits for another one's upgrade


async def upgrade(url: str) -> str:
    """Run the migrations that are missing, all in one transaction; answers the revision then reached.

    Safe when several processes do it at once. Raises DatabaseUnavailable, also when a newer version of
    the program made the schema.
    """
    return await asyncio.to_thread(_upgrade, url)


async def current(url: str) -> str | None:
    """The revision of the database's schema; None: it has none yet. Raises DatabaseUnavailable."""
    return await asyncio.to_thread(_current, url)


def head() -> str:
    """The revision this version of the program needs: the highest, which a file's name begins with."""
    return max(path.name.partition("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*_*.py"))


def _upgrade(url: str) -> str:
    wanted = head()
    with _connected(url) as connection:
        if _revision(connection) == wanted:
            return wanted
        from alembic import command
        from alembic.script import ScriptDirectory

        config = _config()
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_WAIT_S}s'")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
        found = _revision(connection)
        known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
        if found is not None and found not in known:
            raise DatabaseUnavailable(
                f"a newer opsthread made this database's schema (revision {found}); upgrade the program"
            )
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        connection.commit()
    return wanted


def _current(url: str) -> str | None:
    with _connected(url) as connection:
        return _revision(connection)


def _revision(connection: Connection) -> str | None:
    if connection.exec_driver_sql("SELECT to_regclass('alembic_version')").scalar_one() is None:
        return None
    found: str | None = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    return found


@contextmanager
def _connected(url: str) -> Iterator[Connection]:
    dsn = conninfo(url)
    engine = create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(dsn, prepare_threshold=None),
        poolclass=NullPool,
        hide_parameters=True,
        use_native_hstore=False,
    )
    password = str(psycopg.conninfo.conninfo_to_dict(dsn).get("password") or "")
    try:
        with engine.connect() as connection:
            number = connection.exec_driver_sql(
                "SELECT current_setting('server_version_num')::int"
            ).scalar_one()
            check_version(number)
            yield connection
    except (OperationalError, InterfaceError) as error:
        raise unavailable(error, password=password) from error
    finally:
        engine.dispose()


def _config() -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
