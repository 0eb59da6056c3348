"""Approvals: people's yes or no to an exact text on exact hosts. Every change is one compare-and-set."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from typing import Any

from sqlalchemy import text

from storage.errors import NotFound
from storage.records import Approval, ApprovalHost, ApprovalState
from storage.storable import storable, storable_json
from storage.store import Db

_COLUMNS = """id, team, session_id, turn_id, call_id, token, hosts, run, limit_s, reason, purpose, requester,
  policy, danger, needs, digest, state, decided_by, decided_at, expires_at, created_at"""


def _approval(row: Any) -> Approval:
    values = dict(row._mapping)
    hosts = tuple(
        ApprovalHost(
            name=host["name"],
            address=host["address"],
            port=host["port"],
            user=host["user"],
            fingerprint=host["fingerprint"],
            route=tuple(host.get("route", ())),
        )
        for host in values["hosts"]
    )
    return Approval(**{**values, "hosts": hosts, "state": ApprovalState(values["state"])})


async def open_(db: Db, wanted: Approval) -> Approval:
    """Ask (the id of `wanted` counts for nothing). The same question of the same call again gives the row that
    is there, whatever its state.
    """
    await db.execute(
        text(
            """INSERT INTO approval (team, session_id, turn_id, call_id, token, hosts, run, limit_s, reason, purpose,
              requester, policy, danger, needs, digest, state, expires_at)
            VALUES (:team, :session_id, :turn_id, :call_id, :token, CAST(:hosts AS jsonb), :run, :limit_s, :reason,
              :purpose, :requester, :policy, :danger, :needs, :digest, 'open', :expires_at)
            ON CONFLICT (turn_id, call_id, digest) DO NOTHING"""
        ),
        {
            "team": wanted.team,
            "session_id": wanted.session_id,
            "turn_id": wanted.turn_id,
            "call_id": wanted.call_id,
            "token": wanted.token,
            "hosts": storable_json([asdict(host) for host in wanted.hosts]),
            "run": wanted.run,
            "limit_s": wanted.limit_s,
            "reason": storable(wanted.reason),
            "purpose": storable(wanted.purpose),
            "requester": wanted.requester,
            "policy": wanted.policy,
            "danger": storable(wanted.danger),
            "needs": wanted.needs,
            "digest": wanted.digest,
            "expires_at": wanted.expires_at,
        },
    )
    return await _one(
        db,
        "turn_id = :turn_id AND call_id = :call_id AND digest = :digest",
        {"turn_id": wanted.turn_id, "call_id": wanted.call_id, "digest": wanted.digest},
    )


async def _one(db: Db, where: str, values: dict[str, Any]) -> Approval:
    row = (await db.execute(text(f"SELECT {_COLUMNS} FROM approval WHERE {where}"), values)).one_or_none()
    if row is None:
        raise NotFound("there is no such approval")
    return _approval(row)


async def _many(db: Db, where: str, values: dict[str, Any]) -> list[Approval]:
    rows = await db.execute(
        text(f"SELECT {_COLUMNS} FROM approval WHERE {where} ORDER BY id"),
        values,
    )
    return [_approval(row) for row in rows]


async def get(db: Db, approval_id: int) -> Approval:
    """One approval by its number. Raises NotFound."""
    return await _one(db, "id = :id", {"id": approval_id})


async def by_token(db: Db, token: str) -> Approval:
    """One approval by what its button carries. Raises NotFound."""
    return await _one(db, "token = :token", {"token": token})


async def for_call(db: Db, *, turn_id: int, call_id: str) -> list[Approval]:
    """The approvals a call has asked for, oldest first."""
    return await _many(
        db, "turn_id = :turn_id AND call_id = :call_id", {"turn_id": turn_id, "call_id": call_id}
    )


async def of_turn(db: Db, turn_id: int) -> list[Approval]:
    """The approvals a turn has asked for, oldest first."""
    return await _many(db, "turn_id = :turn_id", {"turn_id": turn_id})


async def of_session(db: Db, session_id: int) -> list[Approval]:
    """The approvals of a session, oldest first."""
    return await _many(db, "session_id = :session_id", {"session_id": session_id})


async def open_in(db: Db, session_id: int) -> list[Approval]:
    """The session's approvals that wait for an answer, oldest first."""
    return await _many(db, "session_id = :session_id AND state = 'open'", {"session_id": session_id})


async def at_stake(db: Db, session_id: int, *, turn_id: int) -> list[Approval]:
    """What a turn has to know of: its own approvals, and those of the session that may still run something."""
    return await _many(
        db,
        "session_id = :session_id AND (turn_id = :turn_id OR state IN ('open', 'approved'))",
        {"session_id": session_id, "turn_id": turn_id},
    )


