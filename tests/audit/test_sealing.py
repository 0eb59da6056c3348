"""Sealing: every committed row gets one link, whoever seals, and no writer waits."""

from __future__ import annotations

import asyncio
import json
import signal
import sys

import pytest

from bot.audit.sealer import Sealer
from bot.audit.sink import Sink
from storage import audit
from storage.errors import StorageError
from storage.store import Store
from tests import make
from tests.audit.conftest import Tamper, Verified, chain_fault, filled


async def links(store: Store) -> list[tuple[int, int]]:
    """(link, row) along the chain."""
    async with store.begin() as db:
        return [(row.link or 0, row.id) for row in await audit.page(db, (0, 0), limit=10_000)]


async def test_rows_are_linked_in_order_and_a_head_is_vouched_for_once(
    store: Store, sealer: Sealer, sink: Sink, verified: Verified
) -> None:
    await filled(store, 3)
    await sealer.tick()
    assert await links(store) == [(1, 1), (2, 2), (3, 3)]
    assert await sealer.publish() is None, "there is nothing new"
    assert len(sink.path.read_text().splitlines()) == 1
    assert sink.path.stat().st_mode & 0o777 == 0o600
    report = await verified()
    assert (report.fault, report.rows, report.signature) == (None, 3, "valid")
    assert report.head is not None
    assert report.head.link == 3


async def test_a_late_commit_is_linked_late_and_nothing_is_left_out(
    store: Store, sealer: Sealer, verified: Verified
) -> None:
    async with store.begin() as late:
        await audit.add(late, "command.started", team=make.TEAM, person=make.ALICE)
        await filled(store, 2)
        assert await sealer.seal() == 2
    await filled(store, 1)
    assert await sealer.seal() == 2
    assert await links(store) == [(1, 2), (2, 3), (3, 1), (4, 4)]
    assert (await chain_fault(store)) is None


async def test_many_writers_and_two_sealers_make_one_chain(
    database_url: str, store: Store, verified: Verified, sealer: Sealer, sink: Sink
) -> None:
    other_store = Store(database_url)
    other = Sealer(other_store, signer=None, sink=None)
    many = Store(database_url, pool_size=20)
    writing = True

    async def work(each: Sealer) -> None:
        while writing:
            await each.seal()

    workers = [asyncio.create_task(work(each)) for each in (sealer, other)]
    gate = asyncio.Semaphore(40)  # as many as the pool has connections

    async def write() -> None:
        async with gate:
            await filled(many, 5)

    await asyncio.gather(*(write() for _ in range(200)))
    writing = False
    await asyncio.gather(*workers)
    await sealer.close()
    await other_store.close()
    await many.close()
    found = await links(store)
    assert [link for link, _ in found] == list(range(1, 1001))
    assert {row for _, row in found} == set(range(1, 1001)), "each row once"
    report = await verified()
    assert (report.fault, report.unsealed) == (None, 0)


async def test_a_writer_does_not_wait_for_an_open_seal(store: Store, sealer: Sealer) -> None:
    await filled(store, 2)
    async with store.begin() as sealing:
        assert await audit.seal(sealing) == 2
        async with asyncio.timeout(20):
            await filled(store, 1)
            assert await sealer.seal() is None, "somebody else seals; nobody waits"
    assert await sealer.seal() == 1
    assert await links(store) == [(1, 1), (2, 2), (3, 3)]


_SEAL_AND_HANG = """
import asyncio, sys
from storage import audit
from storage.store import Store

async def main():
    store = Store(sys.argv[1])
    async with store.begin() as db:
        print(await audit.seal(db), flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


async def test_a_killed_sealer_leaves_nothing_half_done_and_no_lock(
    store: Store, database_url: str, sealer: Sealer, verified: Verified
) -> None:
    await filled(store, 3)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _SEAL_AND_HANG, database_url, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"3\n"
    assert await links(store) == []
    process.send_signal(signal.SIGKILL)
    await process.communicate()
    while await sealer.seal() is None:  # until the server has noticed that the connection is gone
        await asyncio.sleep(0.01)
    await sealer.publish()
    assert await links(store) == [(1, 1), (2, 2), (3, 3)]
    assert (await verified()).fault is None


async def test_batches_go_on_where_the_last_one_ended(store: Store) -> None:
    await filled(store, 7)
    for _ in range(3):
        async with store.begin() as db:
            await audit.seal(db, limit=3)
    assert [link for link, _ in await links(store)] == list(range(1, 8))
    assert await chain_fault(store) is None


async def test_a_chain_that_was_cut_is_not_vouched_for_again(
    store: Store, sealer: Sealer, sink: Sink, tamper: Tamper
) -> None:
    await filled(store, 4)
    await sealer.tick()
    before = sink.path.read_text()
    tamper("DELETE FROM audit WHERE id > 2; DELETE FROM audit_head")
    await filled(store, 3)
    for each in (sealer, Sealer(store, signer=sealer._signer, sink=sink)):
        await each.seal()
        assert await each.publish() is None
    assert sink.path.read_text() == before


async def test_without_the_key_a_signed_head_is_not_followed_by_an_unsigned_one(
    store: Store, sealer: Sealer, sink: Sink
) -> None:
    await filled(store, 1)
    await sealer.tick()
    await filled(store, 1)
    unsigned = Sealer(store, signer=None, sink=sink)
    await unsigned.tick()
    assert len(sink.path.read_text().splitlines()) == 1
    await sealer.close()
    assert len(sink.path.read_text().splitlines()) == 2


async def test_a_sink_that_fails_is_tried_again_and_holds_nothing_up(
    store: Store, sealer: Sealer, sink: Sink, verified: Verified
) -> None:
    sink.path.mkdir()
    await filled(store, 2)
    await sealer.tick()
    assert len(await links(store)) == 2
    sink.path.rmdir()
    await sealer.publish()
    assert (await verified()).fault is None
    assert len(sink.path.read_text().splitlines()) == 1


async def test_a_torn_line_of_the_sink_is_counted_and_the_next_begins_anew(
    store: Store, sealer: Sealer, sink: Sink, verified: Verified
) -> None:
    await filled(store, 1)
    await sealer.tick()
    with sink.path.open("a") as file:
        file.write('{"link": 2, "ha')
    await filled(store, 1)
    await sealer.close()
    report = await verified()
    assert (report.fault, report.unreadable, report.link) == (None, 1, 2)
    assert report.head is not None
    assert report.head.link == 2


async def test_a_process_that_ends_vouches_for_its_last_rows(
    store: Store, sealer: Sealer, sink: Sink
) -> None:
    for _ in range(3):
        await filled(store, 1)
        await sealer.tick()
    assert [head["link"] for head in heads_of(sink)] == [1], "the next is not due yet"
    await sealer.close()
    assert [head["link"] for head in heads_of(sink)] == [1, 3]


def heads_of(sink: Sink) -> list[dict[str, object]]:
    return [json.loads(line) for line in sink.path.read_text().splitlines()]


async def test_a_closed_database_does_not_stop_the_end(server_url: str) -> None:
    store = Store("postgresql://nobody@127.0.0.1:1/none")
    await Sealer(store, signer=None, sink=None).close()
    with pytest.raises(StorageError):
        await Sealer(store, signer=None, sink=None).tick()
