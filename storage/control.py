"""The switch that holds everything (normal, read-only, stopped), and how many commands ran of late."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import text

from storage.storable import storable
from storage.store import Db

EVERY_TEAM = "*"  # a switch set from the command line holds every team


class Mode(StrEnum):
    """What may be done on hosts: everything the rules let, reads only, nothing."""

    NORMAL = "normal"
    READ_ONLY = "read-only"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Switch:
    """Who set the mode of a team (or of EVERY_TEAM), when and why."""

    team: str
    mode: Mode
    by: str
    why: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands in the way of one more command. Counts are of the last minute."""

    mode: Mode
    by: str
    in_session: int
    on_host: int


_MODE = """SELECT team, mode, by, why, at FROM control WHERE team IN (:team, '*') AND mode <> 'normal'
  ORDER BY array_position(ARRAY['stopped', 'read-only'], mode), team LIMIT 1"""


async def set_mode(db: Db, *, team: str, mode: Mode, by: str, why: str = "") -> None:
    """Set a team's switch (EVERY_TEAM: all of them)."""
    await db.execute(
        text(
            """INSERT INTO control (team, mode, by, why) VALUES (:team, :mode, :by, :why)
            ON CONFLICT (team) DO UPDATE SET mode = :mode, by = :by, why = :why, at = now()"""
        ),
        {"team": team, "mode": mode, "by": storable(by), "why": storable(why)},
    )


async def switch(db: Db, team: str) -> Switch | None:
    """The strictest switch that holds a team now; None: all is normal."""
    row = (await db.execute(text(_MODE), {"team": team})).one_or_none()
    return Switch(row.team, Mode(row.mode), row.by, row.why, row.at) if row is not None else None


async def standing(db: Db, *, team: str, session_id: int, host: str) -> Standing:
    """Asked in the transaction that claims a command."""
    row = (
        await db.execute(
            text(
                f"""SELECT c.mode, c.by, n.in_session, n.on_host FROM
                  (SELECT count(*) FILTER (WHERE session_id = :session_id) AS in_session,
                     count(*) FILTER (WHERE team = :team AND host = :host) AS on_host
                   FROM command WHERE created_at > now() - interval '1 minute') n
                  LEFT JOIN ({_MODE}) c ON true"""
            ),
            {"team": team, "session_id": session_id, "host": host},
        )
    ).one()
    return Standing(Mode(row.mode or Mode.NORMAL), row.by or "", row.in_session, row.on_host)
