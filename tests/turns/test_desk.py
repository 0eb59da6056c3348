"""The desk: whatever ends the one who waits for a turn ends the turn's work too, and errors come out plain."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import text

from bot.events import Answered, CommandStarted, Event
from bot.journal import Writer
from storage.errors import NotFound
from storage.records import TurnState
from storage.store import Db
from tests.fakes.following import FOLLOW
from tests.fakes.model import say
from tests.turns.rig import Recorder, open_rig, run, until


def at_work() -> list[asyncio.Task[object]]:
    return [task for task in asyncio.all_tasks() if "run_turn" in repr(task.get_coro())]


async def test_what_fails_while_a_turn_is_followed_is_raised_as_it_is(
    database_url: str, tmp_path: Path
) -> None:
    async with open_rig(database_url, tmp_path) as rig:
        with pytest.raises(NotFound, match="no turn 999"):
            await rig.app.desk.work_on(1, turn_id=999)


async def test_cancelling_who_follows_a_turn_leaves_no_work_behind(database_url: str, tmp_path: Path) -> None:
    async with open_rig(database_url, tmp_path) as rig:
        rig.model.push(run(FOLLOW, timeout_s=55))
        talk = rig.conversation()
        turn = asyncio.create_task(talk.say("go"))
        await until(lambda: bool(rig.seen(CommandStarted)))
        assert len(at_work()) == 1
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert at_work() == []


async def test_a_stop_that_comes_before_the_work_began_counts(database_url: str, tmp_path: Path) -> None:
    async with open_rig(database_url, tmp_path) as rig:
        rig.model.push(say("never said"))
        desk, talk = rig.app.desk, rig.conversation()
        receipt = await desk.receive(talk._arrival("go"))
        assert receipt.turn_id is not None
        claim = await desk._claim(receipt.session_id)
        assert claim is not None
        task = desk._start(claim)
        desk._cancel(desk._work[receipt.turn_id], "tester")
        assert await task is TurnState.STOPPED
        assert "Stopped by tester" in rig.seen(Answered)[0].text


async def test_a_turn_that_was_interrupted_again_and_again_is_given_up(
    database_url: str, tmp_path: Path
) -> None:
    async with open_rig(database_url, tmp_path) as rig:
        talk = rig.conversation()
        receipt = await rig.app.desk.receive(talk._arrival("go"))
        assert receipt.session_id is not None
        assert receipt.turn_id is not None
        async with rig.store.begin() as db:
            await db.execute(text("UPDATE turn SET resumed = 11"))
        assert await rig.app.desk.work_on(receipt.session_id, turn_id=receipt.turn_id) is TurnState.FAILED
        assert "interrupted 11 times" in rig.seen(Answered)[0].text
        assert rig.model.requests == []


async def test_a_turn_whose_failure_cannot_even_be_written_is_given_up(
    database_url: str, tmp_path: Path
) -> None:
    async with open_rig(database_url, tmp_path) as rig:
        talk = rig.conversation()
        receipt = await rig.app.desk.receive(talk._arrival("go"))
        assert receipt.session_id is not None
        assert receipt.turn_id is not None
        async with rig.store.begin() as db:
            await db.execute(text("UPDATE turn SET resumed = 11"))
            await db.execute(
                text("ALTER TABLE chat_message ADD CHECK (content = 'no message fits') NOT VALID")
            )
        assert await rig.app.desk.work_on(receipt.session_id, turn_id=receipt.turn_id) is TurnState.FAILED


async def test_a_fault_in_a_write_reaches_those_who_wait_for_it(database_url: str, tmp_path: Path) -> None:
    async def faulty(_db: Db, _again: bool) -> Sequence[Event]:
        raise KeyError("of ours")

    async with open_rig(database_url, tmp_path) as rig:
        writer = Writer(store=rig.store, screen=Recorder(1, []), session_id=1)
        for _ in range(2):
            with pytest.raises(KeyError):
                await writer.put(faulty, patience_s=None)
        await writer.close()
