"""`hosts list`, `hosts check` and `hosts trust`: what is in hosts.yml, whether it works, and taking a key over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import typer

from bot import log, settings
from bot.access import LOCAL, Actor, rule_for, unknown_host_message
from bot.cli import printing
from bot.cli.auditing import record
from bot.database import database
from bot.demo.host import DemoHost, write_hosts_yml
from bot.errors import HostError, UsageError
from bot.settings import Settings
from bot.ssh.inventory import AccessRule, Host, Inventories, Inventory, load
from bot.ssh.remote import HostReport, Remote
from storage.audit import AuditEvent

AT_ONCE = 20  # hosts checked side by side
ELSEWHERE = "any other channel"

hosts_app = typer.Typer(help="The machines in hosts.yml.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(hosts_app, name="hosts")


@hosts_app.command("list")
def list_(
    user: str = typer.Option("", "--user", help="only what this person may use: U… or local:<OS account>"),
    team: str = typer.Option("", "--team", help="where OPSTHREAD_HOSTS is a folder: only this team's file"),
    as_json: bool = typer.Option(False, "--json", help="one JSON object a line"),
) -> None:
    """Show the hosts, or those that a person may use and from where (user groups are Slack's to know)."""
    config = _configured()
    inventories = load(_path(config), check_files=False)
    shown = 0
    for name, inventory in _parts(inventories, team):
        for host in inventory.hosts:
            rights = _rights(user, host, inventory) if user else None
            if rights == []:
                continue
            shown += 1
            if as_json:
                printing.json_lines([_record(name, host, rights)])
            else:
                printing.say(_line(host, rights))
    if not shown and not as_json:
        print(f"{user} may use no host" if user else "no hosts")


@hosts_app.command()
def check(
    names: list[str] = typer.Argument(None, help="hosts; all of them when none is named"),  # noqa: B008
    as_json: bool = typer.Option(False, "--json", help="one JSON object a line"),
) -> None:
    """Connect, verify the key, run the wrapper itself, measure; exit 1 if any host fails."""
    reports = asyncio.run(_check(names or []))
    for report in reports:
        if as_json:
            printing.json_lines([asdict(report)])
        else:
            printing.say(_verdict(report))
    raise typer.Exit(0 if all(report.ok for report in reports) else 1)


@hosts_app.command()
def trust(
    name: str = typer.Argument(help="a host of hosts.yml"),
    fingerprint: str = typer.Option(..., "--fingerprint", help="SHA256:…, read on the host itself"),
) -> None:
    """Write the host's key to known_hosts if it has this fingerprint; refuse it otherwise."""
    host = asyncio.run(_trust(name, fingerprint))
    print(f"{host.name}: {fingerprint} is now in {host.known_hosts}")


async def _check(names: list[str]) -> list[HostReport]:
    async with _inventories(_configured()) as inventories:
        hosts = _chosen(inventories, names)
        slots = asyncio.Semaphore(AT_ONCE)
        remote = Remote()

        async def one(host: Host) -> HostReport:
            async with slots:
                return await remote.check(host)

        try:
            return list(await asyncio.gather(*(one(host) for host in hosts)))
        finally:
            await remote.close()


async def _trust(name: str, fingerprint: str) -> Host:
    config = _configured()
    async with _inventories(config) as inventories:
        host = _chosen(inventories, [name])[0]
        remote = Remote()
        detail = {"host_key": fingerprint, "known_hosts": str(host.known_hosts), "address": host.address}
        async with database(config) as store:
            # The row first: whatever happens then, no key is trusted that the log does not know of.
            async with store.begin() as db:
                await record(db, AuditEvent.HOSTS_TRUSTED, host=host.name, detail=detail)
            try:
                await remote.trust(host, fingerprint)
            except HostError:
                async with store.begin() as db:
                    await record(db, AuditEvent.HOSTS_NOT_TRUSTED, host=host.name, detail=detail)
                raise
            finally:
                await remote.close()
        return host


def _configured() -> Settings:
    config = settings.load()
    log.configure(
        config.log_format, "error" if config.log_level == "info" else config.log_level, config.redactor()
    )
    return config


def _path(config: Settings) -> Path:
    practice = config.data_dir / "demo" / "hosts.yml"
    return config.hosts or (practice if practice.exists() else Path("hosts.yml"))


@asynccontextmanager
async def _inventories(config: Settings) -> AsyncGenerator[Inventories]:
    """The hosts of OPSTHREAD_HOSTS; where it is unset, the practice host for as long as this lasts."""
    if config.hosts is not None:
        yield load(config.hosts)
        return
    folder = config.data_dir / "demo"
    demo = DemoHost(folder)
    port = await demo.start()
    try:
        yield load(write_hosts_yml(folder, port))
    finally:
        await demo.stop()


def _parts(inventories: Inventories, team: str) -> list[tuple[str, Inventory]]:
    if team or not inventories.teams:
        return [(team, inventories.for_team(team))]
    return [(each, inventories.for_team(each)) for each in inventories.teams]


def _chosen(inventories: Inventories, names: list[str]) -> list[Host]:
    everything = list(dict.fromkeys(host for each in inventories.all for host in each.hosts))
    for name in names:
        if not any(host.name == name for host in everything):
            raise UsageError(unknown_host_message(name, everything))
    return [host for host in everything if not names or host.name in names]


@dataclass(frozen=True, slots=True)
class _Right:
    """What one rule lets a person do with a host, and from which channels."""

    channels: list[str]
    rule: AccessRule

    def record(self) -> dict[str, object]:
        return {
            "channels": self.channels,
            "approvers": list(self.rule.approvers),
            "self_approval": self.rule.self_approval,
            "danger_approvals": self.rule.danger_approvals,
        }

    def line(self) -> str:
        """`from C01OPS, dm, changes by U02BOB or S01SRE`"""
        if not self.rule.approvers:
            changes = "reads only: nobody may approve a change"
        else:
            own = ", also their own" if self.rule.self_approval else ""
            changes = f"changes by {' or '.join(self.rule.approvers)}{own}"
        return f"from {', '.join(self.channels)}, {changes}"


def _rights(user: str, host: Host, inventory: Inventory) -> list[_Right]:
    """What this person may do with the host, rule by rule; a bare name is an OS account."""
    person = Actor("", user if user[:1] in {"U", "W"} or user.startswith(LOCAL) else LOCAL + user, user)
    named = {channel for rule in inventory.rules for channel in rule.channels or ()}
    asked = [*sorted(named | {"dm", "terminal"}), ELSEWHERE]
    found: dict[AccessRule, list[str]] = {}
    for channel in asked:
        if rule := rule_for(person, channel, host, inventory):
            found.setdefault(rule, []).append(channel)
    return [_Right(channels, rule) for rule, channels in found.items()]


def _record(team: str, host: Host, rights: list[_Right] | None) -> dict[str, object]:
    record: dict[str, object] = {
        "name": host.name,
        "address": host.address,
        "port": host.port,
        "user": host.user,
        "labels": dict(host.labels),
        "jump": host.jump,
        "sudo": host.sudo,
    }
    if team:
        record["team"] = team
    if rights is not None:
        record["channels"] = [channel for right in rights for channel in right.channels]
        record["rights"] = [right.record() for right in rights]
    return record


def _line(host: Host, rights: list[_Right] | None) -> str:
    parts = [f"{host.name:<20} {host.user}@{host.address}:{host.port}"]
    parts += [" ".join(f"{label}={value}" for label, value in host.labels)] if host.labels else []
    parts += [f"through {host.jump}"] if host.jump else []
    parts += ["sudo"] if host.sudo else []
    parts += [right.line() for right in rights or ()]
    return " · ".join(parts)


def _verdict(report: HostReport) -> str:
    if not report.ok:
        return f"✗ {report.host:<20} {report.reason}"
    sudo = {None: "", True: " · sudo -n works", False: " · sudo -n is refused"}[report.sudo]
    times = f"connect {report.connect_ms:.0f} ms, command {report.run_ms:.0f} ms"
    return f"✓ {report.host:<20} {times} · {report.fingerprint}{sudo}"
