"""Who may reach which host from which channel, and who may approve: pure questions to an Inventory."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from bot.ssh.inventory import AccessRule, Host, Inventory

LOCAL = "local:"
GLOB = frozenset("*?[")
LISTED = 8  # so many names of hosts fit a message that people still read


@dataclass(frozen=True, slots=True)
class Actor:
    """A person as the rules see them. id: `U…` or `local:<OS account>`; groups: Slack user group ids.

    guest: a guest, a bot, or somebody of another company; the rules give them nothing.
    """

    team: str
    id: str
    name: str
    groups: frozenset[str] = frozenset()
    guest: bool = False


def hosts_for(actor: Actor, channel: str, inventory: Inventory, *, shared: bool = False) -> tuple[Host, ...]:
    """The hosts this person may use from this channel (`dm`, `terminal` or a Slack id), in file order."""
    return tuple(host for host in inventory.hosts if rule_for(actor, channel, host, inventory, shared=shared))


def rule_for(
    actor: Actor, channel: str, host: Host, inventory: Inventory, *, shared: bool = False
) -> AccessRule | None:
    """The first rule that matches person, channel and host decides; None: no access.

    shared: the channel is shared with another company; only a rule that names it counts there.
    """
    if actor.guest:
        return None
    for rule in inventory.rules:
        if _has(rule, actor) and _in(rule, channel, shared=shared) and _reaches(rule, host):
            return rule
    return None


def approvers_of(rule: AccessRule | None) -> tuple[str, ...]:
    """The people and groups who may approve under a rule; none: nobody can."""
    return rule.approvers if rule else ()


def approval_refusal(rule: AccessRule | None, *, approver: Actor, requester: str) -> str | None:
    """Why this person may not approve what `requester` asked for; None: they may."""
    if rule is None:
        return "no access rule covers this host any more, so nobody can approve it"
    if not rule.approvers:
        return "the access rule of this host names no approvers, so nobody can approve; add some in hosts.yml"
    people = ", ".join(rule.approvers)
    if approver.guest:
        return f"guests and people of other companies cannot approve; approvers are {people}"
    if not _named(approver, rule.approvers) and not approver.groups & set(rule.approvers):
        return f"you are not an approver for this; approvers are {people}"
    if approver.id == requester and not rule.self_approval:
        return f"you asked for this yourself, so somebody else must approve it; approvers are {people}"
    return None


def is_approver(actor: Actor, inventory: Inventory) -> bool:
    """Whether any rule names this person, or a group of theirs, as approver."""
    return any(
        _named(actor, rule.approvers) or actor.groups & set(rule.approvers) for rule in inventory.rules
    )


def is_one_person(approver: str) -> bool:
    """Whether an entry of `approvers` names a single person: no group, no glob over OS accounts."""
    return not approver.startswith("S") and not GLOB & set(approver)


def unknown_host_message(name: str, hosts: Iterable[Host]) -> str:
    """The refusal that teaches: what is not there, what may be used instead, the likely meant one first."""
    names = [host.name for host in hosts]
    if not names:
        return f'host "{name}" is not in the inventory, and you have no access to any host from here'
    near = difflib.get_close_matches(name, names, n=LISTED, cutoff=0.6)
    ordered = [*near, *(each for each in names if each not in near)]
    more = f" and {len(ordered) - LISTED} more" if len(ordered) > LISTED else ""
    return f'host "{name}" is not in the inventory; you may use: {", ".join(ordered[:LISTED])}{more}'


def _has(rule: AccessRule, actor: Actor) -> bool:
    return _named(actor, rule.users) or bool(actor.groups & set(rule.usergroups))


def _named(actor: Actor, people: tuple[str, ...]) -> bool:
    """Exactly, but for OS accounts also by glob (`local:*`); a Slack id is never a pattern."""
    if actor.id in people:
        return True
    return actor.id.startswith(LOCAL) and any(
        each.startswith(LOCAL) and fnmatchcase(actor.id, each) for each in people
    )


def _in(rule: AccessRule, channel: str, *, shared: bool) -> bool:
    return not shared if rule.channels is None else channel in rule.channels


def _reaches(rule: AccessRule, host: Host) -> bool:
    return any(_fits(pattern, host) for pattern in rule.hosts)


def _fits(pattern: str, host: Host) -> bool:
    label, equals, wanted = pattern.partition("=")
    if equals:
        return any(key == label and fnmatchcase(value, wanted) for key, value in host.labels)
    return fnmatchcase(host.name, pattern)
