"""Turns and the session's lease: submit, claim, heartbeat, pause, finish, stop.

The session row is the lock. A claim raises its epoch; every later write of the turn names that epoch
(`fence`), so that a process that lost its lease cannot write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

from storage import approvals
from storage.errors import LeaseLost, NotFound
from storage.records import Claim, Front, Turn, TurnState
from storage.sessions import get as get_session
from storage.storable import storable
from storage.store import Db, notify

WAKE = "opsthread_turn"  # NOTIFY channel: a turn may be ready to work on
STOP = "opsthread_stop"  # NOTIFY channel: payload = id of a turn somebody stopped

_COLUMNS = """id, team, session_id, state, front, person, person_name, owner, channel, text, source_ts,
  created_at, started_at, finished_at, stop_by, steps, resumed"""


def _turn(row: Any) -> Turn:
    values = dict(row._mapping)
    return Turn(**{**values, "state": TurnState(values["state"]), "front": Front(values["front"])})


async def submit(
    db: Db,
    *,
    team: str,
    session_id: int,
    front: Front,
    person: str,
    person_name: str,
    owner: str,
    channel: str,
    message: str,
    source_ts: str | None,
) -> Turn:
    """Queue a turn and wake a desk."""
    row = (
        await db.execute(
            text(
                f"""INSERT INTO turn (team, session_id, state, front, person, person_name, owner, channel, text, source_ts)
                VALUES (:team, :session_id, 'queued', :front, :person, :person_name, :owner, :channel, :message, :source_ts)
                RETURNING {_COLUMNS}"""
            ),
            {
                "team": team,
                "session_id": session_id,
                "front": front,
                "person": person,
                "person_name": storable(person_name),
                "owner": owner,
                "channel": channel,
                "message": storable(message),
                "source_ts": source_ts,
            },
        )
    ).one()
    await notify(db, WAKE, str(session_id))
    return _turn(row)


async def get(db: Db, turn_id: int) -> Turn:
    """One turn. Raises NotFound."""
    row = (
        await db.execute(text(f"SELECT {_COLUMNS} FROM turn WHERE id = :id"), {"id": turn_id})
    ).one_or_none()
    if row is None:
        raise NotFound(f"there is no turn {turn_id}")
    return _turn(row)


async def lock(db: Db, turn_id: int) -> None:
    """Hold the turn's row to the end: whoever changes a turn and its approvals takes the turn first."""
    await db.execute(text("SELECT 1 FROM turn WHERE id = :id FOR UPDATE"), {"id": turn_id})


async def unfinished(db: Db, session_id: int) -> list[Turn]:
    """The session's turns that are not over, oldest first."""
    rows = await db.execute(
        text(
            f"""SELECT {_COLUMNS} FROM turn
            WHERE session_id = :session_id AND state IN ('queued', 'running', 'waiting', 'ready')
            ORDER BY id"""
        ),
        {"session_id": session_id},
    )
    return [_turn(row) for row in rows]


async def all_unfinished(db: Db, *, team: str | None) -> list[int]:
    """Ids of the turns that are not over, of one team or of all."""
    rows = await db.execute(
        text(
            """SELECT id FROM turn WHERE state IN ('queued', 'running', 'waiting', 'ready')
              AND (CAST(:team AS text) IS NULL OR team = :team) ORDER BY id"""
        ),
        {"team": team},
    )
    return [row.id for row in rows]


async def count_unfinished(db: Db, *, team: str, person: str) -> int:
    """How many turns of a person are not over."""
    return int(
        (
            await db.execute(
                text(
                    """SELECT count(*) FROM turn WHERE team = :team AND person = :person
                      AND state IN ('queued', 'running', 'waiting', 'ready')"""
                ),
                {"team": team, "person": person},
            )
        ).scalar_one()
    )