async def list_open(db: Db) -> list[Approval]:
    """Approvals that wait for an answer, oldest first."""
    return await _many(db, "state = 'open' AND expires_at > now()", {})


async def answer(
    db: Db, *, approval_id: int, person: str, name: str, approve: bool, void: Collection[str] = ()
) -> Approval | None:
    """One person's answer to an open approval that has not expired. None: it came too late, or was theirs before.

    A no denies at once. A yes counts once a person; the approval is approved when `needs` people have said it
    and stays open until then. void: people whose earlier yes counts no more. The row is locked first: of two
    answers at the same moment one is the later.
    """
    open_ = (
        await db.execute(
            text(
                "SELECT team, needs FROM approval WHERE id = :id AND state = 'open' AND expires_at > now() FOR UPDATE"
            ),
            {"id": approval_id},
        )
    ).one_or_none()
    if open_ is None:
        return None
    new = (
        await db.execute(
            text(
                """INSERT INTO approval_answer (approval_id, team, person, name, approve)
                VALUES (:id, :team, :person, :name, :approve)
                ON CONFLICT (approval_id, person, approve) DO NOTHING RETURNING person"""
            ),
            {
                "id": approval_id,
                "team": open_.team,
                "person": person,
                "name": storable(name),
                "approve": approve,
            },
        )
    ).one_or_none()
    if new is None:
        return None
    said = await _answers(db, approval_id, void=void)
    state = ApprovalState.DENIED
    if approve:
        state = ApprovalState.APPROVED if len(said) >= open_.needs else ApprovalState.OPEN
    row = (
        await db.execute(
            text(
                f"""UPDATE approval SET state = :state, decided_by = :by, decided_at = now()
                WHERE id = :id RETURNING {_COLUMNS}"""
            ),
            {"state": state, "by": ", ".join(said) if approve else storable(name), "id": approval_id},
        )
    ).one()
    return _approval(row)


async def _answers(db: Db, approval_id: int, *, void: Collection[str]) -> list[str]:
    """The names of those whose yes counts, in order."""
    rows = await db.execute(
        text(
            """SELECT name FROM approval_answer WHERE approval_id = :id AND approve
              AND person <> ALL(CAST(:void AS text[])) ORDER BY at, person"""
        ),
        {"id": approval_id, "void": list(void)},
    )
    return [row.name for row in rows]


async def approvers(db: Db, approval_id: int) -> list[str]:
    """The ids of those who said yes, in order."""
    rows = await db.execute(
        text("SELECT person FROM approval_answer WHERE approval_id = :id AND approve ORDER BY at, person"),
        {"id": approval_id},
    )
    return [row.person for row in rows]


async def revoke(db: Db, turn_id: int, *, by: str) -> list[Approval]:
    """Take back what a turn asked for and has not run. Returns all that is taken back, earlier ones as well."""
    rows = await db.execute(
        text(
            f"""UPDATE approval SET state = 'revoked',
              decided_by = CASE WHEN state = 'revoked' THEN decided_by ELSE :by END,
              decided_at = CASE WHEN state = 'revoked' THEN decided_at ELSE now() END
            WHERE turn_id = :id AND state IN ('open', 'approved', 'revoked') RETURNING {_COLUMNS}"""
        ),
        {"id": turn_id, "by": by},
    )
    return [_approval(row) for row in rows]


async def use(db: Db, *, approval_id: int) -> Approval | None:
    """approved -> used, once. None: it was not approved, was taken back, or was used before."""
    row = (
        await db.execute(
            text(
                f"""UPDATE approval SET state = 'used'
                WHERE id = :id AND state = 'approved' AND decided_at + (expires_at - created_at) > now()
                RETURNING {_COLUMNS}"""
            ),
            {"id": approval_id},
        )
    ).one_or_none()
    return _approval(row) if row is not None else None


async def expire_due(db: Db, *, limit: int = 100) -> list[Approval]:
    """Close what was not answered in time; each approval is returned to one caller only."""
    rows = await db.execute(
        text(
            f"""UPDATE approval SET state = 'expired', decided_at = now() WHERE id IN (
              SELECT id FROM approval WHERE state = 'open' AND expires_at <= now()
              ORDER BY id LIMIT :limit FOR UPDATE SKIP LOCKED)
            RETURNING {_COLUMNS}"""
        ),
        {"limit": limit},
    )
    return [_approval(row) for row in rows]
