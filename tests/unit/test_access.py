"""Who may reach which host from where, and who may approve."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bot.access import Actor, approval_refusal, approvers_of, hosts_for, rule_for, unknown_host_message
from bot.ssh.inventory import AccessRule, Host, Inventory


def host(name: str, **labels: str) -> Host:
    return Host(name, "10.0.0.1", 22, "ops", Path("known"), (Path("id"),), tuple(labels.items()))


def rule(**changed: object) -> AccessRule:
    fields: dict[str, object] = {
        "users": ("U1",), "usergroups": (), "channels": None, "hosts": ("*",), "approvers": ("U9",),
        "self_approval": False,
    }  # fmt: skip
    return AccessRule(**{**fields, **changed})  # type: ignore[arg-type]


WEB, DB = host("web-1", env="prod"), host("db-1", env="test")
ALICE = Actor("T1", "U1", "alice")
LOCAL = Actor("T1", "local:ops", "ops")


def names(actor: Actor, channel: str, *rules: AccessRule, shared: bool = False) -> list[str]:
    return [each.name for each in hosts_for(actor, channel, Inventory((WEB, DB), (), rules), shared=shared)]


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        (("web-1",), ["web-1"]),
        (("web-*",), ["web-1"]),
        (("env=test",), ["db-1"]),
        (("env=*",), ["web-1", "db-1"]),
        (("role=web",), []),
        (("web-1", "db-?"), ["web-1", "db-1"]),
    ],
)
def test_a_host_is_matched_by_name_glob_or_label(hosts: tuple[str, ...], expected: list[str]) -> None:
    assert names(ALICE, "C1", rule(hosts=hosts)) == expected


def test_without_a_matching_rule_there_is_no_access() -> None:
    assert names(ALICE, "C1") == []
    assert names(replace(ALICE, id="U2"), "C1", rule()) == []


def test_a_person_matches_by_id_or_by_group() -> None:
    by_group = rule(users=(), usergroups=("S1",))
    assert names(ALICE, "C1", by_group) == []
    assert names(replace(ALICE, groups=frozenset({"S1"})), "C1", by_group) == ["web-1", "db-1"]


def test_a_channel_must_be_named_unless_none_is() -> None:
    listed = rule(channels=("C1", "dm"))
    assert names(ALICE, "C1", listed)
    assert names(ALICE, "dm", listed)
    assert not names(ALICE, "C2", listed)
    assert not names(ALICE, "terminal", listed)
    assert names(ALICE, "terminal", rule())


def test_a_channel_shared_with_another_company_counts_only_where_named() -> None:
    assert not names(ALICE, "C1", rule(), shared=True)
    assert names(ALICE, "C1", rule(channels=("C1",)), shared=True)


def test_guests_are_refused_whatever_the_rules_say() -> None:
    guest = replace(ALICE, guest=True)
    assert names(guest, "C1", rule()) == []
    refusal = approval_refusal(rule(approvers=("U1",)), approver=guest, requester="U2")
    assert refusal is not None
    assert "guests" in refusal


def test_the_first_match_decides() -> None:
    first, second = rule(hosts=("web-*",), approvers=()), rule(approvers=("U9",))
    inventory = Inventory((WEB, DB), (), (first, second))
    assert rule_for(ALICE, "C1", WEB, inventory) is first
    assert rule_for(ALICE, "C1", DB, inventory) is second


def test_a_glob_of_os_accounts_never_reaches_slack_people() -> None:
    everybody = rule(users=("local:*",), approvers=("local:*",), self_approval=True)
    assert names(LOCAL, "terminal", everybody) == ["web-1", "db-1"]
    assert names(ALICE, "terminal", everybody) == []
    assert approval_refusal(everybody, approver=LOCAL, requester=LOCAL.id) is None
    assert approval_refusal(everybody, approver=ALICE, requester=LOCAL.id) is not None


def test_an_approver_is_named_or_in_a_named_group() -> None:
    asked = rule(approvers=("U9", "S1"))
    assert approval_refusal(asked, approver=Actor("T1", "U9", "carol"), requester="U1") is None
    assert (
        approval_refusal(asked, approver=Actor("T1", "U5", "eve", frozenset({"S1"})), requester="U1") is None
    )
    refusal = approval_refusal(asked, approver=Actor("T1", "U5", "eve"), requester="U1")
    assert refusal == "you are not an approver for this; approvers are U9, S1"
    assert approvers_of(asked) == ("U9", "S1")


def test_nobody_approves_their_own_request_unless_the_rule_allows_it() -> None:
    asked = rule(approvers=("U1", "U9"))
    refusal = approval_refusal(asked, approver=ALICE, requester="U1")
    assert refusal is not None
    assert "you asked for this yourself" in refusal
    assert approval_refusal(replace(asked, self_approval=True), approver=ALICE, requester="U1") is None


def test_without_approvers_or_without_a_rule_nobody_can_approve() -> None:
    refusal = approval_refusal(rule(approvers=()), approver=ALICE, requester="U2")
    assert refusal is not None
    assert "names no approvers" in refusal
    refusal = approval_refusal(None, approver=ALICE, requester="U2")
    assert refusal is not None
    assert "no access rule covers this host" in refusal
    assert approvers_of(None) == ()


def test_an_unknown_host_is_told_with_what_may_be_used() -> None:
    hosts = [host("web-1"), host("web-2")]
    assert (
        unknown_host_message("web1", hosts)
        == 'host "web1" is not in the inventory; you may use: web-1, web-2'
    )
    many = [host(f"app-{n}") for n in range(20)]
    message = unknown_host_message("redis1", [*many, host("redis-1")])
    assert message.startswith('host "redis1" is not in the inventory; you may use: redis-1, app-0,')
    assert message.endswith("and 13 more")
    assert "no access to any host" in unknown_host_message("web1", [])
