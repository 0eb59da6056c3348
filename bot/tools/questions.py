"""What an approval binds, and the digest over it: a change in any part makes the approval worthless."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta

from bot.ssh.inventory import Host
from storage.records import Approval, ApprovalHost, ApprovalState, Turn

TOKEN_BYTES = 24  # 192 bit: cannot be guessed


def bound(host: Host, fingerprint: str) -> ApprovalHost:
    """All of a host that decides where and as whom a command runs."""
    return ApprovalHost(
        name=host.name,
        address=host.address,
        port=host.port,
        user=host.user,
        jump=host.jump,
        fingerprint=fingerprint,
    )


def digest(
    hosts: Sequence[ApprovalHost], run: str, limit_s: int, environment: Sequence[tuple[str, str]]
) -> str:
    """SHA-256 over hosts, exact text, limit and environment."""
    bound_ = {
        "hosts": [asdict(host) for host in sorted(hosts, key=lambda h: h.name)],
        "run": run,
        "limit_s": limit_s,
        "environment": sorted(environment),
    }
    return hashlib.sha256(json.dumps(bound_, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def environment(hosts: Sequence[Host]) -> list[tuple[str, str]]:
    """What the inventory adds to the clean environment, host by host."""
    return [
        (f"{host.name}.{key}", value) for host in hosts for key, value in (("HOME", host.home), *host.env)
    ]


def question(
    *,
    turn: Turn,
    call_id: str,
    hosts: Sequence[tuple[Host, str]],
    run: str,
    limit_s: int,
    reason: str,
    purpose: str,
    now: datetime,
    open_s: int,
) -> Approval:
    """An approval to be asked for; hosts with their key's fingerprints. Expires after open_s seconds."""
    bound_hosts = tuple(bound(host, fingerprint) for host, fingerprint in hosts)
    return Approval(
        id=0,
        team=turn.team,
        session_id=turn.session_id,
        turn_id=turn.id,
        call_id=call_id,
        token=secrets.token_urlsafe(TOKEN_BYTES),
        hosts=bound_hosts,
        run=run,
        limit_s=limit_s,
        reason=reason,
        purpose=purpose,
        requester=turn.person,
        digest=digest(bound_hosts, run, limit_s, environment([host for host, _ in hosts])),
        state=ApprovalState.OPEN,
        expires_at=now + timedelta(seconds=open_s),
        created_at=now,
    )


def still_bound(approval: Approval, hosts: Sequence[tuple[Host, str]]) -> bool:
    """Do the hosts as they are now give the digest that was approved?"""
    now = replace(approval, hosts=tuple(bound(host, fingerprint) for host, fingerprint in hosts))
    return approval.digest == digest(
        now.hosts, approval.run, approval.limit_s, environment([host for host, _ in hosts])
    )
