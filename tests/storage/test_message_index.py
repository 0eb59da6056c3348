"""Messages get their words afterwards: a search sees everything, however and in whatever order it came."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys

from storage import branches as tree
from storage import search, sessions, transfer
from storage.recall import messages
from storage.store import Store
from tests import make


async def _seqs(store: Store, query: str, **more: object) -> list[int]:
    async with store.begin() as db:
        return [hit.seq for hit in await search.search(db, query, **more)]  # type: ignore[arg-type]


def _lines(*numbers: int) -> list[transfer.Line]:
    return transfer.parse(
        json.dumps({"session": "s", "seq": n, "role": "user", "text": f"word{n} kafka"}) for n in numbers
    )


async def test_appending_writes_no_words_and_the_next_search_sees_the_message(store: Store) -> None:
    session = await make.stored_session(store, make.user("kafka lags"))
    assert await _seqs(store, "kafka") == [1]
    async with store.begin() as db:
        await sessions.append(db, session.id, None, [make.assistant("zookeeper is gone")])
        assert await messages.index(db) == 1
        assert await messages.index(db) == 0


async def test_messages_that_come_between_others_are_found(store: Store) -> None:
    await transfer.import_(store, _lines(1, 5), team="local", owner="u1")
    assert sorted(await _seqs(store, "kafka")) == [1, 5]
    await transfer.import_(store, _lines(1, 3, 5), team="local", owner="u1")
    assert sorted(await _seqs(store, "kafka")) == [1, 3, 5]
    assert await _seqs(store, "word3") == [3]


async def test_every_branch_is_found(store: Store) -> None:
    session = await make.stored_session(store, make.user("kafka"), make.user("rabbitmq"))
    async with store.begin() as db:
        await tree.rewind(db, session.id, 2)
        await sessions.append(db, session.id, None, [make.user("nats")])
    assert await _seqs(store, "rabbitmq") == [2]
    assert await _seqs(store, "nats") == [3]


async def test_an_answer_is_lent_some_of_the_score_of_its_question(store: Store) -> None:
    await make.stored_session(
        store, make.user("why is the kafka consumer slow"), make.assistant("kafka: disk"), key="1"
    )
    await make.stored_session(store, make.assistant("kafka: disk"), key="2")
    async with store.begin() as db:
        hits = await search.search(db, "slow kafka consumer disk")
    assert [(hit.session_id, hit.seq) for hit in hits][1:] == [(1, 2), (2, 1)]


async def test_a_backlog_is_caught_up_in_parts_and_by_several_at_once(store: Store) -> None:
    await transfer.import_(store, _lines(*range(1, 1201)), team="local", owner="u1")
    done = await asyncio.gather(messages.catch_up(store), messages.catch_up(store))
    assert sum(done) == 1200
    assert await _seqs(store, "word1200") == [1200]
    assert await messages.catch_up(store) == 0


_WORKER = """
import asyncio, sys
from storage.recall import messages
from storage.store import Store

async def main():
    store = Store(sys.argv[1])
    async with store.begin() as db:
        await messages.index(db, most=30)
        print("half", flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


async def test_an_indexer_that_is_killed_leaves_nothing_half_done(store: Store, database_url: str) -> None:
    await transfer.import_(store, _lines(*range(1, 101)), team="local", owner="u1")
    worker = subprocess.Popen(
        [sys.executable, "-c", _WORKER, database_url], stdout=subprocess.PIPE, text=True
    )
    assert worker.stdout is not None
    assert await asyncio.to_thread(worker.stdout.readline) == "half\n"
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait()
    worker.stdout.close()
    assert len(await _seqs(store, "kafka", limit=200)) == 100
    async with store.begin() as db:
        assert await messages.index(db) == 0
