"""Bringing the schema up: from nothing, twice, by two processes at once, by too old a program."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from alembic.script import ScriptDirectory

from storage import migrate
from storage.errors import DatabaseUnavailable
from storage.store import Store


async def test_an_empty_database_is_brought_to_the_newest_schema(empty_database_url: str) -> None:
    assert await migrate.current(empty_database_url) is None
    assert await migrate.upgrade(empty_database_url) == migrate.head()
    assert await migrate.current(empty_database_url) == migrate.head()
    store = Store(empty_database_url)
    await store.open()
    await store.close()


async def test_upgrading_again_changes_nothing(database_url: str) -> None:
    assert await migrate.upgrade(database_url) == migrate.head()


async def test_several_processes_may_upgrade_at_once(empty_database_url: str) -> None:
    reached = await asyncio.gather(*(migrate.upgrade(empty_database_url) for _ in range(4)))
    assert set(reached) == {migrate.head()}


async def test_a_schema_of_a_newer_program_is_left_alone(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(DatabaseUnavailable, match=r"revision 9999\); upgrade the program"):
        await migrate.upgrade(database_url)
    assert await migrate.current(database_url) == "9999"


async def test_every_row_has_its_team_and_no_update_touches_an_index_of_a_session(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        without_team = connection.execute("""
            SELECT table_name FROM information_schema.tables t
            WHERE table_schema = 'public'
              AND table_name NOT IN ('alembic_version', 'memory_token', 'message_token', 'audit_head')
              AND NOT EXISTS (SELECT 1 FROM information_schema.columns c
                WHERE c.table_name = t.table_name AND c.column_name = 'team')
        """).fetchall()
        indexed = connection.execute("""
            SELECT DISTINCT a.attname FROM pg_index i
            JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)
            WHERE i.indrelid = 'chat_session'::regclass
        """).fetchall()
    assert without_team == []
    moving = {"head_id", "last_seq", "people", "updated_at", "lease_until", "lease_owner", "epoch"}
    assert moving.isdisjoint(name for (name,) in indexed), (
        "an update within the page (HOT) costs half the WAL"
    )


async def test_an_unreachable_server_is_one_clear_line() -> None:
    with pytest.raises(DatabaseUnavailable, match="check DATABASE_URL"):
        await migrate.upgrade("postgresql://nobody:pw@127.0.0.1:1/none")


def test_the_head_is_alembic_s_own() -> None:
    """It is read from the files' names, so that a start need not import Alembic."""
    assert migrate.head() == ScriptDirectory.from_config(migrate._config()).get_current_head()
