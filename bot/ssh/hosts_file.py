"""The text of one hosts.yml -> an Inventory and its faults; here pydantic checks what people wrote."""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from bot.ssh.marked_yaml import Loc, MarkedYaml, read
from bot.ssh.records import AccessRule, Host, Inventory

GLOB = frozenset("*?[")


def _shaped(pattern: str, teaching: str) -> AfterValidator:
    shape = re.compile(pattern)

    def check(value: str) -> str:
        if not shape.fullmatch(value):
            raise ValueError(f"{value!r} {teaching}")
        return value

    return AfterValidator(check)


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _target(value: str) -> str:
    if "/" in value:
        try:
            ipaddress.ip_network(value, strict=False)
        except ValueError:
            raise ValueError(f"{value!r} is not a network such as 10.0.0.0/8") from None
    elif not re.fullmatch(r"[A-Za-z0-9*?._:-]+", value):
        raise ValueError(f"{value!r} is not a name, a glob or a network")
    return value


ACCOUNT = r"local:[^\s:]+"
Name = Annotated[
    str, _shaped(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", "is not a host name: letters, digits, . _ -")
]
Address = Annotated[str, _shaped(r"[A-Za-z0-9:][A-Za-z0-9.:%_-]{0,254}", "is not a host name or IP address")]
User = Annotated[str, _shaped(r"[A-Za-z0-9_][A-Za-z0-9._@\\-]{0,63}\$?", "is not an account name")]
Variable = Annotated[str, _shaped(r"[A-Za-z_][A-Za-z0-9_]*", "is not a variable's name")]
Line = Annotated[str, _shaped(r"[^\x00-\x1f\x7f]*", "has control characters")]
Label = Annotated[str, _shaped(r"[^\s=*?\[\]]+", "is not a label: no spaces, =, * or ?")]
Folder = Annotated[str, _shaped(r"/[^\x00-\x1f\x7f]*", "is not an absolute path")]
Person = Annotated[str, _shaped(rf"[UW]\w+|{ACCOUNT}", "is not a Slack user id (U…) or local:<OS account>")]
Group = Annotated[str, _shaped(r"S\w+", "is not a Slack user group id (S…)")]
Channel = Annotated[
    str, _shaped(r"[CGD]\w+|dm|terminal", "is not a Slack channel id (C…), `dm` or `terminal`")
]
Approver = Annotated[
    str, _shaped(rf"[UWS]\w+|{ACCOUNT}", "is not a Slack user (U…) or group (S…) id or local:<OS account>")
]
Target = Annotated[str, AfterValidator(_target)]
Paths = Annotated[tuple[Line, ...], BeforeValidator(_listed), Field(min_length=1)]
Seconds = Annotated[int, Field(ge=1, le=86_400)]


class _Door(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class _Defaults(_Door):
    user: User | None = None
    port: int = Field(22, ge=1, le=65_535)
    known_hosts: Line | None = Field(None, min_length=1)
    identity: Paths | None = None
    labels: dict[Label, Line] = {}
    jump: Name | None = None
    sudo: bool = False
    home: Folder = "/nonexistent"
    env: dict[Variable, Line] = {}
    timeout_s: Seconds = 30
    max_timeout_s: Seconds = 900


class _Host(_Defaults):
    name: Name
    address: Address


class _Rule(_Door):
    users: tuple[Person, ...] = ()
    usergroups: tuple[Group, ...] = ()
    channels: tuple[Channel, ...] | None = Field(None, min_length=1)
    hosts: tuple[Line, ...] = Field(min_length=1)
    approvers: tuple[Approver, ...] = ()
    self_approval: bool = False
    danger_approvals: int = Field(2, ge=1, le=2)


class _File(_Door):
    defaults: _Defaults = _Defaults()
    hosts: tuple[_Host, ...]
    targets: tuple[Target, ...] = ()
    access: tuple[_Rule, ...] = ()


def parse(text: str, file: Path, *, check_files: bool) -> tuple[Inventory, list[str]]:
    """The inventory of a file's text, and every fault as `file:line: …`. With faults it is empty."""
    marked = read(text)
    faults = [f"{file}:{line}: {what}" for line, what in marked.faults]
    if marked.value is None:
        return Inventory(), faults
    door, numbers, wrong = _validated(marked.value)
    faults += [_fault(file, marked, error) for error in wrong]
    if door is None:
        return Inventory(), faults
    check = _Check(file, marked)
    hosts = tuple(_host(door, n, folder=file.parent) for n in range(len(door.hosts)))
    check.hosts(dict(zip(numbers["hosts"], hosts, strict=True)), check_files=check_files)
    lines = [marked.line(("access", n)) for n in numbers["access"]]
    rules = tuple(_rule(rule, line=line) for rule, line in zip(door.access, lines, strict=True))
    check.rules(dict(zip(numbers["access"], rules, strict=True)))
    if faults or check.faults:
        return Inventory(), faults + check.faults
    return Inventory(_linked(hosts), door.targets, rules), []


def _validated(value: Any) -> tuple[_File | None, dict[str, list[int]], list[dict[str, Any]]]:
    """The file as pydantic sees it, the numbers of the hosts and rules in it, and what was wrong.

    Entries with faults are left out and the rest is looked at again, so that one run names every fault.
    """
    kept = {part: list(range(len(_list(value, part)))) for part in ("hosts", "access")}
    try:
        return _File.model_validate(value), kept, []
    except ValidationError as failed:
        wrong: list[dict[str, Any]] = [dict(e) for e in failed.errors()]
    bad = {tuple(error["loc"][:2]) for error in wrong}
    rest: dict[str, Any] = {}
    for part, numbers in kept.items():
        kept[part] = [n for n in numbers if (part, n) not in bad]
        rest[part] = [_list(value, part)[n] for n in kept[part]]
    if isinstance(value, dict) and not any(loc[:1] == ("defaults",) for loc in bad):
        rest["defaults"] = value.get("defaults", {})
    else:
        return None, kept, wrong
    try:
        return _File.model_validate(rest), kept, wrong
    except ValidationError:
        return None, kept, wrong


def _list(value: Any, part: str) -> list[Any]:
    found = value.get(part) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def _host(door: _File, number: int, *, folder: Path) -> Host:
    """A host with the defaults filled in; its labels and env are laid over those of the defaults."""
    own, defaults = door.hosts[number], door.defaults
    given = {name: getattr(defaults, name) for name in _Defaults.model_fields}
    given |= {name: getattr(own, name) for name in own.model_fields_set}
    return Host(
        name=own.name,
        address=own.address,
        port=given["port"],
        user=given["user"] or "",
        known_hosts=_path(given["known_hosts"] or "", folder),
        identity=tuple(_path(each, folder) for each in given["identity"] or ()),
        labels=tuple(sorted({**defaults.labels, **own.labels}.items())),
        jump=given["jump"],
        sudo=given["sudo"],
        home=given["home"],
        env=tuple(sorted({**defaults.env, **own.env}.items())),
        timeout_s=given["timeout_s"],
        max_timeout_s=given["max_timeout_s"],
    )


def _linked(hosts: tuple[Host, ...]) -> tuple[Host, ...]:
    """Every host with the bastions it is reached through; jumps are known to lead to an end."""
    by_name = {host.name: host for host in hosts}

    def link(host: Host) -> Host:
        return replace(host, via=link(by_name[host.jump])) if host.jump else host

    return tuple(link(host) for host in hosts)


def _rule(rule: _Rule, *, line: int) -> AccessRule:
    return AccessRule(
        users=rule.users,
        usergroups=rule.usergroups,
        channels=rule.channels,
        hosts=rule.hosts,
        approvers=rule.approvers,
        self_approval=rule.self_approval,
        line=line,
        danger_approvals=rule.danger_approvals,
    )


def _path(text: str, folder: Path) -> Path:
    """Relative paths are meant from the file they stand in, not from where the program was started."""
    return folder / Path(text).expanduser() if text else Path()


def _fault(file: Path, marked: MarkedYaml, error: dict[str, Any]) -> str:
    loc: Loc = tuple(part for part in error["loc"] if part != "[key]")
    match error["type"]:
        case "extra_forbidden":
            what = "is not a key that is known here"
        case "missing":
            what = "is missing"
        case _:
            what = str(error["msg"]).removeprefix("Value error, ")
    return f"{file}:{marked.line(loc)}: {_spoken(loc) or 'the file'}: {what}"


def _spoken(loc: Loc) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).removeprefix(".")


class _Check:
    """What pydantic cannot see: how the parts of a file refer to one another and to files on disk."""

    def __init__(self, file: Path, marked: MarkedYaml) -> None:
        self.file, self.marked, self.faults = file, marked, list[str]()
        named = (each for each in _list(marked.value, "hosts") if isinstance(each, dict))
        self.names = {str(each.get("name")) for each in named}  # also of hosts that have other faults

    def say(self, loc: Loc, what: str) -> None:
        self.faults.append(f"{self.file}:{self.marked.line(loc)}: {what}")

    def hosts(self, hosts: dict[int, Host], *, check_files: bool) -> None:
        first: dict[str, int] = {}
        by_name = {host.name: host for host in hosts.values()}
        for n, host in hosts.items():
            loc: Loc = ("hosts", n)
            if host.name in first:
                line = self.marked.line(("hosts", first[host.name]))
                self.say((*loc, "name"), f"host {host.name} is already defined in line {line}")
            first.setdefault(host.name, n)
            self._complete(host, loc)
            if host.timeout_s > host.max_timeout_s:
                over = f"timeout_s {host.timeout_s} is over max_timeout_s {host.max_timeout_s}"
                self.say((*loc, "timeout_s"), f"host {host.name}: {over}")
            self._jump(host, by_name, loc=(*loc, "jump"))
            if check_files:
                self._files(host, loc=(*loc, "identity"))

    def _complete(self, host: Host, loc: Loc) -> None:
        for key, value in (("user", host.user), ("identity", host.identity)):
            if not value:
                self.say(loc, f"host {host.name}: {key} is missing here and in defaults")
        if host.known_hosts == Path():
            self.say(
                loc, f"host {host.name}: known_hosts is missing here and in defaults; keys are always checked"
            )

    def _jump(self, host: Host, by_name: dict[str, Host], *, loc: Loc) -> None:
        trail, at = [host.name], host
        while at.jump is not None:
            if at.jump not in by_name:
                if at is host and at.jump not in self.names:
                    self.say(loc, f"host {host.name}: jump {at.jump} is not a host of this file")
                return
            at = by_name[at.jump]
            if at.name in trail:
                self.say(loc, f"host {host.name}: jump goes in a circle: {' -> '.join([*trail, at.name])}")
                return
            trail.append(at.name)

    def _files(self, host: Host, *, loc: Loc) -> None:
        for path in host.identity:
            if not path.is_file():
                self.say(loc, f"host {host.name}: identity {path} does not exist")
            elif not os.access(path, os.R_OK):
                self.say(loc, f"host {host.name}: identity {path} cannot be read by this account")

    def rules(self, rules: dict[int, AccessRule]) -> None:
        for n, rule in rules.items():
            if not rule.users and not rule.usergroups:
                self.say(("access", n), "the rule has neither users nor usergroups, so it matches nobody")
            for m, pattern in enumerate(rule.hosts):
                if not GLOB & set(pattern) and "=" not in pattern and pattern not in self.names:
                    self.say(("access", n, "hosts", m), f"{pattern} is not a host of this file")
