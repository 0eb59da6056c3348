"""hosts.yml: taken whole or refused with every fault and its line."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.errors import InventoryError
from bot.ssh.inventory import LiveInventory, load

CONTRACT = """\
defaults: {user: opsbot, port: 22, known_hosts: known_hosts, identity: [id], timeout_s: 30, max_timeout_s: 900}
hosts:
  - {name: web-1, address: 10.0.0.11, labels: {role: web, env: prod}, jump: bastion, sudo: false, home: /nonexistent, env: {KUBECONFIG: /etc/kube/view}}
  - {name: bastion, address: "fe80::1", port: 2222, timeout_s: 10}
targets: [*.example.com, 10.0.0.0/8]     # names that dig, ping, curl may reach without asking
access:
  - {users: [U01ALICE], usergroups: [S01SRE], channels: [C01OPS, dm], hosts: ["web-*", "env=prod"], approvers: [U01ALICE, S01SRE], self_approval: false}
"""  # noqa: E501


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "id").write_text("key")
    path = tmp_path / "hosts.yml"
    path.write_text(CONTRACT)
    return path


def faults(file: Path, text: str, *, check_files: bool = True) -> list[str]:
    file.write_text(text)
    with pytest.raises(InventoryError) as refusal:
        load(file, check_files=check_files)
    return [each.removeprefix(f"{file}:") for each in str(refusal.value).split("; ")]


def test_the_contracts_example_is_read_as_it_stands(file: Path) -> None:
    inventory = load(file).for_team("T01")
    web, bastion = inventory.hosts
    assert (web.name, web.address, web.port, web.user) == ("web-1", "10.0.0.11", 22, "opsbot")
    assert web.identity == (file.parent / "id",)
    assert web.known_hosts == file.parent / "known_hosts"
    assert (web.labels, web.env) == ((("env", "prod"), ("role", "web")), (("KUBECONFIG", "/etc/kube/view"),))
    assert (web.jump, web.via, bastion.via) == ("bastion", bastion, None)
    assert (bastion.port, bastion.timeout_s, bastion.max_timeout_s) == (2222, 10, 900)
    assert inventory.targets == ("*.example.com", "10.0.0.0/8")
    assert inventory.rules[0].channels == ("C01OPS", "dm")
    assert inventory.rules[0].line == 7
    assert inventory.host("web-1") is web
    assert inventory.host("web-2") is None


def test_every_fault_is_named_with_its_line_in_one_go(file: Path) -> None:
    text = """\
defaults: {user: opsbot, known_hosts: known_hosts, identity: [id]}
hosts:
  - {name: web-1, address: 10.0.0.11, jump: nowhere}
  - {name: web-1, address: 10.0.0.12, timeout_s: 1000}
  - name: db-1
    address: 10.0.0.13
    port: ninety
    colour: red
  - {name: a, address: a.lan, jump: b}
  - {name: b, address: b.lan, jump: a, identity: [absent]}
targets: [10.0.0.0/99, "bad name"]
access:
  - {users: ["@bob"], hosts: ["*"]}
  - {hosts: [web-9]}
  - {users: [U1], hosts: [], channels: ["#ops"]}
