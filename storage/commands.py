"""Commands: one shell line on one host for one call, claimed before it is sent, finished with its output."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import text

from storage.errors import NotFound
from storage.records import Command, CommandState, Decision, Ended, Front, Output
from storage.storable import storable
from storage.store import Db

_COLUMNS = """id, session_id, turn_id, call_id, host, run, state, decision, reason, approval_id,
  exit_status, signal, note, seconds, stdout_bytes, stderr_bytes, truncated, created_at"""


def _command(row: Any) -> Command:
    values = dict(row._mapping)
    return Command(
        **{**values, "state": CommandState(values["state"]), "decision": Decision(values["decision"])}
    )


async def claim(
    db: Db,
    *,
    team: str,
    session_id: int,
    turn_id: int,
    call_id: str,
    host: str,
    run: str,
    decision: Decision,
    reason: str,
    approval_id: int | None,
) -> Command | None:
    """Claim a command before it is sent. None: this call has been claimed on this host before."""
    row = (
        await db.execute(
            text(
                f"""INSERT INTO command (team, session_id, turn_id, call_id, host, run, state, decision, reason, approval_id)
                VALUES (:team, :session_id, :turn_id, :call_id, :host, :run, 'running', :decision, :reason, :approval_id)
                ON CONFLICT (turn_id, call_id, host) DO NOTHING RETURNING {_COLUMNS}"""
            ),
            {
                "team": team,
                "session_id": session_id,
                "turn_id": turn_id,
                "call_id": call_id,
                "host": host,
                "run": run,
                "decision": decision,
                "reason": storable(reason),
                "approval_id": approval_id,
            },
        )
    ).one_or_none()
    if row is not None:
        # Only a host's first command touches the session row.
        await db.execute(
            text("UPDATE chat_session SET hosts = hosts || :host WHERE id = :id AND NOT :name = ANY(hosts)"),
            {"host": [host], "name": host, "id": session_id},
        )
    return _command(row) if row is not None else None


async def finish(db: Db, *, command_id: int, team: str, ended: Ended) -> bool:
    """Store what became of a command. False: it was finished before, which is never changed again."""
    changed = (
        await db.execute(
            text(
                """UPDATE command SET state = :state, exit_status = :exit_status, signal = :signal, note = :note,
                  seconds = :seconds, stdout_bytes = :stdout_bytes, stderr_bytes = :stderr_bytes,
                  truncated = :truncated, finished_at = now()
                WHERE id = :id AND state = 'running' RETURNING id"""
            ),
            {
                "id": command_id,
                "state": ended.state,
                "exit_status": ended.exit_status,
                "signal": ended.signal,
                "note": storable(ended.note),
                "seconds": ended.seconds,
                "stdout_bytes": ended.stdout_bytes,
                "stderr_bytes": ended.stderr_bytes,
                "truncated": ended.truncated,
            },
        )
    ).one_or_none()
    if changed is None:
        return False
    await db.execute(
        text("INSERT INTO output (command_id, team, stdout, stderr) VALUES (:id, :team, :stdout, :stderr)"),
        {
            "id": command_id,
            "team": team,
            "stdout": storable(ended.stdout),
            "stderr": storable(ended.stderr),
        },
    )
    return True


async def for_call(db: Db, *, turn_id: int, call_id: str) -> dict[str, Command]:
    """The commands a call has claimed so far, by host."""
    rows = await db.execute(
        text(f"SELECT {_COLUMNS} FROM command WHERE turn_id = :turn_id AND call_id = :call_id"),
        {"turn_id": turn_id, "call_id": call_id},
    )
    return {row.host: _command(row) for row in rows}


async def left_behind(db: Db, *, front: Front, limit: int = 20) -> list[Command]:
    """Approved commands that run although their turn is over, oldest first."""
    rows = await db.execute(
        text(
            f"""SELECT {_COLUMNS} FROM command WHERE state = 'running' AND approval_id IS NOT NULL AND turn_id IN
              (SELECT id FROM turn WHERE front = :front AND state IN ('done', 'failed', 'stopped'))
            ORDER BY id LIMIT :limit"""
        ),
        {"front": front, "limit": limit},
    )
    return [_command(row) for row in rows]


async def of_session(db: Db, session_id: int) -> list[Command]:
    """All commands of a session, oldest first."""
    rows = await db.execute(
        text(f"SELECT {_COLUMNS} FROM command WHERE session_id = :id ORDER BY id"),
        {"id": session_id},
    )
    return [_command(row) for row in rows]


async def of_turn(db: Db, turn_id: int) -> list[Command]:
    """All commands of a turn, oldest first."""
    return await of_turns(db, [turn_id])


async def of_turns(db: Db, turn_ids: Collection[int]) -> list[Command]:
    """All commands of these turns, oldest first."""
    rows = await db.execute(
        text(f"SELECT {_COLUMNS} FROM command WHERE turn_id = ANY(CAST(:ids AS bigint[])) ORDER BY id"),
        {"ids": list(turn_ids)},
    )
    return [_command(row) for row in rows]


async def get(db: Db, command_id: int) -> Command:
    """One command. Raises NotFound."""
    row = (
        await db.execute(text(f"SELECT {_COLUMNS} FROM command WHERE id = :id"), {"id": command_id})
    ).one_or_none()
    if row is None:
        raise NotFound(f"there is no command {command_id}")
    return _command(row)


async def output(db: Db, command_id: int) -> Output:
    """What a command printed. Raises NotFound."""
    row = (
        await db.execute(
            text("SELECT command_id, stdout, stderr FROM output WHERE command_id = :id"), {"id": command_id}
        )
    ).one_or_none()
    if row is None:
        raise NotFound(f"command {command_id} has no stored output")
    return Output(command_id=row.command_id, stdout=row.stdout, stderr=row.stderr)
