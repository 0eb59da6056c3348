"""Whoever owns the database changes the log in every way; `verify` names the first broken link."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from bot.audit.sealer import Sealer
from bot.audit.signing import Signer
from bot.audit.sink import Sink
from bot.audit.verify import verify_store
from bot.audit.walk import FaultKind
from storage import audit
from storage.audit.digest import GENESIS, link_hash
from storage.store import Store
from tests.audit.conftest import Tamper, Verified, filled

ROWS = 10


@pytest.fixture
async def log(store: Store, sealer: Sealer) -> None:
    """Ten sealed rows, with heads at links 5 and 10."""
    for _ in range(2):
        await filled(store, ROWS // 2)
        await sealer.seal()
        await sealer.publish()


def relink(database_url: str, *, first: int = 1) -> None:
    """Digests and links of all rows anew, as anybody can who knows how; only the key is missing."""
    with psycopg.connect(database_url) as admin:
        admin.execute("ALTER TABLE audit DISABLE TRIGGER ALL")
        admin.execute("DROP INDEX IF EXISTS audit_link")
        admin.execute(
            "UPDATE audit SET link = NULL, payload_digest = NULL, digest = NULL, hash = NULL WHERE id >= %s",
            (first,),
        )


@pytest.mark.parametrize(
    ("change", "kind", "link", "row"),
    [
        ('UPDATE audit SET detail = \'{"run": "ls"}\' WHERE id = 4', FaultKind.PAYLOAD, 4, 4),
        ("UPDATE audit SET person = 'U02BOB' WHERE id = 4", FaultKind.PAYLOAD, 4, 4),
        ("UPDATE audit SET os_account = 'bob' WHERE id = 4", FaultKind.PAYLOAD, 4, 4),
        ("UPDATE audit SET salt = gen_random_uuid() WHERE id = 4", FaultKind.PAYLOAD, 4, 4),
        ("UPDATE audit SET payload_digest = digest WHERE id = 4", FaultKind.PAYLOAD, 4, 4),
        ("UPDATE audit SET event = 'command.refused' WHERE id = 4", FaultKind.ROW, 4, 4),
        ("UPDATE audit SET at = at + interval '1 microsecond' WHERE id = 4", FaultKind.ROW, 4, 4),
        ("UPDATE audit SET at = 'infinity' WHERE id = 4", FaultKind.ROW, 4, 4),
        ("UPDATE audit SET host = 'web-2' WHERE id = 4", FaultKind.ROW, 4, 4),
        ("UPDATE audit SET team = 'T2' WHERE id = 4", FaultKind.ROW, 4, 4),
        ("UPDATE audit SET session_id = 7 WHERE id = 4", FaultKind.ROW, 4, 4),
        ("UPDATE audit SET turn_id = 7 WHERE id = 4", FaultKind.ROW, 4, 4),
        ("UPDATE audit SET digest = hash WHERE id = 4", FaultKind.ROW, 4, 4),
        ("UPDATE audit SET hash = digest WHERE id = 4", FaultKind.LINK, 4, 4),
        ("DELETE FROM audit WHERE id = 4", FaultKind.MISSING, 4, None),
        ("DELETE FROM audit WHERE id IN (4, 5)", FaultKind.MISSING, 4, None),
        ("DELETE FROM audit WHERE id = 1", FaultKind.MISSING, 1, None),
        (
            "UPDATE audit SET link = NULL, payload_digest = NULL, digest = NULL, hash = NULL WHERE id = 4",
            FaultKind.MISSING,
            4,
            None,
        ),
        ("UPDATE audit SET link = 11 - link WHERE id IN (4, 7)", FaultKind.LINK, 4, 7),
        ("UPDATE audit SET link = 4 WHERE id = 5", FaultKind.DOUBLE, 4, 5),
        (
            "INSERT INTO audit (team, event, person, link, payload_digest, digest, hash)"
            " SELECT team, event, person, 4, payload_digest, digest, hash FROM audit WHERE id = 4",
            FaultKind.DOUBLE,
            4,
            11,
        ),
        (
            "UPDATE audit SET link = link + 1 WHERE id >= 4;"
            "INSERT INTO audit (team, event, person, link, payload_digest, digest, hash)"
            " SELECT team, event, person, 4, payload_digest, digest, hash FROM audit WHERE id = 3",
            FaultKind.PAYLOAD,
            4,
            11,
        ),
        ("DELETE FROM audit WHERE id > 7", FaultKind.TAIL, 8, None),
        ("DELETE FROM audit WHERE id > 7; DELETE FROM audit_head WHERE link > 7", FaultKind.TAIL, 8, None),
        ("DELETE FROM audit", FaultKind.TAIL, 1, None),
        (
            "UPDATE audit SET erased_at = now(), person = '[erased]', os_account = '', detail = '{}', salt = NULL"
            " WHERE id = 4",
            FaultKind.ERASED,
            4,
            4,
        ),
        ("UPDATE audit SET erased_at = now() WHERE id = 4", FaultKind.PAYLOAD, 4, 4),
        ("UPDATE audit_head SET signature = ''  WHERE link = 10", FaultKind.SIGNATURE, 10, 10),
        ("UPDATE audit_head SET key = '', signature = '' WHERE link = 10", FaultKind.SIGNATURE, 10, 10),
        ("UPDATE audit_head SET at = '2026' WHERE link = 5", FaultKind.SIGNATURE, 5, 5),
        ("UPDATE audit_head SET hash = sha256('x') WHERE link = 5", FaultKind.SIGNATURE, 5, 5),
        ("UPDATE audit_head SET link = 9 WHERE link = 10", FaultKind.SIGNATURE, 9, 9),
    ],
)
async def test_a_change_is_named(
    log: None, tamper: Tamper, verified: Verified, change: str, kind: FaultKind, link: int, row: int | None
) -> None:
    assert (await verified()).fault is None
    tamper(change)
    fault = (await verified()).fault
    assert fault is not None
    assert (fault.kind, fault.link, fault.row) == (kind, link, row)
    assert "\n" not in fault.what


async def test_a_row_below_the_first_link_is_seen(log: None, tamper: Tamper, verified: Verified) -> None:
    tamper(
        "ALTER TABLE audit DROP CONSTRAINT audit_link_check;"
        "INSERT INTO audit (team, event, person, link, payload_digest, digest, hash)"
        " SELECT team, event, person, -4, payload_digest, digest, hash FROM audit WHERE id = 3"
    )
    fault = (await verified()).fault
    assert fault is not None
    assert (fault.kind, fault.link, fault.row) == (FaultKind.LINK, -4, 11)


async def test_what_is_missing_is_said(log: None, tamper: Tamper, verified: Verified) -> None:
    tamper("DELETE FROM audit WHERE id > 7; DELETE FROM audit_head")
    fault = (await verified()).fault
    assert fault is not None
    assert "vouches for link 10; the chain ends with link 7: the last 3 rows are missing" in fault.what
    assert "in the sink " in fault.what
    tamper("DELETE FROM audit WHERE id IN (3, 4)")
    fault = (await verified()).fault
    assert fault is not None
    assert "links 3 to 4 have no row: deleted between row 2 (link 2) and row 5 (link 5)" in fault.what


async def test_everything_linked_anew_without_the_key_is_another_chain(
    log: None, store: Store, tamper: Tamper, verified: Verified, database_url: str
) -> None:
    tamper('UPDATE audit SET detail = \'{"run": "ls"}\' WHERE id = 7')
    relink(database_url)
    async with store.begin() as db:
        assert await audit.seal(db) == ROWS
    fault = (await verified()).fault
    assert fault is not None
    assert (fault.kind, fault.link) == (FaultKind.HEAD, 10)
    assert "rows were changed and linked anew somewhere after link 5" in fault.what

    with psycopg.connect(database_url) as admin:  # the heads of the database go with the forged chain
        admin.execute("ALTER TABLE audit_head DISABLE TRIGGER ALL")
        admin.execute("DELETE FROM audit_head")
    forger = Signer("another secret")
    await Sealer(store, signer=forger, sink=None).publish()
    fault = (await verified()).fault
    assert fault is not None
    assert (fault.kind, fault.link) == (FaultKind.SIGNATURE, 10)
    assert forger.public in fault.what


async def test_a_tail_that_was_cut_and_grew_again_is_seen_in_the_sink(
    log: None, store: Store, tamper: Tamper, verified: Verified
) -> None:
    tamper("DELETE FROM audit WHERE id > 7; DELETE FROM audit_head WHERE link > 5")
    await filled(store, 6)
    async with store.begin() as db:
        assert await audit.seal(db) == 6
    fault = (await verified()).fault
    assert fault is not None
    assert (fault.kind, fault.link) == (FaultKind.HEAD, 10)


async def test_a_head_behind_a_later_one_shows_a_chain_that_was_cut_back(
    log: None, sink: Sink, verified: Verified
) -> None:
    lines = sink.path.read_text().splitlines()
    sink.path.write_text("\n".join(reversed(lines)) + "\n")
    fault = (await verified()).fault
    assert fault is not None
    assert (fault.kind, fault.link) == (FaultKind.HEAD, 5)
    assert "cut back" in fault.what


async def test_a_row_whose_digests_were_made_anew_breaks_the_next_link(
    log: None, store: Store, tamper: Tamper, verified: Verified, database_url: str
) -> None:
    tamper('UPDATE audit SET detail = \'{"run": "ls"}\' WHERE id = 4')
    async with store.begin() as db:
        rows = {row.id: row for row in await audit.page(db, (0, 0), limit=ROWS)}
    payload = rows[4].payload_digest_now()
    digest = rows[4].digest_over(payload)
    before = rows[3].hash
    assert before is not None
    with psycopg.connect(database_url) as admin:
        admin.execute(
            "UPDATE audit SET payload_digest = %s, digest = %s, hash = %s WHERE id = 4",
            (payload, digest, link_hash(before, digest)),
        )
    fault = (await verified()).fault
    assert fault is not None
    assert (fault.kind, fault.link, fault.row) == (FaultKind.LINK, 5, 5)


async def test_without_a_key_the_chain_is_still_verified(
    store: Store, tmp_path: Path, tamper: Tamper
) -> None:
    sink = Sink(tmp_path / "unsigned")
    await filled(store, 3)
    await Sealer(store, signer=None, sink=sink).tick()

    report = await verify_store(store, keys=frozenset(), sink=sink.path, progress=lambda _: None)
    assert (report.fault, report.signature, report.link) == (None, "unsigned", 3)
    tamper("DELETE FROM audit WHERE id = 3; DELETE FROM audit_head")
    report = await verify_store(store, keys=frozenset(), sink=sink.path, progress=lambda _: None)
    assert report.fault is not None
    assert report.fault.kind is FaultKind.TAIL


async def test_an_earlier_key_counts_when_it_is_named(
    log: None, store: Store, sink: Sink, signer: Signer
) -> None:
    newer = Signer("the secret after the rotation")
    await filled(store, 1)
    await Sealer(store, signer=newer, sink=sink).tick()

    async def verified(*keys: Signer) -> object:
        report = await verify_store(
            store,
            keys=frozenset(key.public for key in keys),
            sink=sink.path,
            progress=lambda _: None,
        )
        return report.fault.kind if report.fault else report.signature

    assert await verified(newer, signer) == "valid"
    assert await verified(newer) is FaultKind.SIGNATURE
    assert await verified() is FaultKind.SIGNATURE, "two keys, and nobody says whose"


async def test_an_empty_log_is_whole(verified: Verified, sink: Sink) -> None:
    sink.path.touch()
    report = await verified()
    assert (report.fault, report.rows, report.head, report.signature) == (None, 0, None, "none")
    assert report.hash == GENESIS.hex()


async def test_rows_are_read_in_pages(
    store: Store, sealer: Sealer, verified: Verified, monkeypatch: pytest.MonkeyPatch, tamper: Tamper
) -> None:
    monkeypatch.setattr("bot.audit.verify.PAGE", 3)
    for _ in range(4):
        await filled(store, 2)
        await sealer.seal()
        await sealer.publish()
    report = await verified()
    assert (report.fault, report.rows) == (None, 8)
    tamper("UPDATE audit SET link = 6 WHERE id = 7")
    fault = (await verified()).fault
    assert fault is not None
    assert (fault.kind, fault.link, fault.row) == (FaultKind.DOUBLE, 6, 7)