"""
    found = faults(file, text)
    for expected in (
        "3: host web-1: jump nowhere is not a host",
        "4: host web-1 is already defined in line 3",
        "4: host web-1: timeout_s 1000 is over max_timeout_s 900",
        "7: hosts[2].port: Input should be a valid integer",
        "8: hosts[2].colour: is not a key that is known here",
        "9: host a: jump goes in a circle: a -> b -> a",
        f"10: host b: identity {file.parent}/absent does not exist",
        "11: targets[0]: '10.0.0.0/99' is not a network",
        "11: targets[1]: 'bad name' is not a name",
        "13: access[0].users[0]: '@bob' is not a Slack user id",
        "14: the rule has neither users nor usergroups",
        "14: web-9 is not a host of this file",
        "15: access[2].channels[0]: '#ops' is not a Slack channel id",
    ):
        assert any(each.startswith(expected) for each in found), (expected, found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hosts: []\nhosts: []\n", "2: hosts is already given in line 1"),
        ("hosts:\n  - {name: a\n", "3: is not YAML: "),
        ("", "1: hosts: is missing"),
        ("- a\n", "1: the file: Input should be"),
        ("hosts: []\nhost: []\n", "2: host: is not a key that is known here"),
        ("hosts:\n- {name: a, address: b}\n", "2: host a: user is missing here and in defaults"),
        ("defaults: {port: 0}\nhosts: []\n", "1: defaults.port: Input should be greater than"),
        ("hosts:\n- {name: 'a b', address: b}\n", "2: hosts[0].name: 'a b' is not a host name"),
        (
            "hosts:\n- {name: a, address: -oProxyCommand=x}\n",
            "2: hosts[0].address: '-oProxyCommand=x' is not",
        ),
        ("hosts:\n- {name: a, address: b, user: -l}\n", "2: hosts[0].user: '-l' is not an account name"),
        (
            "hosts:\n- {name: a, address: b, env: {A B: x}}\n",
            "2: hosts[0].env.A B: 'A B' is not a variable's name",
        ),
        ("hosts:\n- {name: a, address: b, home: here}\n", "2: hosts[0].home: 'here' is not an absolute path"),
        ("hosts: [&x {name: a}, *x]\n", "1: hosts[1]: Input should be"),
        ("{[a]: 1}: 2\n", "1: a key must be a single word"),
    ],
)
def test_a_fault_is_named_with_its_line(file: Path, text: str, expected: str) -> None:
    found = faults(file, text, check_files=False)
    assert any(each.startswith(expected) for each in found), found


def test_plain_values_keep_their_spelling(file: Path) -> None:
    """YAML would make 1.1 of 1.10, false of no and 7 of 007."""
    file.write_text(
        "defaults: {user: a, known_hosts: k, identity: id}\n"
        "hosts:\n- {name: '007', address: a, labels: {v: 1.10, country: no}, env: {Q: \"'\"}, jump: ~}\n"
    )
    host = load(file).for_team("").hosts[0]
    assert (host.name, host.labels, host.jump) == ("007", (("country", "no"), ("v", "1.10")), None)
    assert host.env == (("Q", "'"),)


def test_a_hosts_labels_and_env_are_laid_over_the_defaults(file: Path) -> None:
    file.write_text(
        "defaults: {user: a, known_hosts: k, identity: id, labels: {env: prod, site: x}, env: {A: 1}}\n"
        "hosts:\n- {name: h, address: a, labels: {env: test}, env: {B: 2}}\n"
    )
    host = load(file).for_team("").hosts[0]
    assert host.labels == (("env", "test"), ("site", "x"))
    assert host.env == (("A", "1"), ("B", "2"))


def test_a_folder_serves_each_team_its_own_file(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "teams"
    folder.mkdir()
    for team, name in (("T01", "one"), ("T02", "two")):
        (folder / f"{team}.yml").write_text(
            f"defaults: {{user: a, known_hosts: k, identity: {tmp_path}/id}}\n"
            f"hosts: [{{name: {name}, address: a}}]\n"
        )
    inventories = load(folder)
    assert inventories.teams == ("T01", "T02")
    assert [host.name for host in inventories.for_team("T02").hosts] == ["two"]
    assert inventories.for_team("T99").hosts == ()
    (folder / "T02.yml").write_text("hosts: 5\n")
    with pytest.raises(InventoryError, match=r"T02\.yml:1"):
        load(folder)


def test_no_file_and_an_empty_folder_are_said(tmp_path: Path) -> None:
    with pytest.raises(InventoryError, match=r"does not exist; `opsthread init`"):
        load(tmp_path / "absent.yml")
    with pytest.raises(InventoryError, match=r"holds no \.yml file"):
        load(tmp_path)


async def test_a_reload_takes_the_new_file_or_keeps_the_old_whole(file: Path) -> None:
    told: list[str] = []

    async def tell(fault: str) -> None:
        told.append(fault)

    live = LiveInventory(file, tell)
    before = live.current
    file.write_text(CONTRACT.replace("port: 2222", "port: many"))
    assert not await live.reload()
    assert live.current is before
    assert ":4: hosts[1].port" in told[-1]
    file.write_text(CONTRACT.replace("port: 2222", "port: 2223"))
    assert await live.reload()
    assert live.current.for_team("").hosts[1].port == 2223
    assert told[-1] == ""


async def test_a_changed_file_and_a_sighup_are_followed(file: Path) -> None:
    live = LiveInventory(file, poll_s=0.02)
    await live.start()
    file.write_text(CONTRACT.replace("port: 2222", "port: 2223"))
    await soon(lambda: live.current.for_team("").hosts[1].port == 2223)
    stat = file.stat()
    file.write_text(CONTRACT.replace("port: 2222", "port: 2224"))
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # what a poll cannot see, the signal can
    os.kill(os.getpid(), 1)
    await soon(lambda: live.current.for_team("").hosts[1].port == 2224)
    await live.close()


async def test_a_file_that_is_still_being_written_is_not_taken(file: Path) -> None:
    """Cut after any line it may well be valid, with fewer rules: no state in between is ever seen."""
    live = LiveInventory(file, poll_s=0.05)
    await live.start()
    seen = set()
    for end in range(0, len(CONTRACT), 40):
        file.write_text(CONTRACT[:end])
        await asyncio.sleep(0.01)
        seen.add(live.current)
    file.write_text(CONTRACT + "# done\n")
    first = next(iter(seen))
    await soon(lambda: live.current is not first)
    await live.close()
    assert seen == {first}
    assert live.current == first


async def soon(true: Callable[[], bool]) -> None:
    ends = time.monotonic() + 5
    while not true():
        assert time.monotonic() < ends, "the awaited state did not come"
        await asyncio.sleep(0.01)