async def claim(
    db: Db,
    *,
    owner: str,
    lease_s: float,
    front: Front,
    team: str | None = None,
    session_id: int | None = None,
    besides: Sequence[int] = (),
) -> Claim | None:
    """Take the lease of one session that has a turn to work on; None when there is nothing to do.

    A turn that another process left behind comes first, then one whose approval was decided, then the
    oldest queued one. team limits the claim to one team: only its own bot can ask Slack who its people are;
    session_id limits the claim to one session (a terminal works on its own only);
    besides: sessions the caller is at work on, whose lease ran out while the database was away.
    """
    found = (
        await db.execute(
            text(
                """SELECT s.id AS session_id, t.id AS turn_id, t.state FROM turn t JOIN chat_session s ON s.id = t.session_id
                WHERE t.state IN ('queued', 'running', 'ready') AND t.front = :front
                  AND (CAST(:team AS text) IS NULL OR t.team = :team)
                  AND (CAST(:session_id AS bigint) IS NULL OR t.session_id = :session_id)
                  AND s.id <> ALL(CAST(:besides AS bigint[]))
                  AND (s.lease_until IS NULL OR s.lease_until < clock_timestamp())
                ORDER BY array_position(ARRAY['running', 'ready', 'queued'], t.state), t.id
                LIMIT 1 FOR UPDATE OF s SKIP LOCKED"""
            ),
            {"front": front, "team": team, "session_id": session_id, "besides": list(besides)},
        )
    ).one_or_none()
    if found is None:
        return None
    epoch = (
        await db.execute(
            text(
                """UPDATE chat_session SET lease_owner = :owner, epoch = epoch + 1,
                  lease_until = clock_timestamp() + make_interval(secs => :lease_s)
                WHERE id = :id RETURNING epoch"""
            ),
            {"owner": owner, "lease_s": lease_s, "id": found.session_id},
        )
    ).scalar_one()
    row = (
        await db.execute(
            text(
                f"""UPDATE turn SET state = 'running', started_at = coalesce(started_at, now()),
                  resumed = resumed + CASE WHEN state = 'running' THEN 1 ELSE 0 END
                WHERE id = :id AND state = :state RETURNING {_COLUMNS}"""
            ),
            {"id": found.turn_id, "state": found.state},
        )
    ).one_or_none()
    if row is None:  # stopped or taken between the look and the lock
        await release(db, session_id=found.session_id, epoch=epoch)
        return None
    session = await get_session(db, found.session_id)
    return Claim(session=session, turn=_turn(row), epoch=epoch, resumed=found.state != TurnState.QUEUED)


async def fence(db: Db, *, session_id: int, epoch: int) -> None:
    """Lock the session's row and see that this process still holds it. Raises LeaseLost."""
    current = (
        await db.execute(text("SELECT epoch FROM chat_session WHERE id = :id FOR UPDATE"), {"id": session_id})
    ).scalar_one_or_none()
    if current != epoch:
        raise LeaseLost(f"another process works on session {session_id} now")


async def beat(db: Db, *, session_id: int, turn_id: int, epoch: int, lease_s: float) -> str | None:
    """Extend the lease. Returns who asked to stop the turn, if anybody. Raises LeaseLost."""
    held = (
        await db.execute(
            text(
                """UPDATE chat_session SET lease_until = clock_timestamp() + make_interval(secs => :lease_s)
                WHERE id = :id AND epoch = :epoch RETURNING id"""
            ),
            {"lease_s": lease_s, "id": session_id, "epoch": epoch},
        )
    ).one_or_none()
    if held is None:
        raise LeaseLost(f"another process works on session {session_id} now")
    stop_by: str | None = (
        await db.execute(text("SELECT stop_by FROM turn WHERE id = :id"), {"id": turn_id})
    ).scalar_one()
    return stop_by


async def count_step(db: Db, *, turn_id: int) -> None:
    """One more model reply was asked for in this turn."""
    await db.execute(text("UPDATE turn SET steps = steps + 1 WHERE id = :id"), {"id": turn_id})


@dataclass(frozen=True, slots=True)
class Given:
    """fresh: ids that the turn was not given before. all: how many it was given by now."""

    fresh: tuple[int, ...]
    all: int


async def give_memories(db: Db, turn_id: int, ids: Sequence[int]) -> Given:
    """Note which memories stand in a turn's requests. Only their ids: what they say is kept in one place."""
    before: list[int] = (
        await db.execute(
            text("SELECT memory_ids FROM turn WHERE id = :id FOR NO KEY UPDATE"), {"id": turn_id}
        )
    ).scalar_one()
    fresh = tuple(id_ for id_ in dict.fromkeys(ids) if id_ not in before)
    if fresh:
        await db.execute(
            text("UPDATE turn SET memory_ids = memory_ids || CAST(:ids AS bigint[]) WHERE id = :id"),
            {"id": turn_id, "ids": list(fresh)},
        )
    return Given(fresh, len(before) + len(fresh))


