"""The records of hosts.yml: a host, a rule of access, and one team's inventory of both."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Host:
    """One machine. `name` is what people say and what its key is looked up under; times are seconds.

    home and env are all that a command sees besides a fixed PATH. jump names another host, `via` is it.
    """

    name: str
    address: str
    port: int
    user: str
    known_hosts: Path
    identity: tuple[Path, ...]
    labels: tuple[tuple[str, str], ...] = ()
    jump: str | None = None
    sudo: bool = False
    home: str = "/nonexistent"
    env: tuple[tuple[str, str], ...] = ()
    timeout_s: int = 30
    max_timeout_s: int = 900
    via: Host | None = None


@dataclass(frozen=True, slots=True)
class AccessRule:
    """Who (users or usergroups) may use which hosts from which channels, and who approves.

    channels None: any channel that is not shared with another company. danger_approvals: how many people must
    say yes to a command that is marked dangerous. line: where the rule stands in the file.
    """

    users: tuple[str, ...]
    usergroups: tuple[str, ...]
    channels: tuple[str, ...] | None
    hosts: tuple[str, ...]
    approvers: tuple[str, ...]
    self_approval: bool
    line: int = 0
    danger_approvals: int = 2


@dataclass(frozen=True, slots=True)
class Inventory:
    """One team's hosts.yml. targets: names, globs and networks that reads may contact without asking."""

    hosts: tuple[Host, ...] = ()
    targets: tuple[str, ...] = ()
    rules: tuple[AccessRule, ...] = ()

    def host(self, name: str) -> Host | None:
        """The host of this exact name."""
        return next((host for host in self.hosts if host.name == name), None)
