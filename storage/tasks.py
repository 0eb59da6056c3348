"""The open task of a session: its plan and next step, so that "continue" knows where it stopped."""

from __future__ import annotations

from sqlalchemy import text

from storage.storable import storable, storable_json
from storage.store import Db

Plan = tuple[tuple[str, str], ...]  # (step, todo | doing | done | dropped)


async def save(db: Db, *, team: str, session_id: int, plan: Plan, next_step: str) -> None:
    """Replace the plan: it is state, not history; the calls that changed it stay in the messages."""
    await db.execute(
        text(
            """INSERT INTO task_state (session_id, team, plan, next_step)
            VALUES (:session_id, :team, CAST(:plan AS jsonb), :next_step)
            ON CONFLICT (session_id) DO UPDATE SET plan = excluded.plan, next_step = excluded.next_step, updated_at = now()"""
        ),
        {
            "session_id": session_id,
            "team": team,
            "plan": storable_json([{"step": step, "state": state} for step, state in plan]),
            "next_step": storable(next_step),
        },
    )


async def load(db: Db, session_id: int) -> tuple[Plan, str]:
    """The plan and the next step; empty when there is none."""
    row = (
        await db.execute(
            text("SELECT plan, next_step FROM task_state WHERE session_id = :id"), {"id": session_id}
        )
    ).one_or_none()
    if row is None:
        return (), ""
    return tuple((item["step"], item["state"]) for item in row.plan), row.next_step
