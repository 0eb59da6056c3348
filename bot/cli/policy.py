"""`policy check`: what the gate says of commands, without a database, a host or a model."""

from __future__ import annotations

import json
import sys
from typing import Any

import typer

from bot import settings
from bot.errors import UsageError
from bot.policy.judge import judge
from bot.policy.rules import load_rules

policy_app = typer.Typer(help="The gate: which commands run by themselves.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(policy_app, name="policy")


@policy_app.command()
def check(host: str = typer.Option("", "--host", help="a host of hosts.yml; its sudo flag counts")) -> None:
    """Read JSON lines {"command": ...} from stdin; print {"command","verdict","reason","run","parsed"} for each.

    A command that two people must approve has "danger", the reason, as well.
    """
    config = settings.load()
    rules = load_rules(config.extra_rules())
    sudo_allowed, targets = _host(config, host)
    for number, line in enumerate(sys.stdin.buffer, 1):
        if not line.strip():
            continue
        command = _command(line, number)
        verdict = judge(
            command, rules, host_name=host or "this host", sudo_allowed=sudo_allowed, targets=targets
        )
        answer: dict[str, Any] = {
            "command": command,
            "verdict": verdict.decision.value,
            "reason": verdict.reason,
            "run": verdict.run,
            "parsed": verdict.parsed,
        }
        if verdict.danger:
            answer["danger"] = verdict.danger
        sys.stdout.buffer.write(_encoded(answer) + b"\n")
    sys.stdout.buffer.flush()


def _command(line: bytes, number: int) -> str:
    try:
        data: Any = json.loads(line)
    except ValueError:
        raise UsageError(
            f'stdin line {number}: not JSON in UTF-8; each line is {{"command": "..."}}'
        ) from None
    if not isinstance(data, dict) or not isinstance(data.get("command"), str):
        raise UsageError(f'stdin line {number}: lacks "command" as a text')
    return str(data["command"])


def _encoded(answer: dict[str, Any]) -> bytes:
    try:
        return json.dumps(answer, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # a lone surrogate; its escaped form is the same JSON text
        return json.dumps(answer).encode()


def _host(config: settings.Settings, name: str) -> tuple[bool, tuple[str, ...]]:
    """The sudo flag of a host and the targets it may reach. Without hosts.yml: no sudo, only loopback."""
    if config.hosts is None:
        return False, ()
    from bot.ssh.inventory import load

    inventories = load(config.hosts, check_files=False).all
    if not name:
        return False, inventories[0].targets if len(inventories) == 1 else ()
    for inventory in inventories:
        for host in inventory.hosts:
            if host.name == name:
                return host.sudo, inventory.targets
    known = ", ".join(sorted(h.name for i in inventories for h in i.hosts)) or "none"
    raise UsageError(f"host {name} is not in the inventory; it has: {known}")
