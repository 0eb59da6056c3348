"""Two workspaces over one database: each bot works on its own team's turns, whose people only it can ask about."""

from storage import turns
from storage.records import Front
from storage.store import Store
from tests import make


async def test_a_turn_is_claimed_by_its_own_team_only(store: Store) -> None:
    session = await make.stored_session(store)
    async with store.begin() as db:
        await turns.submit(
            db, team=make.TEAM, session_id=session.id, front=Front.SLACK, person=make.ALICE, person_name="Alice",
            owner=make.ALICE, channel="C01OPS", message="why?", source_ts=None,
        )  # fmt: skip
        assert await turns.claim(db, owner="other", lease_s=60, front=Front.SLACK, team="T2") is None
        assert await turns.claim(db, owner="own", lease_s=60, front=Front.SLACK, team=make.TEAM) is not None