async def memories_of(db: Db, turn_id: int) -> list[int]:
    """Ids of the memories that a turn was given."""
    row = await db.execute(text("SELECT memory_ids FROM turn WHERE id = :id"), {"id": turn_id})
    return list(row.scalar_one())


async def pause(db: Db, *, turn_id: int, session_id: int, epoch: int) -> TurnState:
    """The turn waits for an approval: give the lease back. READY when all were decided meanwhile."""
    await fence(db, session_id=session_id, epoch=epoch)
    state = TurnState(
        (
            await db.execute(
                text(
                    """UPDATE turn SET state = CASE WHEN EXISTS
                      (SELECT 1 FROM approval WHERE turn_id = :id AND state = 'open') THEN 'waiting' ELSE 'ready' END
                    WHERE id = :id RETURNING state"""
                ),
                {"id": turn_id},
            )
        ).scalar_one()
    )
    await release(db, session_id=session_id, epoch=epoch)
    return state


async def finish(db: Db, *, turn_id: int, session_id: int, epoch: int, state: TurnState) -> None:
    """The turn is over: done, failed or stopped. Gives the lease back. Raises LeaseLost."""
    await fence(db, session_id=session_id, epoch=epoch)
    await db.execute(
        text("UPDATE turn SET state = :state, finished_at = now() WHERE id = :id"),
        {"state": state, "id": turn_id},
    )
    await release(db, session_id=session_id, epoch=epoch)


async def release(db: Db, *, session_id: int, epoch: int) -> None:
    """Give the lease back and wake whoever has the session's next turn."""
    await db.execute(
        text(
            """UPDATE chat_session SET lease_owner = NULL, lease_until = NULL
            WHERE id = :id AND epoch = :epoch"""
        ),
        {"id": session_id, "epoch": epoch},
    )
    await notify(db, WAKE, str(session_id))


async def make_ready(db: Db, turn_id: int) -> bool:
    """A waiting turn with no open approval may go on. True when it became ready by this call."""
    row = (
        await db.execute(
            text(
                """UPDATE turn SET state = 'ready' WHERE id = :id AND state = 'waiting'
                  AND NOT EXISTS (SELECT 1 FROM approval WHERE turn_id = :id AND state = 'open')
                RETURNING session_id"""
            ),
            {"id": turn_id},
        )
    ).one_or_none()
    if row is None:
        return False
    await notify(db, WAKE, str(row.session_id))
    return True


async def request_stop(db: Db, *, turn_id: int, by: str) -> TurnState:
    """Ask for a turn to be stopped; returns its state before.

    A turn that no process holds (queued, waiting, ready) becomes ready or stays queued with stop_by set:
    the desk that claims it next ends it properly, so that open calls get their results.
    """
    row = (
        await db.execute(
            text("SELECT state, session_id FROM turn WHERE id = :id FOR UPDATE"), {"id": turn_id}
        )
    ).one_or_none()
    if row is None:
        raise NotFound(f"there is no turn {turn_id}")
    before = TurnState(row.state)
    if before in (TurnState.DONE, TurnState.FAILED, TurnState.STOPPED):
        return before
    await db.execute(
        text(
            """UPDATE turn SET stop_by = coalesce(stop_by, :by),
              state = CASE WHEN state = 'waiting' THEN 'ready' ELSE state END WHERE id = :id"""
        ),
        {"by": by, "id": turn_id},
    )
    await approvals.revoke(db, turn_id, by=by)
    await notify(db, STOP, str(turn_id))
    await notify(db, WAKE, str(row.session_id))
    return before


async def stuck(db: Db) -> list[int]:
    """Sessions whose turn is marked running although its lease is over: a process died. Wakes the desks."""
    rows = await db.execute(
        text(
            """SELECT DISTINCT t.session_id FROM turn t JOIN chat_session s ON s.id = t.session_id
            WHERE t.state = 'running' AND (s.lease_until IS NULL OR s.lease_until < clock_timestamp())"""
        )
    )
    ids = [row.session_id for row in rows]
    for session_id in ids:
        await notify(db, WAKE, str(session_id))
    return ids
