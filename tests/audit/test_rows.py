"""Rows: refused changes, erased payloads, rows from before the chain, and digests that others can compute."""

from __future__ import annotations

import hashlib

import psycopg
import pytest
from alembic import command

from bot.audit.sealer import Sealer
from storage import audit, migrate
from storage.audit import digest
from storage.store import Store
from tests import make
from tests.audit.conftest import Verified, chain_fault, filled


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit SET event = 'x'",
        "UPDATE audit SET detail = '{}'",
        "UPDATE audit SET link = 9 WHERE id = 1",
        "UPDATE audit SET link = NULL, payload_digest = NULL, digest = NULL, hash = NULL",
        "UPDATE audit SET erased_at = now()",
        "UPDATE audit SET erased_at = now(), person = '[erased]', os_account = '', detail = '{}', salt = NULL WHERE id = 2",
        "DELETE FROM audit",
        "TRUNCATE audit",
        "UPDATE audit_head SET signature = ''",
        "DELETE FROM audit_head",
        "TRUNCATE audit_head",
    ],
)
async def test_the_tables_refuse_changes(
    store: Store, sealer: Sealer, database_url: str, statement: str
) -> None:
    await filled(store, 1)
    await sealer.tick()
    await filled(store, 1)
    with (
        psycopg.connect(database_url) as admin,
        pytest.raises((psycopg.errors.RestrictViolation, psycopg.errors.CheckViolation)),
    ):
        admin.execute(statement)  # type: ignore[arg-type]


async def test_an_erased_payload_is_gone_and_the_chain_is_whole(
    store: Store, sealer: Sealer, verified: Verified, database_url: str
) -> None:
    await filled(store, 3)
    await filled(store, 2, person="U02BOB", os_account="bob")
    await sealer.tick()
    await filled(store, 1, person="U02BOB")
    async with store.begin() as db:
        assert await audit.erase(db, team=make.TEAM, person="U02BOB", by="local:root") == 2
    report = await verified()
    assert (report.fault, report.erased, report.unsealed) == (None, 2, 2)
    await sealer.close()
    async with store.begin() as db:
        assert await audit.erase(db, team=make.TEAM, person="U02BOB", by="local:root") == 1
        assert await audit.erase(db, team=make.TEAM, person="U02BOB", by="local:root") == 0
        rows = await audit.list_(db, event="audit.")
    assert [row.detail for row in rows] == [{"rows": [6]}, {"rows": [4, 5]}]
    await sealer.close()
    report = await verified()
    assert (report.fault, report.erased) == (None, 3)
    with psycopg.connect(database_url) as admin:
        found = admin.execute(
            "SELECT count(*) FROM audit WHERE audit::text LIKE '%BOB%' OR os_account = 'bob'"
        )
        assert found.fetchone() == (0,)


async def test_rows_of_the_first_schema_are_kept_and_sealed(empty_database_url: str) -> None:
    with migrate._connected(empty_database_url) as connection:
        config = migrate._config()
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        connection.commit()
    with psycopg.connect(empty_database_url) as admin:
        admin.execute("""INSERT INTO audit (team, event, person, detail)
            SELECT 'T1', 'command.done', 'U01ALICE', jsonb_build_object('n', n) FROM generate_series(1, 1200) n""")
    await migrate.upgrade(empty_database_url)
    store = Store(empty_database_url)
    sealer = Sealer(store, signer=None, sink=None)
    assert await sealer.seal() == 1200
    assert await chain_fault(store) is None
    async with store.begin() as db:
        rows = await audit.page(db, (0, 0), limit=2000)
    await store.close()
    assert [row.detail["n"] for row in rows] == list(range(1, 1201))
    assert len({row.salt for row in rows}) == 1200


async def test_odd_values_are_sealed_and_verified(store: Store, sealer: Sealer, database_url: str) -> None:
    odd = [0.1, 1e300, 10**40, '磁盘 \u2028 \x7f \\ "', {"ä": [None, True]}, -1, 1.0, 2**63]
    async with store.begin() as db:
        await audit.add(db, "x", team="", person="\ud800 \x00", detail={str(n): v for n, v in enumerate(odd)})
    with psycopg.connect(database_url) as admin:
        admin.execute(
            "INSERT INTO audit (team, event, person, at, detail) VALUES ('', 'x', '', 'infinity', '{\"a\": 1e400}'),"
            " ('', 'x', '', '0044-03-15 BC', jsonb_build_object('n', repeat('9', 5000)::numeric))"
        )
    assert await sealer.seal() == 3
    assert await chain_fault(store) is None


def test_the_walk_of_the_doc_is_the_walk_of_the_code() -> None:
    """docs/safety.md, Audit: the digests of one row, computed from scratch."""
    payload = '{"detail":{"run":"df"},"os_account":"","person":"U01ALICE","salt":"11111111-1111-1111-1111-111111111111"}'
    made = digest.payload_digest(
        person="U01ALICE",
        os_account="",
        detail={"run": "df"},
        salt="11111111-1111-1111-1111-111111111111",
    )
    assert made == hashlib.sha256(payload.encode()).digest()
    row = (
        '{"at":"2026-05-01T12:00:00.000000Z","event":"command.started","host":"web-1","id":1,'
        f'"payload":"{made.hex()}","session":null,"team":"T1","turn":7}}'
    )
    assert (
        digest.row_digest(
            id_=1,
            team="T1",
            at="2026-05-01T12:00:00.000000Z",
            event="command.started",
            session_id=None,
            turn_id=7,
            host="web-1",
            payload=made,
        )
        == hashlib.sha256(row.encode()).digest()
    )
    assert digest.link_hash(digest.GENESIS, made) == hashlib.sha256(bytes(32) + made).digest()
