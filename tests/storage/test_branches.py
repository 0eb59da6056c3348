"""The tree of a session: rewind, branches, switch."""

from __future__ import annotations

import pytest

from storage import branches, sessions, turns
from storage.errors import Conflict, LeaseLost, NotFound
from storage.records import Message, Session, TurnState
from storage.store import Store
from tests import make


async def _say(store: Store, session: Session, *messages: Message) -> None:
    async with store.begin() as db:
        await sessions.append(db, session.id, None, messages)


async def _texts(store: Store, session: Session) -> list[str]:
    async with store.begin() as db:
        return [m.text for m in await sessions.history(db, session.id)]


async def _rewind(store: Store, session: Session, seq: int) -> None:
    async with store.begin() as db:
        await branches.rewind(db, session.id, seq)


async def _branches(store: Store, session: Session) -> list[tuple[int, str, int, bool]]:
    async with store.begin() as db:
        return [(b.seq, b.first.text, b.messages, b.current) for b in await branches.branches(db, session.id)]


async def _talk(store: Store) -> Session:
    return await make.stored_session(
        store, make.user("q1"), make.assistant("a1"), make.user("q2"), make.assistant("a2")
    )


async def test_rewound_history_ends_before_the_message_and_goes_on_from_there(store: Store) -> None:
    session = await _talk(store)
    await _rewind(store, session, 3)
    assert await _texts(store, session) == ["q1", "a1"]
    await _say(store, session, make.user("q2 better"))
    assert await _texts(store, session) == ["q1", "a1", "q2 better"]
    async with store.begin() as db:
        every = await sessions.messages(db, session.id, all_branches=True)
    assert [(m.seq, m.text) for m in every][2:] == [(3, "q2"), (4, "a2"), (5, "q2 better")]


async def test_the_old_branch_is_listed_and_can_be_switched_back_to(store: Store) -> None:
    session = await _talk(store)
    await _rewind(store, session, 3)
    await _say(store, session, make.user("q2b"), make.assistant("a2b"))
    assert await _branches(store, session) == [(6, "q2b", 4, True), (4, "q2", 4, False)]
    async with store.begin() as db:
        await branches.switch(db, session.id, 4)
    assert await _texts(store, session) == ["q1", "a1", "q2", "a2"]
    assert await _branches(store, session) == [(6, "q2b", 4, False), (4, "q2", 4, True)]
    await _say(store, session, make.user("q3"))
    assert await _texts(store, session) == ["q1", "a1", "q2", "a2", "q3"]


async def test_rewinding_to_the_very_first_message_starts_anew(store: Store) -> None:
    session = await _talk(store)
    await _rewind(store, session, 1)
    assert await _texts(store, session) == []
    assert await _branches(store, session) == [(4, "q1", 4, False)]
    await _say(store, session, make.user("other"))
    assert await _texts(store, session) == ["other"]
    assert await _branches(store, session) == [(5, "other", 1, True), (4, "q1", 4, False)]


async def test_after_a_rewind_the_place_is_the_current_branch(store: Store) -> None:
    session = await _talk(store)
    await _rewind(store, session, 4)
    assert await _branches(store, session) == [(4, "q1", 4, False), (3, "q1", 3, True)]


async def test_branches_of_branches_are_told_by_their_own_first_message(store: Store) -> None:
    session = await _talk(store)
    await _rewind(store, session, 3)
    await _say(store, session, make.user("x"), make.assistant("xa"))  # 5, 6
    await _rewind(store, session, 6)
    await _say(store, session, make.assistant("xb"))  # 7
    assert await _branches(store, session) == [(7, "xb", 4, True), (6, "xa", 4, False), (4, "q2", 4, False)]


async def test_switching_to_a_message_inside_goes_to_its_newest_end(store: Store) -> None:
    session = await _talk(store)
    await _rewind(store, session, 3)
    await _say(store, session, make.user("x"))
    async with store.begin() as db:
        await branches.switch(db, session.id, 3)
    assert (await _texts(store, session))[-1] == "a2"


async def test_a_message_that_is_not_there_is_named(store: Store) -> None:
    session = await _talk(store)
    async with store.begin() as db:
        with pytest.raises(NotFound, match="no message 9"):
            await branches.rewind(db, session.id, 9)
        with pytest.raises(NotFound, match="no message 9"):
            await branches.switch(db, session.id, 9)
        with pytest.raises(NotFound, match="no session 99"):
            await branches.branches(db, 99)


async def test_nobody_moves_the_head_under_a_turn_at_work(store: Store) -> None:
    session = await _talk(store)
    claim = await make.claimed(store, session.id)
    async with store.begin() as db:
        with pytest.raises(Conflict, match="a turn is at work"):
            await branches.rewind(db, session.id, 3)
        with pytest.raises(Conflict, match="a turn is at work"):
            await branches.switch(db, session.id, 4)
        with pytest.raises(LeaseLost):
            await branches.rewind(db, session.id, 3, epoch=claim.epoch - 1)
        await branches.rewind(db, session.id, 3, epoch=claim.epoch)
        await turns.finish(
            db, turn_id=claim.turn.id, session_id=session.id, epoch=claim.epoch, state=TurnState.DONE
        )
    assert await _texts(store, session) == ["q1", "a1"]
    await _rewind(store, session, 2)
