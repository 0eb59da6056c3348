"""The switch that holds everything: normal, read-only or stopped; who may set it, and what follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bot.access import Actor, hosts_for, is_approver
from bot.ssh.inventory import Inventory
from storage import audit, control, turns
from storage.audit import AuditEvent
from storage.control import EVERY_TEAM, Mode, Switch
from storage.store import Store


@dataclass(frozen=True, slots=True)
class Modes:
    """One a process. Safe in several: the row in the database is the switch, read at every command."""

    store: Store
    inventory: Callable[[str], Inventory]  # by team

    async def say(self, team: str) -> str:
        """One line: what holds now, since when and by whom."""
        async with self.store.begin() as db:
            return described(await control.switch(db, team))

    async def ask(self, actor: Actor, mode: Mode, *, channel: str, shared: bool, why: str) -> str:
        """Set a team's mode for a person, if they may; one line for them."""
        inventory = self.inventory(actor.team)
        if mode is Mode.NORMAL:
            if actor.guest or not is_approver(actor, inventory):
                return "only somebody whom an access rule names as approver can set the mode back to normal"
        elif not hosts_for(actor, channel, inventory, shared=shared):
            return "only somebody who may use a host from here can hold the bot"
        stopped = await set_mode(
            self.store, actor.team, mode, by=actor.name or actor.id, person=actor.id, why=why
        )
        async with self.store.begin() as db:
            now = await control.switch(db, actor.team)
        if now is not None and now.team == EVERY_TEAM and mode is Mode.NORMAL:
            return f"{described(now)}; that was set from the command line for every team, and is lifted there"
        return described(now) + (f"; {stopped} turns were stopped" if stopped else "")


async def set_mode(
    store: Store, team: str, mode: Mode, *, by: str, person: str, why: str = "", os_account: str = ""
) -> int:
    """Set the switch of a team or of EVERY_TEAM, audited. Stopped also stops the turns; returns how many."""
    async with store.begin() as db:
        await control.set_mode(db, team=team, mode=mode, by=by, why=why)
        await audit.add(
            db,
            AuditEvent.MODE_SET,
            team=team,
            person=person,
            os_account=os_account,
            detail={"mode": mode, "why": why},
        )
        going = await turns.all_unfinished(db, team=None if team == EVERY_TEAM else team)
    if mode is not Mode.STOPPED:
        return 0
    for turn_id in going:  # one transaction each: a turn at work is locked for moments only
        async with store.begin() as db:
            await turns.request_stop(db, turn_id=turn_id, by=by)
    return len(going)


def described(switch: Switch | None) -> str:
    """`read-only since 2026-03-01 10:00 UTC, set by bob (deploy freeze): …`"""
    if switch is None:
        return "mode normal: reads run, everything else asks"
    what = {
        Mode.READ_ONLY: "reads run, nothing is changed and nothing is asked",
        Mode.STOPPED: "nothing is run on any host",
        Mode.NORMAL: "reads run, everything else asks",
    }[switch.mode]
    why = f" ({switch.why})" if switch.why else ""
    return f"mode {switch.mode} since {switch.at:%Y-%m-%d %H:%M} UTC, set by {switch.by}{why}: {what}"
