"""What an approval binds, and the digest over it: a change in any part makes the approval worthless."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta

from bot.ssh.inventory import Host
from storage.records import Approval, ApprovalHost, ApprovalState, Turn

TOKEN_BYTES = 24  # 192 bit: cannot be guessed


@dataclass(frozen=True, slots=True)
class Place:
    """A host with the verified key fingerprints of itself and of the bastions before it, nearest to us first."""

    host: Host
    fingerprint: str
    bastions: tuple[tuple[Host, str], ...] = ()

    @property
    def bound(self) -> ApprovalHost:
        """All that decides where and as whom a command runs."""
        return ApprovalHost(
            name=self.host.name,
            address=self.host.address,
            port=self.host.port,
            user=self.host.user,
            fingerprint=self.fingerprint,
            route=tuple(f"{b.name} {b.user}@{b.address}:{b.port} {key}" for b, key in self.bastions),
        )


def digest(approval: Approval, environment: Sequence[tuple[str, str]]) -> str:
    """SHA-256 over all that a person says yes to: places, exact text, limit, environment, who asked, under
    which rules and how many have to agree.
    """
    bound = {
        "team": approval.team,
        "hosts": [asdict(host) for host in sorted(approval.hosts, key=lambda h: h.name)],
        "run": approval.run,
        "limit_s": approval.limit_s,
        "environment": sorted(environment),
        "requester": approval.requester,
        "policy": approval.policy,
        "needs": approval.needs,
    }
    return hashlib.sha256(json.dumps(bound, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def environment(places: Sequence[Place]) -> list[tuple[str, str]]:
    """What the inventory adds to the clean environment, host by host."""
    hosts = [place.host for place in places]
    return [
        (f"{host.name}.{key}", value) for host in hosts for key, value in (("HOME", host.home), *host.env)
    ]


def question(
    *,
    turn: Turn,
    call_id: str,
    places: Sequence[Place],
    run: str,
    limit_s: int,
    reason: str,
    purpose: str,
    policy: str,
    danger: str,
    needs: int,
    now: datetime,
    open_s: int,
) -> Approval:
    """An approval to be asked for; it expires after open_s seconds."""
    wanted = Approval(
        id=0,
        team=turn.team,
        session_id=turn.session_id,
        turn_id=turn.id,
        call_id=call_id,
        token=secrets.token_urlsafe(TOKEN_BYTES),
        hosts=tuple(place.bound for place in places),
        run=run,
        limit_s=limit_s,
        reason=reason,
        purpose=purpose,
        requester=turn.person,
        policy=policy,
        danger=danger,
        needs=needs,
        digest="",
        state=ApprovalState.OPEN,
        expires_at=now + timedelta(seconds=open_s),
        created_at=now,
    )
    return replace(wanted, digest=digest(wanted, environment(places)))


def still_bound(approval: Approval, places: Sequence[Place]) -> bool:
    """Do the row as it is stored and the places as they are now give the digest that was approved?"""
    now = replace(approval, hosts=tuple(place.bound for place in places))
    return approval.digest == digest(now, environment(places)) == digest(approval, environment(places))
